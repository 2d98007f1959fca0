use burn::tensor::Device;

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
