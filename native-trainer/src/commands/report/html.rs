//! The page of a report: one file that needs no other, and runs no script.

use akin_base::markup::{escape, scroll};
use akin_base::quantities::count;
use akin_core::evaluate::{Means, Report};
use akin_core::metrics::Metric;
use akin_figures::Figure;
use anyhow::Result;

use crate::evaluation::report::{
    MACRO_AVERAGE, class_rows, hyperbolicity_text, measurement, unknown_text, with_interval,
};

/// The parts of a report.
pub struct Page {
    /// The title.
    pub title: String,
    /// Lines below the title.
    pub about: Vec<String>,
    /// What the reader has to know before comparing the runs.
    pub warnings: Vec<String>,
    /// The results of comparisons over all seeds, as a title and HTML.
    pub comparisons: Vec<(String, String)>,
    /// The runs.
    pub runs: Vec<RunPart>,
    /// The figures of all runs together.
    pub figures: Vec<Figure>,
}

/// What belongs to one run.
pub struct RunPart {
    /// Its name.
    pub name: String,
    /// What was trained on what, in rows of a name and a value.
    pub facts: Vec<(String, String)>,
    /// The evaluation, with intervals.
    pub report: Report,
    /// What the paper of its recipe reports, beside what was measured.
    pub published: Option<String>,
    /// How far the answers hold, as a table.
    pub certainty: Option<String>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// The config as TOML.
    pub config: String,
    /// Where and how it was trained, in rows of a name and a value.
    pub environment: Vec<(String, String)>,
}

