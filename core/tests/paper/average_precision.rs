//! Losses of one level that stand in for 1 − AP, and calibration.

use akin_core::losses::{
    BinTies, BlackboxApConfig, CalibrationConfig, FastApConfig, PairMean, RoadmapConfig, SmoothApConfig,
    SoftbinApConfig, SupApConfig,
};
use akin_core::steps::UpperStep;

use crate::support::{Case, cases, mean, sigmoid};

/// 1 − (1/|P_i|) Σ_{k ∈ P_i} precision(k), averaged over the queries that have a positive.
fn mean_loss(
    case: &Case,
    positives: impl Fn(usize) -> Vec<usize>,
    precision: impl Fn(usize, usize) -> f64,
) -> f64 {
    let mut losses = Vec::new();
    for i in 0..case.queries.len() {
        let precisions: Vec<f64> = positives(i).into_iter().map(|k| precision(i, k)).collect();
        if !precisions.is_empty() {
            losses.push(1.0 - mean(&precisions));
        }
    }
    mean(&losses)
}

/// Smooth-AP, with t = s_j − s_k and σ(t/τ) for the step.
#[test]
fn smooth_ap() {
    for temperature in [0.01, 0.2] {
        for case in cases() {
            let precision = |i: usize, k: usize| {
                let step = |j: usize| sigmoid((case.score(i, j) - case.score(i, k)) / temperature);
                let mut rank_among_positives = 1.0;
                for j in case.positives_with_query(i) {
                    if j != k {
                        rank_among_positives += step(j);
                    }
                }
                let mut rank = rank_among_positives;
                for j in case.negatives(i) {
                    rank += step(j);
                }
                rank_among_positives / rank
            };
            let paper = mean_loss(&case, |i| case.positives_with_query(i), precision);
            case.assert_agree("smooth_ap", case.value(&SmoothApConfig { temperature }), paper);
        }
    }
}

/// H⁻ of ROADMAP, eq. 4. Its two first cases both include t = 0; `start_at_zero` chooses the second.
pub(crate) fn upper_step(t: f64, start_at_zero: bool) -> f64 {
    let (tau, rho, delta) = (0.01, 100.0, 0.05);
    if t < 0.0 || (t == 0.0 && !start_at_zero) {
        sigmoid(t / tau)
    } else if t <= delta {
        sigmoid(t / tau) + 0.5
    } else {
        rho * (t - delta) + sigmoid(delta / tau) + 0.5
    }
}

/// ROADMAP, eq. 3 and 5.
fn paper_sup_ap(case: &Case, start_at_zero: bool) -> f64 {
    let precision = |i: usize, k: usize| {
        let mut rank_among_positives = 1.0;
        for j in case.positives_with_query(i) {
            if j != k && case.score(i, j) - case.score(i, k) >= 0.0 {
                rank_among_positives += 1.0;
            }
        }
        let mut rank_among_negatives = 0.0;
        for j in case.negatives(i) {
            rank_among_negatives += upper_step(case.score(i, j) - case.score(i, k), start_at_zero);
        }
        rank_among_positives / (rank_among_positives + rank_among_negatives)
    };
    mean_loss(case, |i| case.positives_with_query(i), precision)
}

#[test]
fn sup_ap() {
    for case in cases() {
        for start_at_zero in [false, true] {
            let config = SupApConfig { step: UpperStep { start_at_zero, ..Default::default() } };
            case.assert_agree("sup_ap", case.value(&config), paper_sup_ap(&case, start_at_zero));
        }
    }
}

/// ROADMAP, section 3.1: SupAP is an upper bound of 1 − AP, with H(0) = 1 as in eq. 3.
#[test]
fn with_the_second_case_of_eq_4_sup_ap_is_an_upper_bound() {
    let config = SupApConfig { step: UpperStep { start_at_zero: true, ..Default::default() } };
    for case in cases() {
        let precision = |i: usize, k: usize| {
            let above = |j: &usize| case.score(i, *j) >= case.score(i, k);
            let among = |items: Vec<usize>| items.into_iter().filter(above).count() as f64;
            among(case.positives_with_query(i)) / among((0..case.items().len()).collect())
        };
        let exact = mean_loss(&case, |i| case.positives_with_query(i), precision);
        assert!(case.value(&config) >= exact - 1e-12);
    }
}

