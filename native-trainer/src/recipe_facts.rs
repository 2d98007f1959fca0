//! Recipes of papers are held to what the papers say: `recipes/facts` has every setting and every result with its place.
//!
//! `settings.csv` has a line for each setting of a recipe that the text of a paper gives, with the section and the words
//! that say so. Where the text is silent and the published code is not, the place is `published code: FILE`, and the words
//! say what the file sets. `results.csv` has a line for each score, as the paper prints it, and `missing.csv` one for the
//! rows of the papers' tables that no recipe trains, with the reason. A recipe named with a row, such
//! as `happier/sop/norm_softmax`, is that row; without one it stands for all of its rows. The key `batch` is the number of
//! images in a batch.

use std::collections::BTreeSet;
use std::path::Path;

use akin_base::terminal;
use akin_core::metrics::Metric;
use toml::{Table, Value};

use crate::commands::recipes::{all, missing};
use crate::config::recipes::{RECIPES, Recipe};
use crate::config::{AVERAGE, Config, PretrainedConfig, SamplerConfig, Source};

const SETTINGS: &str = include_str!("../recipes/facts/settings.csv");
const RESULTS: &str = include_str!("../recipes/facts/results.csv");

/// How the place of a setting begins that the text of the paper does not give.
const PUBLISHED_CODE: &str = "published code: ";

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
        SamplerConfig::WholeSet {} => 0,
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

/// The papers as text: the folder of a paper's recipes, its key, and how the name of its file begins.
const TEXTS: [(&str, &str, &str); 5] = [
    ("happier", "ramzi2022", "000_"),
    ("hier", "kim2023", "001_"),
    ("roadmap", "ramzi2021", "002_"),
    ("hpl", "yang2022", "003_"),
    ("hpdh", "zhang2019", "004_"),
];

/// A text whose words are parted by single spaces, as in a quotation.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Where the texts of the papers lie beside the repository, every quotation stands in them, and so does every score.
#[test]
#[expect(clippy::print_stdout, reason = "the figures of the suite")]
fn every_quotation_and_every_score_stands_in_the_paper() {
    let Ok(folder) = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/seeds").read_dir() else {
        // Not `println!`, whose output the test harness hides if the test passes.
        terminal::warn(
            "SKIPPED: no quotation of recipes/facts is held to its paper, because ../shared/seeds is not there",
        );
        return;
    };
    let files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    let text = |beginning: &str| {
        let is_paper =
            |path: &&std::path::PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(beginning);
        words(&std::fs::read_to_string(files.iter().find(is_paper).unwrap()).unwrap())
    };
    let texts = TEXTS.map(|(folder, paper, beginning)| (folder, paper, text(beginning)));

    let quotations: Vec<_> = lines(SETTINGS)
        .into_iter()
        .filter(|[_, _, _, place, _]| !place.starts_with(PUBLISHED_CODE))
        .collect();
    for [name, key, _, place, quotation] in &quotations {
        let (_, _, text) = texts.iter().find(|(folder, ..)| name.split('/').next() == Some(folder)).unwrap();
        assert!(text.contains(&words(quotation)), "{name}: {key}: {place} does not say {quotation}");
    }
    let numbers = texts.map(|(_, paper, text)| {
        let numbers = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
        (paper, numbers.map(|number| number.trim_end_matches('.').to_owned()).collect::<BTreeSet<_>>())
    });
    let scores = lines(RESULTS);
    for [paper, place, row, _, _, metric, score] in &scores {
        let (_, numbers) = numbers.iter().find(|(key, _)| key == paper).unwrap();
        assert!(numbers.contains(score), "{paper}: {place}: {row}: {metric} {score} is not in the text");
    }
    let figure = format!("{} quotations and {} scores", quotations.len(), scores.len());
    let numbers = include_str!("../recipes/tables/README.md");
    assert!(numbers.contains(&figure), "recipes/tables/README.md does not say {figure}");
    println!(
        "figure: quotations of recipes/facts that stand in the texts of the papers: {}",
        quotations.len()
    );
    println!("figure: scores of recipes/facts that stand in the texts of the papers: {}", scores.len());
}

#[test]
fn every_recipe_of_a_paper_says_how_it_crops() {
    let of_papers = RECIPES.iter().filter(|recipe| recipe.name.contains('/') && recipe.trains());
    for recipe in of_papers {
        let table = recipe.table();
        let augment = table.get("augment").and_then(Value::as_table);
        let says = |key| augment.is_some_and(|augment| augment.contains_key(key));
        assert!(says("crop_scale") || says("crop"), "{} crops as akin does by default", recipe.name);
    }
}

#[test]
fn every_published_score_is_that_of_the_paper_and_none_is_left_out() {
    // The paper of HPDH prints shares, and akin percent.
    let printed = |paper: &str, score: f64| if paper == "zhang2019" { score / 100.0 } else { score };
    let mut in_recipes = BTreeSet::new();
    for entry in all().unwrap() {
        let Some(result) = entry.result else { continue };
        for (metric, &score) in &result.scores {
            let on = result.on.map(|on| on.to_string());
            let level = on.or(result.level.clone()).unwrap_or_default();
            let score = format!("{:.4}", printed(&entry.paper, score));
            let cells = [&entry.paper, &result.place, &result.row, &entry.recipe].map(String::clone);
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
fn rows_without_a_recipe_have_a_paper_a_place_and_a_reason() {
    let missing = missing();
    assert!(!missing.is_empty());
    for entry in missing {
        assert!(TEXTS.iter().any(|&(_, paper, _)| paper == entry.paper), "there is no paper {}", entry.paper);
        assert!(
            ![&entry.place, &entry.row, &entry.reason].iter().any(|cell| cell.is_empty()),
            "{}",
            entry.row
        );
    }
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
        // Only a paper whose text is not at hand leaves the numbers of its rows open.
        let has_text = TEXTS.iter().any(|&(_, paper, _)| paper == published.paper);
        assert_eq!(published.results.is_empty(), !has_text, "{}/{row}", recipe.name);
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
