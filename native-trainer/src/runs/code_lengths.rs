//! Names of runs, and families: runs that differ only in the number of bits of their codes.

use akin_base::problem::{problem, repeated};
use akin_core::geometry::Geometry;
use anyhow::Result;
use toml::Table;

use crate::config::{Config, NO_RESULT_DEPENDS_ON, differences, dotted, last_part};
use crate::runs::run::Run;

/// The key of the number of bits.
const BITS: &str = "model.head.dimension";

/// The family of each config, named after its loss. A config that has no sibling has none.
///
/// # Errors
///
/// Two configs of a family with equally many bits, or no family at all.
pub fn families(configs: &[&Config]) -> Result<Vec<Option<String>>> {
    let ignored = [&NO_RESULT_DEPENDS_ON[..], &["run.device", BITS]].concat();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (position, config) in configs.iter().enumerate() {
        if bits(config).is_none() {
            continue;
        }
        let is_sibling =
            |group: &&mut Vec<usize>| differences(configs[group[0]], config, &ignored).is_empty();
        match groups.iter_mut().find(is_sibling) {
            Some(group) => group.push(position),
            None => groups.push(vec![position]),
        }
    }
    groups.retain(|group| group.len() > 1);
    if groups.is_empty() {
        return Err(problem(
            "no two of the runs differ only in the number of bits",
            "give runs with a binary `model.head.geometry` that differ in `model.head.dimension` only, or leave out \
             `--group-bits`",
        ));
    }
    let mut families: Vec<Option<String>> = vec![None; configs.len()];
    for group in groups {
        let lengths: Vec<usize> = group.iter().filter_map(|&position| bits(configs[position])).collect();
        if let Some(twice) = repeated(&lengths) {
            return Err(problem(
                format!("two of the runs have the same config, with {twice} bits"),
                "leave out one of them, or leave out `--group-bits`",
            ));
        }
        let title = configs[group[0]].loss.entry().title;
        let name = numbered(title, |name| families.iter().flatten().any(|taken| taken == name));
        for position in group {
            families[position] = Some(name.clone());
        }
    }
    Ok(families)
}

/// The number of bits of a run with codes.
fn bits(config: &Config) -> Option<usize> {
    let head = config.model.head.as_ref()?;
    (head.geometry == Geometry::Binary).then_some(head.dimension)
}

/// A different name for each run. It is the first of these that no other run has: the name in the config; that name with
/// the settings in which the runs of this name differ, if they are few; the name of the directory; and that name with the
/// folder above it. If all are shared, the name in the config gets a number.
pub fn distinct_names(runs: &[Run]) -> Vec<String> {
    let in_config = |run: &Run| run.config.run.name.clone();
    let last_parts = |run: &Run, count: usize| -> String {
        let parts: Vec<_> = run.directory.iter().map(|part| part.to_string_lossy()).collect();
        parts[parts.len().saturating_sub(count)..].join("/")
    };
    let with_settings = |run: &Run| {
        let same_name: Vec<&Config> = runs
            .iter()
            .map(|run| &run.config)
            .filter(|config| config.run.name == run.config.run.name)
            .collect();
        name_with_settings(&run.config, &same_name).unwrap_or_else(|| in_config(run))
    };
    let ways: [&dyn Fn(&Run) -> String; 4] =
        [&in_config, &with_settings, &|run| last_parts(run, 1), &|run| last_parts(run, 2)];
    let named: Vec<Vec<String>> = ways.iter().map(|way| runs.iter().map(way).collect()).collect();
    let mut names: Vec<String> = Vec::new();
    for place in 0..runs.len() {
        let is_unique =
            |names: &&Vec<String>| names.iter().filter(|name| **name == names[place]).count() == 1;
        let own = named.iter().find(is_unique).unwrap_or(&named[0])[place].clone();
        names.push(numbered(&own, |name| names.iter().any(|other| other == name)));
    }
    names
}

/// The name of a run, with the settings in which runs of this name differ: `HAPPIER, lambda 0.1, seed 0`. None if they
/// differ in more than a name can tell.
fn name_with_settings(config: &Config, same_name: &[&Config]) -> Option<String> {
    const MOST_SETTINGS: usize = 3;
    const LONGEST_VALUE: usize = 24;
    let ignored = [&NO_RESULT_DEPENDS_ON[..], &["run.device", "run.workers"]].concat();
    let mut keys: Vec<String> =
        same_name.iter().flat_map(|other| differences(same_name[0], other, &ignored)).collect();
    // The seed comes last.
    keys.sort_by_key(|key| (key == "run.seed", key.clone()));
    keys.dedup();
    // Another kind has other keys beside it.
    let kinds: Vec<String> =
        keys.iter().filter_map(|key| Some(format!("{}.", key.strip_suffix(".kind")?))).collect();
    keys.retain(|key| last_part(key) == "kind" || !kinds.iter().any(|table| key.starts_with(table)));
    if keys.is_empty() || keys.len() > MOST_SETTINGS {
        return None;
    }
    let values = dotted(&Table::try_from(config).ok()?);
    let parts = keys.iter().map(|key| {
        let value = values.iter().find(|(other, _)| other == key).map(|(_, value)| value.trim_matches('"'));
        let value = value.unwrap_or("none");
        let is_unique = keys.iter().filter(|other| last_part(other) == last_part(key)).count() == 1;
        let key = if is_unique { last_part(key) } else { key };
        (value.chars().count() <= LONGEST_VALUE).then(|| format!("{key} {value}"))
    });
    let parts: Vec<String> = parts.collect::<Option<_>>()?;
    Some(format!("{}, {}", config.run.name, parts.join(", ")))
}

