//! Losses of several levels: HAPPIER, CSL, and sums over the levels.

use akin_core::losses::{CslConfig, HapSurrogateConfig, HappierConfig, ItemOrder, LossConfig};
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};

use crate::average_precision::upper_step;
use crate::proxies::paper_norm_softmax;
use crate::support::{
    CLASSES, Case, batches, cases, distance, dot, init, init_named, mean, parameter, random_rows, unit,
    with_drawn_proxies,
};

const LEVELS: usize = 2;

/// H_s^> of HAPPIER, eq. 43, with min for its max, which is a misprint. At t = 0 the equation gives μ and the published
/// code 0; `start_at_zero` chooses the equation's.
fn lower_step(t: f64, start_at_zero: bool) -> f64 {
    let (gamma, nu, mu) = (10.0, 25.0, 0.5);
    if t < 0.0 || (t == 0.0 && !start_at_zero) { gamma * t } else { (nu * t + mu).min(1.0) }
}

/// HAPPIER, eq. 4, and the relevances of its property 1 and of its figures.
pub(crate) fn relevance(relevance: &Relevance, level: usize, sizes: &[usize]) -> f64 {
    let share = level as f64 / LEVELS as f64;
    match relevance {
        _ if level == 0 => 0.0,
        Relevance::HierarchicalAp { alpha } => share.powf(*alpha) / sizes[level] as f64,
        Relevance::Plain { alpha } => share.powf(*alpha),
        Relevance::WeightedAp { weights } => {
            let mut sum = 0.0;
            for p in 1..=level {
                sum += weights[p - 1] / (p..=LEVELS).map(|q| sizes[q]).sum::<usize>() as f64;
            }
            sum
        }
    }
}

/// The settings of the paper's text.
fn happier_text() -> HappierConfig {
    let LossConfig::Happier(config) = LossConfig::named("happier_text").unwrap() else {
        panic!("happier_text is a preset of happier");
    };
    config
}

#[test]
fn the_surrogate_of_the_text_is_that_of_happier() {
    let text = LossConfig::named("hap_surrogate_text").unwrap();
    assert_eq!(text, LossConfig::HapSurrogate(happier_text().surrogate));
}

/// 1 − H-AP with smooth steps: HAPPIER, eq. 2, 3 and 5. H(0) is 1, as in ROADMAP, eq. 3.
fn paper_surrogate(case: &Case, config: &HapSurrogateConfig) -> f64 {
    let mut losses = Vec::new();
    for i in 0..case.queries.len() {
        let items = 0..case.items().len();
        let level = |j: usize| case.shared_level(i, j);
        let sizes: Vec<usize> =
            (0..=LEVELS).map(|l| items.clone().filter(|&j| level(j) == l).count()).collect();
        let rel = |j: usize| relevance(&config.relevance, level(j), &sizes);
        // Supplementary A.3 compares levels, eq. 5 relevances.
        let order = |j: usize| match config.order {
            ItemOrder::Levels => level(j) as f64,
            ItemOrder::Relevances => rel(j),
        };
        let (mut sum, mut total) = (0.0, 0.0);
        for k in items.clone().filter(|&k| level(k) > 0) {
            let (mut h_rank, mut rank) = (rel(k), 1.0);
            for j in items.clone().filter(|&j| j != k) {
                let t = case.score(i, j) - case.score(i, k);
                let heaviside = if t >= 0.0 { 1.0 } else { 0.0 };
                // rank^≥ keeps the step, rank^< has the upper bound.
                rank += if order(j) < order(k) {
                    upper_step(t, config.upper_step.start_at_zero)
                } else {
                    heaviside
                };
                // H-rank^> has the lower bound, H-rank^≤ keeps the step.
                let smooth = config.smooth_rank && order(j) > order(k);
                let step = if smooth { lower_step(t, config.lower_step.start_at_zero) } else { heaviside };
                h_rank += rel(j).min(rel(k)) * step;
            }
            sum += h_rank / rank;
            total += rel(k);
        }
        if total > 0.0 {
            losses.push(1.0 - sum / total);
        }
    }
    mean(&losses)
}

fn relevances() -> [Relevance; 5] {
    [
        Relevance::HierarchicalAp { alpha: 1.0 },
        Relevance::HierarchicalAp { alpha: 5.0 },
        Relevance::Plain { alpha: 0.0 },
        Relevance::Plain { alpha: 2.0 },
        Relevance::WeightedAp { weights: vec![0.3, 0.7] },
    ]
}

