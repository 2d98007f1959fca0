//! The gradients of every loss of the catalogue against central differences, in f64, on random and degenerate batches:
//! with respect to the embeddings, the items they are compared with, and the parameters of the loss.

use akin_core::geometry::{Geometry, Space};
use akin_core::losses::{
    Batch, CATALOGUE, Loss, LossConfig, LossContext, LossEntry, Objective, Reference, Term,
};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::{Labels, UNKNOWN};
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{DType, Device, Gradients, Tensor, TensorData};

const DIMENSION: usize = 8;
/// Half the width of a central difference.
const STEP: f64 = 1e-6;
/// How many values of each parameter are compared.
const MOVED: usize = 12;

/// Losses whose gradient is, by design, not the derivative of their value. Blackbox-AP is tested in `ranking_rules.rs`,
/// and with its random margin in the golden file; the circle loss, whose
/// weights are constants, in its golden file; HIER, whose proxies have a Riemannian gradient, in
/// `paper/hyperbolic.rs`, `hyperbolic_rules.rs` and the golden file. Sums with HIER, and a memory's sum of fixed and
/// moving items, are tested below.
const BY_RULE: &[&str] = &[
    "blackbox_ap",
    "blackbox_ap_published",
    "circle",
    "cross_batch_memory",
    "hier",
    "hier_multi_similarity",
    "hier_multi_similarity_text",
    "hier_proxy_anchor",
    "hier_proxy_anchor_text",
    "hier_text",
];

/// Settings other than the defaults of the catalogue.
const VARIANTS: &[&str] = &[
    r#"{ "kind": "arc_face", "easy_margin": true, "label_smoothing": 0.2 }"#,
    r#"{ "kind": "arc_face", "sub_centres": 2 }"#,
    r#"{ "kind": "contrastive", "squared": true, "negative_margin": 1.5 }"#,
    r#"{ "kind": "contrastive", "measure": "cosine", "positive_margin": 0.9, "negative_margin": 0.1 }"#,
    r#"{ "kind": "contrastive", "miner": { "kind": "batch_hard_miner" } }"#,
    r#"{ "kind": "contrastive", "miner": { "kind": "distance_weighted_miner" } }"#,
    r#"{ "kind": "fast_ap", "bins": 4, "normalise_embeddings": true }"#,
    r#"{ "kind": "calibration", "mean": "queries_with_self" }"#,
    r#"{ "kind": "hap_surrogate_text", "order": "relevances" }"#,
    r#"{ "kind": "hap_surrogate_text", "stop_gradient": true, "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "hap_surrogate", "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "hap_surrogate_text", "upper_step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "cross_batch_memory_text", "loss": { "kind": "sup_ap", "step": { "temperature": 0.1 } } }"#,
    r#"{ "kind": "cross_batch_memory_text", "loss": { "kind": "hyperbolic_multi_similarity" } }"#,
    r#"{ "kind": "csl", "average_levels": true }"#,
    r#"{ "kind": "happier_text", "lambda": 0.3, "surrogate": { "upper_step": { "temperature": 0.1 } } }"#,
    r#"{ "kind": "hierarchical_proxy", "loss": { "kind": "proxy_nca" },
         "coarse": { "kind": "clusters", "count": 1 } }"#,
    r#"{ "kind": "proxy_nca", "scale": 32.0, "denominator": "all" }"#,
    r#"{ "kind": "soft_triple", "centres": 1 }"#,
    r#"{ "kind": "soft_triple", "tau": 0.0, "normalise_embeddings": true }"#,
    r#"{ "kind": "margin", "learn_beta": true, "miner": { "kind": "all" } }"#,
    r#"{ "kind": "margin", "miner": { "kind": "multi_similarity_miner" } }"#,
    r#"{ "kind": "multi_similarity", "miner": { "kind": "all" } }"#,
    r#"{ "kind": "multi_similarity", "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "hard" } }"#,
    r#"{ "kind": "smooth_ndcg", "temperature": 0.1 }"#,
    r#"{ "kind": "sup_recall", "cutoffs": [2], "cutoff_temperature": 0.3, "step": { "temperature": 0.1 } }"#,
    r#"{ "kind": "softbin_ap", "ties": "mean" }"#,
    r#"{ "kind": "softbin_ap", "ties": "middle" }"#,
    r#"{ "kind": "sum", "terms": [
        { "weight": 0.5, "loss": { "kind": "norm_softmax" } },
        { "weight": 2.0, "loss": { "kind": "levels", "loss": { "kind": "norm_softmax" } } }
    ] }"#,
    r#"{ "kind": "nt_xent", "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "hard" } }"#,
    r#"{ "kind": "sup_con", "miner": { "kind": "batch_hard_miner" } }"#,
    r#"{ "kind": "ranked_list", "boundary": 1.1, "positive_temperature": 2.0 }"#,
    r#"{ "kind": "sphere_face", "margin": 3, "scale": 4.0 }"#,
    r#"{ "kind": "triplet_margin", "smooth": true, "miner": { "kind": "batch_easy_hard_miner" } }"#,
    r#"{ "kind": "triplet_margin", "swap": true }"#,
    r#"{ "kind": "triplet_margin", "swap": true, "miner": { "kind": "multi_similarity_miner" } }"#,
];

