//! A comparison as text: on the terminal, in Markdown, LaTeX, CSV and JSON, and as HTML in a report.
//!
//! Terminal, Markdown, LaTeX and HTML have two tables. The first has the scores in percent, by group, with the best of a
//! column in bold and the second underlined. The second has the metric that each loss optimises, before and after
//! training, and the cost. A third has what papers report, if the config has `[published]`. CSV and JSON have the scores
//! as shares, in full precision.

use akin_base::markup;
use akin_base::terminal::escape;
use akin_core::metrics::Metric;

use super::results::{Column, Comparison, PairedTests, Place, ResultRow, RowTest, Statistic};
use super::settings::describe;
use crate::config::{AVERAGE, PublishedResult};
use crate::evaluation::paper_results::printed;
use crate::evaluation::report::displayed;

/// The format of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Text,
    /// Markdown, for READMEs.
    Markdown,
    /// LaTeX, for papers; needs the package booktabs.
    Latex,
    /// A line for each loss.
    Csv,
    /// JSON with the values of every seed.
    Json,
}

/// The files that a comparison writes.
pub const FILES: [(&str, Format); 4] = [
    ("table.md", Format::Markdown),
    ("table.tex", Format::Latex),
    ("table.csv", Format::Csv),
    ("table.json", Format::Json),
];

/// The comparison in a format. `styled` marks the best scores with terminal escapes.
pub fn print(comparison: &Comparison, format: Format, styled: bool) -> String {
    match format {
        Format::Text => tables(comparison, &Text { styled }),
        Format::Markdown => tables(comparison, &Markdown),
        Format::Latex => tables(comparison, &Latex),
        Format::Csv => csv(comparison),
        Format::Json => serde_json::to_string_pretty(comparison).expect("names and numbers are JSON") + "\n",
    }
}

/// The tables of the comparison and its notes, as HTML.
pub fn html(comparison: &Comparison) -> String {
    tables(comparison, &Html)
}

/// A cell of a printed table.
#[derive(Clone)]
struct Cell {
    text: String,
    place: Place,
}

/// A row of a printed table.
enum PrintedRow {
    /// The name of a group.
    Group(String),
    /// The cells of a loss; the first is its label.
    Cells(Vec<Cell>),
}

/// A table before it is formatted. The first column is aligned left, all others right.
struct Grid {
    caption: &'static str,
    /// Two lines for each column: the metric and its level.
    header: Vec<[String; 2]>,
    rows: Vec<PrintedRow>,
}

/// What differs between the formats.
trait Style {
    fn grid(&self, grid: &Grid) -> String;
    /// Whether it marks the best scores.
    fn marks(&self) -> bool {
        true
    }
    fn note(&self, text: &str) -> String;
}

fn tables(comparison: &Comparison, style: &dyn Style) -> String {
    let mut text = style.grid(&scores(comparison)) + "\n" + &style.grid(&costs(comparison)) + "\n";
    if let Some(grid) = published(comparison) {
        text += &(style.grid(&grid) + "\n");
    }
    if let Some(tests) = &comparison.paired {
        text += &(style.grid(&paired(comparison, tests)) + "\n");
    }
    for note in [legend(comparison, style.marks())].into_iter().chain(notes(comparison)) {
        text += &style.note(&note);
    }
    text
}

fn scores(comparison: &Comparison) -> Grid {
    let title = |column: &Column| [column.metric.label(), column.level.clone().unwrap_or_default()];
    let mut header = vec![[String::new(), String::new()]];
    header.extend(comparison.columns.iter().map(title));
    let row = |label: &str, scores: &[Option<Statistic>], places: Option<&Vec<Place>>| {
        let mut row = vec![plain(label)];
        row.extend(scores.iter().enumerate().map(|(column, score)| Cell {
            text: number(comparison.columns[column].metric, score.as_ref(), 1),
            place: places.map_or(Place::Other, |places| places[column]),
        }));
        PrintedRow::Cells(row)
    };
    let mut rows: Vec<PrintedRow> =
        comparison.untrained.iter().map(|start| row(&start.label, &start.scores, None)).collect();
    let results = comparison.rows.iter().zip(comparison.places());
    rows.extend(grouped(
        results.map(|(result, places)| {
            (result.group.as_str(), row(&result.label, &result.scores, Some(&places)))
        }),
    ));
    Grid { caption: "Scores in percent", header, rows }
}

