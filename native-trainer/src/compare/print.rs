//! A comparison on the terminal, in Markdown, LaTeX, CSV and JSON.
//!
//! All but CSV and JSON have two tables: the scores, grouped by group, the best of a column in bold
//! and the second underlined; and what each loss optimises, with its cost. Scores are in percent;
//! CSV and JSON have them in full precision, as shares.

use super::plan::describe;
use super::report::Column;
use super::table::{Comparison, Line, Place, Statistic};

/// How a comparison is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Text,
    /// For READMEs.
    Markdown,
    /// For papers: needs the package booktabs.
    Latex,
    /// A line for each loss.
    Csv,
    /// With the values of every seed.
    Json,
}

/// The files of a comparison.
pub const FILES: [(&str, Format); 4] = [
    ("table.md", Format::Markdown),
    ("table.tex", Format::Latex),
    ("table.csv", Format::Csv),
    ("table.json", Format::Json),
];

/// The comparison in a format; `styled` sets marks for a terminal.
pub fn print(comparison: &Comparison, format: Format, styled: bool) -> String {
    match format {
        Format::Text => tables(comparison, &Text { styled }),
        Format::Markdown => tables(comparison, &Markdown),
        Format::Latex => tables(comparison, &Latex),
        Format::Csv => csv(comparison),
        Format::Json => serde_json::to_string_pretty(comparison).expect("names and numbers are JSON") + "\n",
    }
}

/// A cell of a table.
#[derive(Clone)]
struct Entry {
    text: String,
    place: Place,
}

/// A row of a table.
enum Part {
    /// The name of a group.
    Group(String),
    /// A row; the first entry is its label.
    Row(Vec<Entry>),
}

/// A table that is not yet in any format: the first column to the left, all others to the right.
struct Grid {
    caption: &'static str,
    /// Two lines: the metric, and its level.
    header: Vec<[String; 2]>,
    parts: Vec<Part>,
}

/// What formats differ in.
trait Style {
    fn grid(&self, grid: &Grid) -> String;
    fn note(&self, text: &str) -> String;
}

fn tables(comparison: &Comparison, style: &dyn Style) -> String {
    let mut text = style.grid(&scores(comparison)) + "\n" + &style.grid(&costs(comparison)) + "\n";
    for note in notes(comparison) {
        text += &style.note(&note);
    }
    text
}

fn scores(comparison: &Comparison) -> Grid {
    let title = |column: &Column| [column.title.clone(), column.level.clone().unwrap_or_default()];
    let mut header = vec![[String::new(), String::new()]];
    header.extend(comparison.columns.iter().map(title));
    let row = |label: &str, scores: &[Option<Statistic>], places: Option<&Vec<Place>>| {
        let mut row = vec![plain(label)];
        row.extend(scores.iter().enumerate().map(|(column, score)| Entry {
            text: percent(score.as_ref(), 1),
            place: places.map_or(Place::Other, |places| places[column]),
        }));
        Part::Row(row)
    };
    let mut parts: Vec<Part> =
        comparison.untrained.iter().map(|start| row(&start.label, &start.scores, None)).collect();
    let mut group = None;
    for (line, places) in comparison.lines.iter().zip(comparison.places()) {
        if group != Some(&line.group) {
            group = Some(&line.group);
            parts.push(Part::Group(line.group.clone()));
        }
        parts.push(row(&line.label, &line.scores, Some(&places)));
    }
    Grid { caption: "Scores in percent", header, parts }
}

fn costs(comparison: &Comparison) -> Grid {
    let header = ["", "optimises", "untrained", "trained", "better", "ms a step", "MB"];
    let row = |line: &Line| {
        let scaled = |statistic: &Option<Statistic>, scale: f64, digits: usize| match statistic {
            Some(statistic) => plain(format!("{:.digits$}", scale * statistic.mean)),
            None => plain("–"),
        };
        let better = match line.beats() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "–",
        };
        Part::Row(vec![
            plain(&line.label),
            plain(line.metric()),
            plain(percent(line.untrained.as_ref(), 2)),
            plain(percent(line.optimised.as_ref(), 2)),
            plain(better),
            scaled(&line.seconds_per_step, 1e3, 1),
            scaled(&line.peak_memory_bytes, 1e-6, 0),
        ])
    };
    Grid {
        caption: "What each loss optimises, before and after, and its cost",
        header: header.map(|title| [title.to_owned(), String::new()]).to_vec(),
        parts: comparison.lines.iter().map(row).collect(),
    }
}