/// Every complete entry and every variant above, in each space that it supports.
fn cases() -> impl Iterator<Item = (String, LossConfig, Space)> {
    let entry = |entry: &'static LossEntry| {
        (entry.name.to_owned(), LossConfig::named(entry.name).unwrap(), entry.spaces)
    };
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
        let supported: Vec<Space> = spaces.iter().copied().filter(|&space| config.supports(space)).collect();
        supported.into_iter().map(move |space| (name.clone(), config.clone(), space))
    })
}

/// Added to a fine class: the item is of a class with the same labels above, but its own is not known. With one level
/// all classes are known.
const UNKNOWN_FINE: u32 = 64;

/// Labels at `levels` levels for the fine classes 0 … 3; each coarser level halves the number of classes.
fn labels(levels: usize, fine: &[u32]) -> Labels {
    let row = |&class: &u32| {
        let is_unknown = class >= UNKNOWN_FINE && levels > 1;
        (0..levels).rev().map(move |above| match above {
            0 if is_unknown => UNKNOWN,
            _ => (class % UNKNOWN_FINE) >> above.min(2),
        })
    };
    Labels::new(levels, fine.iter().flat_map(row).collect()).unwrap()
}

fn geometry(space: Space) -> Geometry {
    match space {
        Space::Cosine => Geometry::Cosine,
        Space::Poincare => Geometry::poincare(),
        Space::Binary => Geometry::Binary,
    }
}

/// The same loss, made small: HIER has few proxies, because all pairs of the default number take minutes, and few
/// neighbours, so that strangers exist. A memory is used from the first step on.
fn shrink(config: &LossConfig) -> LossConfig {
    let mut config = config.clone();
    match &mut config {
        LossConfig::Hier(hier) => (hier.proxies, hier.neighbours, hier.triplets) = (12, 3, 5),
        LossConfig::CrossBatchMemory(memory) => (memory.start, memory.size) = (0, 16),
        LossConfig::Sum(sum) => sum.terms.iter_mut().for_each(|term| term.loss = shrink(&term.loss)),
        _ => {}
    }
    config
}

/// The loss after a first step, so that a memory is not empty.
fn loss(config: &LossConfig, levels: usize, space: Space, device: &Device) -> Loss {
    let classes = labels(levels, &[0, 1, 2, 3]);
    let geometry = geometry(space);
    let context = LossContext::new(&classes, DIMENSION, &geometry, 1, device);
    let mut loss = shrink(config).init(&context).unwrap();
    let earlier = tensor(&rows(space, 20, 5), DType::F32, &device.clone().without_autodiff());
    loss.after_step(earlier, &labels(levels, &[3, 1, 0, 2, 1]));
    loss
}

/// Whether the items that queries are compared with have no gradient.
fn has_fixed_items(config: &LossConfig) -> bool {
    match config {
        LossConfig::CrossBatchMemory(_) => true,
        LossConfig::HapSurrogate(surrogate) => surrogate.stop_gradient,
        _ => false,
    }
}

/// Random rows of the space: of unit length, inside the ball, or normally distributed.
fn rows(space: Space, seed: u64, count: usize) -> Vec<f64> {
    let values = normal(&mut stream(seed, "test", &[]), count * DIMENSION, 1.0);
    let row = |(number, row): (usize, &[f32])| {
        let length = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let target = match space {
            Space::Cosine => 1.0,
            Space::Poincare => 0.8 + 0.1 * (number % 9) as f64,
            Space::Binary => length,
        };
        row.iter().map(move |&x| f64::from(x) * target / length).collect::<Vec<_>>()
    };
    values.chunks(DIMENSION).enumerate().flat_map(row).collect()
}

