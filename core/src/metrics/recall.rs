use crate::ranking::Ranking;

/// R@k at a level, 1 … L: 1 when one of the first k items shares the level or a finer one with the query, else 0.
///
/// `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn recall(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let first = ranking.positives().iter().find(|positive| positive.level >= level)?;
    Some(f64::from(u8::from(first.rank <= k)))
}