/// Rows under the names of their groups.
fn grouped<'a>(rows: impl IntoIterator<Item = (&'a str, PrintedRow)>) -> Vec<PrintedRow> {
    let mut grouped = Vec::new();
    let mut last = None;
    for (group, row) in rows {
        if last != Some(group) {
            last = Some(group);
            grouped.push(PrintedRow::Group(one_line(group)));
        }
        grouped.push(row);
    }
    grouped
}

/// Rows under the names of their groups if they need them: settings that are varied stand only there.
fn named<'a>(
    comparison: &Comparison,
    rows: impl IntoIterator<Item = (&'a str, PrintedRow)>,
) -> Vec<PrintedRow> {
    match comparison.rows.iter().any(|row| !row.varied.is_empty()) {
        true => grouped(rows),
        false => rows.into_iter().map(|(_, row)| row).collect(),
    }
}

fn costs(comparison: &Comparison) -> Grid {
    let tuned = is_tuned(comparison);
    let mut header = vec!["", "optimises", "untrained", "trained", "better", "ms a step", "MB"];
    if tuned {
        header.extend(["tuning runs", "at an edge"]);
    }
    let row = |result: &ResultRow| {
        let scaled = |statistic: &Option<Statistic>, scale: f64, digits: usize| match statistic {
            Some(statistic) => plain(format!("{:.digits$}", scale * statistic.mean)),
            None => plain("–"),
        };
        let better = match result.improved() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        let mut cells = vec![
            plain(&result.label),
            plain(result.optimises.label()),
            plain(number(result.optimises, result.untrained.as_ref(), 2)),
            plain(number(result.optimises, result.optimised.as_ref(), 2)),
            plain(better),
            scaled(&result.seconds_per_step, 1e3, 1),
            scaled(&result.peak_memory_bytes, 1e-6, 0),
        ];
        if tuned {
            cells.extend([result.trials.len(), result.at_edge.len()].map(|count| plain(count.to_string())));
        }
        PrintedRow::Cells(cells)
    };
    Grid {
        caption: "What each loss optimises, before and after, and its cost",
        header: header.into_iter().map(|title| [title.to_owned(), String::new()]).collect(),
        rows: named(comparison, comparison.rows.iter().map(|result| (result.group.as_str(), row(result)))),
    }
}

/// What papers report for the rows, beside what was measured; none if they report nothing.
fn published(comparison: &Comparison) -> Option<Grid> {
    let measured = |row: &ResultRow, metric: Metric, level: Option<&str>| {
        // Under the protocol of DyML a metric over all levels is an average too, and has no level.
        let averages = comparison.columns.iter().any(|column| column.level.as_deref() == Some(AVERAGE));
        let level = level.filter(|&level| level != AVERAGE || !averages);
        // The finest level has the first column of a metric.
        let has_score = |column: &Column| {
            column.metric == metric && (level.is_none() || column.level.as_deref() == level)
        };
        let place = comparison.columns.iter().position(has_score)?;
        row.scores[place].clone()
    };
    let results = |row: &ResultRow| -> Vec<PublishedResult> {
        let results = row.config.get("published").and_then(|published| published.get("results"));
        results.and_then(|results| results.clone().try_into().ok()).unwrap_or_default()
    };
    let mut rows = Vec::new();
    for row in &comparison.rows {
        for result in results(row) {
            for (&metric, &score) in &result.scores {
                let level = result.level.as_deref();
                // What is measured on another data set is not in the table.
                let measured = result.on.is_none().then(|| measured(row, metric, level)).flatten();
                let name = match &result.on {
                    None => format!("{} {}", metric.label(), level.unwrap_or_default()),
                    Some(on) => format!("{} on {on}", metric.label()),
                };
                let cells = vec![
                    plain(&row.label),
                    plain(&result.place),
                    plain(name.trim_end()),
                    plain(printed(score)),
                    plain(number(metric, measured.as_ref(), 2)),
                ];
                rows.push((row.group.as_str(), PrintedRow::Cells(cells)));
            }
        }
    }
    let titles = ["", "in the paper", "metric", "published", "measured"];
    (!rows.is_empty()).then(|| Grid {
        caption: "Published scores, in percent",
        header: titles.map(|title| [title.to_owned(), String::new()]).to_vec(),
        rows: named(comparison, rows),
    })
}

