use crate::ranking::Ranking;

/// mAP@R at a level, 1 … L: the precision at each positive among the first R items, summed and divided by R, the
/// number of the level's positives.
///
/// ```text
/// mAP@R = 1 / R · Σ_{k: rank(k) ≤ R} rank⁺(k) / rank(k),    rank⁺(k) = 1 + the number of positives above k
/// ```
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn map_at_r(ranking: &Ranking, level: usize) -> Option<f64> {
    let r = ranking.positives_at(level);
    let positives = ranking.positives().iter().filter(|positive| positive.level >= level);
    let early = positives.take_while(|positive| positive.rank <= r);
    // Not `sum`, whose empty one is −0.
    let sum = (1..).zip(early).fold(0.0, |sum, (found, k)| sum + f64::from(found) / k.rank as f64);
    (r > 0).then(|| sum / r as f64)
}
