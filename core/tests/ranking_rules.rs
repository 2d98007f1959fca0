//! Rules of the ranking losses that golden files do not cover: gradients that are not those of the value, queries that
//! are left out, means over queries, and settings that are refused.

use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BlackboxApConfig, BuildLoss, CalibrationConfig, CrossBatchMemoryConfig, Draws, Loss, LossConfig,
    LossContext, Objective, Reference,
};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

const DIMENSION: usize = 4;
const CLASSES: [u32; 8] = [0, 0, 0, 1, 1, 2, 2, 3];

fn labels(fine: &[u32]) -> Labels {
    Labels::new(1, fine.to_vec()).unwrap()
}

fn init<S: BuildLoss>(config: &S) -> S::Loss {
    config
        .init(&LossContext::new(&labels(&[0, 1, 2, 3]), DIMENSION, &Geometry::Cosine, 0, &device()))
        .unwrap()
}

fn init_named(config: &LossConfig) -> Loss {
    config
        .init(&LossContext::new(&labels(&[0, 1, 2, 3]), DIMENSION, &Geometry::Cosine, 0, &device()))
        .unwrap()
}

fn named(json: &str) -> LossConfig {
    serde_json::from_str(json).unwrap()
}

fn device() -> Device {
    Device::flex().autodiff()
}

/// Rows of unit length.
fn rows(seed: u64, count: usize) -> Vec<Vec<f64>> {
    let row = |row: &[f32]| {
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        row.iter().map(|&x| f64::from(x) / length).collect()
    };
    normal(&mut stream(seed, "test", &[]), count * DIMENSION, 1.0).chunks(DIMENSION).map(row).collect()
}

fn tensor(rows: &[Vec<f64>]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(rows.concat(), [rows.len(), DIMENSION]), (&device(), DType::F64))
}

fn number(value: &Tensor<1>) -> f64 {
    value.to_data().try_to_vec::<f64>().unwrap()[0]
}

fn gradient(value: &Tensor<1>, rows: &Tensor<2>) -> Vec<f64> {
    rows.grad(&value.backward()).unwrap().into_data().try_to_vec().unwrap()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert!((got - expected).abs() <= tolerance, "number {i}: {got} is not {expected}");
    }
}

#[test]
fn the_gradient_of_blackbox_ap_is_the_difference_of_two_rankings() {
    let count = CLASSES.len();
    // 1 + the number of items above, over N: no score is tied.
    let rank = |scores: &[f64], k: usize| {
        (1 + scores.iter().filter(|&&score| score > scores[k]).count()) as f64 / count as f64
    };
    for (seed, lambda) in [(0, 4.0), (1, 0.5), (2, 30.0)] {
        let rows = rows(seed, count);
        let (mut loss, mut expected_rows) = (0.0, vec![vec![0.0; DIMENSION]; count]);
        for i in 0..count {
            let positive = |k: usize| CLASSES[k] == CLASSES[i];
            let shift = |k: usize| if positive(k) { -0.01 } else { 0.01 };
            let scores: Vec<f64> = (0..count).map(|k| dot(&rows[i], &rows[k]) + shift(k)).collect();
            let positives: Vec<usize> = (0..count).filter(|&k| positive(k)).collect();
            let mut moved = scores.clone();
            for &k in &positives {
                let within =
                    positives.iter().filter(|&&j| scores[j] >= scores[k]).count() as f64 / count as f64;
                let weight = 1.0 / (count * positives.len()) as f64;
                loss += weight * (1.0 - within / rank(&scores, k));
                moved[k] += lambda * weight * within / rank(&scores, k).powi(2);
            }
            for k in 0..count {
                let slope = (rank(&moved, k) - rank(&scores, k)) / lambda;
                for d in 0..DIMENSION {
                    expected_rows[i][d] += slope * rows[k][d];
                    expected_rows[k][d] += slope * rows[i][d];
                }
            }
        }
        let (batch, labels) = (tensor(&rows).require_grad(), labels(&CLASSES));
        let value = init(&BlackboxApConfig { lambda, ..Default::default() })
            .forward(&Batch::new(batch.clone(), &labels));
        assert_close(&[number(&value)], &[loss], 1e-12);
        assert_close(&gradient(&value, &batch), &expected_rows.concat(), 1e-12);
    }
}

#[test]
fn blackbox_ap_draws_a_new_random_margin_at_each_step() {
    let loss = init(&BlackboxApConfig { margin: 0.5, random_margin: true, ..Default::default() });
    let (rows, labels) = (tensor(&rows(3, CLASSES.len())), labels(&CLASSES));
    let at = |step: u64| {
        number(&loss.forward(&Batch::new(rows.clone(), &labels).with_draws(Draws { seed: 1, step })))
    };
    assert_eq!(at(0), at(0));
    assert!((1..5).any(|step| at(step) != at(0)));
}

