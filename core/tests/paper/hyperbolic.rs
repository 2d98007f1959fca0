//! Losses in the Poincaré ball.

use akin_core::geometry::Geometry;
use akin_core::losses::hier::{Draw, Triplets, mutual_neighbours};
use akin_core::losses::{
    Batch, BuildLoss, HierConfig, HyperbolicCrossEntropyConfig, HyperbolicMultiSimilarityConfig, LossConfig,
    LossContext, Objective, Reference,
};
use akin_core::random::{normal, stream, uniform};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

use crate::support::{dot, mean};

const DIMENSION: usize = 4;
/// c.
const CURVATURE: f64 = 0.1;
/// P.
const PROXIES: usize = 8;
/// Möbius addition in tensors guards its denominator by 1e-5, which moves distances by a little more than that.
const GUARD: f64 = 1e-3;

type Rows = Vec<Vec<f64>>;

/// Random vectors, shorter than the clip radius.
fn features(seed: u64, count: usize) -> Rows {
    let values = normal(&mut stream(seed, "test", &[]), count * DIMENSION, 0.7);
    values.chunks(DIMENSION).map(|row| row.iter().map(|&x| f64::from(x).clamp(-1.1, 1.1)).collect()).collect()
}

fn matrix(rows: &[Vec<f64>]) -> Tensor<2> {
    let data = TensorData::new(rows.concat(), [rows.len(), rows[0].len()]);
    Tensor::from_data(data, (&Device::flex().autodiff(), DType::F64))
}

fn number(value: Tensor<1>) -> f64 {
    value.into_data().try_to_vec::<f64>().unwrap()[0]
}

/// HIER, eq. 1.
fn exp_0(v: &[f64]) -> Vec<f64> {
    let length = CURVATURE.sqrt() * dot(v, v).sqrt();
    v.iter().map(|x| length.tanh() * x / length).collect()
}

/// HIER, eq. 2, with c² ‖u‖² ‖v‖² in the denominator.
fn mobius_add(u: &[f64], v: &[f64]) -> Vec<f64> {
    let (c, uv, uu, vv) = (CURVATURE, dot(u, v), dot(u, u), dot(v, v));
    let denominator = 1.0 + 2.0 * c * uv + c * c * uu * vv;
    let sum = |(u, v): (&f64, &f64)| ((1.0 + 2.0 * c * uv + c * vv) * u + (1.0 - c * uu) * v) / denominator;
    u.iter().zip(v).map(sum).collect()
}

/// HIER, eq. 3, where u has the other sign, so that d(u, u) is 0.
fn d_h(u: &[f64], v: &[f64]) -> f64 {
    let negative: Vec<f64> = u.iter().map(|x| -x).collect();
    let sum = mobius_add(&negative, v);
    2.0 / CURVATURE.sqrt() * (CURVATURE.sqrt() * dot(&sum, &sum).sqrt()).atanh()
}

/// What the Gumbel noise is added to.
#[derive(Clone, Copy)]
enum Rule {
    /// π itself, eq. 7.
    Equation,
    /// log π: a sample of π, as the sentence before eq. 7 says.
    Sample,
}

/// HIER, eq. 6 to 8: L_HIER of one triplet of points.
fn paper_hier(
    [x_i, x_j, x_k]: [&[f64]; 3],
    proxies: &Rows,
    [g_ij, g_ijk]: [&[f64]; 2],
    rule: Rule,
    delta: f64,
) -> f64 {
    let score = |points: &[&[f64]], proxy: &[f64], g: f64| {
        let farthest = points.iter().map(|x| d_h(x, proxy)).fold(0.0, f64::max);
        let pi = (-farthest).exp();
        match rule {
            Rule::Equation => pi + g,
            Rule::Sample => pi.ln() + g,
        }
    };
    let mut rho_ij = 0;
    for p in 1..proxies.len() {
        let better = |points: &[&[f64]]| {
            score(points, &proxies[p], g_ij[p]) > score(points, &proxies[rho_ij], g_ij[rho_ij])
        };
        if better(&[x_i, x_j]) {
            rho_ij = p;
        }
    }
    // ρ_ijk comes from the proxies without ρ_ij.
    let mut rho_ijk = usize::from(rho_ij == 0);
    for p in (0..proxies.len()).filter(|&p| p != rho_ij) {
        let points = [x_i, x_j, x_k];
        if score(&points, &proxies[p], g_ijk[p]) > score(&points, &proxies[rho_ijk], g_ijk[rho_ijk]) {
            rho_ijk = p;
        }
    }
    let (low, high) = (&proxies[rho_ij], &proxies[rho_ijk]);
    (d_h(x_i, low) - d_h(x_i, high) + delta).max(0.0)
        + (d_h(x_j, low) - d_h(x_j, high) + delta).max(0.0)
        + (d_h(x_k, high) - d_h(x_k, low) + delta).max(0.0)
}

