//! Losses of pairs and triplets.

use akin_core::losses::contrastive::Measure;
use akin_core::losses::{
    AngularConfig, CircleConfig, ContrastiveConfig, CrossBatchMemoryConfig, LiftedStructureConfig,
    LossConfig, MarginConfig, NPairsConfig, NtXentConfig, Objective, PairConfig, RankedListConfig,
    SupConConfig, TripletMarginConfig,
};
use akin_core::miners::Miner;

use crate::support::{CLASSES, Case, Items, batches, cases, distance, dot, mean, with_drawn_proxies};

/// The distance of a query and an item.
fn d(case: &Case, query: usize, item: usize) -> f64 {
    distance(&case.queries.rows[query], &case.items().rows[item])
}

/// The mean of the terms above 0; 0 if there are none.
fn mean_above_zero(mut terms: Vec<f64>) -> f64 {
    terms.retain(|&term| term > 0.0);
    mean(&terms)
}

/// Terms of all pairs of a query with a positive, and of all with a negative.
fn terms(
    case: &Case,
    positive: impl Fn(usize, usize) -> f64,
    negative: impl Fn(usize, usize) -> f64,
) -> [Vec<f64>; 2] {
    let mut terms = [Vec::new(), Vec::new()];
    for i in 0..case.queries.len() {
        terms[0].extend(case.positives(i).into_iter().map(|j| positive(i, j)));
        terms[1].extend(case.negatives(i).into_iter().map(|j| negative(i, j)));
    }
    terms
}

#[test]
fn contrastive() {
    for case in cases() {
        let [near, far] = terms(&case, |i, j| d(&case, i, j), |i, j| 1.3 - d(&case, i, j));
        let config = ContrastiveConfig { negative_margin: 1.3, ..Default::default() };
        let paper = mean_above_zero(near.clone()) + mean_above_zero(far.clone());
        case.assert_agree("contrastive", case.value(&config), paper);

        let half_square = |terms: Vec<f64>| terms.into_iter().map(|x| 0.5 * x.max(0.0).powi(2)).collect();
        let paper = mean_above_zero(half_square(near)) + mean_above_zero(half_square(far));
        let config = ContrastiveConfig { squared: true, ..config };
        case.assert_agree("contrastive, squared", case.value(&config), paper);

        let [near, far] = terms(&case, |i, j| 0.9 - case.score(i, j), |i, j| case.score(i, j) - 0.1);
        let config = ContrastiveConfig {
            measure: Measure::Cosine,
            positive_margin: 0.9,
            negative_margin: 0.1,
            ..Default::default()
        };
        let paper = mean_above_zero(near) + mean_above_zero(far);
        case.assert_agree("contrastive, by cosine", case.value(&config), paper);
    }
}

/// Wu et al., section 4.2, over all pairs.
#[test]
fn margin() {
    for case in cases() {
        let (beta, alpha) = (1.1, 0.23);
        let [near, far] =
            terms(&case, |i, j| d(&case, i, j) - beta + alpha, |i, j| beta - d(&case, i, j) + alpha);
        let config = MarginConfig { margin: alpha, beta, miner: Miner::default(), ..Default::default() };
        case.assert_agree("margin", case.value(&config), mean_above_zero([near, far].concat()));
    }
}

#[test]
fn triplet_margin() {
    let margin = 0.17;
    for (swap, smooth) in [(false, false), (true, false), (false, true), (true, true)] {
        for case in cases() {
            let mut violations = Vec::new();
            for i in 0..case.queries.len() {
                for p in case.positives(i) {
                    for n in case.negatives(i) {
                        let mut far = d(&case, i, n);
                        if swap {
                            far = far.min(distance(&case.items().rows[p], &case.items().rows[n]));
                        }
                        violations.push(d(&case, i, p) - far + margin);
                    }
                }
            }
            let paper = if smooth {
                mean(&violations.iter().map(|violation| (1.0 + violation.exp()).ln()).collect::<Vec<_>>())
            } else {
                mean_above_zero(violations)
            };
            let config = TripletMarginConfig { margin, swap, smooth, ..Default::default() };
            case.assert_agree("triplet_margin", case.value(&config), paper);
        }
    }
}

