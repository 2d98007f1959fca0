//! The scores of each class of a level.

use std::collections::HashMap;

use akin_base::problem::{did_you_mean, problem};
use akin_core::evaluate::{ByClass, Report};
use akin_core::taxonomy::{Labels, Taxonomy};
use anyhow::Result;

/// The number of a level, 1 … L, that `--by-class` names.
///
/// # Errors
///
/// There is no such level.
pub fn find_level(levels: &[String], name: &str) -> Result<usize> {
    levels.iter().position(|level| level == name).map(|place| place + 1).ok_or_else(|| {
        let near = did_you_mean(name, levels.iter().map(String::as_str));
        problem(
            format!("`--by-class` names the level `{name}`, which there is not"),
            format!("{near}the levels are {}", levels.join(", ")),
        )
    })
}

/// Adds the scores of each class of a level to a report, which has those of its queries. `labels` are those of the queries.
///
/// # Errors
///
/// There is no such level.
pub fn add(report: &mut Report, taxonomy: &Taxonomy, labels: &Labels, level: &str) -> Result<()> {
    let level = find_level(taxonomy.level_names(), level)?;
    let classes = labels.column(level);
    let mut paths: HashMap<u32, Vec<&str>> = HashMap::new();
    for (item, class) in classes.iter().enumerate() {
        paths.entry(*class).or_insert_with(|| taxonomy.path_names(&labels.row(item)[..level]));
    }
    let mut names: HashMap<&str, usize> = HashMap::new();
    paths.values().filter_map(|path| path.last()).for_each(|name| *names.entry(name).or_default() += 1);
    // Only a name that several classes have needs its path.
    let name = |class: u32| match paths[&class].as_slice() {
        [.., name] if names[name] == 1 => (*name).to_owned(),
        path => path.join(" > "),
    };
    report.by_class = Some(ByClass::new(report, level, &classes, name));
    Ok(())
}