fn tensor(values: &[f64], dtype: DType, device: &Device) -> Tensor<2> {
    let shape = [values.len() / DIMENSION, DIMENSION];
    Tensor::from_data(TensorData::new(values.to_vec(), shape), (device, dtype))
}

fn value(loss: &Loss, labels: &Labels, values: &[f64], device: &Device) -> f64 {
    number(&loss.forward(&Batch::new(tensor(values, DType::F64, device), labels)))
}

fn number(value: &Tensor<1>) -> f64 {
    value.to_data().convert::<f64>().try_to_vec::<f64>().unwrap()[0]
}

/// The gradient with respect to a tensor; 0 if the loss does not depend on it.
fn slopes<const D: usize>(tensor: &Tensor<D>, gradients: &Gradients) -> Vec<f64> {
    let gradient = tensor.grad(gradients).unwrap_or_else(|| tensor.zeros_like().without_autodiff());
    gradient.into_data().convert::<f64>().try_to_vec().unwrap()
}

/// Value and gradient, in this precision.
fn backward(loss: &Loss, labels: &Labels, values: &[f64], dtype: DType, device: &Device) -> (f64, Vec<f64>) {
    let embeddings = tensor(values, dtype, device).require_grad();
    let value = loss.forward(&Batch::new(embeddings.clone(), labels));
    let gradients = value.backward();
    (number(&value), slopes(&embeddings, &gradients))
}

/// Items with their fine classes and embeddings.
#[derive(Clone)]
struct Items {
    fine: Vec<u32>,
    values: Vec<f64>,
}

impl Items {
    fn new(fine: &[u32], values: Vec<f64>) -> Self {
        Self { fine: fine.to_vec(), values }
    }

    /// The same items with one value changed.
    fn moved(&self, place: usize, shift: f64) -> Self {
        let mut moved = self.clone();
        moved.values[place] += shift;
        moved
    }
}

/// A batch, and the items that it is compared with if those are not the batch itself.
struct Trial {
    name: String,
    batch: Items,
    reference: Option<Items>,
}

impl Trial {
    fn new(name: &str, fine: &[u32], values: Vec<f64>) -> Self {
        Self { name: name.to_owned(), batch: Items::new(fine, values), reference: None }
    }
}

/// Random batches, and one that is compared with other items.
fn random_trials(space: Space) -> Vec<Trial> {
    let fine = [0, 0, 1, 1, 2, 2, 3, 3, 3];
    let seed = |seed: u64| Trial::new(&format!("seed {seed}"), &fine, rows(space, seed, fine.len()));
    let mut trials: Vec<Trial> = (0..3).map(seed).collect();
    let unknown = [0, 0, UNKNOWN_FINE, 1, 1, UNKNOWN_FINE + 2, 3, UNKNOWN_FINE + 3, 2];
    trials.push(Trial::new("some classes unknown", &unknown, rows(space, 6, unknown.len())));
    trials.push(Trial {
        reference: Some(Items::new(&[2, 0, UNKNOWN_FINE, 1, 0, 2, UNKNOWN_FINE + 2], rows(space, 5, 7))),
        ..Trial::new(
            "some classes unknown, against other items",
            &[0, UNKNOWN_FINE, 1, 2, 3],
            rows(space, 4, 5),
        )
    });
    // No item is of class 3.
    let reference = Items::new(&[2, 0, 1, 1, 0, 2, 2], rows(space, 5, 7));
    trials.push(Trial {
        reference: Some(reference),
        ..Trial::new("against other items", &[0, 1, 1, 2, 3], rows(space, 4, 5))
    });
    trials
}

/// Batches without positives or without negatives for some queries. No two rows are equal.
fn sparse_trials(space: Space) -> [Trial; 6] {
    [
        Trial::new("no class known", &[UNKNOWN_FINE, UNKNOWN_FINE, UNKNOWN_FINE + 3], rows(space, 7, 3)),
        Trial::new("every class alone", &[0, 1, 2, 3], rows(space, 7, 4)),
        Trial::new("one class", &[2; 4], rows(space, 7, 4)),
        Trial::new("one class alone among others", &[0, 0, 0, 3], rows(space, 7, 4)),
        Trial::new("one item", &[1], rows(space, 8, 1)),
        Trial::new("two items of different branches", &[0, 2], rows(space, 10, 2)),
    ]
}

