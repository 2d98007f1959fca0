use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;
use crate::unknown::LARGEST_FACTOR_WEIGHT;

/// The metric `mrr`.
pub(super) const MRR: MetricEntry = MetricEntry {
    name: "mrr",
    symbol: "MRR",
    title: "mean reciprocal rank",
    formula: "1 / rank of the first positive",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "voorhees1999",
    compute: Compute::WholeList(|input| reciprocal_rank(input.ranking, input.level)),
};

/// The reciprocal rank at a level, 1 … L: 1 / rank of the first item that shares the level or a finer one with the
/// query. Its mean over queries is MRR.
///
/// Where labels are unknown, it is Σ w_i / rank(i) · Π (1 − w_j) over the decided positives i and those above them, with
/// ranks in the whole ranking. That is right in the mean over queries, see [`crate::unknown`]. For a weight above 2, whose
/// variance would be too large, it is 1 / the weighted rank of the first decided positive.
///
/// In (0, 1]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn reciprocal_rank(ranking: &Ranking, level: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let (positives, weight) = (decided.positives(), decided.weight(level));
    let mut places = (0..positives.len()).filter(|&place| positives[place].level >= level).peekable();
    let first = *places.peek()?;
    if weight > LARGEST_FACTOR_WEIGHT {
        return Some(decided.weighted_ranks(positives)[first].recip());
    }
    let (mut sum, mut none_above) = (0.0, 1.0);
    for place in places {
        sum += none_above * weight / decided.whole_rank(place) as f64;
        none_above *= 1.0 - weight;
        if none_above == 0.0 {
            break;
        }
    }
    Some(sum)
}
