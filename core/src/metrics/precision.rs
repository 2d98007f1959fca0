use crate::ranking::Ranking;

/// P@k at a level, 1 … L: the share of the first k items that share the level or a finer one with the query.
///
/// In \[0, 1\], and below 1 wherever there are fewer than k positives; ranks past the end of the list hold none.
/// `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn precision(ranking: &Ranking, level: usize, k: usize) -> Option<f64> {
    let found = ranking.positives().iter().take_while(|positive| positive.rank <= k);
    let count = found.filter(|positive| positive.level >= level).count();
    (ranking.positives_at(level) > 0).then(|| count as f64 / k as f64)
}

/// R-precision at a level: P@R, where R is the number of the level's positives.
///
/// In \[0, 1\]; `None` without positives at the level. Ties: in the order of the ranking's policy.
pub fn r_precision(ranking: &Ranking, level: usize) -> Option<f64> {
    precision(ranking, level, ranking.positives_at(level))
}
