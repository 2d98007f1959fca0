//! The decomposability gap: how much better AP looks inside batches than over the whole set.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::{EvaluationConfig, Labelled, Places, Search};
use crate::cosine::{Embeddings, Points};
use crate::metrics::average_precision;
use crate::random::stream;
use crate::statistics::mean;
use crate::{Error, Kind, Result};

/// How the [decomposability gap](decomposability_gap) is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decomposability {
    /// B, the number of items in a batch; at least 2.
    pub batch: usize,
    /// What the batches follow from. Default: 0.
    #[serde(default)]
    pub seed: u64,
}

/// The gap at each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DecomposabilityGap {
    /// B, the number of items in a batch.
    pub batch: usize,
    /// K, the number of batches.
    pub batches: usize,
    /// DG_AP at levels 1 … L; `None` where no batch holds two items of one class.
    pub levels: Vec<Option<f64>>,
}

/// The decomposability gap of AP (ROADMAP, eq. 6):
///
/// ```text
/// DG_AP = 1/K · Σ_{b = 1 … K} AP_b − AP
/// ```
///
/// where AP is the mean over all items, each ranking all others, and AP_b the mean over the items of batch b, each
/// ranking the others of its batch. The batches are a random partition of the set into K = ⌊N / B⌋ batches of B items;
/// what is left over is in none. A batch without positives at a level has no AP_b there and is left out.
///
/// In (−1, 1), and mostly above 0: a small batch holds few of the items that stand in the way. It is 0 when one
/// threshold parts the scores of all positive pairs from those of all negative ones.
///
/// # Errors
///
/// [`Kind::Config`] for batches of fewer than 2 items, or more than there are; else as
/// [`evaluate`](super::evaluate).
pub fn decomposability_gap(
    set: Labelled<'_>,
    config: &EvaluationConfig,
    settings: Decomposability,
) -> Result<DecomposabilityGap> {
    let Decomposability { batch, seed } = settings;
    let (count, depth) = (set.labels.len(), set.labels.levels());
    check_batch(batch, count)?;
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut stream(seed, "decomposability gap", &[]));

    let whole = mean_ap(set, config)?;
    let batches = count / batch;
    let mut per_level = vec![Vec::new(); depth];
    for items in order.chunks_exact(batch) {
        let values = items.iter().flat_map(|&item| set.embeddings.row(item)).copied().collect();
        let embeddings = Embeddings::new(set.embeddings.dimension(), values)?;
        let labels = set.labels.select(items);
        let aps = mean_ap(Labelled { embeddings: &embeddings, labels: &labels }, config)?;
        for (values, ap) in per_level.iter_mut().zip(aps) {
            values.extend(ap);
        }
    }
    let levels = whole.into_iter().zip(per_level).map(|(whole, batches)| Some(mean(&batches)? - whole?));
    Ok(DecomposabilityGap { batch, batches, levels: levels.collect() })
}

/// Checks that a set of `count` items has a batch of this size.
pub(super) fn check_batch(batch: usize, count: usize) -> Result<()> {
    if (2..=count).contains(&batch) {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!("the decomposability gap is asked for in batches of {batch}, and the set has {count} items"),
        "choose a batch of at least 2 items and at most all",
    ))
}

/// The mean AP at each level of a set that ranks itself.
fn mean_ap(set: Labelled<'_>, config: &EvaluationConfig) -> Result<Vec<Option<f64>>> {
    let points = Points::new(config.similarity, set.embeddings, "query")?;
    let search = Search {
        queries: &points,
        query_labels: set.labels,
        gallery: &points,
        labels: set.labels,
        places: Places::Same,
    };
    let depth = set.labels.levels();
    let rows = search.rank(config, |_, ranking| {
        (1..=depth).map(|level| average_precision(ranking, level)).collect::<Vec<_>>()
    });
    let at = |level: usize| mean(&rows.iter().filter_map(|row| row[level]).collect::<Vec<_>>());
    Ok((0..depth).map(at).collect())
}
