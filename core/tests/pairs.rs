//! The losses of pairs and triplets with every miner, and against another set than the batch.

use akin_core::geometry::Geometry;
use akin_core::losses::{
    Batch, BuildLoss, Draws, Loss, LossConfig, LossContext, MarginConfig, Objective, Reference,
    TripletMarginConfig,
};
use akin_core::miners::{CATALOGUE, Mined};
use akin_core::random::{normal, stream};
use akin_core::taxonomy::Labels;
use burn::tensor::{DType, Device, Tensor, TensorData};
use serde_json::json;

const DIMENSION: usize = 8;

fn device() -> Device {
    Device::flex().autodiff()
}

/// Every loss of pairs or triplets with every miner.
fn losses() -> impl Iterator<Item = (String, Loss)> {
    let forms = [
        json!({ "kind": "contrastive" }),
        json!({ "kind": "contrastive", "measure": "cosine", "positive_margin": 0.9, "negative_margin": 0.1 }),
        json!({ "kind": "margin" }),
        json!({ "kind": "multi_similarity" }),
        json!({ "kind": "triplet_margin" }),
        json!({ "kind": "triplet_margin", "swap": true, "smooth": true }),
    ];
    forms.into_iter().flat_map(|form| {
        CATALOGUE.iter().map(move |miner| {
            let mut form = form.clone();
            form["miner"] = json!({ "kind": miner.name });
            (form.to_string(), loss(form))
        })
    })
}

fn loss(config: serde_json::Value) -> Loss {
    let config: LossConfig = serde_json::from_value(config).unwrap();
    config.init(&context(&labels(&[0, 1, 2, 3]), &device())).unwrap()
}

fn context<'a>(classes: &'a Labels, device: &'a Device) -> LossContext<'a> {
    LossContext::new(classes, DIMENSION, &Geometry::Cosine, 1, device)
}

fn labels(fine: &[u32]) -> Labels {
    Labels::new(1, fine.to_vec()).unwrap()
}

fn rows(seed: u64, count: usize) -> Tensor<2> {
    let values = normal(&mut stream(seed, "test", &[]), count * DIMENSION, 1.0);
    Tensor::from_data(TensorData::new(values, [count, DIMENSION]), (&device(), DType::F64)).require_grad()
}

fn number(value: &Tensor<1>) -> f64 {
    value.to_data().try_to_vec::<f64>().unwrap()[0]
}

fn numbers(values: &Tensor<2>) -> Vec<f64> {
    values.to_data().try_to_vec().unwrap()
}

fn gradient(value: &Tensor<1>, of: &Tensor<2>) -> Vec<f64> {
    of.grad(&value.backward()).unwrap().into_data().try_to_vec().unwrap()
}

#[test]
fn a_reference_that_is_the_batch_itself_changes_nothing() {
    let labels = labels(&[0, 0, 1, 1, 1, 2, 2, 3]);
    for (name, loss) in losses() {
        for seed in 0..3 {
            let embeddings = rows(seed, labels.len());
            let batch = Batch::new(embeddings.clone(), &labels).with_draws(Draws { seed, step: 5 });
            let itself = Reference { embeddings: embeddings.clone(), labels: &labels, own: Some(0) };
            let plain = loss.forward(&batch);
            let with_itself = loss.forward(&batch.with_reference(itself));
            assert_eq!(number(&plain), number(&with_itself), "{name}");
            assert_eq!(gradient(&plain, &embeddings), gradient(&with_itself, &embeddings), "{name}");
        }
    }
}

#[test]
fn a_reference_is_compared_with_as_the_formulas_say() {
    let (of_queries, of_items) = ([0, 0, 1, 2], [2, 1, 3, 0, 0, 1, 2]);
    let all = json!({ "kind": "all" });
    for own in [None, Some(3)] {
        let items = rows(4, of_items.len());
        let queries = items.clone().slice([3..7, 0..DIMENSION]);
        let value = |config: serde_json::Value| {
            let labels = [labels(&of_queries), labels(&of_items)];
            let reference = Reference { embeddings: items.clone(), labels: &labels[1], own };
            number(&loss(config).forward(&Batch::new(queries.clone(), &labels[0]).with_reference(reference)))
        };
        let (queries, items): (&[f64], &[f64]) = (&numbers(&queries), &numbers(&items));
        let row = |rows: &[f64], i: usize| rows[i * DIMENSION..][..DIMENSION].to_vec();
        let to_item = |query: usize, item: usize| distance(&row(queries, query), &row(items, item));
        let partners = |query: usize, of_class: bool| {
            (0..of_items.len()).filter(move |&item| {
                own.is_none_or(|own| own + query != item) && (of_queries[query] == of_items[item]) == of_class
            })
        };
        let pairs = |of_class: bool| (0..4).flat_map(move |q| partners(q, of_class).map(move |i| (q, i)));
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-7, "{value} {expected}");

        let too_far = |bound: f64| pairs(true).map(move |(q, p)| to_item(q, p) - bound);
        let too_near = |bound: f64| pairs(false).map(move |(q, n)| bound - to_item(q, n));
        let contrastive = json!({ "kind": "contrastive", "negative_margin": 1.5 });
        near(value(contrastive), mean_above_zero(too_far(0.0)) + mean_above_zero(too_near(1.5)));
        near(
            value(json!({ "kind": "margin", "miner": all })),
            mean_above_zero(too_far(1.2 - 0.2).chain(too_near(1.2 + 0.2))),
        );

        for swap in [false, true] {
            let violations = pairs(true).flat_map(|(query, positive)| {
                partners(query, false).map(move |negative| {
                    let between = distance(&row(items, positive), &row(items, negative));
                    let far = to_item(query, negative);
                    to_item(query, positive) - if swap { far.min(between) } else { far } + 0.2
                })
            });
            near(value(json!({ "kind": "triplet_margin", "swap": swap })), mean_above_zero(violations));
        }

        let cosine = |query: usize, item: usize| 1.0 - to_item(query, item).powi(2) / 2.0;
        let of_query = |query: usize| {
            let positives: f64 = partners(query, true).map(|p| (-2.0 * (cosine(query, p) - 1.0)).exp()).sum();
            let negatives: f64 =
                partners(query, false).map(|n| (50.0 * (cosine(query, n) - 1.0)).exp()).sum();
            positives.ln_1p() / 2.0 + negatives.ln_1p() / 50.0
        };
        near(
            value(json!({ "kind": "multi_similarity", "miner": all })),
            (0..4).map(of_query).sum::<f64>() / 4.0,
        );
    }
}