/// Multi-Similarity, eq. 15, with the pairs of eq. 10 and 11, and with all pairs.
#[test]
fn multi_similarity() {
    let (alpha, beta, base, epsilon) = (2.0, 50.0, 1.0, 0.1);
    let LossConfig::MultiSimilarity(paper) = LossConfig::named("multi_similarity_text").unwrap() else {
        panic!("multi_similarity_text is a preset of multi_similarity");
    };
    for mined in [true, false] {
        for case in cases() {
            let mut losses = Vec::new();
            for i in 0..case.queries.len() {
                let s = |j: usize| case.score(i, j);
                let (positives, negatives) = (case.positives(i), case.negatives(i));
                let hardest_negative = negatives.iter().map(|&j| s(j)).fold(f64::NEG_INFINITY, f64::max);
                let hardest_positive = positives.iter().map(|&j| s(j)).fold(f64::INFINITY, f64::min);
                let (mut positive_sum, mut negative_sum) = (0.0, 0.0);
                for j in positives {
                    if !mined || s(j) - epsilon < hardest_negative {
                        positive_sum += f64::exp(-alpha * (s(j) - base));
                    }
                }
                for j in negatives {
                    if !mined || s(j) + epsilon > hardest_positive {
                        negative_sum += f64::exp(beta * (s(j) - base));
                    }
                }
                losses.push((1.0 + positive_sum).ln() / alpha + (1.0 + negative_sum).ln() / beta);
            }
            let mut config = paper.clone();
            if !mined {
                config.miner = Miner::default();
            }
            case.assert_agree("multi_similarity", case.value(&config), mean(&losses));
        }
    }
}

/// Chen et al., eq. 1, with the items of other classes as negatives.
#[test]
fn nt_xent() {
    let temperature = 0.3;
    for case in cases() {
        let mut losses = Vec::new();
        for i in 0..case.queries.len() {
            let power = |j: usize| (case.score(i, j) / temperature).exp();
            let negatives: f64 = case.negatives(i).into_iter().map(power).sum();
            losses.extend(case.positives(i).into_iter().map(|j| -(power(j) / (power(j) + negatives)).ln()));
        }
        let config = NtXentConfig { temperature, ..Default::default() };
        case.assert_agree("nt_xent", case.value(&config), mean(&losses));
    }
}

/// Khosla et al., eq. 2.
#[test]
fn sup_con() {
    let temperature = 0.3;
    for case in cases() {
        let mut losses = Vec::new();
        for i in 0..case.queries.len() {
            let power = |j: usize| (case.score(i, j) / temperature).exp();
            let positives = case.positives(i);
            let all: f64 = [positives.clone(), case.negatives(i)].concat().into_iter().map(power).sum();
            let terms: Vec<f64> = positives.into_iter().map(|j| -(power(j) / all).ln()).collect();
            if !terms.is_empty() {
                losses.push(mean(&terms));
            }
        }
        let config = SupConConfig { temperature, ..Default::default() };
        case.assert_agree("sup_con", case.value(&config), mean(&losses));
    }
}

/// Sun et al., eq. 6 with the margins of eq. 8, over the queries that have a positive and a negative.
#[test]
fn circle() {
    let (m, gamma) = (0.25, 4.0);
    for case in cases() {
        let mut losses = Vec::new();
        for i in 0..case.queries.len() {
            let (positives, negatives) = (case.positives(i), case.negatives(i));
            if positives.is_empty() || negatives.is_empty() {
                continue;
            }
            let s = |j: usize| case.score(i, j);
            let pull = |j: usize| f64::exp(-gamma * (1.0 + m - s(j)).max(0.0) * (s(j) - (1.0 - m)));
            let push = |j: usize| f64::exp(gamma * (s(j) + m).max(0.0) * (s(j) - m));
            let product =
                positives.into_iter().map(pull).sum::<f64>() * negatives.into_iter().map(push).sum::<f64>();
            losses.push((1.0 + product).ln());
        }
        let config = CircleConfig { margin: m, scale: gamma, ..Default::default() };
        case.assert_agree("circle", case.value(&config), mean(&losses));
    }
}

/// Oh Song et al., eq. 4, over the pairs in both orders. An item that is no query has no negatives.
#[test]
fn lifted_structure() {
    let (near, far) = (0.1, 0.8);
    for case in cases() {
        let within_batch = std::ptr::eq(case.items(), &case.queries);
        let mut losses = Vec::new();
        for i in 0..case.queries.len() {
            let powers =
                |k: usize| case.negatives(k).into_iter().map(|n| f64::exp(far - d(&case, k, n))).sum::<f64>();
            for j in case.positives(i) {
                let sum = powers(i) + if within_batch { powers(j) } else { 0.0 };
                let term = if sum == 0.0 { 0.0 } else { (d(&case, i, j) - near + sum.ln()).max(0.0) };
                losses.push(term.powi(2) / 2.0);
            }
        }
        let config = LiftedStructureConfig { positive_margin: near, negative_margin: far };
        case.assert_agree("lifted_structure", case.value(&config), mean(&losses));
    }
}