/// The published code's line begins at 1.44 instead of σ(δ/τ) + ½.
#[test]
fn the_offset_of_the_published_sup_ap_is_a_setting() {
    let case = &cases()[0];
    let published = SupApConfig { step: UpperStep { offset: Some(1.44), ..Default::default() } };
    assert!((case.value(&published) - paper_sup_ap(case, false)).abs() > 1e-6);
    let continuous =
        SupApConfig { step: UpperStep { offset: Some(upper_step(0.05, false)), ..Default::default() } };
    case.assert_agree("sup_ap with an offset", case.value(&continuous), paper_sup_ap(case, false));
}

/// ROADMAP, eq. 7, where each of its two means is over the queries that have such pairs. `with_self`: P_i contains the
/// query.
fn paper_calibration(case: &Case, alpha: f64, beta: f64, with_self: bool) -> f64 {
    let (mut positive_means, mut negative_means) = (Vec::new(), Vec::new());
    for i in 0..case.queries.len() {
        let positives = if with_self { case.positives_with_query(i) } else { case.positives(i) };
        let too_low: Vec<f64> = positives.into_iter().map(|j| (alpha - case.score(i, j)).max(0.0)).collect();
        let too_high: Vec<f64> =
            case.negatives(i).into_iter().map(|j| (case.score(i, j) - beta).max(0.0)).collect();
        if !too_low.is_empty() {
            positive_means.push(mean(&too_low));
        }
        if !too_high.is_empty() {
            negative_means.push(mean(&too_high));
        }
    }
    mean(&positive_means) + mean(&negative_means)
}

#[test]
fn calibration() {
    for case in cases() {
        for (mean, with_self) in [(PairMean::Queries, false), (PairMean::QueriesWithSelf, true)] {
            for (positive, negative) in [(0.9, 0.6), (0.5, -0.2)] {
                let config = CalibrationConfig { positive, negative, mean, ..Default::default() };
                let paper = paper_calibration(&case, positive, negative, with_self);
                case.assert_agree("calibration", case.value(&config), paper);
            }
        }
    }
}

/// Where the published code departs from eq. 7: one mean over all pairs that have a loss.
#[test]
fn calibration_over_active_pairs() {
    for case in cases() {
        let (mut too_low, mut too_high) = (Vec::new(), Vec::new());
        for i in 0..case.queries.len() {
            too_low.extend(case.positives(i).into_iter().map(|j| 0.9 - case.score(i, j)));
            too_high.extend(case.negatives(i).into_iter().map(|j| case.score(i, j) - 0.6));
        }
        too_low.retain(|&loss| loss > 0.0);
        too_high.retain(|&loss| loss > 0.0);
        let config = CalibrationConfig { mean: PairMean::Active, ..Default::default() };
        case.assert_agree("calibration", case.value(&config), mean(&too_low) + mean(&too_high));
    }
}

/// ROADMAP, eq. 2.
#[test]
fn roadmap() {
    for case in cases() {
        for lambda in [0.0, 0.3, 0.5, 1.0] {
            let paper = (1.0 - lambda) * paper_sup_ap(&case, false)
                + lambda * paper_calibration(&case, 0.9, 0.6, false);
            let value = case.value(&RoadmapConfig { lambda, ..Default::default() });
            case.assert_agree("roadmap", value, paper);
        }
    }
}

/// How much an item at a place counts in a bin of a soft histogram.
fn share(place: f64, bin: usize) -> f64 {
    (1.0 - (place - bin as f64).abs()).max(0.0)
}

/// FastAP: squared distances in 0 … 4, the query not in its own list.
#[test]
fn fast_ap() {
    for bins in [3, 10] {
        for case in cases() {
            let place = |i: usize, j: usize| (2.0 - 2.0 * case.score(i, j)) * bins as f64 / 4.0;
            let mut losses = Vec::new();
            for i in 0..case.queries.len() {
                let (positives, negatives) = (case.positives(i), case.negatives(i));
                let (mut sum, mut positives_so_far, mut items_so_far) = (0.0, 0.0, 0.0);
                for bin in 0..=bins {
                    let count = |items: &[usize]| items.iter().map(|&j| share(place(i, j), bin)).sum::<f64>();
                    let positives_here = count(&positives);
                    positives_so_far += positives_here;
                    items_so_far += positives_here + count(&negatives);
                    if items_so_far > 0.0 {
                        sum += positives_here * positives_so_far / items_so_far;
                    }
                }
                if !positives.is_empty() {
                    losses.push(1.0 - sum / positives.len() as f64);
                }
            }
            let config = FastApConfig { bins, normalise_embeddings: false };
            case.assert_agree("fast_ap", case.value(&config), mean(&losses));
        }
    }
}