#[test]
fn where_nothing_is_mined_the_loss_is_zero_and_so_is_its_gradient() {
    for (name, loss) in losses() {
        if name.contains(r#""kind":"all""#) && name.contains(r#""kind":"multi_similarity""#) {
            // Its terms have no margin: every negative counts.
            continue;
        }
        // No query has a positive, and all negatives are at a right angle.
        let labels = labels(&[0, 1, 2, 3]);
        let apart: Vec<f64> =
            (0..4 * DIMENSION).map(|i| f64::from(u8::from(i % (DIMENSION + 1) == 0))).collect();
        let apart = TensorData::new(apart, [4, DIMENSION]);
        let embeddings = Tensor::<2>::from_data(apart, (&device(), DType::F64)).require_grad();
        let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
        assert_eq!(number(&value), 0.0, "{name}");
        assert_eq!(gradient(&value, &embeddings), [0.0; 4 * DIMENSION], "{name}");
    }
}

#[test]
fn items_that_coincide_are_at_distance_zero_without_a_gradient() {
    let labels = labels(&[0, 0, 0, 0]);
    for dtype in [DType::F32, DType::F64] {
        let embeddings = rows(1, 1).repeat_dim(0, 4).cast(dtype).detach().require_grad();
        let loss = loss(json!({ "kind": "contrastive" }));
        let value = loss.forward(&Batch::new(embeddings.clone(), &labels));
        let gradient = embeddings.grad(&value.backward()).unwrap();
        assert_eq!(value.into_data().convert::<f64>().try_to_vec::<f64>().unwrap(), [0.0]);
        assert_eq!(numbers(&gradient.cast(DType::F64)), [0.0; 4 * DIMENSION]);
    }
}

#[test]
fn drawn_triplets_are_held_fixed_in_the_gradient() {
    let labels = labels(&[0, 0, 0, 1, 1, 2, 2, 3, 3, 3]);
    let device = device();
    let context = context(&labels, &device);
    let mined = json!({ "kind": "distance_weighted_miner" });
    let triplet = TripletMarginConfig { miner: serde_json::from_value(mined).unwrap(), ..Default::default() };
    let margin = MarginConfig::default().init(&context).unwrap();
    let triplet_loss = triplet.init(&context).unwrap();
    for step in 0..3 {
        let embeddings = rows(1, labels.len());
        let batch = Batch::new(embeddings.clone(), &labels).with_draws(Draws { seed: 2, step });
        let drawn = batch.mine(&triplet.miner);
        assert_ne!(drawn, batch.clone().with_draws(Draws { seed: 3, step }).mine(&triplet.miner));
        assert!(matches!(&drawn, Mined::Triplets(triplets) if !triplets.is_empty()));
        for (of_draws, of_fixed) in [
            (margin.forward(&batch), margin.forward_mined(&batch, &drawn)),
            (triplet_loss.forward(&batch), triplet_loss.forward_mined(&batch, &drawn)),
        ] {
            assert_eq!(number(&of_draws), number(&of_fixed));
            assert_eq!(gradient(&of_draws, &embeddings), gradient(&of_fixed, &embeddings));
        }
    }
}

/// The distance of two vectors brought to unit length.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let length = |a: &[f64]| a.iter().map(|x| x * x).sum::<f64>().sqrt();
    let (of_a, of_b) = (length(a), length(b));
    a.iter().zip(b).map(|(a, b)| (a / of_a - b / of_b).powi(2)).sum::<f64>().sqrt()
}

fn mean_above_zero(terms: impl Iterator<Item = f64>) -> f64 {
    let active: Vec<f64> = terms.filter(|&term| term > 0.0).collect();
    active.iter().sum::<f64>() / active.len().max(1) as f64
}
