use crate::ranking::Ranking;

/// NDCG, the normalised discounted cumulative gain over the whole list:
///
/// ```text
/// DCG = Σ_k (2^l(k) − 1) / log2(1 + rank(k)),    NDCG = DCG / DCG of the ideal list
/// ```
///
/// where l(k) is the shared level and the ideal list goes by decreasing level. In (0, 1]; `None` without
/// positives. Ties: in the order of the ranking's policy.
pub fn ndcg(ranking: &Ranking) -> Option<f64> {
    let discounted = |level: usize, rank: usize| gain(level) / (1.0 + rank as f64).log2();
    let dcg: f64 = ranking.positives().iter().map(|k| discounted(k.level, k.rank)).sum();
    let ideal: f64 = ranking.ideal_levels().zip(1..).map(|(level, rank)| discounted(level, rank)).sum();
    (ideal > 0.0).then(|| (dcg / ideal).min(1.0)) // min: only rounding exceeds 1.
}

fn gain(level: usize) -> f64 {
    (level as f64).exp2() - 1.0
}
