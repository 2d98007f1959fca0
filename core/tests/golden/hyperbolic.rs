//! The golden files of the Poincaré ball and of its losses, in f64 on the CPU. Curvature 0 stands for the sphere.

use akin_core::geometry::Geometry;
use akin_core::losses::hier::{Draw, Triplets, mutual_neighbours};
use akin_core::losses::{
    Batch, BuildLoss, HierConfig, HyperbolicCrossEntropyConfig, HyperbolicMultiSimilarityConfig, LossContext,
    Objective,
};
use akin_core::poincare::{Ball, Curvature, Hyperbolicity};
use burn::tensor::Tensor;

use crate::support::{Case, EXACT, Verdict, device, labels, precision, scalar, tensor, values};

/// `hyperbolic_ops.json`.
pub(crate) fn operations(case: &Case, verdict: &mut Verdict) {
    let ball = Ball { curvature: curvature(number(case, "params/c")) };
    match case.get("op").as_str().unwrap() {
        "to_poincare" => to_poincare(ball, case, verdict),
        "dist" => distances(ball, case, verdict, true),
        "dist_matrix" => distances(ball, case, verdict, false),
        _ => maps(ball, case, verdict),
    }
}

fn to_poincare(ball: Ball, case: &Case, verdict: &mut Verdict) {
    let features = tensor(case, "inputs/x").require_grad();
    let riemannian = case.get("params/riemannian").as_bool().unwrap();
    let points = match case.get("params/clip_r").as_f64() {
        Some(radius) => ball.embed(features.clone(), radius, riemannian),
        None => {
            let points = ball.project(ball.exponential_map(features.clone()));
            if riemannian { ball.riemannian(points) } else { points }
        }
    };
    verdict.compare("y", &case.numbers("outputs/y"), &values(points.clone()), EXACT);
    let gradients = (points * tensor(case, "inputs/weights")).sum().backward();
    let gradient = values(features.grad(&gradients).unwrap());
    verdict.compare("grad_x", &case.numbers("outputs/grad_x"), &gradient, EXACT);
}

/// Distances of every row of x to the same row of y (`beside`), or to every row of y.
fn distances(ball: Ball, case: &Case, verdict: &mut Verdict, beside: bool) {
    let [x, y] = ["inputs/x", "inputs/y"].map(|path| tensor(case, path).require_grad());
    let distances =
        if beside { ball.distance(x.clone(), y.clone()) } else { ball.distances(x.clone(), y.clone()) };
    verdict.compare("dist", &case.numbers("outputs/dist"), &values(distances.clone()), EXACT);
    let weights = tensor(case, "inputs/weights").reshape(distances.dims());
    let gradients = (distances * weights).sum().backward();

    let (x_rows, y_rows) = (case.rows("inputs/x"), case.rows("inputs/y"));
    let weights = case.numbers("inputs/weights");
    let weight = |i: usize, j: usize| match beside {
        true if i != j => 0.0,
        true => weights[i],
        false => weights[i * y_rows.len() + j],
    };
    for (name, gradient, swapped) in
        [("grad_x", x.grad(&gradients), false), ("grad_y", y.grad(&gradients), true)]
    {
        let got = values(gradient.unwrap());
        let mut expected = case.numbers(&format!("outputs/{name}"));
        let dimension = x_rows[0].len();
        let largest = expected.iter().fold(0f64, |largest, x| largest.max(x.abs()));
        let (own, others) = if swapped { (&y_rows, &x_rows) } else { (&x_rows, &y_rows) };
        for (i, point) in own.iter().enumerate() {
            for (j, _) in others.iter().enumerate().filter(|(_, other)| *other == point) {
                // d(x, x) has no gradient. The reference has the gradient of its rounding error there, or 0 without
                // one; the difference to ours then has the length of the slope near the point, in any direction.
                let rows = i * dimension..(i + 1) * dimension;
                let more =
                    expected[rows.clone()].iter().zip(&got[rows.clone()]).map(|(a, b)| (a - b).powi(2));
                let more = more.sum::<f64>().sqrt();
                let slack = 1.0 - ball.curvature.value() * point.iter().map(|x| x * x).sum::<f64>();
                let weight = if swapped { weight(j, i) } else { weight(i, j) };
                let slope = weight.abs() * 2.0 * slack / (slack * slack + 1e-5);
                if (more - slope).abs() <= precision(EXACT) * largest {
                    expected[rows.clone()].copy_from_slice(&got[rows]);
                }
            }
        }
        verdict.compare(name, &expected, &got, EXACT);
    }
}