/// How the table came about.
fn notes(comparison: &Comparison) -> Vec<String> {
    let seeds: Vec<String> = comparison.seeds.iter().map(u64::to_string).collect();
    let mean = if seeds.len() > 1 { ", mean ± sample deviation over seeds" } else { "" };
    let mut notes = vec![
        format!("Command: {}", comparison.command),
        format!("Scores: in percent{mean}; the best in bold, the second underlined"),
        format!("Seeds: {}", seeds.join(", ")),
        format!("Budget of each row: {}", comparison.budget),
        format!("Date and machine: {}, {}", comparison.date, comparison.machine),
    ];
    for line in &comparison.lines {
        if !line.chosen.is_empty() {
            notes.push(format!("Chosen for {}: {}", line.label, describe(&line.chosen)));
        }
        notes.extend(line.failed.iter().map(|reason| format!("Failed: {}, {reason}", line.label)));
    }
    notes
}

fn plain(text: impl Into<String>) -> Entry {
    Entry { text: text.into(), place: Place::Other }
}

fn percent(score: Option<&Statistic>, digits: usize) -> String {
    let Some(Statistic { mean, deviation, .. }) = score else { return "–".into() };
    let deviation = deviation.map(|deviation| format!(" ±{:.digits$}", 100.0 * deviation));
    format!("{:.digits$}{}", 100.0 * mean, deviation.unwrap_or_default())
}

struct Text {
    /// Whether the terminal shows bold and underlined text.
    styled: bool,
}

impl Style for Text {
    fn grid(&self, grid: &Grid) -> String {
        let rows = || {
            grid.parts.iter().filter_map(|part| match part {
                Part::Row(row) => Some(row),
                Part::Group(_) => None,
            })
        };
        let long = |text: &String| text.chars().count();
        let widths: Vec<usize> = (0..grid.header.len())
            .map(|column| {
                let header = grid.header[column].iter().map(long);
                header.chain(rows().map(|row| long(&row[column].text))).max().unwrap_or(0)
            })
            .collect();
        let line = |entries: &[Entry]| {
            let mut line = String::new();
            for (column, entry) in entries.iter().enumerate() {
                let blanks = " ".repeat(widths[column].saturating_sub(long(&entry.text)));
                line += &match column {
                    0 => format!("{}{blanks}", entry.text),
                    _ => format!("  {blanks}{}", self.mark(entry)),
                };
            }
            line.trim_end().to_owned() + "\n"
        };
        let mut text = String::new();
        for part in [0, 1] {
            let titles: Vec<Entry> = grid.header.iter().map(|titles| plain(&titles[part])).collect();
            if titles.iter().any(|title| !title.text.is_empty()) {
                text += &line(&titles);
            }
        }
        for part in &grid.parts {
            text += &match part {
                Part::Group(name) => format!("{name}\n"),
                Part::Row(row) => line(row),
            };
        }
        text
    }

    fn note(&self, text: &str) -> String {
        format!("{text}\n")
    }
}

impl Text {
    fn mark(&self, entry: &Entry) -> String {
        match entry.place {
            Place::Best if self.styled => format!("\x1b[1m{}\x1b[0m", entry.text),
            Place::Second if self.styled => format!("\x1b[4m{}\x1b[0m", entry.text),
            _ => entry.text.clone(),
        }
    }
}

struct Markdown;