/// Compares every gradient of the loss with central differences.
fn check(place: &str, config: &LossConfig, loss: &Loss, levels: usize, trial: &Trial, device: &Device) {
    let fixed_items = has_fixed_items(config);
    let batch_labels = labels(levels, &trial.batch.fine);
    let item_labels = trial.reference.as_ref().map(|items| labels(levels, &items.fine));
    let place =
        |what: &str, i: usize| format!("{place}, {levels} levels, {}, number {i} of {what}", trial.name);

    let given = |items: &Items| tensor(&items.values, DType::F64, device);
    let embeddings = given(&trial.batch).require_grad();
    let reference = trial.reference.as_ref().map(|items| given(items).require_grad());
    let mut batch = Batch::new(embeddings.clone(), &batch_labels);
    if let (Some(embeddings), Some(labels)) = (&reference, &item_labels) {
        batch = batch.with_reference(Reference { embeddings: embeddings.clone(), labels, own: None });
    }
    let gradients = loss.forward(&batch).backward();

    let at = |loss: &Loss, moved: &Items, items: Option<&Items>| {
        let mut batch = Batch::new(given(moved), &batch_labels);
        if let (Some(items), Some(labels)) = (items, &item_labels) {
            batch = batch.with_reference(Reference { embeddings: given(items), labels, own: None });
        } else if fixed_items {
            let embeddings = given(&trial.batch);
            batch = batch.with_reference(Reference { embeddings, labels: &batch_labels, own: Some(0) });
        }
        number(&loss.forward(&batch))
    };
    let compare = |what: &str, got: &[f64], i: usize, at: &dyn Fn(f64) -> f64| {
        let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
        let error = (got[i] - expected).abs();
        assert!(
            error < 1e-5 * (1.0 + expected.abs()),
            "{}: the gradient is {}, central differences give {expected}",
            place(what, i),
            got[i]
        );
    };

    let got = slopes(&embeddings, &gradients);
    for i in 0..got.len() {
        compare("the batch", &got, i, &|shift| {
            at(loss, &trial.batch.moved(i, shift), trial.reference.as_ref())
        });
    }
    if let (Some(reference), Some(items), false) = (&reference, &trial.reference, fixed_items) {
        let got = slopes(reference, &gradients);
        for i in 0..got.len() {
            compare("the items", &got, i, &|shift| at(loss, &trial.batch, Some(&items.moved(i, shift))));
        }
    }
    for (parameter, got) in learned(loss, &gradients) {
        for i in spread(got.len()) {
            compare("a parameter", &got, i, &|shift| {
                at(&with_moved(loss, parameter, i, shift), &trial.batch, trial.reference.as_ref())
            });
        }
    }
}

/// Up to `MOVED` indices below `count`, evenly spread.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let some = count.min(MOVED);
    (0..some).map(move |i| i * count / some)
}

/// The trained parameters of a loss, each with its gradient.
fn learned(loss: &Loss, gradients: &Gradients) -> Vec<(ParamId, Vec<f64>)> {
    struct Learned<'a>(&'a Gradients, Vec<(ParamId, Vec<f64>)>);
    impl ModuleVisitor for Learned<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if param.is_require_grad() {
                self.1.push((param.id, slopes(&param.val(), self.0)));
            }
        }
    }
    let mut learned = Learned(gradients, Vec::new());
    loss.visit(&mut learned);
    learned.1
}

/// The same loss with one value of one parameter changed.
fn with_moved(loss: &Loss, parameter: ParamId, place: usize, shift: f64) -> Loss {
    struct Move(ParamId, usize, f64);
    impl ModuleMapper for Move {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            if param.id != self.0 {
                return param;
            }
            param.map(|tensor| {
                let (device, shape) = (tensor.device(), tensor.dims());
                let mut values = tensor.into_data().try_to_vec::<f64>().unwrap();
                values[self.1] += self.2;
                Tensor::from_data(TensorData::new(values, shape), (&device, DType::F64)).require_grad()
            })
        }
    }
    loss.clone().map(&mut Move(parameter, place, shift))
}

#[test]
fn gradients_agree_with_central_differences() {
    let device = Device::flex().autodiff();
    for (name, config, space) in cases().filter(|(name, ..)| !BY_RULE.contains(&name.as_str())) {
        let loss = in_f64(loss(&config, 2, space, &device));
        for trial in random_trials(space) {
            check(&format!("{name}, {space:?}"), &config, &loss, 2, &trial, &device);
        }
    }
}

#[test]
fn gradients_agree_with_central_differences_on_sparse_batches() {
    let device = Device::flex().autodiff();
    for (name, config, space) in cases().filter(|(name, ..)| !BY_RULE.contains(&name.as_str())) {
        for levels in [1, 2, 3] {
            let loss = in_f64(loss(&config, levels, space, &device));
            for trial in sparse_trials(space) {
                check(&format!("{name}, {space:?}"), &config, &loss, levels, &trial, &device);
            }
        }
    }
}