/// One line for each row: the metric that it optimises.
fn paired(comparison: &Comparison, tests: &PairedTests) -> Grid {
    let group = |name: &str| {
        let row = comparison.rows.iter().find(|row| row.name == name);
        row.map_or("", |row| row.group.as_str())
    };
    let row = |row: &RowTest| {
        let metric = format!("{} {}", row.metric.label(), row.level.as_deref().unwrap_or_default());
        let mut cells = vec![plain(&row.label), plain(metric.trim_end())];
        cells.extend(match &row.test {
            None => ["–", "–", "–", "–"].map(plain),
            Some(test) => [
                plain(test.pairs.to_string()),
                plain(format!("{:+.2}", displayed(row.metric, test.difference))),
                plain(test.effect.map_or("–".into(), |effect| format!("{effect:+.2}"))),
                plain(format!("{:.4}", test.p)),
            ],
        });
        PrintedRow::Cells(cells)
    };
    let optimised = tests.tests.iter().filter(|test| test.optimised);
    let titles = ["", "optimises", "seeds", "difference", "d", "p"];
    Grid {
        caption: "Paired t-tests over the seeds",
        header: titles.map(|title| [title.to_owned(), String::new()]).to_vec(),
        rows: named(comparison, optimised.map(|test| (group(&test.name), row(test)))),
    }
}

fn is_tuned(comparison: &Comparison) -> bool {
    comparison.rows.iter().any(|result| !result.trials.is_empty())
}

/// How to read the table.
fn legend(comparison: &Comparison, marks: bool) -> String {
    let mean = if comparison.seeds.len() > 1 { ", mean ± sample deviation over seeds" } else { "" };
    let tuning = match is_tuned(comparison) {
        true => {
            "; tuning runs: the trainings that the choice of the settings took; at an edge: the settings whose chosen \
             value is the smallest or the largest of its grid"
        }
        false => "",
    };
    let marks = if marks { "; the best in bold, the second underlined" } else { "" };
    format!("Scores: in percent{mean}{marks}{tuning}")
}

/// How the table was made.
fn notes(comparison: &Comparison) -> Vec<String> {
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let mut notes = vec![
        format!("Command: {}", comparison.command),
        format!("Seeds: {}", seeds.join(", ")),
        format!("Budget of each row: {}", comparison.budget),
        format!("Date and machine: {}, {}", comparison.date, comparison.machine),
    ];
    if let Some(tests) = &comparison.paired {
        notes.push(format!(
            "Paired t-tests against {}: difference in percent, d = mean / deviation of the differences, two-sided p; \
             assumes independent normal differences, and is not corrected for the number of rows",
            tests.label
        ));
    }
    for result in &comparison.rows {
        if !result.chosen.is_empty() {
            let edge = match &result.at_edge[..] {
                [] => String::new(),
                keys => format!("; at the edge of its grid: {}", keys.join(", ")),
            };
            notes.push(format!("Chosen for {}: {}{edge}", result.label, describe(&result.chosen)));
        }
        notes.extend(result.failed.iter().map(|reason| format!("Failed: {}, {reason}", result.label)));
    }
    notes.iter().map(|note| one_line(note)).collect()
}

fn plain(text: impl AsRef<str>) -> Cell {
    Cell { text: one_line(text.as_ref()), place: Place::Other }
}

/// The text without line ends, which would end a row or a comment.
fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}

