//! Losses of items and proxies.

use std::f64::consts::PI;

use akin_core::losses::arc_face::Smoothing;
use akin_core::losses::proxy_anchor::Anchors;
use akin_core::losses::proxy_nca::Denominator;
use akin_core::losses::{
    ArcFaceConfig, CosFaceConfig, NormSoftmaxConfig, ProxyAnchorConfig, ProxyNcaConfig, SoftTripleConfig,
    SphereFaceConfig,
};

use crate::support::{CLASSES, Case, batches, distance, dot, init, mean, parameter, random_rows, unit};

/// Proxies of any length.
fn proxies(count: usize) -> Vec<Vec<f64>> {
    let longer = |(i, row): (usize, Vec<f64>)| row.into_iter().map(|x| x * (1.0 + i as f64)).collect();
    random_rows(20, count).into_iter().enumerate().map(longer).collect()
}

/// HAPPIER, eq. 6: minus the logarithm of a softmax over the cosines to the proxies, at temperature σ.
pub(crate) fn paper_norm_softmax(case: &Case, proxies: &[Vec<f64>], sigma: f64) -> f64 {
    let mut losses = Vec::new();
    for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
        let power = |proxy: &[f64]| (dot(x, &unit(proxy)) / sigma).exp();
        let sum: f64 = proxies.iter().map(|proxy| power(proxy)).sum();
        losses.push(-(power(&proxies[y as usize]) / sum).ln());
    }
    mean(&losses)
}

#[test]
fn norm_softmax() {
    let proxies = proxies(CLASSES);
    for temperature in [0.05, 1.0] {
        let mut loss = init(&NormSoftmaxConfig { temperature, ..Default::default() });
        loss.proxies = parameter(&proxies);
        for case in batches() {
            let paper = paper_norm_softmax(&case, &proxies, temperature);
            case.assert_agree("norm_softmax", case.value_of(&loss), paper);
        }
    }
}

/// ArcFace, eq. 3: the angle to the own proxy is larger by m. Where that exceeds π, and with `easy_margin` beyond a right
/// angle, the published codes have another value.
#[test]
fn arc_face() {
    let proxies = proxies(CLASSES);
    for (easy_margin, label_smoothing, smoothing) in [
        (false, 0.0, Smoothing::Targets),
        (true, 0.0, Smoothing::Targets),
        (false, 0.2, Smoothing::Targets),
        (false, 0.2, Smoothing::Logits),
    ] {
        let (scale, margin) = (30.0, 0.5);
        let config = ArcFaceConfig { scale, margin, easy_margin, label_smoothing, smoothing, sub_centres: 1 };
        let mut loss = init(&config);
        loss.proxies = parameter(&proxies);
        for case in batches() {
            let mut losses = Vec::new();
            for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                let target = |c: usize| {
                    let own = f64::from(u8::from(c == y as usize));
                    (1.0 - label_smoothing) * own + label_smoothing / CLASSES as f64
                };
                let logit = |c: usize| {
                    let cosine = dot(x, &unit(&proxies[c])).clamp(-1.0, 1.0);
                    let turned = if easy_margin && cosine <= 0.0 {
                        cosine
                    } else if !easy_margin && cosine.acos() + margin >= std::f64::consts::PI {
                        cosine - margin * margin.sin()
                    } else {
                        (cosine.acos() + margin).cos()
                    };
                    let share = match smoothing {
                        Smoothing::Logits => target(c),
                        Smoothing::Targets => f64::from(u8::from(c == y as usize)),
                    };
                    scale * (share * turned + (1.0 - share) * cosine)
                };
                let sum: f64 = (0..CLASSES).map(|c| logit(c).exp()).sum();
                let log_share = |c: usize| logit(c) - sum.ln();
                losses.push(match smoothing {
                    Smoothing::Logits => -log_share(y as usize),
                    Smoothing::Targets => -(0..CLASSES).map(|c| target(c) * log_share(c)).sum::<f64>(),
                });
            }
            case.assert_agree("arc_face", case.value_of(&loss), mean(&losses));
        }
    }
}