impl Style for Markdown {
    fn grid(&self, grid: &Grid) -> String {
        let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("{}:\n\n", grid.caption);
        text +=
            &cells(grid.header.iter().map(|titles| markdown(titles.join(" ").trim())).collect::<Vec<_>>());
        text += &format!("|---|{}\n", "--:|".repeat(grid.header.len() - 1));
        for part in &grid.parts {
            text += &match part {
                Part::Group(name) => cells(
                    [vec![format!("*{}*", markdown(name))], vec![String::new(); grid.header.len() - 1]]
                        .concat(),
                ),
                Part::Row(row) => cells(
                    row.iter()
                        .map(|entry| match (markdown(&entry.text), entry.place) {
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
            Some((what, text)) => format!("- {what}: `{text}`\n"),
            None => format!("- {text}\n"),
        }
    }
}

/// Escapes what would end a cell or begin a mark.
fn markdown(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;")
}

struct Latex;

impl Style for Latex {
    fn grid(&self, grid: &Grid) -> String {
        let cells = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let mut text = format!("% {}\n", grid.caption);
        text += &format!("\\begin{{tabular}}{{l{}}}\n\\toprule\n", "r".repeat(grid.header.len() - 1));
        for part in [0, 1] {
            if grid.header.iter().any(|titles| !titles[part].is_empty()) {
                text += &cells(grid.header.iter().map(|titles| latex(&titles[part])).collect());
            }
        }
        text += "\\midrule\n";
        for part in &grid.parts {
            text += &match part {
                Part::Group(name) => format!(
                    "\\midrule\n\\multicolumn{{{}}}{{l}}{{\\emph{{{}}}}} \\\\\n",
                    grid.header.len(),
                    latex(name)
                ),
                Part::Row(row) => cells(
                    row.iter()
                        .map(|entry| match (latex(&entry.text), entry.place) {
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
            None => column.metric.clone(),
        };
        header.extend([format!("{name} mean"), format!("{name} deviation")]);
    }
    header.extend(
        ["optimises", "optimised", "optimised untrained", "seconds per step", "peak memory bytes"]
            .map(str::to_owned),
    );
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
        row.extend(vec![String::new(); 5]);
        write(row);
    }
    for line in &comparison.lines {
        let mut row = vec![line.name.clone(), line.label.clone(), line.group.clone(), count(&line.scores)];
        row.extend(scores(&line.scores));
        row.extend([
            line.optimises.clone(),
            mean(&line.optimised),
            mean(&line.untrained),
            mean(&line.seconds_per_step),
            mean(&line.peak_memory_bytes),
        ]);
        write(row);
    }
    let bytes = writer.into_inner().expect("a vector takes all");
    text + &String::from_utf8(bytes).expect("all cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::report::columns;
    use crate::compare::table::Untrained;

    fn comparison() -> Comparison {
        let statistic = |values: &[f64]| Statistic::of(values.to_vec());
        let line = |name: &str, label: &str, group: &str, score: f64| Line {
            name: name.into(),
            label: label.into(),
            group: group.into(),
            apart: false,
            scores: vec![statistic(&[score, score + 0.02]), None],
            optimises: "h_ap".into(),
            optimised: statistic(&[score]),
            untrained: statistic(&[0.3]),
            seconds_per_step: statistic(&[0.0125]),
            peak_memory_bytes: statistic(&[2e8]),
            chosen: toml::Table::new(),
            config: toml::Table::new(),
            failed: Vec::new(),
        };
        let mut comparison = Comparison {
            name: "tiny".into(),
            command: "akin compare tiny".into(),
            date: "2026-11-21".into(),
            machine: "2 cores".into(),
            budget: "10 steps".into(),
            seeds: vec![0, 1],
            columns: columns(&["h_ap".into(), "ndcg".into()], &["a".into(), "b".into()]),
            untrained: vec![Untrained { label: "untrained".into(), scores: vec![statistic(&[0.3]), None] }],
            lines: vec![
                line("one", "One & 100 %", "fine_grained", 0.5),
                line("two", "Two|2", "hierarchical", 0.2),
                line("three", "Three", "fine_grained", 0.4),
            ],
        };
        comparison.group();
        comparison
    }

    #[test]
    fn text_lines_up_and_marks_the_best_on_a_terminal() {
        let text = print(&comparison(), Format::Text, false);
        let expected = "                  H-AP  NDCG
untrained         30.0     –
fine_grained
One & 100 %  51.0 ±1.4     –
Three        41.0 ±1.4     –
hierarchical
Two|2        21.0 ±1.4     –

             optimises  untrained  trained  better  ms a step   MB
One & 100 %       H-AP      30.00    50.00     yes       12.5  200
Three             H-AP      30.00    40.00     yes       12.5  200
Two|2             H-AP      30.00    20.00      no       12.5  200

Command: akin compare tiny
";
        assert!(text.starts_with(expected), "{text}");
        let styled = print(&comparison(), Format::Text, true);
        assert!(styled.contains("\x1b[1m51.0 ±1.4\x1b[0m") && styled.contains("\x1b[4m41.0 ±1.4\x1b[0m"));
    }

    #[test]
    fn markdown_marks_and_escapes() {
        let text = print(&comparison(), Format::Markdown, false);
        assert!(text.contains("| One & 100 % | **51.0 ±1.4** | – |"), "{text}");
        assert!(text.contains("| Three | <ins>41.0 ±1.4</ins> | – |"), "{text}");
        assert!(text.contains("| Two\\|2 | 21.0 ±1.4 | – |"), "{text}");
        assert!(text.contains("- Command: `akin compare tiny`"), "{text}");
    }

    #[test]
    fn latex_marks_and_escapes() {
        let text = print(&comparison(), Format::Latex, false);
        assert!(text.contains("One \\& 100 \\% & \\textbf{51.0 $\\pm$1.4} & -- \\\\"), "{text}");
        assert!(text.contains("\\multicolumn{3}{l}{\\emph{fine\\_grained}} \\\\"), "{text}");
        assert!(text.contains("\\underline{41.0 $\\pm$1.4}"), "{text}");
        assert_eq!(latex("a\\b^~"), "a\\textbackslash{}b\\textasciicircum{}\\textasciitilde{}");
    }

    #[test]
    fn csv_has_a_line_for_each_loss_and_the_untrained_encoder() {
        let text = print(&comparison(), Format::Csv, false);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(rows.len(), 5);
        assert!(rows[0].starts_with("loss,label,group,seeds,h_ap mean,h_ap deviation,ndcg mean"), "{text}");
        assert!(rows[1].starts_with("untrained,untrained,,1,0.3,,,"), "{text}");
        assert!(rows[2].starts_with("one,One & 100 %,fine_grained,2,0.51,"), "{text}");
    }
}
