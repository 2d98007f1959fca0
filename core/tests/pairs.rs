//! The losses of pairs and triplets with every miner, and against a reference set. Their equations are in `paper/`.

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

fn gradient(value: &Tensor<1>, rows: &Tensor<2>) -> Vec<f64> {
    rows.grad(&value.backward()).unwrap().into_data().try_to_vec().unwrap()
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
fn where_nothing_is_mined_the_loss_is_zero_and_so_is_its_gradient() {
    for (name, loss) in losses() {
        if name.contains(r#""kind":"all""#) && name.contains(r#""kind":"multi_similarity""#) {
            // This loss has no margin: every negative counts.
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
    let miner = triplet.miner.checked().unwrap();
    for step in 0..3 {
        let embeddings = rows(1, labels.len());
        let batch = Batch::new(embeddings.clone(), &labels).with_draws(Draws { seed: 2, step });
        let drawn = batch.mine(&miner);
        assert_ne!(drawn, batch.clone().with_draws(Draws { seed: 3, step }).mine(&miner));
        assert!(matches!(&drawn, Mined::Triplets(triplets) if !triplets.is_empty()));
        for (with_draws, with_fixed) in [
            (margin.forward(&batch), margin.forward_mined(&batch, &drawn)),
            (triplet_loss.forward(&batch), triplet_loss.forward_mined(&batch, &drawn)),
        ] {
            assert_eq!(number(&with_draws), number(&with_fixed));
            assert_eq!(gradient(&with_draws, &embeddings), gradient(&with_fixed, &embeddings));
        }
    }
}
