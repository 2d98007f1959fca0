//! The gradient of every loss of the catalogue against central differences, in f64, on random and degenerate batches.

use akin_core::geometry::{Geometry, Space};
use akin_core::losses::{Batch, CATALOGUE, Entry, Loss, LossConfig, Objective, Reference, Setting};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};

const DIMENSION: usize = 8;

/// Losses whose gradient is by design not that of their value; each has a test of its rule beside it.
const BY_RULE: &[&str] = &[
    "blackbox_ap",
    "blackbox_ap_published",
    "hier",
    "hier_multi_similarity",
    "hier_proxy_anchor",
    "hier_published",
];

/// Settings that the defaults of the catalogue leave out.
const VARIANTS: &[&str] = &[
    r#"{ "kind": "contrastive", "squared": true, "negative_margin": 1.5 }"#,
    r#"{ "kind": "contrastive", "measure": "cosine", "positive_margin": 0.9, "negative_margin": 0.1 }"#,
    r#"{ "kind": "contrastive", "miner": { "kind": "batch_hard_miner" } }"#,
    r#"{ "kind": "contrastive", "miner": { "kind": "distance_weighted_miner" } }"#,
    r#"{ "kind": "fast_ap", "bins": 4, "normalise_embeddings": true }"#,
    r#"{ "kind": "hap_surrogate", "smooth_rank": false }"#,
    r#"{ "kind": "hap_surrogate", "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "csl", "average_levels": true }"#,
    r#"{ "kind": "happier", "lambda": 0.3, "surrogate": { "upper_step": { "temperature": 0.1 } } }"#,
    r#"{ "kind": "hierarchical_proxy", "loss": { "kind": "proxy_nca" },
         "coarse": { "kind": "clusters", "count": 1 } }"#,
    r#"{ "kind": "proxy_nca", "scale": 32.0, "denominator": "all" }"#,
    r#"{ "kind": "soft_triple", "centres": 1 }"#,
    r#"{ "kind": "soft_triple", "tau": 0.0, "normalise_embeddings": true }"#,
    r#"{ "kind": "margin", "learn_beta": true, "miner": { "kind": "all" } }"#,
    r#"{ "kind": "margin", "miner": { "kind": "multi_similarity_miner" } }"#,
    r#"{ "kind": "multi_similarity", "miner": { "kind": "all" } }"#,
    r#"{ "kind": "multi_similarity", "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "hard" } }"#,
    r#"{ "kind": "softbin_ap", "ties": "middle" }"#,
    r#"{ "kind": "sum", "terms": [
        { "weight": 0.5, "loss": { "kind": "norm_softmax" } },
        { "weight": 2.0, "loss": { "kind": "levels", "loss": { "kind": "norm_softmax" } } }
    ] }"#,
    r#"{ "kind": "triplet_margin", "smooth": true, "miner": { "kind": "batch_easy_hard_miner" } }"#,
    r#"{ "kind": "triplet_margin", "swap": true }"#,
    r#"{ "kind": "triplet_margin", "swap": true, "miner": { "kind": "multi_similarity_miner" } }"#,
];

/// Every entry that needs no further settings, and the variants above, in each of their spaces.
fn cases() -> impl Iterator<Item = (String, LossConfig, Space)> {
    let entry =
        |entry: &'static Entry| (entry.name.to_owned(), LossConfig::named(entry.name).unwrap(), entry.spaces);
    let variant = |json: &&str| {
        let config: LossConfig = serde_json::from_str(json).unwrap();
        let spaces = config.entry().spaces;
        ((*json).to_owned(), config, spaces)
    };
    let all: Vec<_> = CATALOGUE
        .iter()
        .filter(|entry| entry.complete)
        .map(entry)
        .chain(VARIANTS.iter().map(variant))
        .collect();
    all.into_iter().flat_map(|(name, config, spaces)| {
        let compared: Vec<Space> = spaces.iter().copied().filter(|&space| config.compares(space)).collect();
        compared.into_iter().map(move |space| (name.clone(), config.clone(), space))
    })
}

/// A taxonomy of so many levels over the fine classes 0 … 3: each level above halves them.
fn labels(levels: usize, fine: &[u32]) -> Labels {
    let row = |&class: &u32| (0..levels).rev().map(move |above| class >> above.min(2));
    Labels::new(levels, fine.iter().flat_map(row).collect()).unwrap()
}

fn geometry(space: Space) -> Geometry {
    match space {
        Space::Cosine => Geometry::Cosine,
        Space::Poincare => Geometry::poincare(),
        Space::Binary => Geometry::Binary,
    }
}

/// The same loss with few ancestors, where it has any: all pairs of the usual number would take minutes.
fn few_ancestors(config: &LossConfig) -> LossConfig {
    let mut config = config.clone();
    match &mut config {
        LossConfig::Hier(hier) => (hier.proxies, hier.triplets) = (12, 5),
        LossConfig::Sum(sum) => sum.terms.iter_mut().for_each(|term| term.loss = few_ancestors(&term.loss)),
        _ => {}
    }
    config
}

fn loss(config: &LossConfig, levels: usize, space: Space, device: &Device) -> Loss {
    let classes = labels(levels, &[0, 1, 2, 3]);
    few_ancestors(config).init(&Setting::new(&classes, DIMENSION, &geometry(space), 1, device)).unwrap()
}

