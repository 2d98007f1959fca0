//! Laws of the Poincaré ball on tensors, and the gradient of HIER straight through its softmax, which is not the
//! derivative of its value.

use akin_core::geometry::Geometry;
use akin_core::losses::hier::{Draw, Triplets};
use akin_core::losses::{Batch, BuildLoss, Draws, HierConfig, LossContext, Objective};
use akin_core::poincare::{Ball, Curvature, distance};
use akin_core::random::{normal, stream, uniform};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

const DIMENSION: usize = 4;

fn device() -> Device {
    Device::flex().autodiff()
}

fn matrix(values: Vec<f64>, columns: usize) -> Tensor<2> {
    let shape = [values.len() / columns, columns];
    Tensor::from_data(TensorData::new(values, shape), (&device(), DType::F64))
}

fn ball(c: f64) -> Ball {
    Ball { curvature: Curvature::try_from(c).unwrap() }
}

fn rows(seed: u64, count: usize, deviation: f32) -> Vec<f64> {
    normal(&mut stream(seed, "test", &[]), count * DIMENSION, deviation).into_iter().map(f64::from).collect()
}

fn values(tensor: Tensor<2>) -> Vec<f64> {
    tensor.into_data().try_to_vec().unwrap()
}

fn number(tensor: Tensor<1>) -> f64 {
    tensor.into_data().try_to_vec::<f64>().unwrap()[0]
}

fn close(a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{a} is not {b}");
    }
}

#[test]
fn tensors_and_slices_measure_the_same_distance() {
    for c in [0.05, 0.1, 1.0] {
        let ball = ball(c);
        let points = |seed, count| ball.embed(matrix(rows(seed, count, 0.6), DIMENSION), 1.5, false);
        let (x, y) = (points(0, 7), points(1, 9));
        let all = values(ball.distances(x.clone(), y.clone()));
        let (x_values, y_values) = (values(x.clone()), values(y.clone()));
        let exact: Vec<f64> = x_values
            .chunks(DIMENSION)
            .flat_map(|x| y_values.chunks(DIMENSION).map(move |y| distance(x, y, ball.curvature).unwrap()))
            .collect();
        // The guard in the denominator: 1e-5 / (1 − c‖x‖‖y‖)² at most.
        close(&all, &exact, 2e-3 * c);
        let beside = values(ball.distance(x, y.slice([0..7, 0..DIMENSION])));
        close(&beside, &(0..7).map(|i| all[i * 9 + i]).collect::<Vec<_>>(), 1e-12);
    }
}

#[test]
fn the_maps_keep_lengths_and_invert_each_other() {
    let ball = ball(0.3);
    let vectors = matrix(rows(2, 8, 0.7), DIMENSION);
    let points = ball.exponential_map(vectors.clone());
    close(&values(ball.logarithmic_map(points.clone())), &values(vectors.clone()), 1e-9);
    let lengths = vectors.clone().square().sum_dim(1).sqrt();
    let from_origin = ball.distance(points.zeros_like(), points.clone());
    close(&values(from_origin), &values(lengths * 2.0), 2e-5);

    // Elsewhere the metric at the point gives the length. The steps are short, because near the rim the guard of ⊕ is
    // visible.
    let vectors = vectors * 0.2;
    let there = ball.exponential_map_at(points.clone(), vectors.clone());
    close(&values(ball.logarithmic_map_at(points.clone(), there.clone())), &values(vectors.clone()), 1e-3);
    let lengths = vectors.square().sum_dim(1).sqrt() * ball.conformal_factor(points.clone());
    close(&values(ball.distance(points, there)), &values(lengths), 1e-3);
}

#[test]
fn projection_moves_points_into_the_ball_and_keeps_those_inside() {
    for c in [0.01, 0.1, 1.0, 7.0] {
        let ball = ball(c);
        let far = ball.project(matrix(rows(3, 20, 100.0), DIMENSION));
        let lengths = values(far.clone().square().sum_dim(1).sqrt());
        assert!(lengths.iter().all(|length| length * c.sqrt() < 0.9991), "{lengths:?}");
        let near = far.clone() * 0.5;
        assert_eq!(values(ball.project(near.clone())), values(near));
        // Features that are far longer than the clip radius.
        let embedded = ball.embed(matrix(rows(3, 20, 1e6), DIMENSION), 1e3, true);
        assert!(distance(&values(embedded)[..DIMENSION], &[0.0; DIMENSION], ball.curvature).is_ok());
    }
}

