//! Holds a copy of a data set to its published counts.

use serde::Serialize;

use super::check::Findings;
use super::listing::{Count, Counts};

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

/// Compares the counts of a copy with the published ones. A level that the config leaves out is not compared.
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
        let images = found.map_or(0, |split| split.images);
        comparisons.push(comparison(format!("{}: images", published.split), images, published.images));
        if let Some(classes) = published.classes {
            let finest = found.and_then(|split| split.classes.last()).copied().unwrap_or(0);
            let what = format!("{}: finest classes", published.split);
            comparisons.push(comparison(what, finest, Count::Exactly(classes)));
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
