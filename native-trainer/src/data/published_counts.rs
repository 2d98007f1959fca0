//! Holds a copy of a data set to its published counts.

use serde::Serialize;

use super::check::Findings;
use super::listing::{Count, Counts, SPLIT_NAMES};

/// A count of a copy beside the published one.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// What is counted, for example `train: images`.
    pub what: String,
    /// The count of this copy.
    pub found: usize,
    /// The published count.
    pub published: usize,
    /// Whether the published count is rounded to tens of a thousand.
    pub rounded: bool,
    /// Whether the two agree.
    pub agrees: bool,
}

/// Compares the counts of a copy with the published ones. A level that the config leaves out is not compared, nor is its
/// test set.
pub fn compare(findings: &Findings, counts: &Counts) -> Vec<Comparison> {
    let comparison = |what: String, found: usize, published: Count| Comparison {
        what,
        found,
        published: published.published(),
        rounded: matches!(published, Count::About(_)),
        agrees: published.agrees(found),
    };
    let mut comparisons = Vec::new();
    for published in counts.splits {
        let found = findings.splits.iter().find(|split| split.name == published.split);
        if found.is_none() && !SPLIT_NAMES.iter().any(|&(name, _)| name == published.split) {
            continue;
        }
        let images = found.map_or(0, |split| split.images);
        comparisons.push(comparison(format!("{}: images", published.split), images, published.images));
        for &(level, classes) in published.classes {
            if let Some(place) = findings.levels.iter().position(|name| name == level) {
                let what = format!("{}: classes of {level}", published.split);
                let number = found.map_or(0, |split| split.classes[place]);
                comparisons.push(comparison(what, number, Count::Exactly(classes)));
            }
        }
    }
    for &(level, published) in counts.classes {
        if let Some(found) = findings.taxonomy.iter().find(|found| found.name == level) {
            let what = format!("classes of {level}");
            comparisons.push(comparison(what, found.classes, Count::Exactly(published)));
        }
    }
    comparisons
}