#[test]
fn hap_surrogate() {
    for relevance in relevances() {
        let config = HapSurrogateConfig { relevance, ..happier_text().surrogate };
        let constant = HapSurrogateConfig { smooth_rank: false, ..config.clone() };
        let eq_5 = HapSurrogateConfig { order: ItemOrder::Relevances, ..config.clone() };
        let ties = HapSurrogateConfig {
            upper_step: UpperStep { start_at_zero: true, ..Default::default() },
            lower_step: LowerStep::default(),
            ..config.clone()
        };
        for config in [config, constant, eq_5, ties] {
            for case in cases() {
                case.assert_agree("hap_surrogate", case.value(&config), paper_surrogate(&case, &config));
            }
        }
    }
}

/// The batches above contain queries whose coarse items are more relevant than their fine ones, and exact ties.
#[test]
fn each_reading_of_the_surrogate_has_a_value_of_its_own() {
    let base = happier_text().surrogate;
    let lower_step = LowerStep::default();
    let upper_step = UpperStep { start_at_zero: true, ..Default::default() };
    for other in [
        HapSurrogateConfig { order: ItemOrder::Relevances, ..base.clone() },
        HapSurrogateConfig { lower_step, ..base.clone() },
        HapSurrogateConfig { upper_step, ..base.clone() },
    ] {
        assert!(
            cases().iter().any(|case| (case.value(&base) - case.value(&other)).abs() > 1e-6),
            "{other:?}"
        );
    }
}

/// HAPPIER's total, the equation below its eq. 6.
#[test]
fn happier() {
    for lambda in [0.0, 0.1, 1.0] {
        let config = HappierConfig { lambda, ..happier_text() };
        let (loss, proxies) = with_drawn_proxies(&config);
        for case in batches() {
            let clustering = paper_norm_softmax(&case, &proxies, config.clustering.temperature);
            let paper = (1.0 - lambda) * paper_surrogate(&case, &config.surrogate) + lambda * clustering;
            case.assert_agree("happier", case.value_of(&loss), paper);
        }
    }
}

/// CSL in the form of HAPPIER's code: the page of the loss gives the equation.
#[test]
fn csl() {
    let proxies = random_rows(31, CLASSES);
    let (scale, margins) = (16.0, [0.4, 0.2]);
    for average_levels in [false, true] {
        let config = CslConfig { scale, margins: Some(margins.to_vec()), average_levels };
        let mut loss = init(&config);
        loss.proxies = parameter(&proxies);
        for case in batches() {
            let mut levels = Vec::new();
            for level in 1..=LEVELS {
                // The label of a fine class at this level.
                let label = |class: u32| class >> (LEVELS - level);
                let mut losses = Vec::new();
                for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                    let cosine = |class: u32| dot(x, &unit(&proxies[class as usize]));
                    let mut sum = 0.0;
                    for p in 0..CLASSES as u32 {
                        if label(p) != label(y) {
                            sum += (scale * (cosine(p) - cosine(y) + margins[level - 1])).exp();
                        }
                    }
                    losses.push((1.0 + sum).ln());
                }
                levels.push(mean(&losses));
            }
            let paper = if average_levels { mean(&levels) } else { levels.iter().sum() };
            case.assert_agree("csl", case.value_of(&loss), paper);
        }
    }
}

/// Σ over levels, of the contrastive loss with the labels of each level.
#[test]
fn levels() {
    let json = r#"{ "kind": "levels", "weights": [0.5, 2.0], "loss": { "kind": "contrastive" } }"#;
    let loss = init_named(&serde_json::from_str(json).unwrap());
    for case in batches() {
        let at = |level: usize| {
            let coarser = |class: u32| class >> (LEVELS - level);
            let mut sums = [Vec::new(), Vec::new()];
            for (i, x) in case.queries.rows.iter().enumerate() {
                for (j, y) in case.queries.rows.iter().enumerate() {
                    let same = coarser(case.queries.classes[i]) == coarser(case.queries.classes[j]);
                    let excess = if same { distance(x, y) } else { 1.0 - distance(x, y) };
                    if i != j && excess > 0.0 {
                        sums[usize::from(same)].push(excess);
                    }
                }
            }
            mean(&sums[0]) + mean(&sums[1])
        };
        case.assert_agree("levels", case.value_of(&loss), 0.5 * at(1) + 2.0 * at(2));
    }
}
