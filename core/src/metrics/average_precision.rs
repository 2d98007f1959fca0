use super::{Compute, MetricEntry, Unit};
use crate::ranking::Ranking;

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
/// [`Strict`](crate::ranking::TiePolicy::Strict) tied items do not count as above each other.
pub fn average_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    let mut above = 0;
    let mut sum = 0.0;
    for group in ranking.rank_groups(ranking.positives()) {
        let here = group.iter().filter(|positive| positive.level >= level).count();
        sum += (here * (above + 1)) as f64 / group[0].rank as f64;
        above += here;
    }
    (above > 0).then(|| sum / above as f64)
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
    let r = ranking.positives_at(level);
    let positives = ranking.positives().iter().filter(|positive| positive.level >= level);
    let early = positives.take_while(|positive| positive.rank <= k);
    // Not `sum`: the sum of no f64 is −0.
    let sum = (1..).zip(early).fold(0.0, |sum, (found, i)| sum + f64::from(found) / i.rank as f64);
    (r > 0).then(|| sum / r as f64)
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
    let positives = ranking.positives().iter().filter(|positive| positive.level >= level);
    let (mut above, mut sum) = (0.0, 0.0);
    for positive in positives {
        let rank = positive.rank as f64;
        let before = if positive.rank == 1 { 1.0 } else { above / (rank - 1.0) };
        above += 1.0;
        sum += (before + above / rank) / 2.0;
    }
    (above > 0.0).then(|| sum / above)
}
