//! Weights: safetensors files of others, and the burnpack files of akin, which a bundle of others can hold.

#![no_main]

use std::sync::LazyLock;

use akin_core::encoder::{Encoder, EncoderConfig};
use akin_core::image::{Normalisation, Preprocessing};
use akin_core::models::{BackboneConfig, SmallResnetConfig, SqueezenetConfig};
use akin_fuzz::patched;
use burn::tensor::Device;
use libfuzzer_sys::fuzz_target;

fn encoder(backbone: BackboneConfig) -> Encoder {
    let preprocessing = Preprocessing::new(Normalisation::Imagenet, 64).expect("the side is in range");
    let config = EncoderConfig { preprocessing, backbone, pooling: None, head: None };
    config.init(0, &Device::flex()).expect("the config is right")
}

static SMALL: LazyLock<Encoder> =
    LazyLock::new(|| encoder(BackboneConfig::SmallResnet(SmallResnetConfig { width: 1 })));
static SMALL_WEIGHTS: LazyLock<Vec<u8>> = LazyLock::new(|| SMALL.to_bytes().expect("weights can be written"));
static SQUEEZENET: LazyLock<Encoder> =
    LazyLock::new(|| encoder(BackboneConfig::Squeezenet(SqueezenetConfig {})));

/// A safetensors file of one tensor of the right name and shape.
static ONE_TENSOR: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let header = r#"{"features.0.bias":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}}"#;
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 256]].concat()
});

fuzz_target!(|bytes: &[u8]| {
    for file in [bytes.to_vec(), patched(&ONE_TENSOR, bytes)] {
        let _ = SQUEEZENET.backbone.clone().load_pretrained(file);
    }
    for file in [bytes.to_vec(), patched(&SMALL_WEIGHTS, bytes)] {
        if let Ok(encoder) = SMALL.clone().with_weights(file) {
            let again = encoder.to_bytes().expect("weights can be written");
            SMALL.clone().with_weights(again).expect("and read again");
        }
    }
});
