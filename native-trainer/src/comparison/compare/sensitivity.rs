//! How sensitive the scores of a comparison are to the settings that it varies: a figure for each setting and column.

use akin_figures::Figure;
use akin_figures::lines::{Axis, Line, lines};
use anyhow::Result;
use toml::{Table, Value};

use super::print::markdown as escaped;
use super::results::{Column, Comparison, ResultRow};
use crate::config::{dotted, last_part};
use crate::evaluation::report::displayed;
use crate::runs::code_lengths::numbered;

/// A line for each loss and each choice of the other settings: the mean of a score by a setting, with its deviation over
/// the seeds. A setting without two different numbers has no figure.
///
/// # Errors
///
/// A chart that the library cannot draw.
pub fn figures(comparison: &Comparison) -> Result<Vec<Figure>> {
    let mut keys: Vec<String> = Vec::new();
    for row in &comparison.rows {
        let new = dotted(&row.varied).into_iter().map(|(key, _)| key).filter(|key| !keys.contains(key));
        let new: Vec<String> = new.collect();
        keys.extend(new);
    }
    let mut figures: Vec<Figure> = Vec::new();
    for key in &keys {
        let values = values(&comparison.rows, key);
        if values.len() < 2 {
            continue;
        }
        let named = if is_geometric(&values) { Axis::logarithmic(key) } else { Axis::linear(key) };
        for (place, column) in comparison.columns.iter().enumerate() {
            let curves = curves(&comparison.rows, key, column, place);
            let title = title(column);
            let Some(drawing) = lines(named.naming(&values), Axis::linear(&title), &curves)? else {
                continue;
            };
            let name = file_name(&format!(
                "{key} {} {}",
                column.metric,
                column.level.as_deref().unwrap_or_default()
            ));
            let name =
                numbered(&name, |name| figures.iter().any(|figure| figure.name == name)).replace(' ', "-");
            let bars = match comparison.seeds.len() {
                1 => String::new(),
                seeds if curves.len() > 1 => format!(
                    " Bars: sample deviation over {seeds} seeds. Lines stand a little beside their values, so that no bar \
                     covers another."
                ),
                seeds => format!(" Bars: sample deviation over {seeds} seeds."),
            };
            figures.push(Figure {
                name,
                title: format!("{title} by {key}"),
                caption: format!("Each point is a value that was tried.{bars}"),
                drawing,
            });
        }
    }
    Ok(figures)
}

/// The figures as Markdown, for the file beside their folder.
pub fn markdown(figures: &[Figure]) -> String {
    let picture = |Figure { name, title, caption, .. }: &Figure| {
        format!("\n![{}. {caption}](figures/{name}.svg)\n", escaped(title))
    };
    figures.iter().map(picture).collect()
}

/// The numbers that a setting was tried with, rising.
fn values(rows: &[ResultRow], key: &str) -> Vec<f64> {
    let mut values: Vec<f64> = rows.iter().filter_map(|row| number(&row.varied, key)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

fn curves(rows: &[ResultRow], key: &str, column: &Column, place: usize) -> Vec<Line> {
    let mut tried: Vec<(f64, &ResultRow)> =
        rows.iter().filter_map(|row| Some((number(&row.varied, key)?, row))).collect();
    tried.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut curves: Vec<Line> = Vec::new();
    for (value, row) in tried {
        let Some(score) = &row.scores[place] else { continue };
        let name = name_beside(row, key);
        let number = curves.iter().position(|curve| curve.name == name).unwrap_or_else(|| {
            curves.push(Line::new(name, curves.len(), Vec::new()));
            curves.len() - 1
        });
        let shown = |score: f64| displayed(column.metric, score);
        curves[number].points.push([value, shown(score.mean)]);
        curves[number].deviations.push(score.deviation.map(shown));
    }
    curves
}

/// The row's loss, and what it varies besides a key.
fn name_beside(row: &ResultRow, key: &str) -> String {
    let others = dotted(&row.varied).into_iter().filter(|(other, _)| other != key);
    let others = others.map(|(other, value)| format!("{} {value}", last_part(&other)));
    [row.label.clone()].into_iter().chain(others).collect::<Vec<_>>().join(", ")
}

fn title(column: &Column) -> String {
    let unit = match column.metric.entry().unit {
        akin_core::metrics::Unit::Share => " in %",
        akin_core::metrics::Unit::Levels => "",
    };
    let level = column.level.as_ref().map(|level| format!(", {level}")).unwrap_or_default();
    format!("{}{unit}{level}", column.metric.label())
}

/// The number that a dotted key has in a table.
fn number(settings: &Table, key: &str) -> Option<f64> {
    let mut parts = key.split('.');
    let mut value = settings.get(parts.next()?)?;
    for part in parts {
        value = value.get(part)?;
    }
    match value {
        Value::Float(number) => Some(*number),
        Value::Integer(number) => Some(*number as f64),
        _ => None,
    }
}

/// Whether rising numbers are spaced more evenly by their ratios than by their differences.
fn is_geometric(values: &[f64]) -> bool {
    let unevenness = |place: fn(f64) -> f64| {
        let steps: Vec<f64> = values.windows(2).map(|pair| place(pair[1]) - place(pair[0])).collect();
        let [least, most] =
            [f64::min, f64::max].map(|of: fn(f64, f64) -> f64| steps.iter().copied().reduce(of));
        most.unwrap_or(1.0) / least.unwrap_or(1.0)
    };
    values.len() > 2 && values[0] > 0.0 && unevenness(f64::ln) < unevenness(|value| value)
}

/// A name of a file: letters, digits and dashes.
fn file_name(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_even_ratios_get_a_logarithmic_axis() {
        for values in [&[16.0, 32.0, 64.0, 128.0][..], &[1e-4, 1e-3, 1e-2], &[0.1, 0.3, 1.0, 3.0]] {
            assert!(is_geometric(values), "{values:?}");
        }
        for values in [&[0.1, 0.3, 0.5, 0.7, 0.9][..], &[0.0, 0.1, 1.0], &[1.0, 10.0], &[1.0, 2.0, 3.0]] {
            assert!(!is_geometric(values), "{values:?}");
        }
    }

    #[test]
    fn a_setting_is_found_by_its_dotted_key() {
        let settings = toml::toml! { loss = { lambda = 0.5, kind = "happier" }
        sampler = { classes_per_batch = 4 } };
        let found = ["loss.lambda", "sampler.classes_per_batch", "loss.kind", "loss", "model.x"];
        assert_eq!(found.map(|key| number(&settings, key)), [Some(0.5), Some(4.0), None, None, None]);
    }

    #[test]
    fn names_of_files_have_only_letters_digits_and_dashes() {
        assert_eq!(file_name("loss.lambda recall@1 ../Ärzte & <b>"), "loss-lambda-recall-1-rzte-b");
    }
}