fn maps(ball: Ball, case: &Case, verdict: &mut Verdict) {
    let (x, y) = (tensor(case, "inputs/x"), tensor(case, "inputs/y"));
    let [rows, dimension] = x.dims();
    let [columns, _] = y.dims();
    let beside = y.clone().slice([0..rows, 0..dimension]);
    let length = |rows: Tensor<2>| rows.square().sum_dim(1).sqrt();
    let every = |rows: &Tensor<2>, count: usize| rows.clone().unsqueeze_dim::<3>(1).repeat_dim(1, count);
    let each_x = every(&-x.clone(), columns).reshape([rows * columns, dimension]);
    let each_y = y.clone().repeat_dim(0, rows);
    for (name, got) in [
        ("dist0_x", length(ball.logarithmic_map(x.clone())) * 2.0),
        ("expmap0_x", ball.exponential_map(x.clone())),
        ("logmap0_x", ball.logarithmic_map(x.clone())),
        ("project_y", ball.project(y * 1.2)),
        ("mobius_add_x_y8", ball.add(x.clone(), beside.clone())),
        ("mobius_addition_batch_negx_y", ball.add(each_x, each_y)),
        ("lambda_x", ball.conformal_factor(x.clone())),
        ("poincare_mean_x", ball.midpoint(x.clone())),
        ("logmap_x_y8", ball.logarithmic_map_at(x.clone(), beside.clone())),
        ("expmap_x_y8", ball.exponential_map_at(x.clone(), beside)),
    ] {
        // From a point to itself the reference divides 0 by 0; the vector is 0.
        let zero_if_nan = |x: f64| if x.is_nan() { 0.0 } else { x };
        let expected: Vec<f64> =
            case.numbers(&format!("outputs/{name}")).into_iter().map(zero_if_nan).collect();
        verdict.compare(name, &expected, &values(got), EXACT);
    }
}

/// `delta_hyperbolicity.json`.
pub(crate) fn hyperbolicity(case: &Case, verdict: &mut Verdict) {
    let points = case.rows("inputs/x");
    let euclidean = |i: usize, j: usize| {
        points[i].iter().zip(&points[j]).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    };
    let got = Hyperbolicity::new(points.len(), euclidean).unwrap();
    for (name, got) in [
        ("delta", got.delta),
        ("diam", got.diameter),
        ("rel_delta", got.relative),
        ("c_suggested", got.curvature),
    ] {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &[got], EXACT);
    }
}

