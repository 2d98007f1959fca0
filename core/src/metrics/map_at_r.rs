use crate::ranking::Ranking;

/// AP@k at a level, 1 … L: [AP](super::average_precision) that looks at the first k items only. The divisor stays R,
/// the number of the level's positives, as in TREC's `map_cut`.
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
    // Not `sum`, whose empty one is −0.
    let sum = (1..).zip(early).fold(0.0, |sum, (found, i)| sum + f64::from(found) / i.rank as f64);
    (r > 0).then(|| sum / r as f64)
}

/// mAP@R at a level, 1 … L: [AP@k](average_precision_at) for k = R, the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn map_at_r(ranking: &Ranking, level: usize) -> Option<f64> {
    average_precision_at(ranking, level, ranking.positives_at(level))
}
