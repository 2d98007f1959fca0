//! Small networks beside timm, transformers and open_clip: what `tests/peers/backbones.py` wrote.

use std::collections::BTreeMap;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use safetensors::{Dtype, tensor::TensorView};
use serde::Deserialize;

use super::catalogue::BACKBONES;
use super::drop_path::Branches;
use super::layers::Initial;
use super::pooling::Outputs;
use super::weight_file::WeightFile;
use super::weights::{self, Replaced};
use crate::digest::sha256;
use numbers::{Sample, formula, weight};

#[path = "../../tests/backbones/numbers.rs"]
mod numbers;

#[derive(Deserialize)]
struct Fixtures {
    networks: Vec<Fixture>,
}

#[derive(Deserialize)]
struct Fixture {
    backbone: String,
    names: String,
    weights: BTreeMap<String, Vec<usize>>,
    sizes: Vec<Size>,
}

#[derive(Deserialize)]
struct Size {
    side: usize,
    /// Whether the mean of the patches' tokens stands behind the pooled features.
    has_patches: bool,
    features: Sample,
    gradients: BTreeMap<String, Sample>,
}

/// The bytes of a file with weights by formula.
fn file(shapes: &BTreeMap<String, Vec<usize>>) -> Vec<u8> {
    let bytes = shapes.iter().map(|(name, shape)| {
        let bytes: Vec<u8> = weight(name, shape).iter().flat_map(|value| value.to_le_bytes()).collect();
        (name, shape, bytes)
    });
    let bytes: Vec<_> = bytes.collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| (*name, TensorView::new(Dtype::F32, shape.to_vec(), bytes).unwrap()));
    safetensors::serialize(views, None).unwrap()
}

struct Gradients<'a> {
    all: &'a burn::tensor::Gradients,
    found: Vec<Option<Vec<f32>>>,
}

impl burn::module::ModuleVisitor for Gradients<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let gradient = param.val().grad(self.all).map(|gradient| match D {
            // Files have the outputs of a linear layer first, as the fixture.
            2 => gradient.swap_dims(0, 1),
            _ => gradient,
        });
        self.found.push(gradient.map(|gradient| gradient.into_data().try_to_vec().unwrap()));
    }
}

/// Compares features and gradients of the networks that `make` makes with those of a file.
pub(super) fn check<N: Module + Branches>(text: &str, make: impl Fn(&str, &mut Initial) -> N) {
    let device = Device::flex().autodiff();
    let fixtures: Fixtures = serde_json::from_str(text).unwrap();
    for fixture in fixtures.networks {
        let Fixture { backbone: name, names, weights, sizes } = fixture;
        let entry = BACKBONES.iter().find(|entry| entry.name == name).unwrap();
        let published = WeightFile::parse(file(&weights)).unwrap().with_timm_names();
        let network = make(&name, &mut Initial::absent(&device));
        let Replaced { network, used, missing, wrong, .. } =
            weights::replace(network, &published, "", entry.published_name);
        assert!(missing.is_empty() && wrong.is_empty(), "{name} of {names}: {missing:?} {wrong:?}");
        assert_eq!(used.len(), published.tensors().len(), "{name} of {names}");
        for Size { side, has_patches, features, gradients } in sizes {
            let what = format!("{name} of {names} at {side}");
            let values: Vec<f32> = formula("images", 2 * 3 * side * side).map(|x| x as f32).collect();
            let images = Tensor::<4>::from_data(TensorData::new(values, [2, 3, side, side]), &device);
            let images = images.require_grad();
            let Outputs { maps, class_token } = network.outputs(images.clone(), None);
            let mut output = class_token.unwrap();
            if has_patches {
                let patches = maps.flatten::<3>(2, 3).mean_dim(2).squeeze_dim::<2>(2);
                output = Tensor::cat(vec![output, patches], 1);
            }
            features.check(&what, output.clone());
            let factors: Vec<f32> =
                formula("factors", output.shape().num_elements()).map(|x| x as f32).collect();
            let factors = Tensor::from_data(TensorData::new(factors, output.dims()), &device);
            let all = (output * factors).sum().backward();
            let mut found = Gradients { all: &all, found: vec![] };
            network.visit(&mut found);
            let listed = weights::list(&network, entry.published_name);
            for (weight, sample) in gradients {
                let what = format!("{what}: gradient of {weight}");
                if weight == "images" {
                    sample.check(&what, images.grad(&all).unwrap());
                    continue;
                }
                let place = listed.iter().position(|listed| listed.name == weight).expect(&what);
                let values = found.found[place].clone().expect(&what);
                sample.check(&what, Tensor::<1>::from_data(&values[..], &device.clone().without_autodiff()));
            }
        }
    }
}
