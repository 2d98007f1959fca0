//! Text in aligned columns.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

/// The spaces between two columns.
const GAP: usize = 2;

/// Cells up to this length are not wrapped.
const SHORT_CELL: usize = 36;

/// The least width for a column of longer cells.
const NARROWEST: usize = 24;

/// Aligns rows of numbers: the first column to the left, the others to the right.
pub fn align_numbers(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(Table::new(), header, rows, CellAlignment::Right)
}

/// Aligns rows of words: all columns to the left. If `width` is given, no line is longer: long cells are wrapped, and
/// if that leaves too little room for them, each row becomes a block with a line for each cell.
pub fn align_words(header: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    let Some(width) = width else { return aligned(table, header, rows, CellAlignment::Left) };
    let longest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let lengths: Vec<usize> =
        header.iter().enumerate().map(|(column, name)| longest(column).max(name.chars().count())).collect();
    let needed: usize =
        lengths.iter().map(|&length| if length > SHORT_CELL { NARROWEST } else { length + GAP }).sum();
    if needed > usize::from(width) {
        return rows.iter().map(|row| block(header, row, width)).collect::<Vec<_>>().join("\n\n");
    }
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width).set_header(header);
    for (column, &length) in table.column_iter_mut().zip(&lengths) {
        if length <= SHORT_CELL {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    aligned(table, header, rows, CellAlignment::Left)
}

/// A row over several lines: its first cell, then the others, indented and with the names of their columns.
fn block(header: &[&str], row: &[String], width: u16) -> String {
    let mut table = Table::new();
    let cells = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .add_rows(cells.map(|(name, cell)| [*name, cell.as_str()]));
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((2, 0));
        if number == 0 {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    [row[0].clone()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn aligned(mut table: Table, header: &[&str], rows: &[Vec<String>], others: CellAlignment) -> String {
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for (number, column) in table.column_iter_mut().enumerate() {
        // Two spaces between columns, none before the first.
        column.set_padding((0, GAP as u16));
        column.set_cell_alignment(if number == 0 { CellAlignment::Left } else { others });
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// A share in percent with two decimals; a dash for none.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("–".into(), |share| format!("{:.2}", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_fit_the_width_and_names_are_not_broken() {
        let name = "hierarchical_precision@k";
        let rows = [vec![name.to_owned(), "each level".into(), "a word and another ".repeat(5)]];
        let header = ["metric", "over", "summary"];
        for width in [40, 80, 120] {
            let text = align_words(&header, &rows, Some(width));
            assert!(text.contains(name), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(width)), "{text}");
        }
        assert!(align_words(&header, &rows, Some(40)).starts_with(&format!("{name}\n  over")));
        assert_eq!(align_words(&header, &rows, None).lines().count(), 2);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec!["order".into(), "12,000".into(), percent(Some(0.5))],
            vec!["kind".into(), "7".into(), percent(None)],
        ];
        let expected = "level  queries     AP\norder   12,000  50.00\nkind         7      –";
        assert_eq!(align_numbers(&["level", "queries", "AP"], &rows), expected);
    }
}