#[test]
fn cross_batch_memory_has_gradients_for_the_queries_only() {
    let (rows, labels) = (rows(4, CLASSES.len()), labels(&CLASSES));
    for inner in [r#"{ "kind": "pair" }"#, r#"{ "kind": "sup_ap" }"#] {
        let inner = named(inner);
        let loss = CrossBatchMemoryConfig { loss: Box::new(inner.clone()), start: 0, ..Default::default() };
        let batch = tensor(&rows).require_grad();
        let value =
            init_named(&LossConfig::CrossBatchMemory(loss)).forward(&Batch::new(batch.clone(), &labels));
        let got = gradient(&value, &batch);

        let inner = init_named(&inner);
        for i in 0..got.len() {
            let at = |shift: f64| {
                let mut moved = rows.clone();
                moved[i / DIMENSION][i % DIMENSION] += shift;
                let reference = Reference { embeddings: tensor(&rows), labels: &labels, own: Some(0) };
                number(&inner.forward(&Batch::new(tensor(&moved), &labels).with_reference(reference)))
            };
            let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
            assert!(
                (got[i] - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                "{} is not {expected}",
                got[i]
            );
        }
    }
}

#[test]
fn a_query_without_a_positive_is_left_out() {
    let (items, item_labels) = (tensor(&rows(5, 6)), labels(&[0, 0, 1, 1, 2, 2]));
    let queries = rows(6, 4);
    for name in ["smooth_ap", "sup_ap", "fast_ap", "softbin_ap", "blackbox_ap", "hap_surrogate"] {
        let loss = init_named(&LossConfig::named(name).unwrap());
        let value = |classes: &[u32]| {
            let reference = Reference { embeddings: items.clone(), labels: &item_labels, own: None };
            let (queries, labels) = (tensor(&queries[..classes.len()]), labels(classes));
            number(&loss.forward(&Batch::new(queries, &labels).with_reference(reference)))
        };
        let (without, with, alone) = (value(&[0, 1, 2]), value(&[0, 1, 2, 3]), value(&[3]));
        assert!((without - with).abs() < 1e-12, "{name}: {without} is not {with}");
        assert_eq!(alone, 0.0, "{name}");
        assert!(without > 0.0, "{name}");
    }
}

#[test]
fn calibration_averages_over_the_pairs_of_each_query() {
    let (rows, labels) = (rows(7, CLASSES.len()), labels(&CLASSES));
    let (mut positive, mut negative) = (Vec::new(), Vec::new());
    for i in 0..CLASSES.len() {
        let mean = |same: bool, excess: fn(f64) -> f64| {
            let others = (0..CLASSES.len()).filter(|&j| j != i && (CLASSES[i] == CLASSES[j]) == same);
            let losses: Vec<f64> = others.map(|j| excess(dot(&rows[i], &rows[j])).max(0.0)).collect();
            (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64)
        };
        positive.extend(mean(true, |score| 0.9 - score));
        negative.extend(mean(false, |score| score - 0.6));
    }
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    let batch = Batch::new(tensor(&rows), &labels);
    let calibration = number(&init(&CalibrationConfig::default()).forward(&batch));
    assert_close(&[calibration], &[mean(&positive) + mean(&negative)], 1e-12);

    let value = |json: &str| number(&init_named(&named(json)).forward(&batch));
    let roadmap = 0.75 * value(r#"{ "kind": "sup_ap" }"#) + 0.25 * calibration;
    assert_close(&[value(r#"{ "kind": "roadmap", "lambda": 0.25 }"#)], &[roadmap], 1e-12);
}

#[test]
fn settings_out_of_range_are_refused() {
    for (json, fault) in [
        (r#"{ "kind": "smooth_ap", "temperature": 0.0 }"#, "the temperature of smooth_ap is 0"),
        (
            r#"{ "kind": "sup_ap", "step": { "temperature": -1.0 } }"#,
            "the temperature of the upper step is -1",
        ),
        (r#"{ "kind": "fast_ap", "bins": 0 }"#, "the number of bins of fast_ap is 0"),
        (r#"{ "kind": "softbin_ap", "bins": 1 }"#, "the number of bins of softbin_ap is 1"),
        (r#"{ "kind": "softbin_ap", "lowest": 1.0 }"#, "lowest of softbin_ap is 1"),
        (r#"{ "kind": "blackbox_ap", "lambda": 0.0 }"#, "the lambda of blackbox_ap is 0"),
        (r#"{ "kind": "blackbox_ap", "margin": -0.1 }"#, "the margin of blackbox_ap is -0.1"),
        (
            r#"{ "kind": "calibration", "negative": 0.95 }"#,
            "calibration has positive = 0.9 and negative = 0.95",
        ),
        (r#"{ "kind": "roadmap", "lambda": 1.5 }"#, "the lambda of ROADMAP is 1.5"),
    ] {
        let classes = labels(&[0, 1]);
        let device = device();
        let context = LossContext::new(&classes, DIMENSION, &Geometry::Cosine, 0, &device);
        let message = named(json).init(&context).unwrap_err().message().to_owned();
        assert!(message.contains(fault), "{json}: {message}");
    }
}