#[test]
fn the_gradient_of_a_sum_is_that_of_its_parts() {
    // The sum with only its HIER terms, or only its others. Every term draws the same proxies as in the whole.
    let terms = |whole: &LossConfig, hier: bool| {
        let LossConfig::Sum(mut sum) = whole.clone() else { panic!("it is a sum") };
        let excluded = |term: &&mut Term| matches!(term.loss, LossConfig::Hier(_)) != hier;
        sum.terms.iter_mut().filter(excluded).for_each(|term| term.weight = 0.0);
        LossConfig::Sum(sum)
    };
    let named = |name: &str| LossConfig::named(name).unwrap();
    let both = named("cross_batch_memory");
    let LossConfig::CrossBatchMemory(mut memory) = both.clone() else { panic!("it has a memory") };
    let weight = std::mem::take(&mut memory.batch_weight);
    let (batch_loss, memory_loss) = (*memory.loss.clone(), LossConfig::CrossBatchMemory(memory));
    let mut sums = vec![(both, Space::Cosine, [(1.0, memory_loss), (weight, batch_loss)])];
    for name in
        ["hier_multi_similarity", "hier_multi_similarity_text", "hier_proxy_anchor", "hier_proxy_anchor_text"]
    {
        let whole = named(name);
        let parts = [true, false].map(|hier| (1.0, terms(&whole, hier)));
        sums.push((whole, Space::Poincare, parts));
    }

    let device = Device::flex().autodiff();
    for (whole, space, parts) in sums {
        let labels = labels(2, &[0, 0, 1, 1, 2, 2, 3, 3, 3]);
        let values = rows(space, 0, labels.len());
        let gradient = |config: &LossConfig| {
            let loss = in_f64(loss(config, 2, space, &device));
            backward(&loss, &labels, &values, DType::F64, &device).1
        };
        let part_gradients = parts.map(|(weight, part)| {
            let gradient = gradient(&part);
            assert!(gradient.iter().any(|&slope| slope != 0.0), "{part:?}");
            gradient.into_iter().map(|slope| weight * slope).collect::<Vec<_>>()
        });
        for (i, got) in gradient(&whole).into_iter().enumerate() {
            let expected = part_gradients[0][i] + part_gradients[1][i];
            assert!((got - expected).abs() < 1e-12, "{whole:?}, number {i}: {got} is not {expected}");
        }
    }
}

#[test]
fn the_other_terms_of_sums_with_hier_agree_with_central_differences() {
    let device = Device::flex().autodiff();
    for name in ["hier_multi_similarity", "hier_proxy_anchor"] {
        let LossConfig::Sum(mut sum) = LossConfig::named(name).unwrap() else { panic!("it is a sum") };
        sum.terms.retain(|term| !matches!(term.loss, LossConfig::Hier(_)));
        let config = LossConfig::Sum(sum);
        let loss = in_f64(loss(&config, 2, Space::Poincare, &device));
        for trial in random_trials(Space::Poincare) {
            check(name, &config, &loss, 2, &trial, &device);
        }
    }
}

