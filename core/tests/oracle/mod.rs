//! The metrics again, each transcribed from its formula in O(N²). Tests compare the fast metrics with them.

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

/// NDCG of shared levels in ranked order, of the first k of them, with a gain per level.
pub(crate) fn ndcg(ranked: &[usize], gain: fn(usize) -> f64, k: usize) -> Option<f64> {
    let dcg = |levels: &[usize]| -> f64 {
        (0..levels.len().min(k)).map(|i| gain(levels[i]) / (i as f64 + 2.0).log2()).sum()
    };
    let ideal = dcg(&finest_first(ranked));
    (ideal > 0.0).then(|| dcg(ranked) / ideal)
}

/// HPDH's nDCG@k: the mean over ranks of DCG / ideal DCG, with the discounts 1, 1, 1, log2 3, log2 4 …
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn mean_ndcg(ranked: &[usize], k: usize) -> Option<f64> {
    let dcg = |levels: &[usize]| -> f64 {
        let discount = |i: usize| if i < 2 { 1.0 } else { (i as f64).log2() };
        levels.iter().enumerate().map(|(i, &level)| level as f64 / discount(i)).sum()
    };
    let ideal = finest_first(ranked);
    let share = |i: usize| dcg(&ranked[..=i]) / dcg(&ideal[..=i]);
    if ideal.first().is_some_and(|&level| level > 0) {
        mean((0..k.min(ranked.len())).map(share))
    } else {
        None
    }
}

/// 2^l − 1.
pub(crate) fn exponential(level: usize) -> f64 {
    2f64.powi(level as i32) - 1.0
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

/// AP@k of shared levels in ranked order.
pub(crate) fn ap_at(ranked: &[usize], level: usize, k: usize) -> Option<f64> {
    let r = ranked.iter().filter(|&&l| l >= level).count();
    let precision_at =
        |i: usize| ranked[..=i].iter().filter(|&&l| l >= level).count() as f64 / (i + 1) as f64;
    let hits = (0..ranked.len().min(k)).filter(|&i| ranked[i] >= level);
    (r > 0).then(|| hits.map(precision_at).sum::<f64>() / r as f64)
}

/// AP by trapezoids of shared levels in ranked order, as published for Oxford and Paris: the mean over positives of the
/// precision before and with each.
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn trapezoid_ap(ranked: &[usize], level: usize) -> Option<f64> {
    let precision = |k: usize| match k {
        0 => 1.0,
        k => ranked[..k].iter().filter(|&&l| l >= level).count() as f64 / k as f64,
    };
    let positives: Vec<usize> = (0..ranked.len()).filter(|&i| ranked[i] >= level).collect();
    mean(positives.iter().map(|&i| (precision(i) + precision(i + 1)) / 2.0))
}

/// mAP@R of shared levels in ranked order.
pub(crate) fn map_at_r(ranked: &[usize], level: usize) -> Option<f64> {
    ap_at(ranked, level, ranked.iter().filter(|&&l| l >= level).count())
}

/// P@k of shared levels in ranked order.
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn precision(ranked: &[usize], level: usize, k: usize) -> Option<f64> {
    let hits = ranked.iter().take(k).filter(|&&l| l >= level).count();
    ranked.iter().any(|&l| l >= level).then(|| hits as f64 / k as f64)
}

/// 1 / the rank of the first positive.
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn reciprocal_rank(ranked: &[usize], level: usize) -> Option<f64> {
    ranked.iter().position(|&l| l >= level).map(|i| 1.0 / (i as f64 + 1.0))
}

/// HP@k of shared levels in ranked order, with a similarity per level.
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn hierarchical_precision(ranked: &[usize], similarity: &dyn Fn(usize) -> f64, k: usize) -> f64 {
    let sum = |levels: &[usize]| levels.iter().take(k).map(|&l| similarity(l)).sum::<f64>();
    sum(ranked) / sum(&finest_first(ranked))
}

/// H-R@k and H-P@k (HAPPIER, eq. 9 and 10) of shared levels in ranked order, if item k has a relevance above 0.
#[allow(dead_code, reason = "not every test that includes this file uses it")]
pub(crate) fn h_recall_and_precision(ranked: &[usize], rel: &[f64], k: usize) -> (f64, f64) {
    let rels: Vec<f64> = ranked.iter().map(|&l| rel[l]).collect();
    let last = rels[k - 1];
    let shared: f64 = rels[..k].iter().map(|rel| rel.min(last)).sum();
    (rels[..k].iter().sum::<f64>() / rels.iter().sum::<f64>(), shared / (k as f64 * last))
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
