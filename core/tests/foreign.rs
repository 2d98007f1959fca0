//! An encoder whose backbone another engine runs.

#![cfg(all(feature = "tensor", feature = "image"))]

use std::sync::Arc;

use akin_core::Result;
use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::models::{BackboneConfig, ForeignNetwork, ForeignOutput, HeadConfig, Pooling};
use burn::tensor::{Device, Tensor};
use serde_json::json;

/// Computes the same of every image: an output of this shape, with the numbers 0, 1, 2, …
#[derive(Debug)]
struct Counts(&'static [usize]);

impl ForeignNetwork for Counts {
    fn run(&self, _: &[f32], [batch, ..]: [usize; 4]) -> Result<ForeignOutput> {
        let numbers = (0..self.0.iter().product()).map(|number: usize| number as f32);
        let values = (0..batch).flat_map(|_| numbers.clone()).collect();
        Ok(ForeignOutput { shape: [&[batch], self.0].concat(), values })
    }
}

fn config(backbone: serde_json::Value, pooling: Option<Pooling>, head: Option<HeadConfig>) -> EncoderConfig {
    let backbone: BackboneConfig = serde_json::from_value(backbone).unwrap();
    let preprocessing = Preprocessing::new(Normalisation::Imagenet, 8).unwrap();
    EncoderConfig { backbone, pooling, head, preprocessing }
}

fn encoder(prefix_tokens: usize, pooling: Option<Pooling>) -> Encoder {
    let backbone = json!({ "kind": "onnx", "path": "m.onnx", "features": 2, "prefix_tokens": prefix_tokens });
    config(backbone, pooling, None).init(0, &Device::flex()).unwrap()
}

fn images() -> Tensor<4> {
    Tensor::zeros([2, 3, 8, 8], &Device::flex())
}

fn features(encoder: Encoder, shape: &'static [usize]) -> Result<Vec<f32>> {
    let features = encoder.attach(Arc::new(Counts(shape))).features(images())?;
    assert_eq!(features.dims(), [2, 2]);
    Ok(features.into_data().try_to_vec::<f32>().unwrap()[..2].to_vec())
}

#[test]
fn vectors_tokens_and_maps_become_features() {
    assert_eq!(features(encoder(0, None), &[2]).unwrap(), [0.0, 1.0]);
    // Five tokens: the class token and four patches, [2, 3] … [8, 9].
    assert_eq!(features(encoder(1, None), &[5, 2]).unwrap(), [0.0, 1.0]);
    assert_eq!(features(encoder(1, Some(Pooling::Average)), &[5, 2]).unwrap(), [5.0, 6.0]);
    assert_eq!(features(encoder(2, Some(Pooling::Max)), &[5, 2]).unwrap(), [8.0, 9.0]);
    assert_eq!(features(encoder(0, Some(Pooling::Average)), &[2, 1, 3]).unwrap(), [1.0, 4.0]);
}

#[test]
fn outputs_of_another_size_are_refused() {
    for (shape, words) in [
        (&[3][..], "3 features instead of 2"),
        (&[1, 2], "none is left behind 1 prefix tokens"),
        (&[2, 1, 1, 1], "neither a vector, nor tokens, nor maps"),
        (&[0, 2], "not that many results"),
    ] {
        let error = features(encoder(1, None), shape).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn without_an_engine_there_are_no_features_but_a_head_embeds_them() {
    let head = HeadConfig {
        dimension: 3,
        layer_norm: false,
        geometry: Default::default(),
        initial_weights: Default::default(),
    };
    let known = json!({ "kind": "onnx", "path": "m.onnx", "features": 2 });
    let config_of = |backbone| config(backbone, None, Some(head.clone()));
    let encoder = config_of(known.clone()).init(0, &Device::flex()).unwrap();
    assert!(encoder.forward(images()).unwrap_err().message().contains("no engine runs it"));
    let embed = |encoder: &Encoder| -> Vec<f32> {
        encoder.embed_features(Tensor::ones([1, 2], &Device::flex())).into_data().try_to_vec().unwrap()
    };
    let loaded = config_of(known).load(encoder.to_bytes().unwrap(), &Device::flex()).unwrap();
    assert_eq!(embed(&loaded), embed(&encoder));

    let unknown = json!({ "kind": "onnx", "path": "m.onnx" });
    let error = config_of(unknown).init(0, &Device::flex()).unwrap_err();
    assert!(
        error.message().contains("the number of features of the ONNX file m.onnx is not known"),
        "{error}"
    );
}