fn number(metric: Metric, score: Option<&Statistic>, digits: usize) -> String {
    let Some(&Statistic { mean, deviation, .. }) = score else { return "–".into() };
    let deviation = deviation.map(|deviation| format!("±{:.digits$}", displayed(metric, deviation)));
    format!("{:.digits$}{}", displayed(metric, mean), deviation.unwrap_or_default())
}

struct Text {
    /// Whether the terminal shows bold and underlined text.
    styled: bool,
}

impl Style for Text {
    fn grid(&self, grid: &Grid) -> String {
        let rows = || {
            grid.rows.iter().filter_map(|row| match row {
                PrintedRow::Cells(cells) => Some(cells),
                PrintedRow::Group(_) => None,
            })
        };
        let long = |text: &String| escape(text).chars().count();
        let widths: Vec<usize> = (0..grid.header.len())
            .map(|column| {
                let header = grid.header[column].iter().map(long);
                header.chain(rows().map(|cells| long(&cells[column].text))).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: &[Cell]| {
            let mut line = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let blanks = " ".repeat(widths[column].saturating_sub(long(&cell.text)));
                line += &match column {
                    0 => format!("{}{blanks}", escape(&cell.text)),
                    _ => format!("  {blanks}{}", self.mark(cell)),
                };
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut text = String::new();
        for title_line in [0, 1] {
            let titles: Vec<Cell> = grid.header.iter().map(|titles| plain(&titles[title_line])).collect();
            if titles.iter().any(|title| !title.text.is_empty()) {
                text += &line(&titles);
            }
        }
        for row in &grid.rows {
            text += &match row {
                PrintedRow::Group(name) => format!("{}\n", escape(name)),
                PrintedRow::Cells(cells) => line(cells),
            };
        }
        text
    }

    fn marks(&self) -> bool {
        self.styled
    }

    fn note(&self, text: &str) -> String {
        format!("{}\n", escape(text))
    }
}

impl Text {
    fn mark(&self, cell: &Cell) -> String {
        let text = escape(&cell.text);
        match cell.place {
            Place::Best if self.styled => format!("\x1b[1m{text}\x1b[0m"),
            Place::Second if self.styled => format!("\x1b[4m{text}\x1b[0m"),
            _ => text.into_owned(),
        }
    }
}

struct Markdown;

impl Style for Markdown {
    fn grid(&self, grid: &Grid) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}:\n\n", grid.caption);
        text += &line(grid.header.iter().map(|titles| markdown(titles.join(" ").trim())).collect::<Vec<_>>());
        text += &format!("|---|{}\n", "--:|".repeat(grid.header.len() - 1));
        for row in &grid.rows {
            text += &match row {
                PrintedRow::Group(name) => line(
                    [vec![format!("*{}*", markdown(name))], vec![String::new(); grid.header.len() - 1]]
                        .concat(),
                ),
                PrintedRow::Cells(cells) => line(
                    cells
                        .iter()
                        .map(|cell| match (markdown(&cell.text), cell.place) {
                            (text, Place::Best) => format!("**{text}**"),
                            (text, Place::Second) => format!("<ins>{text}</ins>"),
                            (text, Place::Other) => text,
                        })
                        .collect(),
                ),
            };
        }
        text
    }

    fn note(&self, text: &str) -> String {
        match text.split_once(": ") {
            Some(("Command", command)) => format!("- Command: {}\n", markdown_code(command)),
            _ => format!("- {}\n", markdown(text)),
        }
    }
}

/// Escapes what would end a cell or begin a mark. An underscore inside a word begins none.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let after = characters.peek().copied().unwrap_or(' ');
        match character {
            '&' if after.is_alphanumeric() || after == '#' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '|' | '*' | '\\' | '`' | '[' | ']' | '~' => escaped.extend(['\\', character]),
            '_' if !before.is_alphanumeric() || !after.is_alphanumeric() => escaped += "\\_",
            _ => escaped.push(character),
        }
        before = character;
    }
    escaped
}

/// Code in a line, between more backticks than it has itself.
fn markdown_code(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    match longest {
        0 => format!("{fence}{code}{fence}"),
        _ => format!("{fence} {code} {fence}"),
    }
}

struct Html;