/// The mean precision at the positives of a bin in random order (He et al., CVPR 2018). The bin has c items, of which
/// c⁺ are positive; C₋ and C⁺₋ come before it. With t items of the bin before a positive, ρt of them are positive on
/// average. Items count in parts, so the sum over t is an integral:
///
/// (1/c) ∫₀ᶜ (C⁺₋ + 1 + ρt) / (C₋ + 1 + t) dt          ρ = (c⁺ − 1) / (c − 1)
///
/// Both 1e-8 are those of the published code.
fn mean_precision_of_bin([positives, positives_before]: [f64; 2], [items, items_before]: [f64; 2]) -> f64 {
    if items == 0.0 {
        return 0.0;
    }
    let ratio = (positives - 1.0).max(0.0) / ((items - 1.0).max(0.0) + 1e-8);
    let precision = |t: f64| (positives_before + 1.0 + ratio * t) / (items_before + 1.0 + t);
    // Gauss-Legendre quadrature with three points, on many short pieces.
    let pieces = 200;
    let half = items / f64::from(2 * pieces);
    let mut integral = 0.0;
    for piece in 0..pieces {
        let middle = half * f64::from(2 * piece + 1);
        let offset = half * 0.6_f64.sqrt();
        let sides = precision(middle - offset) + precision(middle + offset);
        integral += half * (5.0 * sides + 8.0 * precision(middle)) / 9.0;
    }
    integral / (items + 1e-8)
}

/// SoftBin-AP: bins of similarity, the query in the first one.
#[test]
fn softbin_ap() {
    for (bins, lowest, ties) in [
        (20, -1.0, BinTies::End),
        (5, 0.0, BinTies::End),
        (7, -1.0, BinTies::Middle),
        (7, -1.0, BinTies::Mean),
    ] {
        for case in cases() {
            let place = |i: usize, j: usize| {
                let last = (bins - 1) as f64;
                let place = (1.0 - case.score(i, j)) * last / (1.0 - lowest);
                if case.is_query(i, j) { 0.0 } else { place.clamp(0.0, last) }
            };
            let mut losses = Vec::new();
            for i in 0..case.queries.len() {
                let (positives, negatives) = (case.positives_with_query(i), case.negatives(i));
                let (mut sum, mut positives_so_far, mut items_so_far) = (0.0, 0.0, 0.0);
                for bin in 0..bins {
                    let count = |items: &[usize]| items.iter().map(|&j| share(place(i, j), bin)).sum::<f64>();
                    let positives_here = count(&positives);
                    let (positives_before, items_before) = (positives_so_far, items_so_far);
                    let items_here = positives_here + count(&negatives);
                    positives_so_far += positives_here;
                    items_so_far += items_here;
                    sum += positives_here
                        * match ties {
                            BinTies::End if items_so_far == 0.0 => 0.0,
                            BinTies::End => positives_so_far / items_so_far,
                            BinTies::Middle => {
                                (positives_before + positives_so_far + 1.0)
                                    / (items_before + items_so_far + 1.0)
                            }
                            BinTies::Mean => mean_precision_of_bin(
                                [positives_here, positives_before],
                                [items_here, items_before],
                            ),
                        };
                }
                if !positives.is_empty() {
                    losses.push(1.0 - sum / positives.len() as f64);
                }
            }
            let config = SoftbinApConfig { bins, lowest, ties };
            case.assert_agree("softbin_ap", case.value(&config), mean(&losses));
        }
    }
}

/// Blackbox-AP: the true AP after a margin of α/2 on either side, equal scores in the order of the items.
#[test]
fn blackbox_ap() {
    for margin in [0.0, 0.02, 0.7] {
        for case in cases() {
            let precision = |i: usize, k: usize| {
                let shifted = |j: usize| {
                    let positive = case.positives_with_query(i).contains(&j);
                    case.score(i, j) + if positive { -margin / 2.0 } else { margin / 2.0 }
                };
                let above = |j: &usize| shifted(*j) > shifted(k) || (shifted(*j) == shifted(k) && *j <= k);
                let among = |items: Vec<usize>| items.into_iter().filter(|j| above(j)).count() as f64;
                among(case.positives_with_query(i)) / among((0..case.items().len()).collect())
            };
            let paper = mean_loss(&case, |i| case.positives_with_query(i), precision);
            let config = BlackboxApConfig { margin, ..Default::default() };
            case.assert_agree("blackbox_ap", case.value(&config), paper);
        }
    }
}