#[test]
fn a_flat_ball_has_twice_the_euclidean_distance() {
    let (x, y) = (matrix(rows(4, 5, 1.0), DIMENSION), matrix(rows(5, 6, 1.0), DIMENSION));
    let [across, down] = [x.clone().unsqueeze_dim::<3>(1), y.clone().unsqueeze_dim::<3>(0)];
    let euclidean = (across - down).square().sum_dim(2).squeeze_dim::<2>(2).sqrt();
    close(&values(ball(1e-8).distances(x, y)), &values(euclidean * 2.0), 2e-5);
}

#[test]
fn distances_are_precise_and_gradients_finite_from_zero_to_the_rim() {
    let device = device();
    let ball = ball(1.0);
    for dtype in [DType::F32, DType::F64] {
        let near = if dtype == DType::F32 { 1e-6 } else { 1e-12 };
        // Pairs: a point twice, two very close points, two at opposite sides of the rim, the origin twice.
        let x = vec![0.3, 0.4, 0.3, 0.4, 0.0, 0.999, 0.0, 0.0];
        let y = vec![0.3, 0.4, 0.3 + near, 0.4, 0.0, -0.999, 0.0, 0.0];
        let [x, y] = [x, y].map(|values: Vec<f64>| {
            Tensor::<2>::from_data(TensorData::new(values, [4, 2]), (&device, dtype)).require_grad()
        });
        let distances = ball.distances(x.clone(), y.clone());
        let found: Vec<f64> = distances.clone().into_data().convert::<f64>().try_to_vec().unwrap();
        assert_eq!([found[0], found[15]], [0.0, 0.0]);
        let exact = distance(&[0.3, 0.4], &[0.3 + near, 0.4], ball.curvature).unwrap();
        assert!((found[5] - exact).abs() < 0.02 * exact, "{} is not {exact}", found[5]);
        let gradients = distances.sum().backward();
        for side in [x, y] {
            let gradient: Vec<f64> =
                side.grad(&gradients).unwrap().into_data().convert::<f64>().try_to_vec().unwrap();
            assert!(gradient.iter().all(|x| x.is_finite()), "{gradient:?}");
        }
    }
}

#[test]
fn distances_of_all_pairs_are_as_precise_as_those_of_single_pairs() {
    let (device, ball) = (device(), ball(1.0));
    let single = |values: Vec<f64>| {
        Tensor::<2>::from_data(TensorData::new(values, [6, DIMENSION]), (&device, DType::F32))
    };
    let (points, steps) = (rows(1, 6, 0.2), rows(2, 6, 1e-6));
    let near = points.iter().zip(steps).map(|(x, step)| x + step).collect();
    let [x, y] = [points, near].map(|values| single(values).require_grad());
    let numbers = |distances: Tensor<2>| distances.into_data().try_into_vec::<f32>().unwrap();
    let (all, beside) = (numbers(ball.distances(x.clone(), y.clone())), numbers(ball.distance(x, y)));
    for (i, expected) in beside.into_iter().enumerate() {
        assert!((all[7 * i] - expected).abs() < 1e-5 * expected, "{} is not {expected}", all[7 * i]);
    }
}

/// In f32 the CPU computes distances and their derivatives in one pass; in f64 they are tensor operations.
#[test]
fn one_pass_over_the_pairs_has_the_gradients_of_tensor_operations() {
    // Near the rim f32 has few digits of 1 − c‖x‖². The last points lie at the rim, where most distances are capped.
    for (c, deviation, tolerance) in
        [(0.1, 0.01, 1e-6), (4.0, 0.1, 1e-6), (0.1, 1.0, 3e-3), (1.0, 100.0, 1e-2)]
    {
        let ball = ball(c);
        let place = |seed, count| values(ball.project(matrix(rows(seed, count, deviation), DIMENSION)));
        let (x, mut y) = (place(1, 21), place(2, 37));
        // One pair coincides.
        y[..DIMENSION].copy_from_slice(&x[..DIMENSION]);
        let [single, double] = [DType::F32, DType::F64].map(|dtype| {
            let tensor = |numbers: &Vec<f64>, columns| {
                let shape = [numbers.len() / columns, columns];
                Tensor::<2>::from_data(TensorData::new(numbers.clone(), shape), (&device(), dtype))
            };
            let [x, y] = [&x, &y].map(|points| tensor(points, DIMENSION).require_grad());
            let distances = ball.distances(x.clone(), y.clone());
            let weights =
                normal(&mut stream(3, "test", &[]), 21 * 37, 1.0).into_iter().map(f64::from).collect();
            let gradients = (distances.clone() * tensor(&weights, 37)).sum().backward();
            [distances, x.grad(&gradients).unwrap(), y.grad(&gradients).unwrap()]
                .map(|tensor| tensor.into_data().convert::<f64>().try_to_vec::<f64>().unwrap())
        });
        for (single, double) in single.iter().zip(&double) {
            let largest = double.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
            for (a, b) in single.iter().zip(double) {
                assert!((a - b).abs() <= tolerance * largest, "{a} is not {b} among {largest}, c = {c}");
            }
        }
        assert_eq!(single[0][0], 0.0);
    }
}

