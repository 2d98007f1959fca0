use super::{Compute, MetricEntry, Unit};
use crate::ranking::{Decided, Positive, Ranking};

/// The metric `ap`.
pub(super) const AP: MetricEntry = MetricEntry {
    name: "ap",
    symbol: "AP",
    title: "average precision; with a k, that of the first k items",
    formula: "1/R Σ_i rank⁺(i) / rank(i)",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "manning2008",
    compute: Compute::Either(|input, k| match k {
        Some(k) => average_precision_at(input.ranking, input.level, k),
        None => average_precision(input.ranking, input.level),
    }),
};

/// The metric `trapezoid_ap`.
pub(super) const TRAPEZOID_AP: MetricEntry = MetricEntry {
    name: "trapezoid_ap",
    symbol: "trapezoid AP",
    title: "average precision by trapezoids, as the benchmarks of Oxford and Paris compute it",
    formula: "1/R Σ_i ((rank⁺(i) − 1) / (rank(i) − 1) + rank⁺(i) / rank(i)) / 2, with 1 for 0/0",
    unit: Unit::Share,
    greater_is_better: true,
    per_level: true,
    source: "radenovic2018",
    compute: Compute::WholeList(|input| trapezoid_average_precision(input.ranking, input.level)),
};

/// AP^(l), the average precision at a level l, 1 … L:
///
/// ```text
/// AP = 1 / R · Σ_k rank⁺(k) / rank(k),    rank⁺(k) = 1 + the number of positives above k
/// ```
///
/// over the R positives k: the items that share level l or a finer one with the query. In (0, 1]; `None` without
/// positives at the level. Ties: in the order of the ranking's policy; under
/// [`Strict`](crate::ranking::TiePolicy::Strict) tied items do not count as above each other. Under
/// [`Shared`](crate::ranking::TiePolicy::Shared) they do, and AP is scikit-learn's `average_precision_score`.
pub fn average_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let positives = decided.positives();
    if decided.is_plain() {
        let (found, sum) = sum_of_precisions(positives, level);
        return (found > 0.0).then(|| sum / found);
    }
    let (ranks, weight) = (decided.ranks_of_steps(positives), decided.weight(level));
    let (mut above, mut sum) = (0.0, 0.0);
    for group in decided.rank_groups(positives) {
        let mut found = group.filter(|&place| positives[place].level >= level);
        let Some(first) = found.next() else { continue };
        let here = (1 + found.count()) as f64 * weight;
        let others = if decided.ties_count() { here - weight } else { 0.0 };
        sum += here * (above + others + 1.0) / ranks[first];
        above += here;
    }
    (above > 0.0).then(|| sum / above)
}

/// The number of positives of a level, 1 … L, and the sum of the precisions at their ranks, without weights.
fn sum_of_precisions(positives: &[Positive], level: usize) -> (f64, f64) {
    let found = positives.iter().filter(|positive| positive.level >= level);
    found.fold((0.0, 0.0), |(above, sum), positive| (above + 1.0, sum + (above + 1.0) / positive.rank as f64))
}

/// AP@k at a level, 1 … L: [`average_precision`] of the first k items only. The divisor is still R, the number of the
/// level's positives, as in TREC's `map_cut`.
///
/// ```text
/// AP@k = 1 / R · Σ_{i: rank(i) ≤ k} rank⁺(i) / rank(i),    rank⁺(i) = 1 + the number of positives above i
/// ```
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn average_precision_at(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    of_first(&ranking.decided(level), level, k as f64)
}

/// [`average_precision_at`] of the items whose weighted rank is at most `last`.
pub(super) fn of_first(decided: &Decided<'_>, level: usize, last: f64) -> Option<f64> {
    let sum = if decided.is_plain() {
        let positives = decided.positives();
        let first = positives.partition_point(|positive| positive.rank as f64 <= last);
        sum_of_precisions(&positives[..first], level).1
    } else {
        let (ranks, weight) = (decided.ranks_at(level, last), decided.weight(level));
        // Not `sum`: the sum of no f64 is −0.
        ranks.iter().fold(0.0, |sum, (rank, above)| sum + weight * (above + 1.0) / rank)
    };
    let all = decided.mass_at(level);
    (all > 0.0).then(|| sum / all)
}

/// AP at a level, 1 … L, as the area below precision over recall by the trapezoidal rule. The published evaluations on
/// Oxford and Paris, and on their revisited versions, compute it so:
///
/// ```text
/// AP = 1 / R · Σ_i (p(i) + q(i)) / 2,    q(i) = rank⁺(i) / rank(i),    p(i) = (rank⁺(i) − 1) / (rank(i) − 1), or 1 at rank 1
/// ```
///
/// over the R positives i, with rank⁺ as in [`average_precision`], which is the mean of q. p(i) is the precision just
/// before positive i. p ≤ q below rank 1, so it is never greater than [`average_precision`]. In (0, 1]; `None` without
/// positives at the level. Ties: in the order of the ranking's policy.
pub fn trapezoid_average_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    let decided = ranking.decided(level);
    let (ranks, weight) = (decided.ranks_at(level, f64::INFINITY), decided.weight(level));
    let (mut all, mut sum) = (0.0, 0.0);
    for (rank, above) in ranks {
        let before = if rank == 1.0 { 1.0 } else { above / (rank - 1.0) };
        sum += weight * (before + (above + 1.0) / rank) / 2.0;
        all += weight;
    }
    (all > 0.0).then(|| sum / all)
}