/// Rows of the space: of unit length, inside the ball, or of about that size.
fn rows(space: Space, seed: u64, count: usize) -> Vec<f64> {
    let values = normal(&mut stream(seed, "test", &[]), count * DIMENSION, 1.0);
    let row = |(number, row): (usize, &[f32])| {
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let wanted = match space {
            Space::Cosine => 1.0,
            Space::Poincare => 0.8 + 0.1 * (number % 9) as f64,
            Space::Binary => length,
        };
        row.iter().map(move |&x| f64::from(x) * wanted / length).collect::<Vec<_>>()
    };
    values.chunks(DIMENSION).enumerate().flat_map(row).collect()
}

fn tensor(values: &[f64], dtype: DType, device: &Device) -> Tensor<2> {
    let shape = [values.len() / DIMENSION, DIMENSION];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, dtype))
}

fn value(loss: &Loss, labels: &Labels, values: &[f64], device: &Device) -> f64 {
    let batch = Batch::new(tensor(values, DType::F64, device), labels);
    loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0]
}

/// Value and gradient, in this precision.
fn backward(loss: &Loss, labels: &Labels, values: &[f64], dtype: DType, device: &Device) -> (f64, Vec<f64>) {
    let embeddings = tensor(values, dtype, device).require_grad();
    let value = loss.forward(&Batch::new(embeddings.clone(), labels));
    let gradients = value.backward();
    let gradient = embeddings.grad(&gradients).unwrap_or_else(|| embeddings.zeros_like().without_autodiff());
    let read = |data: TensorData| data.convert::<f64>().try_to_vec::<f64>().unwrap();
    (read(value.into_data())[0], read(gradient.into_data()))
}

#[test]
fn gradients_agree_with_central_differences() {
    let device = Device::flex().autodiff();
    for (name, config, space) in cases() {
        if BY_RULE.contains(&name.as_str()) {
            continue;
        }
        let labels = labels(2, &[0, 0, 1, 1, 2, 2, 3, 3, 3]);
        let loss = in_f64(loss(&config, 2, space, &device));
        for seed in 0..3 {
            let values = rows(space, seed, labels.len());
            let (_, got) = backward(&loss, &labels, &values, DType::F64, &device);
            for i in 0..values.len() {
                let at = |shift: f64| {
                    let mut moved = values.clone();
                    moved[i] += shift;
                    value(&loss, &labels, &moved, &device)
                };
                let expected = (at(1e-6) - at(-1e-6)) / 2e-6;
                let error = (got[i] - expected).abs();
                let place = format!("{name}, {space:?}, seed {seed}, number {i}");
                assert!(error < 1e-5 * (1.0 + expected.abs()), "{place}: {} is not {expected}", got[i]);
            }
        }
    }
}

#[test]
fn degenerate_batches_have_a_finite_loss_and_gradient() {
    let device = Device::flex().autodiff();
    for (name, config, space) in cases() {
        let batches: [(&str, Vec<u32>, Vec<f64>); 8] = [
            ("every class alone", vec![0, 1, 2, 3], rows(space, 7, 4)),
            ("one class", vec![2; 4], rows(space, 7, 4)),
            ("one class alone among others", vec![0, 0, 0, 3], rows(space, 7, 4)),
            ("one item", vec![1], rows(space, 8, 1)),
            ("duplicates", vec![0, 0, 1, 1], rows(space, 9, 1).repeat(4)),
            ("ties", vec![0, 0, 1, 1, 2, 3], rows(space, 9, 2).repeat(3)),
            ("zeros", vec![0, 0, 1, 3], vec![0.0; 4 * DIMENSION]),
            ("no kin at all", vec![0, 2], rows(space, 10, 2)),
        ];
        for levels in [1, 2, 3] {
            let single = loss(&config, levels, space, &device);
            let double = in_f64(single.clone());
            for (batch, fine, values) in &batches {
                let labels = labels(levels, fine);
                for (loss, dtype) in [(&single, DType::F32), (&double, DType::F64)] {
                    let place = format!("{name}, {space:?}, {levels} levels, {dtype:?}, {batch}");
                    let (value, gradient) = backward(loss, &labels, values, dtype, &device);
                    assert!(value.is_finite(), "{place}: {value}");
                    assert!(gradient.iter().all(|x| x.is_finite()), "{place}: {gradient:?}");
                }
            }
        }
    }
}

#[test]
fn large_batches_are_computed_in_blocks_with_the_same_result() {
    // 300 × 300 × 300 elements are several blocks; the mean over halves of the queries is the whole.
    let device = Device::flex().autodiff();
    let labels = labels(2, &(0..300).map(|i| i % 4).collect::<Vec<_>>());
    let loss = loss(&LossConfig::named("hap_surrogate").unwrap(), 2, Space::Cosine, &device);
    let values = rows(Space::Cosine, 3, 300);
    let whole = value(&loss, &labels, &values, &device);
    let items = tensor(&values, DType::F64, &device);
    let halves: f64 = [0..150, 150..300]
        .into_iter()
        .map(|rows: std::ops::Range<usize>| {
            let of_half = labels.select(&rows.clone().collect::<Vec<_>>());
            let reference = Reference { embeddings: items.clone(), labels: &labels, own: Some(rows.start) };
            let batch =
                Batch::new(items.clone().slice([rows, 0..DIMENSION]), &of_half).with_reference(reference);
            loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0] / 2.0
        })
        .sum();
    assert!((whole - halves).abs() < 1e-12, "{whole} is not {halves}");
}

/// The same loss with all that it learns and keeps in f64.
fn in_f64(loss: Loss) -> Loss {
    struct ToF64;
    impl ModuleMapper for ToF64 {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let learned = param.is_require_grad();
            param.map(|tensor| tensor.cast(DType::F64).detach().set_require_grad(learned))
        }
    }
    loss.map(&mut ToF64)
}