#[test]
fn a_riemannian_gradient_is_scaled_by_the_inverse_metric_and_values_stay() {
    let gradient = |riemannian| {
        let features = matrix(rows(6, 5, 1.0), DIMENSION).require_grad();
        let ball = ball(0.1);
        // Without the map into the ball, so that the point is the input.
        let points = if riemannian { ball.riemannian(features.clone()) } else { features.clone() };
        assert_eq!(values(points.clone()), values(features.clone()));
        let gradients = (points * matrix(rows(7, 5, 1.0), DIMENSION)).sum().backward();
        (values(ball.conformal_factor(features.clone())), values(features.grad(&gradients).unwrap()))
    };
    let (factors, plain) = gradient(false);
    let (_, riemannian) = gradient(true);
    let scaled: Vec<f64> = (0..plain.len()).map(|i| plain[i] / factors[i / DIMENSION].powi(2)).collect();
    close(&riemannian, &scaled, 1e-12);
}

/// The loss of HIER with the choice h + p − detach(p), where p follows `distances`, and h and detach(p) the distances
/// `at` the point of the gradient.
fn surrogate(
    config: &HierConfig,
    temperature: f64,
    distances: &[Vec<f64>],
    triplets: &Triplets,
    draws: &[Vec<Vec<f64>>; 2],
    at: &[Vec<f64>],
) -> f64 {
    let count = triplets.anchors.len();
    let softmax = |logits: &[f64]| {
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exponentials: Vec<f64> = logits.iter().map(|logit| (logit - largest).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.into_iter().map(|x| x / sum).collect::<Vec<f64>>()
    };
    let best = |logits: &[f64]| (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
    let logits = |from: &[Vec<f64>], items: &[usize], noise: &[f64]| -> Vec<f64> {
        let far =
            |proxy: usize| items.iter().map(|&item| from[item][proxy]).fold(f64::NEG_INFINITY, f64::max);
        (0..noise.len()).map(|proxy| -far(proxy) / temperature + noise[proxy]).collect()
    };
    let mut total = 0.0;
    for (t, (low_noise, high_noise)) in draws[0].iter().zip(&draws[1]).enumerate() {
        let [i, j, k] = [triplets.anchors[t], triplets.related[t], triplets.unrelated[t]];
        let low = best(&logits(at, &[i, j], low_noise));
        let exclude = |mut logits: Vec<f64>| {
            if !config.equal_ancestors {
                logits[low] = f64::NEG_INFINITY;
            }
            logits
        };
        let high = best(&exclude(logits(at, &[i, j, k], high_noise)));
        if low == high {
            continue;
        }
        let choice = |chosen: usize, now: Vec<f64>, then: Vec<f64>| -> Vec<f64> {
            let (now, then) = (softmax(&now), softmax(&then));
            (0..now.len())
                .map(|proxy| f64::from(u8::from(proxy == chosen)) + now[proxy] - then[proxy])
                .collect()
        };
        let to_low = choice(low, logits(distances, &[i, j], low_noise), logits(at, &[i, j], low_noise));
        let to_high = choice(
            high,
            exclude(logits(distances, &[i, j, k], high_noise)),
            exclude(logits(at, &[i, j, k], high_noise)),
        );
        let to = |item: usize, choice: &[f64]| -> f64 {
            distances[item].iter().zip(choice).map(|(distance, chosen)| distance * chosen).sum()
        };
        let rise = |item: usize| to(item, &to_low) - to(item, &to_high);
        total += (rise(i) + config.margin).max(0.0)
            + (rise(j) + config.margin).max(0.0)
            + (config.margin - rise(k)).max(0.0);
    }
    total / count as f64
}

/// Triplets of six rows and Gumbel draws for eight proxies.
fn drawn(seed: u64) -> (Triplets, [Vec<Vec<f64>>; 2]) {
    let mut rng = stream(seed, "draws", &[]);
    let items = |values: Vec<f32>| values.into_iter().map(|x| x as usize).collect::<Vec<_>>();
    let triplets = Triplets {
        anchors: (0..12).map(|t| t % 6).collect(),
        related: (0..12).map(|t| (t + 1) % 6).collect(),
        unrelated: items(uniform(&mut rng, 12, 0.0, 6.0)),
    };
    let draws = [(); 2].map(|()| {
        let row = |_| uniform(&mut rng, 8, 0.01, 0.99).iter().map(|&u| -(-f64::from(u).ln()).ln()).collect();
        (0..12).map(row).collect()
    });
    (triplets, draws)
}

#[test]
fn the_gradient_of_hier_goes_straight_through_its_softmax() {
    for (seed, equal_ancestors, geometry) in [
        (0, false, Geometry::poincare()),
        (1, true, Geometry::poincare()),
        (2, false, Geometry::Cosine),
        (3, true, Geometry::Cosine),
    ] {
        let temperature = 0.5;
        let draw = Draw::Softmax { temperature };
        let config = HierConfig { margin: 0.3, draw, equal_ancestors, ..HierConfig::default() };
        let hier = config.with_proxies(matrix(rows(seed + 10, 8, 0.7), DIMENSION), geometry.clone());
        let points = values(geometry.embed(matrix(rows(seed + 20, 6, 0.7), DIMENSION)));
        let (triplets, draws) = drawn(seed);
        let distances = |points: &[f64]| -> Vec<Vec<f64>> {
            let proxies = geometry.embed(hier.proxies.val());
            let flat = values(hier.distances(matrix(points.to_vec(), DIMENSION), proxies));
            flat.chunks(8).map(<[f64]>::to_vec).collect()
        };
        let at = distances(&points);
        let embeddings = matrix(points.clone(), DIMENSION).require_grad();
        let noise = draws.clone().map(|draws| matrix(draws.concat(), 8));
        let none = Triplets::default();
        let [value, proxy_term] =
            hier.forward_drawn(embeddings.clone(), [&triplets, &none], [noise.clone(), noise]);
        let expected = surrogate(&config, temperature, &at, &triplets, &draws, &at);
        assert!((number(value.clone()) - expected).abs() < 1e-12);
        assert_eq!(number(proxy_term), 0.0);
        assert!(expected > 0.0);

        let got = values(embeddings.grad(&value.backward()).unwrap());
        for place in 0..points.len() {
            let shifted = |by: f64| {
                let mut moved = points.clone();
                moved[place] += by;
                surrogate(&config, temperature, &distances(&moved), &triplets, &draws, &at)
            };
            let slope = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
            assert!((got[place] - slope).abs() < 1e-6 * (1.0 + slope.abs()), "{} is not {slope}", got[place]);
        }
    }
}

#[test]
fn hier_draws_the_same_at_the_same_step_and_has_gradients_for_embeddings_and_proxies() {
    let labels = Labels::new(1, (0..12).map(|i| i / 3).collect()).unwrap();
    let (classes, geometry, device) = (labels.classes(), Geometry::poincare(), device());
    let config = HierConfig { proxies: 10, neighbours: 6, ..HierConfig::default() };
    let hier = config.init(&LossContext::new(&classes, DIMENSION, &geometry, 1, &device)).unwrap();
    let features = normal(&mut stream(8, "test", &[]), 12 * DIMENSION, 1.0);
    let features = Tensor::<2>::from_data(TensorData::new(features, [12, DIMENSION]), &device);
    let loss = |step| {
        let embeddings = geometry.embed(features.clone()).detach().require_grad();
        let batch = Batch::new(embeddings.clone(), &labels).with_draws(Draws { seed: 5, step });
        let value = hier.forward(&batch);
        let gradients = value.backward();
        let gradient_size = |rows: Tensor<2>| {
            let gradient = rows.grad(&gradients).unwrap();
            gradient.abs().sum().into_data().try_to_vec::<f32>().unwrap()[0]
        };
        let value = value.into_data().try_to_vec::<f32>().unwrap()[0];
        (value, gradient_size(embeddings), gradient_size(hier.proxies.val()))
    };
    assert_eq!(loss(3), loss(3));
    assert_ne!(loss(3).0, loss(4).0);
    let (value, embeddings, proxies) = loss(3);
    assert!(value > 0.0 && embeddings > 0.0 && proxies > 0.0);
}
