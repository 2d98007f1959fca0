//! Losses of pairs and triplets.

use akin_core::losses::contrastive::Measure;
use akin_core::losses::{
    ContrastiveConfig, CrossBatchMemoryConfig, LossConfig, MarginConfig, Objective, PairConfig,
    TripletMarginConfig,
};
use akin_core::miners::Miner;

use crate::support::{Case, Items, batches, cases, distance, dot, mean, with_drawn_proxies};

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