/// `name`, or `name` with the first number that makes it one that is not taken.
pub fn numbered(name: &str, taken: impl Fn(&str) -> bool) -> String {
    if !taken(name) {
        return name.to_owned();
    }
    (2..)
        .map(|number| format!("{name} {number}"))
        .find(|name| !taken(name))
        .expect("there is always a larger number")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use akin_base::problem::parts;

    use super::*;

    /// A hash run with other settings, each `KEY=VALUE`.
    fn config(sets: &[&str]) -> Config {
        let text = r#"
            [run]
            epochs = 1
            [data]
            kind = "csv"
            path = "labels.csv"
            levels = ["order", "species"]
            [model]
            backbone = { kind = "small_resnet" }
            head = { dimension = 16, geometry = { kind = "binary" } }
            [loss]
            kind = "hpdh"
        "#;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hash.toml");
        fs::write(&file, text).unwrap();
        // Every config has a folder of its own, so that its relative paths would differ.
        let mut sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        sets.extend(["data.path=/data/labels.csv".to_owned(), format!("run.out={}", file.display())]);
        Config::load(&file, &sets).unwrap()
    }

    #[test]
    fn runs_that_differ_in_bits_alone_are_a_family() {
        let configs = [
            config(&["run.name=short"]),
            config(&["model.head.dimension=32", "run.name=long"]),
            config(&["model.head.dimension=32", "loss.kind=csq"]),
            config(&["run.seed=1"]),
            config(&["run.seed=1", "model.head.dimension=8"]),
            config(&["loss.kind=norm_softmax", "model.head.geometry.kind=cosine"]),
        ];
        let found = families(&configs.iter().collect::<Vec<_>>()).unwrap();
        let expected = [Some("HPDH"), Some("HPDH"), None, Some("HPDH 2"), Some("HPDH 2"), None];
        assert_eq!(found, expected.map(|name| name.map(str::to_owned)));
    }

    #[test]
    fn equal_codes_and_lone_codes_are_refused() {
        let refusal = |configs: &[Config]| {
            let (message, hint) = parts(&families(&configs.iter().collect::<Vec<_>>()).unwrap_err());
            assert!(hint.is_some_and(|hint| hint.contains("--group-bits")));
            message
        };
        let twice = [config(&[]), config(&[])];
        assert_eq!(refusal(&twice), "two of the runs have the same config, with 16 bits");
        let lone = [config(&[]), config(&["model.head.dimension=32", "run.seed=1"])];
        assert_eq!(refusal(&lone), "no two of the runs differ only in the number of bits");
    }

    #[test]
    fn runs_of_one_name_are_told_apart_by_as_little_as_needed() {
        let names = |runs: &[(&str, &str)]| -> Vec<String> {
            let run = |&(name, directory): &(&str, &str)| {
                let mut config = config(&[]);
                config.run.name = name.into();
                Run { directory: directory.into(), config }
            };
            distinct_names(&runs.iter().map(run).collect::<Vec<_>>())
        };
        assert_eq!(names(&[("a", "/x/1"), ("b", "/x/2")]), ["a", "b"]);
        assert_eq!(names(&[("a", "/x/1"), ("a", "/x/2"), ("b", "/y/1")]), ["x/1", "2", "b"]);
        assert_eq!(names(&[("a", "/x/seed-0"), ("a", "/y/seed-0")]), ["x/seed-0", "y/seed-0"]);
        assert_eq!(names(&[("a", "/p/x/1"), ("a", "/q/x/1")]), ["a", "a 2"]);
        assert_eq!(names(&[("a", "/x/1"), ("a", "/x/b"), ("b", "/y/c")]), ["1", "b", "b 2"]);
    }

    #[test]
    fn trainings_of_a_comparison_are_named_by_what_varies_and_the_seed() {
        let names = |runs: &[&[&str]]| -> Vec<String> {
            let run = |(number, sets): (usize, &&[&str])| {
                let name = ["run.name=HPDH"];
                let config = config(&[&name[..], sets].concat());
                Run { directory: format!("/x/{number}/seed").into(), config }
            };
            distinct_names(&runs.iter().enumerate().map(run).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&[
                &["optimizer.lr_head=0.1", "run.seed=0"],
                &["optimizer.lr_head=0.1", "run.seed=1"],
                &["optimizer.lr_head=0.5", "run.seed=0"],
                &["optimizer.lr_head=0.5", "run.seed=1", "run.name=other"],
            ]),
            ["HPDH, lr_head 0.1, seed 0", "HPDH, lr_head 0.1, seed 1", "HPDH, lr_head 0.5, seed 0", "other"]
        );
        assert_eq!(
            names(&[&[], &["sampler.level=order", "optimizer.rule.kind=sgd"]]),
            ["HPDH, kind adam, level none", "HPDH, kind sgd, level order"]
        );
        let many = ["optimizer.lr_head=0.1", "optimizer.lr_proxies=0.1", "run.seed=3", "run.epochs=2"];
        assert_eq!(names(&[&[], &many]), ["0/seed", "1/seed"], "too many settings for a name");
    }
}
