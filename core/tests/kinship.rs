//! Several label paths, and a matrix of relevance: a tree that is written as either gives what the tree gives, and other
//! labels give what the formulas say.

use std::sync::Arc;

use akin_core::embeddings::Embeddings;
use akin_core::evaluate::{Evaluation, EvaluationConfig, Execution, Labelled, Report};
use akin_core::geometry::{Geometry, Space};
use akin_core::losses::{Batch, CATALOGUE, Draws, LossConfig, LossContext, Objective};
use akin_core::random::{stream, uniform};
use akin_core::relevance::Relevance;
use akin_core::taxonomy::{Kinship, Labels, shared_level};
use burn::tensor::{Device, Tensor, TensorData};

const ITEMS: usize = 24;
const DIMENSION: usize = 8;

/// Two levels: 3 coarse classes of 2 fine ones each, 4 items each.
fn tree() -> Labels {
    Labels::new(2, (0..ITEMS as u32).flat_map(|item| [item / 8, item / 4]).collect()).unwrap()
}

/// The same tree as a matrix of the shared level, divided by L.
fn tree_as_matrix() -> Labels {
    let classes = tree().classes();
    let relevance = |a, b| shared_level(classes.row(a), classes.row(b)) as f64 / 2.0;
    let rows = (0..classes.len()).map(|a| (0..classes.len()).map(|b| relevance(a, b)).collect()).collect();
    let kinship = Arc::new(Kinship::of_matrix(rows).unwrap());
    Labels::from_grades(kinship, (0..ITEMS as u32).map(|item| item / 4).collect()).unwrap()
}

fn values() -> Vec<f32> {
    uniform(&mut stream(7, "kinship", &[]), ITEMS * DIMENSION, -1.0, 1.0)
}

fn report(labels: &Labels, config: &EvaluationConfig) -> Report {
    let embeddings = Embeddings::new(DIMENSION, values()).unwrap();
    let levels: Vec<String> = (1..=labels.levels()).map(|level| format!("level {level}")).collect();
    let set = Labelled { embeddings: &embeddings, labels };
    Evaluation {
        levels: &levels,
        queries: set.into(),
        gallery: None,
        places: None,
        config,
        execution: Execution::default(),
    }
    .report()
    .unwrap()
}

#[test]
fn a_tree_that_is_written_as_a_matrix_has_the_scores_of_the_tree() {
    for relevance in [
        Relevance::default(),
        Relevance::Plain { alpha: 2.0 },
        Relevance::WeightedAp { weights: vec![0.25, 0.75] },
    ] {
        let config = EvaluationConfig { relevance, ..EvaluationConfig::default() };
        assert_eq!(report(&tree(), &config), report(&tree_as_matrix(), &config));
    }
}

