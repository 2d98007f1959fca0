use burn::tensor::{Device, Distribution};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::*;
use crate::models::catalogue::{Backbone, BackboneConfig};
use crate::models::fixtures;

/// The form of a backbone with few features and blocks.
fn small(name: &str, device: &Device) -> Form {
    let backbone = BackboneConfig::named(name).unwrap().absent(device).unwrap();
    let form = match backbone {
        Backbone::VitB16(network)
        | Backbone::Dinov2B14(network)
        | Backbone::Dinov2B14Reg4(network)
        | Backbone::ClipB16(network)
        | Backbone::Bioclip2(network)
        | Backbone::Siglip2B16(network)
        | Backbone::Dinov3S16(network)
        | Backbone::Dinov3S16Plus(network) => network.form,
        other => panic!("{} has no fixture", other.entry().name),
    };
    let positions = match form.positions {
        Positions::Learned { resampling, .. } => Positions::Learned { grid: 4, resampling },
        rotary => rotary,
    };
    let projection = form.projection.map(|_| 20);
    Form { features: 48, blocks: 2, heads: 4, hidden: 96, positions, projection, ..form }
}

#[test]
fn features_and_gradients_are_those_of_the_published_implementations() {
    let device = Device::flex().autodiff();
    fixtures::check(include_str!("published.json"), |name, initial| {
        VisionTransformer::new(&small(name, &device), initial).unwrap()
    });
}

#[test]
fn the_keys_of_dinov3_have_no_bias() {
    let device = Device::flex();
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let form = small("dinov3_s16", &device);
    let mut network = VisionTransformer::new(&form, &mut Initial::drawn(&mut rng, &device)).unwrap();
    let images = Tensor::<4>::random([1, 3, 32, 32], Distribution::Default, &device);
    let mut outputs = |queries: f32, keys: f32, values: f32| {
        let bias = [queries, keys, values].map(|bias| Tensor::<1>::full([form.features], bias, &device));
        network.blocks[0].set_bias_of_projections(Tensor::cat(bias.to_vec(), 0));
        network.outputs(images.clone(), None).maps.into_data().try_to_vec::<f32>().unwrap()
    };
    let without = outputs(0.0, 0.0, 0.0);
    assert_eq!(outputs(0.0, 3.0, 0.0), without);
    assert_ne!(outputs(3.0, 0.0, 0.0), without);
    assert_ne!(outputs(0.0, 0.0, 3.0), without);
}