/// Sub-center ArcFace: the nearest of the K proxies of a class counts.
#[test]
fn sub_centre_arc_face() {
    let sub_centres = 3;
    let proxies = proxies(CLASSES * sub_centres);
    let (scale, margin) = (30.0, 0.5);
    let mut loss = init(&ArcFaceConfig { scale, margin, sub_centres, ..Default::default() });
    loss.proxies = parameter(&proxies);
    for case in batches() {
        let mut losses = Vec::new();
        for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
            let nearest = |c: usize| {
                let own = &proxies[c * sub_centres..(c + 1) * sub_centres];
                own.iter().map(|proxy| dot(x, &unit(proxy))).fold(f64::NEG_INFINITY, f64::max)
            };
            let logit = |c: usize| match nearest(c) {
                cosine if c != y as usize => scale * cosine,
                cosine if cosine.acos() + margin >= std::f64::consts::PI => {
                    scale * (cosine - margin * margin.sin())
                }
                cosine => scale * (cosine.acos() + margin).cos(),
            };
            let sum: f64 = (0..CLASSES).map(|c| logit(c).exp()).sum();
            losses.push(sum.ln() - logit(y as usize));
        }
        case.assert_agree("sub_centre_arc_face", case.value_of(&loss), mean(&losses));
    }
}

/// CosFace, eq. 4.
#[test]
fn cos_face() {
    let proxies = proxies(CLASSES);
    let (scale, margin) = (16.0, 0.35);
    let mut loss = init(&CosFaceConfig { scale, margin });
    loss.proxies = parameter(&proxies);
    for case in batches() {
        let mut losses = Vec::new();
        for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
            let logit =
                |c: usize| scale * (dot(x, &unit(&proxies[c])) - if c == y as usize { margin } else { 0.0 });
            let sum: f64 = (0..CLASSES).map(|c| logit(c).exp()).sum();
            losses.push(sum.ln() - logit(y as usize));
        }
        case.assert_agree("cos_face", case.value_of(&loss), mean(&losses));
    }
}

/// SphereFace, eq. 7.
#[test]
fn sphere_face() {
    let proxies = proxies(CLASSES);
    let scale = 8.0;
    for margin in [1, 2, 4, 5] {
        let mut loss = init(&SphereFaceConfig { scale, margin });
        loss.proxies = parameter(&proxies);
        let m = margin as f64;
        for case in batches() {
            let mut losses = Vec::new();
            for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                let logit = |c: usize| {
                    let cosine = dot(x, &unit(&proxies[c]));
                    let angle = cosine.clamp(-1.0, 1.0).acos();
                    let k = (m * angle / PI).floor().min(m - 1.0);
                    scale
                        * if c == y as usize {
                            (-1.0_f64).powf(k) * (m * angle).cos() - 2.0 * k
                        } else {
                            cosine
                        }
                };
                let sum: f64 = (0..CLASSES).map(|c| logit(c).exp()).sum();
                losses.push(sum.ln() - logit(y as usize));
            }
            case.assert_agree("sphere_face", case.value_of(&loss), mean(&losses));
        }
    }
}

/// Proxy-Anchor, eq. 4.
#[test]
fn proxy_anchor() {
    let proxies = proxies(CLASSES);
    let (alpha, delta) = (32.0, 0.1);
    let mut loss = init(&ProxyAnchorConfig::default());
    loss.proxies = parameter(&proxies);
    for case in batches() {
        let (mut positive_sum, mut with_positives, mut negative_sum) = (0.0, 0.0, 0.0);
        for (p, proxy) in proxies.iter().enumerate() {
            let (mut positives, mut negatives, mut has_positives) = (0.0, 0.0, false);
            for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                let s = dot(x, &unit(proxy));
                if y as usize == p {
                    positives += f64::exp(-alpha * (s - delta));
                    has_positives = true;
                } else {
                    negatives += f64::exp(alpha * (s + delta));
                }
            }
            positive_sum += f64::ln(1.0 + positives);
            negative_sum += f64::ln(1.0 + negatives);
            with_positives += f64::from(u8::from(has_positives));
        }
        let paper = positive_sum / with_positives + negative_sum / CLASSES as f64;
        case.assert_agree("proxy_anchor", case.value_of(&loss), paper);
    }
}

