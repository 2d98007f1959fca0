//! The metrics once more, each written straight from its formula, in O(N²) and without a clever step: what the
//! fast ones are held to.

/// H-AP (HAPPIER, eq. 2–3) with the paper's step H(s_j − s_k), which is 0 at equal scores.
pub(crate) fn h_ap(scores: &[f32], levels: &[usize], rel: &[f64]) -> Option<f64> {
    let (mut sum, mut total) = (0.0, 0.0);
    for k in (0..levels.len()).filter(|&k| levels[k] > 0) {
        let (mut rank, mut h_rank) = (1.0, rel[levels[k]]);
        for j in (0..levels.len()).filter(|&j| scores[j] > scores[k]) {
            rank += 1.0;
            h_rank += rel[levels[j]].min(rel[levels[k]]);
        }
        sum += h_rank / rank;
        total += rel[levels[k]];
    }
    (total > 0.0).then(|| sum / total)
}

/// AP at a level with the same step.
pub(crate) fn ap(scores: &[f32], levels: &[usize], level: usize) -> Option<f64> {
    let positives: Vec<usize> = (0..levels.len()).filter(|&k| levels[k] >= level).collect();
    mean(positives.iter().map(|&k| {
        let rank = 1 + (0..levels.len()).filter(|&j| scores[j] > scores[k]).count();
        let positive_rank = 1 + positives.iter().filter(|&&j| scores[j] > scores[k]).count();
        positive_rank as f64 / rank as f64
    }))
}

/// NDCG of shared levels in ranked order.
pub(crate) fn ndcg(ranked: &[usize]) -> Option<f64> {
    let dcg = |levels: &[usize]| -> f64 {
        (0..levels.len()).map(|i| (2f64.powi(levels[i] as i32) - 1.0) / (i as f64 + 2.0).log2()).sum()
    };
    let ideal = dcg(&finest_first(ranked));
    (ideal > 0.0).then(|| dcg(ranked) / ideal)
}

/// ASI of shared levels in ranked order.
pub(crate) fn asi(ranked: &[usize]) -> Option<f64> {
    let ideal = finest_first(ranked);
    let depth = *ideal.first()?;
    let positives = ranked.iter().filter(|&&level| level > 0).count();
    mean((1..positives + 1).map(|n| {
        let count = |list: &[usize], level| list[..n].iter().filter(|&&l| l == level).count();
        (1..=depth).map(|level| count(ranked, level).min(count(&ideal, level))).sum::<usize>() as f64
            / n as f64
    }))
}

/// R@k of shared levels in ranked order.
pub(crate) fn recall(ranked: &[usize], level: usize, k: usize) -> Option<f64> {
    let hit = ranked.iter().take(k).any(|&l| l >= level);
    ranked.iter().any(|&l| l >= level).then_some(if hit { 1.0 } else { 0.0 })
}

/// mAP@R of shared levels in ranked order.
pub(crate) fn map_at_r(ranked: &[usize], level: usize) -> Option<f64> {
    let r = ranked.iter().filter(|&&l| l >= level).count();
    mean((0..r).map(|i| {
        let found = ranked[..=i].iter().filter(|&&l| l >= level).count();
        if ranked[i] >= level { found as f64 / (i + 1) as f64 } else { 0.0 }
    }))
}

/// The shared levels by decreasing score, ties in gallery order.
pub(crate) fn ranked(scores: &[f32], levels: &[usize]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.into_iter().map(|item| levels[item]).collect()
}

fn finest_first(levels: &[usize]) -> Vec<usize> {
    let mut levels = levels.to_vec();
    levels.sort_by(|a, b| b.cmp(a));
    levels
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = values.len();
    (count > 0).then(|| values.sum::<f64>() / count as f64)
}
