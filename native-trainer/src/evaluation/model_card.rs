//! The model card of a bundle: what its models are, what they were trained on, how good they are, and how to use them.

use akin_base::quantities::{count, counted};
use akin_core::bundle::{Contents, EncoderEntry};
use akin_core::evaluate::{Means, Report};
use akin_core::metrics::Metric;
use anyhow::Result;
use toml::Table;

use crate::config::{Config, Protocol, put};
use crate::evaluation::report::{measurement, with_interval};

/// The card as Markdown, with the configs of the encoders in their order; there are none where the encoders have no weights.
pub fn model_card_file(contents: &Contents, configs: &[&Config]) -> Result<String> {
    let mut card = format!("# {}\n", text(&contents.title));
    if !contents.description.is_empty() {
        card += &format!("\n{}\n", text(&contents.description));
    }
    let licence = match &contents.licence {
        none if none.is_empty() => String::new(),
        licence => format!("Licence of images and weights: {}.\n", text(licence)),
    };
    card += &format!(
        "\n{licence}Written by akin {}.\n\n{}",
        env!("CARGO_PKG_VERSION"),
        contents.model_card.trim_end()
    );
    let taxonomy = &contents.taxonomy;
    let rows = (1..)
        .zip(taxonomy.level_names())
        .map(|(level, name)| format!("| {} | {} |\n", text(name), count(taxonomy.class_count(level))));
    card += &format!(
        "\n\n## Classes\n\n| level, coarse to fine | classes |\n|---|--:|\n{}",
        rows.collect::<String>()
    );
    let queries = match contents.queries.count {
        0 => "each of which is also a query".to_owned(),
        queries => format!("and {} of their own", counted(queries, "query", "queries")),
    };
    card +=
        &format!("\nThe gallery has {}, {queries}.\n", counted(contents.gallery.count, "image", "images"));
    for (index, encoder) in contents.encoders.iter().enumerate() {
        card += &about(encoder, configs.get(index).copied())?;
    }
    card +=
        "\n## Use\n\nThe folder is a bundle of akin.\n\n```sh\nakin serve .                  # the page\n";
    if contents.encoders.iter().any(|encoder| encoder.weights.is_some()) {
        card += "akin search . photo.jpg       # the nearest items, in the terminal\n";
    }
    card += "```\n\n`bundle.json` says what each file is, with its SHA-256.\n";
    Ok(card)
}

/// An encoder: its parts, its results and its config.
fn about(encoder: &EncoderEntry, config: Option<&Config>) -> Result<String> {
    let parts = config.map(|Config { model, .. }| {
        let side = model.preprocessing.side();
        format!("{}, images of {side}×{side} pixels, ", text(&model.backbone_title()))
    });
    let mut about = format!(
        "\n## Results of {}\n\n{}: {}embeddings of {} dimensions.\n",
        text(&encoder.name),
        text(&encoder.description),
        parts.unwrap_or_default(),
        encoder.dimension
    );
    let Some(config) = config else {
        return Ok(about + &tables(&encoder.report));
    };
    // The protocol of DyML evaluates other labels than the report has.
    about += &match config.split.protocol {
        Protocol::Dyml => {
            "\nThe model is evaluated by the protocol of DyML. `akin eval RUN` prints its results.\n".into()
        }
        _ => tables(&encoder.report),
    };
    about += &format!(
        "\n<details><summary>Config</summary>\n\n```toml\n{}```\n\n</details>\n",
        toml::to_string(&without_places(config)?)?
    );
    Ok(about)
}

/// The tables of a report.
fn tables(report: &Report) -> String {
    let mut tables = String::new();
    let metrics = |per_level: bool| -> Vec<Metric> {
        report.config.metrics.iter().copied().filter(|metric| metric.entry().per_level == per_level).collect()
    };
    let levels: Vec<(&str, &Means)> =
        report.levels.iter().map(|level| (level.name.as_str(), &level.means)).collect();
    for (metrics, rows) in [(metrics(false), vec![("all levels", &report.overall)]), (metrics(true), levels)]
    {
        if !metrics.is_empty() {
            tables += &table(&metrics, &rows);
        }
    }
    tables + &format!("\n{}.\n", measurement(report))
}

/// A row for each level, and a column for each metric.
fn table(metrics: &[Metric], rows: &[(&str, &Means)]) -> String {
    let labels: String = metrics.iter().map(|metric| format!(" {} |", metric.label())).collect();
    let mut table = format!("\n| | queries |{labels}\n|---|--:|{}\n", "--:|".repeat(metrics.len()));
    for (name, means) in rows {
        let cells: String = metrics
            .iter()
            .map(|&metric| format!(" {} |", with_interval(metric, means.get(metric), &means.interval)))
            .collect();
        table += &format!("| {} | {} |{cells}\n", text(name), count(means.queries));
    }
    table
}

/// The config without what is only true of the machine that it was trained on: of paths, the last part stays.
fn without_places(config: &Config) -> Result<Table> {
    let mut table = Table::try_from(config)?;
    for (section, key) in [("data", "path"), ("data", "images"), ("data", "hierarchy"), ("model", "weights")]
    {
        let value = table.get_mut(section).and_then(|section| section.get_mut(key));
        if let Some(toml::Value::String(path)) = value {
            let name = std::path::Path::new(path.as_str()).file_name().unwrap_or_default();
            *path = name.to_string_lossy().into_owned();
        }
    }
    if let Some(onnx) = config.model.onnx() {
        let name = std::path::Path::new(&onnx.path).file_name().unwrap_or_default();
        put(&mut table, "model.backbone.path", name.to_string_lossy().into_owned().into())?;
    }
    for (section, key) in [("run", "out"), ("model", "feature_cache")] {
        table.get_mut(section).and_then(|section| section.as_table_mut()?.remove(key));
    }
    Ok(table)
}

/// A text in which no character begins markup.
pub fn text(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '\\' | '`' | '*' | '_' | '<' | '>' | '[' | ']' | '|' | '#' => vec!['\\', c],
            '\n' | '\r' => vec![' '],
            c => vec![c],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(text("a|b <i>\n[x](y)"), "a\\|b \\<i\\> \\[x\\](y)");
    }
}