const STYLE: &str = "
:root { color-scheme: light dark; --ink: light-dark(#222, #e6e2d8); --faint: light-dark(#5f5c55, #a7a297);
  --paper: light-dark(#fbfaf6, #1b1b19); --rule: light-dark(#e2ded3, #3a3833); }
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, 'Helvetica Neue', Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.35rem; margin: 3rem 0 .5rem; }
h3 { font-size: 1.05rem; margin: 2rem 0 .25rem; } p { margin: .4rem 0; } .faint, figcaption { color: var(--faint); }
.warning { border-left: 3px solid; padding-left: .75rem; } nav ul { padding: 0; list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; } a { color: inherit; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
caption { text-align: left; font-size: .9rem; color: var(--faint); padding: .75rem 0 .25rem; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; } .facts td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.interval { color: var(--faint); font-size: .8rem; } figure { margin: 2.25rem 0; }
figure svg { min-width: 32rem; max-width: 100%; height: auto; display: block; background: #fff; border-radius: 4px; }
figcaption { font-size: .9rem; margin-top: .5rem; max-width: 46rem; } figcaption b { color: var(--ink); }
pre { overflow-x: auto; padding: 1rem; border: 1px solid var(--rule); font-size: .8rem; line-height: 1.45; }
summary { cursor: pointer; } :focus-visible { outline: 2px solid; outline-offset: 2px; }
@media print { body { max-width: none; } figure { break-inside: avoid; } nav { display: none; } }
";

impl Page {
    /// The page as HTML.
    ///
    /// # Errors
    ///
    /// A figure that cannot be encoded.
    pub fn html(&self) -> Result<String> {
        let title = escape(&self.title);
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
        );
        for line in &self.about {
            html += &format!("<p class=\"faint\">{}</p>\n", escape(line));
        }
        html += "</header>\n<nav aria-label=\"Sections\"><ul>\n<li><a href=\"#results\">Results</a></li>\n";
        if !self.figures.is_empty() {
            html += "<li><a href=\"#curves\">Curves</a></li>\n";
        }
        for (number, run) in self.runs.iter().enumerate() {
            html += &format!("<li><a href=\"#run-{number}\">{}</a></li>\n", escape(&run.name));
        }
        html += "</ul></nav>\n<main>\n<section id=\"results\">\n<h2>Results</h2>\n";
        for warning in &self.warnings {
            html += &format!(
                "<p role=\"note\" class=\"warning\"><strong>Note:</strong> {}</p>\n",
                escape(warning)
            );
        }
        for (title, tables) in &self.comparisons {
            html += &format!("<h3>{}</h3>\n{tables}", escape(title));
        }
        html += &results(&self.runs);
        html += "</section>\n";
        if !self.figures.is_empty() {
            html += "<section id=\"curves\">\n<h2>Curves</h2>\n";
            add_figures(&mut html, &self.figures)?;
            html += "</section>\n";
        }
        for (number, run) in self.runs.iter().enumerate() {
            html += &format!("<section id=\"run-{number}\">\n<h2>{}</h2>\n", escape(&run.name));
            html += &facts(&run.facts);
            if let Some(published) = &run.published {
                html += &format!("<h3>Published and measured</h3>\n<pre>{}</pre>\n", lines(published));
            }
            if let Some(certainty) = &run.certainty {
                html += &format!("<h3>How far the answers hold</h3>\n<pre>{}</pre>\n", lines(certainty));
            }
            add_figures(&mut html, &run.figures)?;
            html += &format!("<h3>Environment</h3>\n{}", facts(&run.environment));
            html += &format!(
                "<h3>Config</h3>\n<details><summary>The config with every default</summary>\n<pre>{}</pre></details>\n\
                 </section>\n",
                lines(&run.config)
            );
        }
        html += "</main>\n</body>\n</html>\n";
        Ok(html)
    }
}

/// A text of several lines.
fn lines(text: &str) -> String {
    text.lines().map(|line| escape(line) + "\n").collect()
}

fn add_figures(html: &mut String, figures: &[Figure]) -> Result<()> {
    for Figure { name, title, caption, drawing } in figures {
        let svg = drawing.svg(title)?;
        *html += &format!(
            "<figure id=\"{}\">\n{}\n{svg}</div>\n<figcaption><b>{}.</b> {}</figcaption>\n</figure>\n",
            escape(name),
            scroll(title),
            escape(title),
            escape(caption)
        );
    }
    Ok(())
}

fn facts(rows: &[(String, String)]) -> String {
    let rows: String = rows
        .iter()
        .map(|(name, value)| {
            format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
        })
        .collect();
    format!("<table class=\"facts\">\n{rows}</table>\n")
}

/// A table over all levels, and one for each level, with a row for each run. With one run, each level is a row.
///
/// The tables have the metrics and levels of every run, in the order of the runs.
fn results(runs: &[RunPart]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let metrics = |per_level: bool| -> Vec<Metric> {
        let shown = runs.iter().flat_map(|run| run.report.config.metrics.iter().copied());
        without_repeats(shown.filter(|metric| metric.entry().per_level == per_level))
    };
    let overall = runs.iter().map(|run| (run.name.as_str(), &run.report.overall));
    let mut html = table("All levels", "run", &metrics(false), overall.collect());
    if runs.len() == 1 {
        let levels = first.report.levels.iter().map(|level| (level.name.as_str(), &level.means));
        html += &table("Each level", "level", &metrics(true), levels.collect());
    } else {
        let names = runs.iter().flat_map(|run| run.report.levels.iter().map(|level| level.name.as_str()));
        for name in without_repeats(names) {
            let at_level = |run: &'_ RunPart| run.report.levels.iter().position(|level| level.name == name);
            let rows = runs
                .iter()
                .filter_map(|run| Some((run.name.as_str(), &run.report.levels[at_level(run)?].means)))
                .collect();
            html += &table(name, "run", &metrics(true), rows);
        }
    }
    for run in runs {
        if let Some(text) = hyperbolicity_text(&run.report) {
            let name = if runs.len() == 1 { String::new() } else { format!("{}: ", run.name) };
            html += &format!("<p>{}{}.</p>\n", escape(&name), escape(&text));
        }
    }
    for run in runs {
        if let Some(text) = unknown_text(&run.report) {
            let name =
                if runs.len() == 1 { String::new() } else { format!("<p>{}</p>\n", escape(&run.name)) };
            html += &format!("{name}<pre>{}</pre>\n", escape(&text));
        }
    }
    for run in runs {
        if let Some(by_class) = &run.report.by_class {
            let name = if runs.len() == 1 { String::new() } else { format!("{}: ", run.name) };
            let title = format!("{name}Each class of {}", by_class.level);
            html += &table(&title, &by_class.level, &run.report.config.metrics, class_rows(by_class));
            html += &format!("<p>{MACRO_AVERAGE}</p>\n");
        }
    }
    html += &glossary(runs);
    let shared = runs.iter().all(|run| measurement(&run.report) == measurement(&first.report));
    for run in if shared { &runs[..1] } else { runs } {
        let name = if shared { String::new() } else { format!("{}: ", run.name) };
        html += &format!("<p class=\"faint\">{}{}.</p>\n", escape(&name), escape(&measurement(&run.report)));
    }
    html
}

/// What the metrics of the tables are.
fn glossary(runs: &[RunPart]) -> String {
    let metrics = runs.iter().flat_map(|run| run.report.config.metrics.iter());
    let rows = without_repeats(metrics.map(|metric| (metric.label(), metric.entry().definition())));
    format!("<details><summary>What the metrics are</summary>\n{}</details>\n", facts(&rows))
}

/// The first of equal values, in their order.
fn without_repeats<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

fn table(title: &str, first: &str, metrics: &[Metric], rows: Vec<(&str, &Means)>) -> String {
    if metrics.is_empty() {
        return String::new();
    }
    let header = |metric: &Metric| {
        let definition = escape(&metric.entry().definition());
        format!("<th scope=\"col\" title=\"{definition}\">{}</th>", escape(&metric.label()))
    };
    let header: String = metrics.iter().map(header).collect();
    let mut html = format!(
        "<h3>{}</h3>\n{}<table>\n<thead><tr><th scope=\"col\">{}</th><th scope=\"col\">queries</th>{header}</tr>\
         </thead>\n<tbody>\n",
        escape(title),
        scroll(title),
        escape(first)
    );
    for (name, means) in rows {
        let cells: String = metrics.iter().map(|&metric| cell(metric, means)).collect();
        html += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td>{cells}</tr>\n",
            escape(name),
            count(means.queries)
        );
    }
    html + "</tbody></table></div>\n"
}

/// A mean, with its interval in smaller type.
fn cell(metric: Metric, means: &Means) -> String {
    let text = with_interval(metric, means.get(metric), &means.interval);
    match text.split_once(" [") {
        Some((mean, interval)) => {
            format!("<td>{} <span class=\"interval\">[{}</span></td>", escape(mean), escape(interval))
        }
        None => format!("<td>{}</td>", escape(&text)),
    }
}