impl Style for Html {
    fn grid(&self, grid: &Grid) -> String {
        let caption = markup::escape(grid.caption);
        let mut text = markup::scroll(grid.caption);
        text += &format!("<table>\n<caption>{caption}</caption>\n<thead><tr>");
        for titles in &grid.header {
            text += &format!("<th scope=\"col\">{}</th>", markup::escape(titles.join(" ").trim()));
        }
        text += "</tr></thead>\n<tbody>\n";
        for row in &grid.rows {
            text += &match row {
                PrintedRow::Group(name) => format!(
                    "<tr><th scope=\"rowgroup\" colspan=\"{}\"><em>{}</em></th></tr>\n",
                    grid.header.len(),
                    markup::escape(name)
                ),
                PrintedRow::Cells(cells) => {
                    let (first, scores) = cells.split_first().expect("a row has a label");
                    let scores: String =
                        scores.iter().map(|cell| format!("<td>{}</td>", html_cell(cell))).collect();
                    format!("<tr><th scope=\"row\">{}</th>{scores}</tr>\n", html_cell(first))
                }
            };
        }
        text + "</tbody></table></div>\n"
    }

    fn note(&self, text: &str) -> String {
        format!("<p class=\"faint\">{}</p>\n", markup::escape(text))
    }
}

fn html_cell(cell: &Cell) -> String {
    let text = markup::escape(&cell.text);
    match cell.place {
        Place::Best => format!("<b>{text}</b>"),
        Place::Second => format!("<u>{text}</u>"),
        Place::Other => text,
    }
}

struct Latex;

impl Style for Latex {
    fn grid(&self, grid: &Grid) -> String {
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let mut text = format!("% {}\n", grid.caption);
        text += &format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(grid.header.len() - 1));
        for title_line in [0, 1] {
            if grid.header.iter().any(|titles| !titles[title_line].is_empty()) {
                text += &line(grid.header.iter().map(|titles| latex(&titles[title_line])).collect());
            }
        }
        if !matches!(grid.rows.first(), Some(PrintedRow::Group(_))) {
            text += "\\midrule\n";
        }
        for row in &grid.rows {
            text += &match row {
                PrintedRow::Group(name) => format!(
                    "\\midrule\n\\multicolumn{{{}}}{{l}}{{\\emph{{{}}}}} \\\\\n",
                    grid.header.len(),
                    latex(name)
                ),
                PrintedRow::Cells(cells) => line(
                    cells
                        .iter()
                        .map(|cell| match (latex(&cell.text), cell.place) {
                            (text, Place::Best) => format!("\\textbf{{{text}}}"),
                            (text, Place::Second) => format!("\\underline{{{text}}}"),
                            (text, Place::Other) => text,
                        })
                        .collect(),
                ),
            };
        }
        text + "\\bottomrule\n\\end{tabular}\n"
    }

    fn note(&self, text: &str) -> String {
        format!("% {text}\n")
    }
}

/// Escapes what LaTeX reads as commands.
fn latex(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', character]),
            '\\' => escaped += "\\textbackslash{}",
            '~' => escaped += "\\textasciitilde{}",
            '^' => escaped += "\\textasciicircum{}",
            '±' => escaped += "$\\pm$",
            'λ' => escaped += "$\\lambda$",
            'α' => escaped += "$\\alpha$",
            '–' => escaped += "--",
            _ => escaped.push(character),
        }
    }
    escaped
}