#[test]
fn every_loss_either_gives_the_same_for_a_tree_written_as_a_matrix_or_refuses_it() {
    let device = Device::flex().autodiff();
    let (tree, matrix) = (tree(), tree_as_matrix());
    let mut compared = 0;
    for entry in CATALOGUE.iter() {
        let Ok(config) = LossConfig::named(entry.name) else { continue };
        let space = entry.spaces[0];
        let geometry = match space {
            Space::Cosine => Geometry::Cosine,
            Space::Poincare => Geometry::poincare(),
            Space::Binary => Geometry::Binary,
        };
        let value_and_gradient = |labels: &Labels| {
            let classes = labels.classes();
            let loss = config.init(&LossContext::new(&classes, DIMENSION, &geometry, 3, &device))?;
            let rows = TensorData::new(values(), [ITEMS, DIMENSION]);
            let rows: Tensor<2> = Tensor::from_data(rows, &device).require_grad();
            let batch = Batch::new(geometry.embed(rows.clone()), labels).with_draws(Draws::default());
            let value = loss.forward(&batch);
            let gradient = rows.grad(&value.backward()).map(|gradient| gradient.into_data());
            let value: f32 = value.into_data().try_into_vec().unwrap()[0];
            let gradient: Vec<f32> = gradient.map_or(Vec::new(), |data| data.try_into_vec().unwrap());
            akin_core::Result::Ok((value, gradient))
        };
        match value_and_gradient(&matrix) {
            Err(error) => {
                assert!(config.needs_tree(), "{}: {error}", entry.name);
                assert!(error.message().contains("needs one label path for each item"), "{error}");
            }
            Ok((value, gradient)) => {
                assert!(!config.needs_tree(), "{}", entry.name);
                let in_tree = value_and_gradient(&tree).unwrap();
                assert!((value - in_tree.0).abs() <= 1e-5 * in_tree.0.abs().max(1.0), "{}", entry.name);
                assert_eq!(gradient.len(), in_tree.1.len(), "{}", entry.name);
                for (a, b) in gradient.iter().zip(&in_tree.1) {
                    assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{}: {a} {b}", entry.name);
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 30, "{compared}");
}

fn h_ap_of(report: &Report) -> f64 {
    report.overall.get("h_ap".parse().unwrap()).unwrap()
}

/// H-AP by its formula, for each query over all other items: Σ_k rel(k) H-rank(k) / rank(k) / Σ rel, where H-rank(k) is
/// Σ_{j at or above k} min(rel(j), rel(k)) / rel(k).
fn naive_h_ap(relevance: impl Fn(usize, usize) -> f64) -> f64 {
    let values = values();
    let row = |item: usize| &values[item * DIMENSION..][..DIMENSION];
    let cosine = |a: usize, b: usize| {
        let dot = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| f64::from(x * y)).sum::<f64>();
        dot(row(a), row(b)) / (dot(row(a), row(a)) * dot(row(b), row(b))).sqrt()
    };
    let mean = (0..ITEMS).map(|query| {
        let mut items: Vec<usize> = (0..ITEMS).filter(|&item| item != query).collect();
        items.sort_by(|&a, &b| cosine(query, b).total_cmp(&cosine(query, a)));
        let rel: Vec<f64> = items.iter().map(|&item| relevance(query, item)).collect();
        let gain = |k: usize| (0..=k).map(|j| rel[j].min(rel[k])).sum::<f64>() / (k + 1) as f64;
        (0..rel.len()).map(gain).sum::<f64>() / rel.iter().sum::<f64>()
    });
    mean.sum::<f64>() / ITEMS as f64
}

#[test]
fn h_ap_of_a_matrix_is_the_formula_with_its_values() {
    let price = |item: usize| [1.0, 2.0, 4.0, 5.0, 9.0, 3.0][item / 4];
    let relevance = |a: usize, b: usize| 10.0 - f64::abs(price(a) - price(b));
    let rows = (0..6).map(|a| (0..6).map(|b| relevance(4 * a, 4 * b)).collect()).collect();
    let kinship = Arc::new(Kinship::of_matrix(rows).unwrap());
    let labels = Labels::from_grades(kinship, (0..ITEMS as u32).map(|item| item / 4).collect()).unwrap();
    let config =
        EvaluationConfig { relevance: Relevance::Plain { alpha: 1.0 }, ..EvaluationConfig::default() };
    let report = report(&labels, &config);
    let h_ap = h_ap_of(&report);
    assert!((h_ap - naive_h_ap(relevance)).abs() < 1e-9, "{h_ap} {}", naive_h_ap(relevance));
}

#[test]
fn h_ap_of_several_paths_is_the_formula_with_the_nearest_of_them() {
    // The items of fine class 0 are also of fine class 5.
    let tree = tree();
    let paths = |item: usize| match item / 4 {
        0 => vec![vec![0, 0], vec![2, 5]],
        _ => vec![tree.row(item).to_vec()],
    };
    let all: Vec<Vec<Vec<u32>>> = (0..ITEMS).map(paths).collect();
    let labels = Labels::from_paths(2, &all).unwrap();
    let relevance = |a: usize, b: usize| {
        let pairs = all[a].iter().flat_map(|p| all[b].iter().map(|r| shared_level(p, r)));
        pairs.max().unwrap() as f64 / 2.0
    };
    let config =
        EvaluationConfig { relevance: Relevance::Plain { alpha: 1.0 }, ..EvaluationConfig::default() };
    let h_ap = h_ap_of(&report(&labels, &config));
    assert!((h_ap - naive_h_ap(relevance)).abs() < 1e-9, "{h_ap} {}", naive_h_ap(relevance));
}
