//! Ten steps of gradient descent have the losses that they have in torch.

use std::collections::BTreeMap;

use akin_core::models::BackboneConfig;
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::{Device, Tensor, TensorData};
use serde::Deserialize;

use super::fixture::{Fixture, formula};

/// What torch computed in double precision; see `fixtures.py`.
#[derive(Deserialize)]
struct Training {
    batch: usize,
    side: usize,
    /// The step of gradient descent.
    step: f64,
    losses: Vec<f64>,
}

/// The losses towards fixed features, with live batch normalisation, in single precision.
fn losses(name: &str, training: &Training) -> Vec<f64> {
    let device = Device::flex().autodiff();
    let fixture = Fixture { batch: training.batch, side: training.side, ..Fixture::read(name) };
    let mut backbone = fixture.backbone(name, &device);
    let mut optimizer = SgdConfig::new().init();
    let images = fixture.images(&device);
    let pooling = BackboneConfig::named(name).unwrap().pooling();
    let mut losses = Vec::new();
    for _ in &training.losses {
        let features = pooling.pool(backbone.outputs(images.clone()).unwrap());
        let [batch, count] = features.dims();
        let factors: Vec<f32> = formula("factors", batch * count).map(|x| x as f32).collect();
        let factors = Tensor::<2>::from_data(TensorData::new(factors, [batch, count]), &device);
        let loss = (features - factors).square().mean();
        losses.push(f64::from(loss.clone().into_scalar::<f32>()));
        let mut gradients = loss.backward();
        let gradients = GradientsParams::from_module(&mut gradients, &backbone);
        backbone = optimizer.step(training.step, backbone, gradients);
    }
    losses
}

#[test]
fn the_losses_of_ten_steps_are_those_of_torch() {
    let trainings: BTreeMap<String, Training> = serde_json::from_str(include_str!("training.json")).unwrap();
    for (name, training) in trainings {
        let losses = losses(&name, &training);
        for (i, (loss, expected)) in losses.iter().zip(&training.losses).enumerate() {
            let error = (loss - expected).abs() / expected;
            assert!(error < 1e-4, "{name}, step {i}: a loss of {loss} instead of {expected}");
        }
    }
}