/// Twelve triplets of six rows, and Gumbel draws of every proxy for either ancestor.
fn triplets(seed: u64) -> (Triplets, [Rows; 2]) {
    let mut rng = stream(seed, "draws", &[]);
    let triplets = Triplets {
        anchors: (0..12).map(|t| t % 6).collect(),
        related: (0..12).map(|t| (t + 1) % 6).collect(),
        unrelated: (0..12).map(|t| (t + 2 + t / 6) % 6).collect(),
    };
    let mut gumbel = |_| -> Vec<f64> {
        uniform(&mut rng, PROXIES, 0.01, 0.99).iter().map(|&u| -(-f64::from(u).ln()).ln()).collect()
    };
    let draws = [(); 2].map(|()| (0..12).map(&mut gumbel).collect());
    (triplets, draws)
}

/// The mean of eq. 8 over all triplets.
fn paper_mean(points: &Rows, proxies: &Rows, triplets: &Triplets, draws: &[Rows; 2], rule: Rule) -> f64 {
    let losses: Vec<f64> = (0..triplets.anchors.len())
        .map(|t| {
            let rows = [triplets.anchors[t], triplets.related[t], triplets.unrelated[t]];
            let points = rows.map(|row| points[row].as_slice());
            paper_hier(points, proxies, [&draws[0][t], &draws[1][t]], rule, 0.3)
        })
        .collect();
    mean(&losses)
}

/// The settings of the paper's text.
fn hier_text() -> HierConfig {
    let LossConfig::Hier(config) = LossConfig::named("hier_text").unwrap() else {
        panic!("hier_text is a preset of hier");
    };
    config
}

#[test]
fn hier() {
    let geometry = Geometry::poincare();
    for (rule, draw) in
        [(Rule::Equation, Draw::Probability), (Rule::Sample, Draw::Softmax { temperature: 1.0 })]
    {
        for seed in 0..8 {
            let (items, proxies) = (features(seed + 20, 6), features(seed + 10, PROXIES));
            let (triplets, draws) = triplets(seed);
            let config = HierConfig { margin: 0.3, draw, ..hier_text() };
            let hier = config.with_proxies(matrix(&proxies), geometry.clone());
            let noise = || [matrix(&draws[0]), matrix(&draws[1])];
            let embeddings = geometry.embed(matrix(&items));
            // The batch, and the proxies themselves: eq. 9.
            let values = hier.forward_drawn(embeddings, [&triplets, &triplets], [noise(), noise()]);
            let points: Rows = items.iter().map(|x| exp_0(x)).collect();
            let ancestors: Rows = proxies.iter().map(|x| exp_0(x)).collect();
            for (value, points) in values.into_iter().zip([&points, &ancestors]) {
                let paper = paper_mean(points, &ancestors, &triplets, &draws, rule);
                let value = number(value);
                assert!(paper > 0.0 && (value - paper).abs() < GUARD, "the loss is {value}, eq. 8 {paper}");
            }
        }
    }
}

/// The proxies that eq. 7 chooses are constants, so the gradient is the derivative of the value.
#[test]
fn the_gradient_of_hier_is_the_derivative_of_equation_8() {
    let geometry = Geometry::poincare();
    for seed in 0..4 {
        let points: Rows = features(seed + 20, 6).iter().map(|x| exp_0(x)).collect();
        let proxies = features(seed + 10, PROXIES);
        let ancestors: Rows = proxies.iter().map(|x| exp_0(x)).collect();
        let (triplets, draws) = triplets(seed);
        let hier = HierConfig { margin: 0.3, ..hier_text() }.with_proxies(matrix(&proxies), geometry.clone());
        let noise = || [matrix(&draws[0]), matrix(&draws[1])];
        let embeddings = matrix(&points).require_grad();
        let none = Triplets::default();
        let [value, _] = hier.forward_drawn(embeddings.clone(), [&triplets, &none], [noise(), noise()]);
        let gradient = embeddings.grad(&value.backward()).unwrap();
        let gradient = gradient.into_data().try_to_vec::<f64>().unwrap();
        for row in 0..6 {
            for k in 0..DIMENSION {
                let shifted = |by: f64| {
                    let mut points = points.clone();
                    points[row][k] += by;
                    paper_mean(&points, &ancestors, &triplets, &draws, Rule::Equation)
                };
                let slope = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
                let got = gradient[row * DIMENSION + k];
                assert!((got - slope).abs() < GUARD * (1.0 + slope.abs()), "{got} is not {slope}");
            }
        }
    }
}

/// HIER, eq. 5: R_K(x) are the items among the K nearest of x that have x among theirs.
#[test]
fn mutual_neighbours_are_those_of_equation_5() {
    for seed in 0..8 {
        let points: Rows = features(seed, 10).iter().map(|x| exp_0(x)).collect();
        let d: Vec<f64> = points.iter().flat_map(|x| points.iter().map(move |y| d_h(x, y))).collect();
        for k in 1..10 {
            // x' is among the K nearest of x if fewer than K other items are nearer.
            let near = |x: usize, other: usize| {
                let nearer = (0..10).filter(|&y| y != x && d[x * 10 + y] < d[x * 10 + other]);
                x != other && nearer.count() < k
            };
            for (x, mutual) in mutual_neighbours(&d, k, false, None).into_iter().enumerate() {
                let paper: Vec<usize> = (0..10).filter(|&y| near(x, y) && near(y, x)).collect();
                assert_eq!(mutual, paper, "K = {k}");
            }
        }
    }
}