/// Wang et al. (ICCV 2017), eq. 8.
#[test]
fn angular() {
    for angle in [0.7, 0.3_f64] {
        let square = angle.tan().powi(2);
        for case in cases() {
            let mut losses = Vec::new();
            for i in 0..case.queries.len() {
                for j in case.positives(i) {
                    let power = |n: usize| {
                        let far = case.score(i, n) + dot(&case.items().rows[j], &case.items().rows[n]);
                        (4.0 * square * far - 2.0 * (1.0 + square) * case.score(i, j)).exp()
                    };
                    losses.push((1.0 + case.negatives(i).into_iter().map(power).sum::<f64>()).ln());
                }
            }
            case.assert_agree("angular", case.value(&AngularConfig { angle }), mean(&losses));
        }
    }
}

/// Sohn, eq. 7, with the first pair of each class.
#[test]
fn n_pairs() {
    let scale = 5.0;
    for case in cases() {
        let pairs: Vec<(usize, usize)> = (0..CLASSES as u32)
            .filter_map(|class| {
                let queries = (0..case.queries.len()).filter(|&i| case.queries.classes[i] == class);
                queries.filter_map(|i| Some((i, *case.positives(i).first()?))).next()
            })
            .collect();
        let losses: Vec<f64> = pairs
            .iter()
            .map(|&(i, own)| {
                let others =
                    pairs.iter().map(|&(_, j)| (scale * (case.score(i, j) - case.score(i, own))).exp());
                others.sum::<f64>().ln()
            })
            .collect();
        case.assert_agree("n_pairs", case.value(&NPairsConfig { scale }), mean(&losses));
    }
}

/// The equations of Wang et al. (CVPR 2019), with the 10⁻⁵ of pytorch-metric-learning.
#[test]
fn ranked_list() {
    let (margin, alpha, near_temperature, far_temperature, balance) = (0.3, 1.25, 1.0, 5.0, 0.4);
    for case in cases() {
        let mut losses = Vec::new();
        for i in 0..case.queries.len() {
            let mean = |excess: Vec<f64>, temperature: f64| {
                let counted: Vec<f64> = excess.into_iter().filter(|&x| x > 0.0).collect();
                let weights: Vec<f64> = counted.iter().map(|x| (temperature * x).exp()).collect();
                let sum: f64 = weights.iter().zip(&counted).map(|(w, x)| w * x).sum();
                sum / (weights.iter().sum::<f64>() + 1e-5 * case.items().len() as f64)
            };
            let far = case.positives(i).into_iter().map(|j| d(&case, i, j) - (alpha - margin)).collect();
            let near = case.negatives(i).into_iter().map(|j| alpha - d(&case, i, j)).collect();
            losses
                .push((1.0 - balance) * mean(far, near_temperature) + balance * mean(near, far_temperature));
        }
        let config = RankedListConfig {
            margin,
            boundary: Some(alpha),
            positive_temperature: near_temperature,
            negative_temperature: far_temperature,
            balance,
        };
        case.assert_agree("ranked_list", case.value(&config), mean(&losses));
    }
}

/// The loss of pairs of cross-batch memory.
#[test]
fn pair() {
    for margin in [0.5, -0.25] {
        for case in cases() {
            let mut sum = 0.0;
            for i in 0..case.queries.len() {
                for j in case.positives(i) {
                    sum += 1.0 - case.score(i, j);
                }
                for j in case.negatives(i) {
                    if case.score(i, j) > margin {
                        sum += case.score(i, j);
                    }
                }
            }
            let paper = sum / case.queries.len() as f64;
            case.assert_agree("pair", case.value(&PairConfig { margin }), paper);
        }
    }
}

/// The loss of pairs of each query with each item of a queue, where a query may meet itself.
fn paper_pair(queries: &Items, queue: &[(Vec<f64>, u32)]) -> f64 {
    let mut sum = 0.0;
    for (x, class) in queries.rows.iter().zip(&queries.classes) {
        for (y, other) in queue {
            let score = dot(x, y);
            if class == other {
                sum += 1.0 - score;
            } else if score > 0.5 {
                sum += score;
            }
        }
    }
    sum / queries.len() as f64
}

/// Cross-batch memory, algorithm 1, over one step for each batch. The paper's queue contains the batch; `size` counts
/// the embeddings beside it. The published code adds the loss of the batch itself.
#[test]
fn cross_batch_memory() {
    let size = 12;
    for batch_weight in [0.0, 1.0] {
        let config = CrossBatchMemoryConfig { size, start: 0, batch_weight, ..Default::default() };
        let (mut loss, _) = with_drawn_proxies(&config);
        let mut queue = Vec::new();
        for case in batches() {
            let queries = &case.queries;
            let batch: Vec<_> = queries.rows.iter().cloned().zip(queries.classes.iter().copied()).collect();
            queue.splice(0..0, batch.clone());
            queue.truncate(size + batch.len());
            let paper = paper_pair(queries, &queue) + batch_weight * paper_pair(queries, &batch);
            case.assert_agree("cross_batch_memory", case.value_of(&loss), paper);
            loss.after_step(queries.tensor(), &queries.labels());
        }
    }
}
