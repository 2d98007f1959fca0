//! The gradient of every loss against central differences, in f64, on random and degenerate batches.

use akin_core::losses::{Batch, Loss, LossConfig, Setting};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};

const DIMENSION: usize = 5;
const CLASSES: [usize; 2] = [2, 4];

/// Two levels: the coarse class is half of the fine one.
fn labels(fine: &[u32]) -> Labels {
    Labels::new(2, fine.iter().flat_map(|&class| [class / 2, class]).collect()).unwrap()
}

fn loss(config: &str, device: &Device) -> Loss {
    let config: LossConfig = serde_json::from_str(config).unwrap();
    config.init(&Setting { classes: &CLASSES, dimension: DIMENSION, seed: 1, device }).unwrap()
}

fn tensor(values: &[f64], device: &Device) -> Tensor<2> {
    let shape = [values.len() / DIMENSION, DIMENSION];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, DType::F64))
}

fn value(loss: &Loss, labels: &Labels, values: &[f64], device: &Device) -> f64 {
    let batch = Batch { embeddings: tensor(values, device), labels, reference: None };
    loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0]
}

fn gradient(loss: &Loss, labels: &Labels, values: &[f64], device: &Device) -> Vec<f64> {
    let embeddings = tensor(values, device).require_grad();
    let batch = Batch { embeddings: embeddings.clone(), labels, reference: None };
    let gradients = loss.forward(&batch).backward();
    embeddings.grad(&gradients).unwrap().into_data().try_to_vec().unwrap()
}

fn unit_rows(seed: u64, rows: usize) -> Vec<f64> {
    let mut rng = stream(seed, "test", &[]);
    let values: Vec<f64> = normal(&mut rng, rows * DIMENSION, 1.0).into_iter().map(f64::from).collect();
    values
        .chunks(DIMENSION)
        .flat_map(|row| {
            let length = row.iter().map(|x| x * x).sum::<f64>().sqrt();
            row.iter().map(move |x| x / length)
        })
        .collect()
}

/// Every loss that the config can name; steps wide enough for differences of 1e-6.
const LOSSES: [&str; 4] = [
    r#"{ "kind": "norm_softmax" }"#,
    r#"{ "kind": "hap_surrogate", "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "hap_surrogate", "smooth_rank": false, "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "happier", "lambda": 0.3, "surrogate": { "upper_step": { "temperature": 0.1 } } }"#,
];

#[test]
fn gradients_agree_with_central_differences() {
    // Proxies are f32 weights elsewhere; here everything is f64, or the differences drown.
    let device = Device::flex().autodiff();
    let labels = labels(&[0, 0, 1, 1, 2, 2, 3, 3, 3]);
    for config in LOSSES {
        let loss = in_f64(loss(config, &device));
        for seed in 0..3 {
            let values = unit_rows(seed, labels.len());
            let got = gradient(&loss, &labels, &values, &device);
            for i in 0..values.len() {
                let at = |shift: f64| {
                    let mut moved = values.clone();
                    moved[i] += shift;
                    value(&loss, &labels, &moved, &device)
                };
                let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
                let error = (got[i] - expected).abs();
                assert!(error < 1e-5 * (1.0 + expected.abs()), "{config}, {i}: {} is not {expected}", got[i]);
            }
        }
    }
}

#[test]
fn degenerate_batches_have_a_finite_loss_and_gradient() {
    let device = Device::flex().autodiff();
    let random = unit_rows(7, 4);
    let batches: [(&str, Vec<u32>, Vec<f64>); 6] = [
        ("every class alone", vec![0, 1, 2, 3], random.clone()),
        ("one class", vec![2; 4], random.clone()),
        ("one item", vec![1], unit_rows(8, 1)),
        ("duplicates", vec![0, 0, 1, 1], unit_rows(9, 1).repeat(4)),
        ("zeros", vec![0, 0, 1, 3], vec![0.0; 4 * DIMENSION]),
        ("no kin at all", vec![0, 2], unit_rows(10, 2)),
    ];
    for config in LOSSES {
        let loss = in_f64(loss(config, &device));
        for (name, fine, values) in &batches {
            let labels = labels(fine);
            let value = value(&loss, &labels, values, &device);
            assert!(value.is_finite(), "{config}, {name}: {value}");
            let gradient = gradient(&loss, &labels, values, &device);
            assert!(gradient.iter().all(|x| x.is_finite()), "{config}, {name}: {gradient:?}");
        }
    }
}

#[test]
fn large_batches_are_computed_in_blocks_with_the_same_result() {
    // 300 × 300 × 300 elements are several blocks; the mean over halves of the queries is the whole.
    let device = Device::flex().autodiff();
    let fine: Vec<u32> = (0..300).map(|i| i % 4).collect();
    let labels = labels(&fine);
    let loss = loss(r#"{ "kind": "hap_surrogate" }"#, &device);
    let values = unit_rows(3, 300);
    let whole = value(&loss, &labels, &values, &device);
    let items = tensor(&values, &device);
    let halves: f64 = [0..150, 150..300]
        .into_iter()
        .map(|rows: std::ops::Range<usize>| {
            let of_half = labels.select(&rows.clone().collect::<Vec<_>>());
            let batch = Batch {
                embeddings: items.clone().slice([rows, 0..DIMENSION]),
                labels: &of_half,
                reference: Some((items.clone(), &labels)),
            };
            loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0] / 2.0
        })
        .sum();
    assert!((whole - halves).abs() < 1e-12, "{whole} is not {halves}");
}

/// The same loss with proxies in f64.
fn in_f64(loss: Loss) -> Loss {
    use burn::module::{Module, ModuleMapper, Param};
    struct ToF64;
    impl ModuleMapper for ToF64 {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor.cast(DType::F64).detach().require_grad())
        }
    }
    loss.map(&mut ToF64)
}