/// Labels of classes 0 to 3 with the loss for points of a space, and their scores.
fn in_space<C: BuildLoss>(config: &C, geometry: &Geometry, items: &Rows) -> (C::Loss, Tensor<2>, Rows) {
    let classes = Labels::new(1, vec![0, 1, 2, 3]).unwrap();
    let device = Device::flex().autodiff();
    let loss = config.init(&LossContext::new(&classes, DIMENSION, geometry, 0, &device)).unwrap();
    let embeddings = geometry.embed(matrix(items));
    let scores = geometry.scores(embeddings.clone(), embeddings.clone());
    let scores = scores.into_data().try_to_vec::<f64>().unwrap();
    (loss, embeddings, scores.chunks(items.len()).map(<[f64]>::to_vec).collect())
}

/// Batches of every kind: unequal classes, no pair, one class, two items of each.
const BATCHES: [&[u32]; 4] = [&[0, 1, 0, 2, 1, 0, 3], &[0, 1, 2], &[1, 1, 1, 1], &[0, 0, 1, 1, 2, 2]];

/// Hyp, the pairwise cross-entropy: for every ordered pair of views a ≠ b, the mean over the classes that have both.
fn paper_cross_entropy(s: &Rows, classes: &[u32], tau: f64) -> f64 {
    let count = classes.len();
    let view = |i: usize| classes[..i].iter().filter(|&&class| class == classes[i]).count();
    let views = (0..count).map(view).max().unwrap() + 1;
    let mut sum = 0.0;
    for a in 0..views {
        for b in (0..views).filter(|&b| b != a) {
            let mut losses = Vec::new();
            for i in (0..count).filter(|&i| view(i) == a) {
                let Some(j) = (0..count).find(|&j| view(j) == b && classes[j] == classes[i]) else {
                    continue;
                };
                let mut all = 0.0;
                for k in (0..count).filter(|&k| k != i && (view(k) == a || view(k) == b)) {
                    all += (s[i][k] / tau).exp();
                }
                losses.push(-((s[i][j] / tau).exp() / all).ln());
            }
            sum += mean(&losses);
        }
    }
    sum
}

#[test]
fn hyperbolic_cross_entropy() {
    for classes in BATCHES {
        let labels = Labels::new(1, classes.to_vec()).unwrap();
        for (geometry, tau) in [(Geometry::poincare(), 0.2), (Geometry::Cosine, 0.1)] {
            let items = features(9, classes.len());
            let (loss, points, scores) =
                in_space(&HyperbolicCrossEntropyConfig::default(), &geometry, &items);
            let value = number(loss.forward(&Batch::new(points.clone(), &labels)));
            let paper = paper_cross_entropy(&scores, classes, tau);
            assert!((value - paper).abs() < 1e-9 * (1.0 + paper), "{classes:?}: {value} is not {paper}");

            // A batch that is its own reference set has the same loss.
            let reference = Reference { embeddings: points.clone(), labels: &labels, own: Some(0) };
            let again = number(loss.forward(&Batch::new(points, &labels).with_reference(reference)));
            assert!((value - again).abs() < 1e-9, "{value} is not {again}");
        }
    }
}

/// Multi-Similarity, eq. 15, without its miner, on scores of any space with their mean for λ.
#[test]
fn hyperbolic_multi_similarity() {
    let (alpha, beta) = (1.0, 5.0);
    for classes in BATCHES {
        let labels = Labels::new(1, classes.to_vec()).unwrap();
        for geometry in [Geometry::poincare(), Geometry::Cosine] {
            let items = features(9, classes.len());
            let (loss, points, s) = in_space(&HyperbolicMultiSimilarityConfig::default(), &geometry, &items);
            let count = classes.len();
            let mut pairs = Vec::new();
            for (i, scores) in s.iter().enumerate() {
                pairs.extend((0..count).filter(|&j| j != i).map(|j| scores[j]));
            }
            let (lambda, mut sum) = (mean(&pairs), 0.0);
            for (i, scores) in s.iter().enumerate() {
                let (mut positives, mut negatives) = (0.0, 0.0);
                for j in (0..count).filter(|&j| j != i) {
                    if classes[i] == classes[j] {
                        positives += (-alpha * (scores[j] - lambda)).exp();
                    } else {
                        negatives += (beta * (scores[j] - lambda)).exp();
                    }
                }
                sum += (1.0 + positives).ln() / alpha + (1.0 + negatives).ln() / beta;
            }
            let value = number(loss.forward(&Batch::new(points, &labels)));
            let paper = sum / count as f64;
            assert!((value - paper).abs() < 1e-9 * (1.0 + paper), "{classes:?}: {value} is not {paper}");
        }
    }
}
