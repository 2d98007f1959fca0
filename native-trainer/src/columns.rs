//! Text in aligned columns.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Aligns rows of numbers: the first column to the left, the others to the right.
pub fn align_numbers(header: &[&str], rows: &[Vec<String>]) -> String {
    aligned(Table::new(), header, rows, CellAlignment::Right)
}

/// Aligns rows of words: all columns to the left. If `width` is given, cells are wrapped to fit it.
pub fn align_words(header: &[&str], rows: &[Vec<String>], width: Option<u16>) -> String {
    let mut table = Table::new();
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    aligned(table, header, rows, CellAlignment::Left)
}

fn aligned(mut table: Table, header: &[&str], rows: &[Vec<String>], others: CellAlignment) -> String {
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    for (number, column) in table.column_iter_mut().enumerate() {
        // Two spaces between columns, none before the first.
        column.set_padding((0, 2));
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
    fn columns_are_aligned() {
        let rows = [
            vec!["order".into(), "12,000".into(), percent(Some(0.5))],
            vec!["kind".into(), "7".into(), percent(None)],
        ];
        let expected = "level  queries     AP\norder   12,000  50.00\nkind         7      –";
        assert_eq!(align_numbers(&["level", "queries", "AP"], &rows), expected);
    }
}
