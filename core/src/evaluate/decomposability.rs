//! The decomposability gap: how much better AP looks inside batches than over the whole set.

use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};

use super::{EvaluationConfig, Labelled, Places, Search};
use crate::embeddings::Embeddings;
use crate::metrics::average_precision;
use crate::random::stream;
use crate::similarity::Points;
use crate::statistics::{bootstrap_interval_of, mean};
use crate::{Error, Kind, Result};

/// How the [decomposability gap](decomposability_gap) is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Their 95 % bootstrap intervals, low and high, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interval: Vec<Option<[f64; 2]>>,
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
/// With [`EvaluationConfig::bootstrap`] each gap has an interval: whole batches are drawn anew, with what is left over
/// as one more, and with a batch go both its AP_b and the AP that its items have over the whole set. The scores inside
/// a batch depend on each other, so that single queries cannot be drawn; and the two APs of an item go together, so
/// that the two terms are not drawn apart. From fewer than about ten batches it comes out too narrow.
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

    let whole = average_precisions(set, config)?;
    let mut per_level = vec![Vec::new(); depth];
    for items in order.chunks(batch) {
        // What is left over is no batch, but among the items of the whole.
        let inside = if items.len() == batch {
            let values = items.iter().flat_map(|&item| set.embeddings.row(item)).copied().collect();
            let embeddings = Embeddings::new(set.embeddings.dimension(), values)?;
            let labels = set.labels.select(items);
            average_precisions(Labelled { embeddings: &embeddings, labels: &labels }, config)?
        } else {
            Vec::new()
        };
        for (level, batches) in per_level.iter_mut().enumerate() {
            let ap = mean(&inside.iter().filter_map(|query| query[level]).collect::<Vec<_>>());
            let of_whole: Vec<f64> = items.iter().filter_map(|&item| whole[item][level]).collect();
            batches.push(Batch { ap, count: of_whole.len(), sum: of_whole.iter().sum() });
        }
    }
    let interval = config.bootstrap.map(|bootstrap| {
        let interval = |batches: &Vec<Batch>| {
            let statistic = |drawn: &[Vec<usize>]| gap(drawn[0].iter().map(|&place| batches[place]));
            bootstrap_interval_of(&[batches.len()], bootstrap, statistic)
        };
        per_level.iter().map(interval).collect()
    });
    let levels = per_level.iter().map(|batches| gap(batches.iter().copied())).collect();
    Ok(DecomposabilityGap { batch, batches: count / batch, levels, interval: interval.unwrap_or_default() })
}

/// One batch at one level.
#[derive(Clone, Copy)]
struct Batch {
    /// AP_b, if any of its items has a positive in it.
    ap: Option<f64>,
    /// How many of its items have a positive in the whole set.
    count: usize,
    /// The sum of their APs over the whole set.
    sum: f64,
}

fn gap(batches: impl Iterator<Item = Batch> + Clone) -> Option<f64> {
    let inside = mean(&batches.clone().filter_map(|batch| batch.ap).collect::<Vec<_>>())?;
    let (count, sum) = batches.fold((0, 0.0), |(n, sum), batch| (n + batch.count, sum + batch.sum));
    (count > 0).then(|| inside - sum / count as f64)
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

/// The AP of each item at each level, in a set that ranks itself: [N, L].
fn average_precisions(set: Labelled<'_>, config: &EvaluationConfig) -> Result<Vec<Vec<Option<f64>>>> {
    let points = Points::new(config.similarity, set.embeddings, "query")?;
    let search = Search {
        queries: &points,
        query_labels: set.labels,
        gallery: &points,
        labels: set.labels,
        places: Places::Same,
    };
    let depth = set.labels.levels();
    Ok(search.rank(config, |_, ranking| (1..=depth).map(|level| average_precision(ranking, level)).collect()))
}