#[test]
fn degenerate_batches_have_a_finite_loss_and_gradient() {
    let device = Device::flex().autodiff();
    for (name, config, space) in cases() {
        let mut trials = Vec::from(sparse_trials(space));
        trials.extend([
            Trial::new("duplicates", &[0, 0, 1, 1], rows(space, 9, 1).repeat(4)),
            Trial::new("ties", &[0, 0, 1, 1, 2, 3], rows(space, 9, 2).repeat(3)),
            Trial::new("zeros", &[0, 0, 1, 3], vec![0.0; 4 * DIMENSION]),
        ]);
        for levels in [1, 2, 3] {
            let single = loss(&config, levels, space, &device);
            let double = in_f64(single.clone());
            for Trial { name: batch, batch: Items { fine, values }, .. } in &trials {
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
    // 300 × 300 × 300 elements are several blocks. The mean over two halves of the queries is the whole loss.
    let device = Device::flex().autodiff();
    let labels = labels(2, &(0..300).map(|i| i % 4).collect::<Vec<_>>());
    let loss = loss(&LossConfig::named("hap_surrogate").unwrap(), 2, Space::Cosine, &device);
    let values = rows(Space::Cosine, 3, 300);
    let whole = value(&loss, &labels, &values, &device);
    let items = tensor(&values, DType::F64, &device);
    let halves: f64 = [0..150, 150..300]
        .into_iter()
        .map(|rows: std::ops::Range<usize>| {
            let half_labels = labels.select(&rows.clone().collect::<Vec<_>>());
            let reference = Reference { embeddings: items.clone(), labels: &labels, own: Some(rows.start) };
            let batch =
                Batch::new(items.clone().slice([rows, 0..DIMENSION]), &half_labels).with_reference(reference);
            loss.forward(&batch).into_data().try_to_vec::<f64>().unwrap()[0] / 2.0
        })
        .sum();
    assert!((whole - halves).abs() < 1e-12, "{whole} is not {halves}");
}

/// The same loss with all parameters in f64.
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

/// All items of the batch may be of one class with the unknown item, so that no pair with it is decided. Losses that are
/// summed over the levels use it at the coarser ones, and a draw for each pair depends on the number of items.
#[test]
fn an_item_whose_pairs_are_not_decided_might_as_well_not_be_there() {
    let device = Device::flex().autodiff();
    let other = ["levels", "sum_", "blackbox_ap_published", "distance_weighted"];
    for (name, config, space) in cases().filter(|(name, ..)| !other.iter().any(|other| name.contains(other)))
    {
        let loss = in_f64(loss(&config, 3, space, &device));
        let (values, queries) = (rows(space, 3, 7), labels(3, &[0, 1, 0]));
        let value = |fine: &[u32], values: &[f64]| {
            let (items, batch) = (labels(3, fine), tensor(&rows(space, 4, 3), DType::F64, &device));
            let embeddings = tensor(values, DType::F64, &device).require_grad();
            let reference = Reference { embeddings: embeddings.clone(), labels: &items, own: None };
            let value = loss.forward(&Batch::new(batch.require_grad(), &queries).with_reference(reference));
            (number(&value), slopes(&embeddings, &value.backward()))
        };
        let unknown = 3;
        let (with, slopes) = value(&[0, 2, 1, UNKNOWN_FINE, 1, 3, 0], &values);
        let other: Vec<f64> = [&values[..unknown * DIMENSION], &values[(unknown + 1) * DIMENSION..]].concat();
        let (without, _) = value(&[0, 2, 1, 1, 3, 0], &other);
        assert!((with - without).abs() < 1e-9, "{name}: {with} with it, {without} without");
        assert!(slopes[unknown * DIMENSION..][..DIMENSION].iter().all(|&slope| slope == 0.0), "{name}");
    }
}

/// An item of unknown species that shares no genus with another one is decided to differ from all of them, as if it were
/// the only one of a species.
#[test]
fn an_item_whose_pairs_are_all_decided_is_as_one_of_a_species_of_its_own() {
    let device = Device::flex().autodiff();
    let pairs = [
        "contrastive",
        "pair",
        "dpsh",
        "dtsh",
        "triplet_margin",
        "multi_similarity",
        "fast_ap",
        "calibration",
    ];
    for name in pairs {
        let config = LossConfig::named(name).unwrap();
        let space = config.entry().spaces[0];
        let loss = in_f64(loss(&config, 3, space, &device));
        let values = rows(space, 9, 5);
        let at = |fine: &[u32]| value(&loss, &labels(3, fine), &values, &device);
        let (unknown, known) = (at(&[0, 1, 0, 1, UNKNOWN_FINE + 3]), at(&[0, 1, 0, 1, 3]));
        assert!((unknown - known).abs() < 1e-12, "{name}: {unknown} {known}");
    }
}

#[test]
fn proxies_of_known_levels_learn_from_items_that_are_known_there_alone() {
    let device = Device::flex().autodiff();
    let config = LossConfig::named("sum_norm_softmax").unwrap();
    let loss = in_f64(loss(&config, 2, Space::Cosine, &device));
    let embeddings = tensor(&rows(Space::Cosine, 2, 3), DType::F64, &device);
    let labels = labels(2, &[UNKNOWN_FINE, UNKNOWN_FINE + 2, UNKNOWN_FINE + 3]);
    let gradients = loss.forward(&Batch::new(embeddings, &labels)).backward();
    let learns: Vec<(usize, bool)> = learned(&loss, &gradients)
        .into_iter()
        .map(|(_, slopes)| (slopes.len() / DIMENSION, slopes.iter().any(|&slope| slope != 0.0)))
        .collect();
    assert_eq!(learns, [(2, true), (4, false)], "two genera learn, four species do not");
}
