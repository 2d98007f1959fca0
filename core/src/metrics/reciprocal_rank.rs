use crate::ranking::Ranking;

/// The reciprocal rank at a level, 1 … L: 1 / rank of the first item that shares the level or a finer one with the
/// query. Its mean over queries is MRR.
///
/// In (0, 1]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn reciprocal_rank(ranking: &Ranking, level: usize) -> Option<f64> {
    let first = ranking.positives().iter().find(|positive| positive.level >= level)?;
    Some(1.0 / first.rank as f64)
}
