use crate::ranking::Ranking;

/// AP^(l), the average precision at a level, 1 … L, whose positives are the items that share it or a finer one:
///
/// ```text
/// AP = 1 / P · Σ_k rank⁺(k) / rank(k),    rank⁺(k) = 1 + the number of positives above k
/// ```
///
/// In (0, 1]; `None` without positives at the level. Ties: in the order of the ranking's policy; under
/// [`Strict`](crate::ranking::TiePolicy::Strict) tied items are not above each other.
pub fn average_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    let mut above = 0;
    let mut sum = 0.0;
    for step in ranking.steps(ranking.positives()) {
        let here = step.iter().filter(|positive| positive.level >= level).count();
        sum += (here * (above + 1)) as f64 / step[0].rank as f64;
        above += here;
    }
    (above > 0).then(|| sum / above as f64)
}