/// `hier_loss.json`.
pub(crate) fn hier(case: &Case, verdict: &mut Verdict) {
    let count = |name: &str| case.get(&format!("params/{name}")).as_u64().unwrap() as usize;
    let config = HierConfig {
        proxies: count("num_hproxies"),
        neighbours: count("topk"),
        triplets: count("t_per_anchor"),
        margin: number(case, "params/mrg"),
        draw: Draw::Softmax { temperature: number(case, "params/tau") },
        count_self: true,
        fewest_neighbours: 2,
        labels: true,
        anchor_as_unrelated: true,
        equal_ancestors: true,
    };
    let geometry = geometry(case);
    let features = tensor(case, "inputs/x_euclidean").require_grad();
    let points = geometry.embed(features.clone());
    let hier = config.with_proxies(tensor(case, "inputs/lcas_euclidean"), geometry.clone());
    let classes: Vec<u32> = case.numbers("inputs/labels").into_iter().map(|id| id as u32).collect();

    let proxies = geometry.embed(hier.proxies.val());
    for (name, rows, classes) in [("samples", &points, Some(&classes[..])), ("lcas", &proxies, None)] {
        let between = values(hier.distances(rows.clone(), rows.clone()));
        let mutual = mutual_neighbours(&between, config.neighbours, config.count_self, classes);
        let expected = case.rows(&format!("outputs/reciprocal_{name}"));
        let got: Vec<Vec<f64>> = (0..mutual.len())
            .map(|i| (0..mutual.len()).map(|j| f64::from(u8::from(mutual[i].contains(&j)))).collect())
            .collect();
        let expected: Vec<f64> =
            expected.concat().into_iter().map(|near| f64::from(u8::from(near == 1.0))).collect();
        verdict.compare(name, &expected, &got.concat(), 0.0);
    }

    let triplets = ["samples", "lcas"].map(|name| {
        let [anchors, related, unrelated] = ["i", "j", "k"].map(|item| {
            let items = case.numbers(&format!("inputs/triplets_{name}/{item}"));
            items.into_iter().map(|item| item as usize).collect()
        });
        Triplets { anchors, related, unrelated }
    });
    let draws = ["samples", "lcas"]
        .map(|name| ["ij", "ijk"].map(|items| tensor(case, &format!("inputs/gumbel_{items}_{name}"))));
    let terms = hier.forward_drawn(points.clone(), [&triplets[0], &triplets[1]], draws);
    let value = terms[0].clone() + terms[1].clone();
    let gradients = value.backward();
    for (name, got) in [("loss_samples", &terms[0]), ("loss_lcas", &terms[1]), ("loss", &value)] {
        verdict.compare(name, &case.numbers(&format!("outputs/{name}")), &scalar(got), EXACT);
    }
    verdict.compare("z", &case.numbers("outputs/z"), &values(points), EXACT);
    for (name, tensor) in [("grad_x", features), ("grad_lcas_euclidean", hier.proxies.val())] {
        let expected = case.numbers(&format!("outputs/{name}"));
        verdict.compare(name, &expected, &values(tensor.grad(&gradients).unwrap()), EXACT);
    }
}

/// `hier_msloss_hyperbolic.json`.
pub(crate) fn multi_similarity(case: &Case, verdict: &mut Verdict) {
    let config = HyperbolicMultiSimilarityConfig {
        alpha: number(case, "params/alpha"),
        beta: number(case, "params/beta"),
    };
    loss(&config, case, "loss", verdict);
}

/// `hyp_pairwise_ce.json`.
pub(crate) fn cross_entropy(case: &Case, verdict: &mut Verdict) {
    let config = HyperbolicCrossEntropyConfig { temperature: Some(number(case, "params/tau")) };
    loss(&config, case, "loss_sum_over_ordered_pairs", verdict);
}

/// Value and gradient of a loss of features.
fn loss<S: BuildLoss>(config: &S, case: &Case, output: &str, verdict: &mut Verdict) {
    let geometry = geometry(case);
    let features = tensor(case, "inputs/x_euclidean").require_grad();
    let labels = labels(case, "inputs/labels");
    let classes = labels.classes();
    let points = geometry.embed(features.clone());
    let loss = config.init(&LossContext::new(&classes, 16, &geometry, 0, &device())).unwrap();
    let value = loss.forward(&Batch::new(points.clone(), &labels));
    let gradients = value.backward();
    verdict.compare("z", &case.numbers("outputs/z"), &values(points), EXACT);
    verdict.compare(output, &case.numbers(&format!("outputs/{output}")), &scalar(&value), EXACT);
    let gradient = values(features.grad(&gradients).unwrap());
    verdict.compare("grad_x", &case.numbers("outputs/grad_x"), &gradient, EXACT);
}

fn number(case: &Case, path: &str) -> f64 {
    case.get(path).as_f64().unwrap()
}

fn curvature(c: f64) -> Curvature {
    Curvature::try_from(c).unwrap()
}

fn geometry(case: &Case) -> Geometry {
    match number(case, "params/hyp_c") {
        0.0 => Geometry::Cosine,
        c => Geometry::Poincare {
            curvature: curvature(c),
            clip_radius: number(case, "params/clip_r"),
            riemannian: case.get("params/riemannian").as_bool().unwrap(),
        },
    }
}
