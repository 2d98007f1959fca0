//! Recipes of papers are held to what the papers say: `recipes/facts` has every setting and every result with its place.
//!
//! `settings.csv` has a line for each setting of a recipe that the text of a paper gives, with the section and the words
//! that say so. `results.csv` has a line for each score, as the paper prints it. A recipe named with a row, such as
//! `happier/sop/norm_softmax`, is that row; without one it stands for all of its rows. The key `batch` is the number of
//! images in a batch.

use std::collections::BTreeSet;
use std::path::Path;

use akin_core::metrics::Metric;
use toml::{Table, Value};

use crate::commands::recipes::all;
use crate::config::recipes::{RECIPES, Recipe};
use crate::config::{AVERAGE, Config, PretrainedConfig, SamplerConfig, Source};

const SETTINGS: &str = include_str!("../recipes/facts/settings.csv");
const RESULTS: &str = include_str!("../recipes/facts/results.csv");

fn lines<const N: usize>(text: &str) -> Vec<[String; N]> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let cells = |line: csv::StringRecord| std::array::from_fn(|place| line[place].to_owned());
    reader.records().map(|line| cells(line.unwrap())).collect()
}

/// The recipes of papers with their rows: `happier/sop`, `happier`.
fn rows() -> Vec<(&'static Recipe, String)> {
    let rows = |recipe: &'static Recipe| recipe.rows().into_iter().map(move |row| (recipe, row));
    RECIPES.iter().flat_map(rows).collect()
}

/// The config of a row, with its data in a folder that need not exist.
fn config(recipe: &Recipe, row: &str) -> Config {
    let text = recipe.text.replace("${AKIN_DATA}", "data");
    Source::from_text(Path::new("recipe.toml"), text, Some(row), &[]).unwrap().config(&Table::new()).unwrap()
}

/// The value of a dotted key, in which a number is a place in a list.
fn find<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    key.split('.').try_fold(value, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

fn same(one: &Value, other: &Value) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|integer| integer as f64));
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        _ => match (number(one), number(other)) {
            (Some(one), Some(other)) => (one - other).abs() <= 1e-12 * other.abs(),
            _ => one == other,
        },
    }
}

/// The number of images in a batch.
fn batch(config: &Config) -> Value {
    let images = match config.sampler {
        SamplerConfig::Random { batch_size } => batch_size.unwrap_or_default(),
        SamplerConfig::Classes { classes_per_batch, images_per_class, .. }
        | SamplerConfig::ClassPairs { classes_per_batch, images_per_class, .. } => {
            classes_per_batch.unwrap_or_default() * images_per_class
        }
    };
    Value::Integer(images as i64)
}

#[test]
fn every_setting_that_a_paper_gives_is_that_of_the_recipe() {
    let rows = rows();
    for [name, key, value, place, words] in lines(SETTINGS) {
        let stands_for =
            |recipe: &Recipe, row: &str| name == recipe.name || name == format!("{}/{row}", recipe.name);
        let matching: Vec<_> = rows.iter().filter(|(recipe, row)| stands_for(recipe, row)).collect();
        assert!(!matching.is_empty(), "there is no recipe {name}");
        assert!(!place.is_empty() && !words.is_empty(), "{name}: {key} has no place");
        let expected: Table = format!("value = {value}")
            .parse()
            .unwrap_or_else(|_| format!("value = '{value}'").parse().unwrap());
        for (recipe, row) in matching {
            let config = config(recipe, row);
            let resolved = Value::try_from(&config).unwrap();
            let batch = batch(&config);
            let found = if key == "batch" { Some(&batch) } else { find(&resolved, &key) };
            assert!(
                found.is_some_and(|found| same(found, &expected["value"])),
                "{}/{row}: {key} is {found:?}, but {place} says {value}: {words}",
                recipe.name
            );
        }
    }
}

#[test]
fn every_published_score_is_that_of_the_paper_and_none_is_left_out() {
    // The paper of HPDH prints shares, and akin percent.
    let printed = |paper: &str, score: f64| if paper == "zhang2019" { score / 100.0 } else { score };
    let mut in_recipes = BTreeSet::new();
    for entry in all().unwrap() {
        for (metric, &score) in &entry.result.scores {
            let level = entry.result.level.clone().unwrap_or_default();
            let score = format!("{:.4}", printed(&entry.paper, score));
            let cells =
                [&entry.paper, &entry.result.place, &entry.result.row, &entry.recipe].map(String::clone);
            assert!(
                in_recipes.insert((cells, level, metric.to_string(), score)),
                "{} repeats a score",
                entry.recipe
            );
        }
    }
    let mut in_papers = BTreeSet::new();
    for [paper, place, row, recipe, level, metric, score] in lines(RESULTS) {
        let metric: Metric = metric.parse().unwrap();
        let score = format!("{:.4}", score.parse::<f64>().unwrap());
        in_papers.insert(([paper, place, row, recipe], level, metric.to_string(), score));
    }
    let difference: Vec<_> = in_recipes.symmetric_difference(&in_papers).collect();
    assert!(difference.is_empty(), "{difference:#?}");
}

#[test]
fn every_recipe_without_a_training_measures_what_a_paper_reports() {
    let without: Vec<&Recipe> = RECIPES.iter().filter(|recipe| !recipe.trains()).collect();
    assert!(!without.is_empty());
    for recipe in without {
        let text = recipe.text.replace("${AKIN_DATA}", "data");
        let source = Source::from_text(Path::new("recipe.toml"), text, None, &[]).unwrap();
        let config = PretrainedConfig::of(&source).unwrap();
        let weights = config.model.weights.unwrap();
        let file = weights.file_name().unwrap().to_str().unwrap();
        // torch's files have the first digits of their SHA-256 in their names.
        if let Some((_, digits)) = file.strip_suffix(".pth").and_then(|name| name.rsplit_once('-')) {
            assert_eq!(config.model.weights_sha256.as_deref(), Some(digits), "{}", recipe.name);
        }
        let measured: BTreeSet<&Metric> = config.eval.metrics.iter().collect();
        let published = config.published.unwrap();
        assert!(!published.results.is_empty(), "{} has no results", recipe.name);
        for result in &published.results {
            assert_eq!(result.scores.keys().collect::<BTreeSet<_>>(), measured, "{}", recipe.name);
        }
    }
}

#[test]
fn every_published_score_is_measured() {
    for (recipe, row) in rows() {
        let config = config(recipe, &row);
        let published = config.published.as_ref().expect("a row of a paper's recipe has results");
        assert!(!published.results.is_empty(), "{}/{row} has no results", recipe.name);
        for result in &published.results {
            for metric in result.scores.keys() {
                assert!(
                    config.eval.metrics.contains(metric),
                    "{}/{row} does not measure {metric}",
                    recipe.name
                );
                let at_level = |level: &str| {
                    let known = config.data.levels().iter().any(|known| known == level);
                    level == AVERAGE || known && metric.entry().per_level
                };
                let has_level = result.level.as_deref().is_none_or(at_level);
                assert!(has_level, "{}/{row}: {metric} at {:?}", recipe.name, result.level);
            }
        }
    }
}
