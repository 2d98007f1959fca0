//! Rules of the ranking losses that golden files do not cover: gradients that are not those of the value, queries that
//! are left out, means over queries, and settings that are refused.

use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BlackboxApConfig, BuildLoss, CalibrationConfig, CrossBatchMemoryConfig, Draws, Loss, LossConfig,
    LossContext, Objective, Reference,
};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::{Labels, UNKNOWN};
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
        let loss = CrossBatchMemoryConfig {
            loss: Box::new(inner.clone()),
            start: 0,
            batch_weight: 0.0,
            ..Default::default()
        };
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

/// Every loss of smooth ranks at this temperature.
fn smooth_ranks(temperature: f64) -> Vec<LossConfig> {
    let own = |kind: &str| format!(r#"{{ "kind": "{kind}", "temperature": {temperature:e} }}"#);
    let with_step = |kind: &str, rest: &str| {
        let step = if kind == "hap_surrogate" { "upper_step" } else { "step" };
        format!(r#"{{ "kind": "{kind}", "{step}": {{ "temperature": {temperature:e} }} {rest} }}"#)
    };
    let json = [
        own("smooth_ap"),
        own("smooth_hap"),
        own("smooth_ndcg"),
        own("smooth_recall"),
        with_step("sup_ap", ""),
        with_step("sup_ndcg", ""),
        with_step("sup_recall", ""),
        with_step("hap_surrogate", r#", "smooth_rank": true"#),
        with_step("hap_surrogate", r#", "smooth_rank": false"#),
    ];
    json.iter().map(|json| named(json)).collect()
}

/// Value and gradient of a batch, from sorted scores and in tensor operations.
fn both_ways(config: &LossConfig, rows: &[Vec<f64>], fine: &[u32]) -> [(f64, Vec<f64>); 2] {
    let (loss, labels) = (init_named(config), labels(fine));
    let forward: [&dyn Fn(&Batch) -> Tensor<1>; 2] =
        [&|batch| loss.forward(batch), &|batch| loss.on_tensors(batch).unwrap()];
    forward.map(|forward| {
        let rows = tensor(rows).require_grad();
        let value = forward(&Batch::new(rows.clone(), &labels));
        (number(&value), gradient(&value, &rows))
    })
}

#[test]
fn at_extreme_temperatures_and_in_degenerate_batches_both_ways_give_the_same_finite_numbers() {
    let equal = vec![rows(1, 1)[0].clone(); 8];
    let batches = [
        ("random", rows(2, 8), CLASSES.to_vec()),
        ("one class", rows(2, 8), vec![1; 8]),
        ("classes of one item", rows(2, 4), vec![0, 1, 2, 3]),
        ("equal scores", equal.clone(), CLASSES.to_vec()),
        ("equal scores of one class", equal, vec![2; 8]),
        ("one item", rows(2, 1), vec![0]),
        ("more items than are compared in pairs", rows(3, 80), (0..80).map(|item| item % 2).collect()),
    ];
    for temperature in [1e-12, 0.01, 1e12] {
        for config in smooth_ranks(temperature) {
            for (name, rows, fine) in &batches {
                let [(sorted, sorted_gradient), (compared, compared_gradient)] =
                    both_ways(&config, rows, fine);
                let name = format!("{name}, {config:?}");
                assert!(sorted.is_finite(), "{name}");
                assert!(
                    (sorted - compared).abs() < 1e-9 * compared.abs().max(1.0),
                    "{name}: {sorted} {compared}"
                );
                let largest =
                    compared_gradient.iter().fold(1.0_f64, |largest, slope| largest.max(slope.abs()));
                // Slopes of 1/τ round to 10⁻¹⁶ of themselves before they cancel.
                let tolerance = 1e-8 * largest + 1e-14 / temperature;
                for (got, expected) in sorted_gradient.iter().zip(compared_gradient) {
                    assert!(got.is_finite(), "{name}");
                    assert!((got - expected).abs() < tolerance, "{name}: {got} {expected}");
                }
            }
        }
    }
}

#[test]
fn a_flat_sigmoid_counts_every_item_one_half_and_a_sharp_one_ranks() {
    let rows = rows(4, 8);
    let value = |temperature: f64| both_ways(&smooth_ranks(temperature)[0], &rows, &CLASSES)[0].0;
    // Each of |P| positives has (|P| + 1)/2 of 9/2 items at or above it.
    let positives = |class: u32| CLASSES.iter().filter(|&&other| other == class).count() as f64;
    let flat: f64 = CLASSES.iter().map(|&class| 1.0 - (positives(class) + 1.0) / 9.0).sum::<f64>() / 8.0;
    assert!((value(1e12) - flat).abs() < 1e-9, "{}", value(1e12));
    // Without ties, the sharp one is 1 − AP with the query in its own ranking.
    let score = |i: usize, j: usize| rows[i].iter().zip(&rows[j]).map(|(a, b)| a * b).sum::<f64>();
    let at_or_above = |i: usize, k: usize, same: bool| {
        let counts = |&j: &usize| score(i, j) >= score(i, k) && (!same || CLASSES[j] == CLASSES[i]);
        (0..8).filter(counts).count() as f64
    };
    let ap = |i: usize| {
        let mates: Vec<usize> = (0..8).filter(|&k| CLASSES[k] == CLASSES[i]).collect();
        let precision = |&k: &usize| at_or_above(i, k, true) / at_or_above(i, k, false);
        mates.iter().map(precision).sum::<f64>() / mates.len() as f64
    };
    let expected = 1.0 - (0..8).map(ap).sum::<f64>() / 8.0;
    assert!((value(1e-12) - expected).abs() < 1e-9, "{} {expected}", value(1e-12));
}

#[test]
fn a_batch_with_a_number_that_is_not_one_has_no_number_for_a_loss() {
    for config in smooth_ranks(0.01) {
        for wrong in [f64::NAN, f64::INFINITY] {
            let mut rows = rows(5, 8);
            rows[3][1] = wrong;
            for (value, _) in both_ways(&config, &rows, &CLASSES) {
                assert!(value.is_nan(), "{config:?}: {value}");
            }
        }
    }
}

#[test]
fn temperatures_that_are_no_numbers_above_zero_are_refused() {
    for temperature in ["0.0", "-1.0", "1e999"] {
        for kind in ["smooth_ap", "smooth_hap", "smooth_ndcg", "smooth_recall"] {
            let json = format!(r#"{{ "kind": "{kind}", "temperature": {temperature} }}"#);
            let Ok(config) = serde_json::from_str::<LossConfig>(&json) else { continue };
            let (classes, device) = (labels(&[0, 1, 2, 3]), device());
            let context = LossContext::new(&classes, DIMENSION, &Geometry::Cosine, 0, &device);
            assert!(config.init(&context).unwrap_err().message().contains("temperature"), "{json}");
        }
    }
}

#[test]
fn losses_of_all_levels_rank_for_a_query_by_the_levels_at_which_it_is_known() {
    let genera = [[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]];
    let species = |known: bool| {
        let row = |([family, genus], item): ([u32; 2], u32)| {
            [family, genus, if known { item / 2 } else { UNKNOWN }]
        };
        Labels::new(3, genera.into_iter().zip(0..).flat_map(row).collect()).unwrap()
    };
    let without = Labels::new(2, genera.concat()).unwrap();
    let value = |json: &str, classes: &Labels, labels: &Labels| {
        let device = device();
        let context = LossContext::new(classes, DIMENSION, &Geometry::Cosine, 0, &device);
        number(&named(json).init(&context).unwrap().forward(&Batch::new(tensor(&rows(3, 8)), labels)))
    };
    for kind in ["hap_surrogate", "smooth_hap", "smooth_ndcg", "sup_ndcg"] {
        let json = format!(r#"{{ "kind": "{kind}" }}"#);
        let unknown = value(&json, &species(true), &species(false));
        let absent = value(&json, &without, &without);
        assert!((unknown - absent).abs() < 1e-9 && absent > 0.01, "{kind}: {unknown} {absent}");
    }
}