fn csv(comparison: &Comparison) -> String {
    let mut text = String::new();
    for note in notes(comparison) {
        text += &format!("# {note}\n");
    }
    let mut header: Vec<String> = ["loss", "label", "group", "seeds"].map(str::to_owned).to_vec();
    for column in &comparison.columns {
        let name = match &column.level {
            Some(level) => format!("{} {level}", column.metric),
            None => column.metric.to_string(),
        };
        header.extend([format!("{name} mean"), format!("{name} deviation")]);
    }
    let last = [
        "optimises",
        "optimised",
        "optimised untrained",
        "seconds per step",
        "peak memory bytes",
        "tuning runs",
        "at an edge",
    ];
    header.extend(last.map(str::to_owned));
    let cell = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let mean = |statistic: &Option<Statistic>| cell(statistic.as_ref().map(|statistic| statistic.mean));
    let scores = |scores: &[Option<Statistic>]| -> Vec<String> {
        let pair =
            |score: &Option<Statistic>| [mean(score), cell(score.as_ref().and_then(|score| score.deviation))];
        scores.iter().flat_map(pair).collect()
    };
    let count = |scores: &[Option<Statistic>]| {
        scores.iter().flatten().map(|score| score.values.len()).max().unwrap_or(0).to_string()
    };

    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write = |row: Vec<String>| writer.write_record(row).expect("a vector takes all");
    write(header);
    for start in &comparison.untrained {
        let mut row = vec!["untrained".to_owned(), start.label.clone(), String::new(), count(&start.scores)];
        row.extend(scores(&start.scores));
        row.extend(last.map(|_| String::new()));
        write(row);
    }
    for result in &comparison.rows {
        let mut row =
            vec![result.name.clone(), result.label.clone(), result.group.clone(), count(&result.scores)];
        row.extend(scores(&result.scores));
        row.extend([
            result.optimises.to_string(),
            mean(&result.optimised),
            mean(&result.untrained),
            mean(&result.seconds_per_step),
            mean(&result.peak_memory_bytes),
            result.trials.len().to_string(),
            result.at_edge.join(" "),
        ]);
        write(row);
    }
    let bytes = writer.into_inner().expect("a vector takes all");
    text + &String::from_utf8(bytes).expect("all cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::compare::paired::paired_tests;
    use crate::comparison::compare::results::{Trial, Untrained, columns};

    fn comparison() -> Comparison {
        let statistic = |values: &[f64]| Statistic::new(values.to_vec());
        let row = |name: &str, label: &str, group: &str, score: f64| ResultRow {
            name: name.into(),
            label: label.into(),
            group: group.into(),
            apart: false,
            scores: vec![statistic(&[score, score + 0.02]), None],
            seeds: vec![0, 1],
            optimises: Metric::named("h_ap"),
            optimised: statistic(&[score]),
            untrained: statistic(&[0.3]),
            seconds_per_step: statistic(&[0.0125]),
            peak_memory_bytes: statistic(&[2e8]),
            trials: Vec::new(),
            at_edge: Vec::new(),
            chosen: toml::Table::new(),
            config: toml::Table::new(),
            varied: toml::Table::new(),
            failed: Vec::new(),
        };
        let mut comparison = Comparison {
            name: "tiny".into(),
            command: "akin compare tiny".into(),
            date: "2026-11-21".into(),
            machine: "2 cores".into(),
            budget: "10 steps".into(),
            seeds: vec![0, 1],
            columns: columns(&[Metric::named("h_ap"), Metric::named("ndcg")], &["a".into(), "b".into()]),
            untrained: vec![Untrained { label: "untrained".into(), scores: vec![statistic(&[0.3]), None] }],
            rows: vec![
                row("one", "One & 100 %", "fine_grained", 0.5),
                row("two", "Two|2", "hierarchical", 0.2),
                row("three", "Three", "fine_grained", 0.4),
            ],
            figures: Vec::new(),
            paired: None,
        };
        comparison.sort_by_group();
        comparison
    }

    #[test]
    fn text_lines_up_and_marks_the_best_on_a_terminal() {
        let text = print(&comparison(), Format::Text, false);
        let expected = "                 H-AP  NDCG
untrained        30.0     –
hierarchical
Two|2        21.0±1.4     –
fine_grained
One & 100 %  51.0±1.4     –
Three        41.0±1.4     –

             optimises  untrained  trained  better  ms a step   MB
Two|2             H-AP      30.00    20.00      no       12.5  200
One & 100 %       H-AP      30.00    50.00     yes       12.5  200
Three             H-AP      30.00    40.00     yes       12.5  200

Scores: in percent, mean ± sample deviation over seeds
Command: akin compare tiny
";
        assert!(text.starts_with(expected), "{text}");
        let styled = print(&comparison(), Format::Text, true);
        assert!(styled.contains("over seeds; the best in bold, the second underlined"));
        assert!(styled.contains("\x1b[1m51.0±1.4\x1b[0m") && styled.contains("\x1b[4m41.0±1.4\x1b[0m"));
    }

    #[test]
    fn names_are_text_in_html() {
        let mut comparison = comparison();
        comparison.rows[0].label = "<b>".into();
        let html = html(&comparison);
        assert!(html.contains("<th scope=\"row\">&lt;b&gt;</th>"), "{html}");
        assert!(
            html.contains("<td><b>51.0±1.4</b></td>") && html.contains("<td><u>41.0±1.4</u></td>"),
            "{html}"
        );
    }

    #[test]
    fn paired_tests_pair_the_seeds_that_both_rows_have() {
        let mut comparison = comparison();
        let set = |row: &mut ResultRow, seeds: &[u64], values: &[f64]| {
            (row.seeds, row.scores[0]) = (seeds.to_vec(), Statistic::new(values.to_vec()));
        };
        let place = |name: &str| comparison.rows.iter().position(|row| row.name == name).unwrap();
        let (one, two, three) = (place("one"), place("two"), place("three"));
        set(&mut comparison.rows[one], &[0, 1, 2, 3], &[0.50, 0.51, 0.49, 0.50]);
        // Seed 1 failed. Paired by place, the differences would be others.
        set(&mut comparison.rows[two], &[0, 2, 3], &[0.51, 0.51, 0.53]);
        set(&mut comparison.rows[three], &[0, 1], &[0.4, 0.4]);
        comparison.paired = paired_tests(&comparison, "one");
        let text = print(&comparison, Format::Text, false);
        let cells = |label: &str| -> Vec<String> {
            let line = text.lines().filter(|line| line.starts_with(label)).nth(2).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        // Differences 1, 2 and 3 points: d = 2, t = 2√3 with 2 degrees of freedom.
        assert_eq!(cells("Two|2"), ["Two|2", "H-AP", "3", "+2.00", "+2.00", "0.0742"], "{text}");
        assert_eq!(cells("Three")[2..], ["–", "–", "–", "–"], "{text}");
        assert!(text.contains("Paired t-tests against One & 100 %"), "{text}");
        assert!(paired_tests(&comparison, "four").is_none());
    }

    #[test]
    fn published_scores_stand_beside_the_measured_ones() {
        let mut comparison = comparison();
        assert!(!print(&comparison, Format::Text, false).contains("published"));
        let place = comparison.rows.iter().position(|row| row.name == "one").unwrap();
        comparison.rows[place].config = toml::toml! {
            [[published.results]]
            place = "Table 1"
            row = "One [7]"
            scores = { h_ap = 52.4, ndcg = 90.0 }
        };
        let text = print(&comparison, Format::Text, false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        for expected in [["Table", "1", "H-AP", "52.4", "51.00±1.41"], ["Table", "1", "NDCG", "90.0", "–"]]
        {
            assert!(lines.iter().any(|line| line.ends_with(&expected)), "{text}");
        }
        assert!(
            print(&comparison, Format::Markdown, false).contains("| One & 100 % | Table 1 | H-AP | 52.4 |")
        );
    }

    #[test]
    fn a_setting_that_is_varied_stands_in_every_table() {
        let mut comparison = comparison();
        for (row, group) in comparison.rows.iter_mut().zip(["lambda 0.1", "lambda 0.1", "lambda 0.5"]) {
            row.group = group.into();
            row.varied = toml::toml! { loss = { lambda = 0.1 } };
        }
        let text = print(&comparison, Format::Text, false);
        let (_, costs) = text.split_once("optimises").unwrap();
        let named: Vec<&str> = costs.lines().filter(|line| line.starts_with("lambda")).collect();
        assert_eq!(named, ["lambda 0.1", "lambda 0.5"], "{text}");
    }

    #[test]
    fn the_trainings_that_tuning_took_have_a_column() {
        let mut comparison = comparison();
        let trial = Trial { settings: toml::Table::new(), score: Some(0.5) };
        comparison.rows[1].trials = vec![trial; 3];
        comparison.rows[1].chosen = toml::toml! { optimizer = { lr_head = 0.1 } };
        comparison.rows[1].at_edge = vec!["optimizer.lr_head".into()];
        let text = print(&comparison, Format::Text, false);
        let costs = |label: &str| text.lines().rfind(|line| line.starts_with(label)).unwrap().to_owned();
        assert!(text.lines().any(|line| line.ends_with("MB  tuning runs  at an edge")), "{text}");
        let ends = |label: &str, end: [&str; 2]| {
            costs(label).split_whitespace().rev().take(2).eq(end.into_iter().rev())
        };
        assert!(ends("One & 100 %", ["3", "1"]), "{text}");
        assert!(ends("Two|2", ["0", "0"]), "{text}");
        assert!(text.contains("; at the edge of its grid: optimizer.lr_head"), "{text}");
    }

    #[test]
    fn markdown_marks_and_escapes() {
        let text = print(&comparison(), Format::Markdown, false);
        assert!(text.contains("| One & 100 % | **51.0±1.4** | – |"), "{text}");
        assert!(text.contains("| Three | <ins>41.0±1.4</ins> | – |"), "{text}");
        assert!(text.contains("| Two\\|2 | 21.0±1.4 | – |"), "{text}");
        assert!(text.contains("- Command: `akin compare tiny`"), "{text}");
    }

    #[test]
    fn latex_marks_and_escapes() {
        let text = print(&comparison(), Format::Latex, false);
        assert!(text.contains("One \\& 100 \\% & \\textbf{51.0$\\pm$1.4} & -- \\\\"), "{text}");
        assert!(text.contains("\\multicolumn{3}{l}{\\emph{fine\\_grained}} \\\\"), "{text}");
        assert!(text.contains("\\underline{41.0$\\pm$1.4}"), "{text}");
        assert!(!text.contains("\\midrule\n\\midrule"), "{text}");
        assert_eq!(latex("a\\b^~"), "a\\textbackslash{}b\\textasciicircum{}\\textasciitilde{}");
    }

    #[test]
    fn labels_with_markup_are_text() {
        let mut comparison = comparison();
        comparison.rows[0].label = "<img src=x onerror=alert(1)>\n\\input{/etc/passwd}".into();
        comparison.rows[0].group = "[a](b:c) `d` _e_\n&lt;".into();
        comparison.rows[0].failed = vec!["\n\\write18{rm}".into(), "\x1b[2J".into()];
        comparison.command = "akin compare 'a`b``c'".into();

        let markdown = print(&comparison, Format::Markdown, false);
        assert!(
            markdown.contains("| &lt;img src=x onerror=alert(1)> \\\\input{/etc/passwd} |"),
            "{markdown}"
        );
        assert!(markdown.contains(r"*\[a\](b:c) \`d\` \_e\_ &amp;lt;*"), "{markdown}");
        assert!(markdown.contains("- Command: ``` akin compare 'a`b``c' ```"), "{markdown}");

        let latex = print(&comparison, Format::Latex, false);
        assert!(latex.contains("\\textbackslash{}input\\{/etc/passwd\\}"), "{latex}");
        let comment = latex.lines().find(|line| line.contains("write18")).unwrap();
        assert!(comment.starts_with("% Failed"), "{latex}");

        let csv = print(&comparison, Format::Csv, false);
        assert!(csv.lines().any(|line| line.starts_with("# Failed") && line.contains("write18")), "{csv}");

        let text = print(&comparison, Format::Text, false);
        assert!(text.contains("\\u001b[2J") && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn csv_has_a_line_for_each_loss_and_the_untrained_encoder() {
        let text = print(&comparison(), Format::Csv, false);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 5);
        assert!(rows[0].starts_with("loss,label,group,seeds,h_ap mean,h_ap deviation,ndcg mean"), "{text}");
        assert!(rows[1].starts_with("untrained,untrained,,1,0.3,,,"), "{text}");
        assert!(rows[3].starts_with("one,One & 100 %,fine_grained,2,0.51,"), "{text}");
    }
}
