//! The losses of *Optimization of Rank Losses for Image Retrieval* (TPAMI 2025): H-AP with sigmoids, NDCG and recall.

use akin_core::losses::{
    HapSurrogateConfig, SmoothHapConfig, SmoothNdcgConfig, SmoothRecallConfig, SupNdcgConfig, SupRecallConfig,
};
use akin_core::relevance::Relevance;

use crate::average_precision::upper_step;
use crate::hierarchical::relevance;
use crate::support::{Case, cases, mean, sigmoid};

const LEVELS: usize = 2;

/// 1 + Σ_{j≠k} step(j, s_j − s_k).
fn rank(case: &Case, i: usize, k: usize, step: impl Fn(usize, f64) -> f64) -> f64 {
    let others = (0..case.items().len()).filter(|&j| j != k);
    1.0 + others.map(|j| step(j, case.score(i, j) - case.score(i, k))).sum::<f64>()
}

/// The step of a bound: H⁻ for items that belong below, H with H(0) = 1 for the others.
fn bound(below: bool, t: f64) -> f64 {
    if below { upper_step(t, false) } else { f64::from(u8::from(t >= 0.0)) }
}

#[test]
fn smooth_hap() {
    for temperature in [0.01, 0.2] {
        for relevances in
            [Relevance::HierarchicalAp { alpha: 2.0 }, Relevance::WeightedAp { weights: vec![0.4, 0.6] }]
        {
            for case in cases() {
                let mut losses = Vec::new();
                for i in 0..case.queries.len() {
                    let items = 0..case.items().len();
                    let level = |j: usize| case.shared_level(i, j);
                    let sizes: Vec<usize> =
                        (0..=LEVELS).map(|l| items.clone().filter(|&j| level(j) == l).count()).collect();
                    let rel = |j: usize| relevance(&relevances, level(j), &sizes);
                    let (mut sum, mut total) = (0.0, 0.0);
                    for k in items.clone().filter(|&k| level(k) > 0) {
                        let step = |_: usize, t: f64| sigmoid(t / temperature);
                        let mut h_rank = rel(k);
                        for j in items.clone().filter(|&j| j != k) {
                            let t = case.score(i, j) - case.score(i, k);
                            h_rank += step(j, t) * rel(j).min(rel(k));
                        }
                        sum += h_rank / rank(&case, i, k, step);
                        total += rel(k);
                    }
                    if total > 0.0 {
                        losses.push(1.0 - sum / total);
                    }
                }
                let config = SmoothHapConfig { relevance: relevances.clone(), temperature };
                case.assert_agree("smooth_hap", case.value(&config), mean(&losses));
            }
        }
    }
}

/// 1 − NDCG with the ranks of a step, which gets query, k, j and s_j − s_k. The ideal order is that of the levels.
fn paper_ndcg(case: &Case, step: impl Fn(usize, usize, usize, f64) -> f64) -> f64 {
    let mut losses = Vec::new();
    for i in 0..case.queries.len() {
        let gain = |k: usize| f64::from((1 << case.shared_level(i, k)) - 1);
        let (mut sum, mut ideal, mut ideal_rank) = (0.0, 0.0, 0.0);
        for k in 0..case.items().len() {
            sum += gain(k) / (1.0 + rank(case, i, k, |j, t| step(i, k, j, t))).log2();
        }
        for level in (1..=LEVELS).rev() {
            for _ in (0..case.items().len()).filter(|&k| case.shared_level(i, k) == level) {
                ideal_rank += 1.0;
                ideal += f64::from((1 << level) - 1) / (1.0_f64 + ideal_rank).log2();
            }
        }
        if ideal > 0.0 {
            losses.push(1.0 - sum / ideal);
        }
    }
    mean(&losses)
}

#[test]
fn smooth_ndcg_and_sup_ndcg() {
    for case in cases() {
        for temperature in [0.01, 0.2] {
            let paper = paper_ndcg(&case, |_, _, _, t| sigmoid(t / temperature));
            case.assert_agree("smooth_ndcg", case.value(&SmoothNdcgConfig { temperature }), paper);
        }
        let level = |i, j| case.shared_level(i, j);
        let paper = paper_ndcg(&case, |i, k, j, t| bound(level(i, j) < level(i, k), t));
        case.assert_agree("sup_ndcg", case.value(&SupNdcgConfig::default()), paper);
    }
}

/// 1 − the mean of R@K over the cut-offs. The step gets query, j and s_j − s_k.
fn paper_recall(
    case: &Case,
    cutoffs: &[usize],
    temperature: f64,
    step: impl Fn(usize, usize, f64) -> f64,
) -> f64 {
    let mut losses = Vec::new();
    for i in 0..case.queries.len() {
        let positives = case.positives_with_query(i);
        if positives.is_empty() {
            continue;
        }
        let mut recalls = Vec::new();
        for &cutoff in cutoffs {
            let hit =
                |&k: &usize| sigmoid((cutoff as f64 - rank(case, i, k, |j, t| step(i, j, t))) / temperature);
            let hits: f64 = positives.iter().map(hit).sum();
            recalls.push(hits / positives.len().min(cutoff) as f64);
        }
        losses.push(1.0 - mean(&recalls));
    }
    mean(&losses)
}

#[test]
fn smooth_recall_and_sup_recall() {
    for (cutoffs, cutoff_temperature) in [(vec![1, 2, 4, 8, 16], 1.0), (vec![3], 0.3)] {
        for case in cases() {
            for temperature in [0.01, 0.2] {
                let paper =
                    paper_recall(&case, &cutoffs, cutoff_temperature, |_, _, t| sigmoid(t / temperature));
                let config = SmoothRecallConfig { cutoffs: cutoffs.clone(), cutoff_temperature, temperature };
                case.assert_agree("smooth_recall", case.value(&config), paper);
            }
            let negative = |i, j| case.negatives(i).contains(&j);
            let paper = paper_recall(&case, &cutoffs, cutoff_temperature, |i, j, t| bound(negative(i, j), t));
            let config =
                SupRecallConfig { cutoffs: cutoffs.clone(), cutoff_temperature, ..Default::default() };
            case.assert_agree("sup_recall", case.value(&config), paper);
        }
    }
}

/// On one level Smooth-HAP is Smooth-AP, and with the weight on the fine level alone they agree on two.
#[test]
fn smooth_hap_of_the_fine_level_is_smooth_ap() {
    let relevance = Relevance::WeightedAp { weights: vec![0.0, 1.0] };
    for case in cases() {
        let fine = SmoothHapConfig { relevance: relevance.clone(), temperature: 0.1 };
        let ap = akin_core::losses::SmoothApConfig { temperature: 0.1 };
        case.assert_agree("smooth_hap", case.value(&fine), case.value(&ap));
    }
}

/// HAPPIER's table 5 compares the two: they are different losses.
#[test]
fn smooth_hap_is_not_the_surrogate() {
    let case = &cases()[0];
    let difference = case.value(&SmoothHapConfig::default()) - case.value(&HapSurrogateConfig::default());
    assert!(difference.abs() > 1e-3, "{difference}");
}