/// The same with the two sides swapped, as the code of HIER has it.
#[test]
fn proxy_anchor_per_item() {
    let proxies = proxies(CLASSES);
    let (alpha, delta) = (16.0, 0.2);
    let config = ProxyAnchorConfig { alpha, margin: delta, anchors: Anchors::Items };
    let mut loss = init(&config);
    loss.proxies = parameter(&proxies);
    for case in batches() {
        let mut losses = Vec::new();
        for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
            let (mut positive, mut negatives) = (0.0, 0.0);
            for (p, proxy) in proxies.iter().enumerate() {
                let s = dot(x, &unit(proxy));
                if y as usize == p {
                    positive = f64::exp(-alpha * (s - delta));
                } else {
                    negatives += f64::exp(alpha * (s + delta));
                }
            }
            losses.push(f64::ln(1.0 + positive) + f64::ln(1.0 + negatives));
        }
        case.assert_agree("proxy_anchor per item", case.value_of(&loss), mean(&losses));
    }
}

/// Proxy-NCA and ProxyNCA++, by squared distances of unit vectors.
#[test]
fn proxy_nca() {
    let proxies = proxies(CLASSES);
    for (scale, denominator) in [(1.0, Denominator::Others), (9.0, Denominator::All)] {
        let mut loss = init(&ProxyNcaConfig { scale, denominator, ..Default::default() });
        loss.proxies = parameter(&proxies);
        for case in batches() {
            let mut losses = Vec::new();
            for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                let power = |p: usize| (-scale * distance(x, &unit(&proxies[p])).powi(2)).exp();
                let mut sum = 0.0;
                for p in 0..CLASSES {
                    if denominator == Denominator::All || p != y as usize {
                        sum += power(p);
                    }
                }
                losses.push(-(power(y as usize) / sum).ln());
            }
            case.assert_agree("proxy_nca", case.value_of(&loss), mean(&losses));
        }
    }
}

/// SoftTriple, eq. 6, 8 and 9 of the paper in the notation of the page.
#[test]
fn soft_triple() {
    for (centres, tau) in [(3, 0.2), (3, 0.0), (1, 0.2)] {
        let proxies = proxies(CLASSES * centres);
        let (lambda, gamma, margin) = (20.0, 0.1, 0.01);
        let config = SoftTripleConfig { centres, lambda, gamma, tau, margin, normalise_embeddings: false };
        let mut loss = init(&config);
        loss.proxies = parameter(&proxies);
        let centre = |class: usize, k: usize| unit(&proxies[class * centres + k]);
        for case in batches() {
            let mut losses = Vec::new();
            for (x, &y) in case.queries.rows.iter().zip(&case.queries.classes) {
                // S_ic: a softmax-weighted mean of the scores of the centres of class c.
                let similarity = |class: usize| {
                    let (mut weighted, mut weights) = (0.0, 0.0);
                    for k in 0..centres {
                        let s = dot(x, &centre(class, k));
                        weighted += (s / gamma).exp() * s;
                        weights += (s / gamma).exp();
                    }
                    weighted / weights
                };
                let power = |class: usize| {
                    let own = if class == y as usize { margin } else { 0.0 };
                    (lambda * (similarity(class) - own)).exp()
                };
                let sum: f64 = (0..CLASSES).map(power).sum();
                losses.push(-(power(y as usize) / sum).ln());
            }
            let mut spread = 0.0;
            for class in 0..CLASSES {
                for k in 0..centres {
                    for m in k + 1..centres {
                        // 10⁻⁵ more under the root, as in the published code.
                        spread += (2.0 - 2.0 * dot(&centre(class, k), &centre(class, m)) + 1e-5).sqrt();
                    }
                }
            }
            let pairs = (CLASSES * centres * (centres - 1)).max(1) as f64;
            case.assert_agree("soft_triple", case.value_of(&loss), mean(&losses) + tau * spread / pairs);
        }
    }
}
