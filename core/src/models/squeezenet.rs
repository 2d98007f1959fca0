//! SqueezeNet 1.1: a convolution and eight *fire* modules (Iandola et al., *SqueezeNet*, 2016), in torchvision's
//! layout, without its classifier.
//!
//! A fire module reduces the channels of its input by 1×1 convolutions and expands them by 1×1 and 3×3 convolutions
//! side by side. Weights are loaded by torchvision's names, `features.0.weight` … `features.12.expand3x3.bias`, from a
//! safetensors file of any float type.

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::store::{ApplyError, FloatCastAdapter, ModuleSnapshot, SafetensorsStore};
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{DType, Device, Tensor, activation::relu};
use rand_chacha::ChaCha8Rng;

use super::convolution;
use crate::{Error, Kind, Result};

/// The input, squeeze and expand channels of the fire modules, with their index in torchvision's `features`. A
/// max-pooling comes before the first, third and fifth.
const FIRES: [(usize, [usize; 3]); 8] = [
    (3, [64, 16, 64]),
    (4, [128, 16, 64]),
    (6, [128, 32, 128]),
    (7, [256, 32, 128]),
    (9, [256, 48, 192]),
    (10, [384, 48, 192]),
    (11, [384, 64, 256]),
    (12, [512, 64, 256]),
];

/// See the [module](self).
#[derive(Module, Debug)]
pub struct Squeezenet {
    stem: Conv2d,
    fires: Vec<Fire>,
}

#[derive(Module, Debug)]
struct Fire {
    squeeze: Conv2d,
    expand1x1: Conv2d,
    expand3x3: Conv2d,
}

impl Squeezenet {
    /// The network with random weights.
    pub fn new(rng: &mut ChaCha8Rng, device: &Device) -> Self {
        let stem = convolution([3, 64], 3, 2, 0, true, rng, device);
        let fires = FIRES
            .map(|(_, [input, squeezed, expanded])| Fire {
                squeeze: convolution([input, squeezed], 1, 1, 0, true, rng, device),
                expand1x1: convolution([squeezed, expanded], 1, 1, 0, true, rng, device),
                expand3x3: convolution([squeezed, expanded], 3, 1, 1, true, rng, device),
            })
            .to_vec();
        Self { stem, fires }
    }

    /// [B, 3, H, W] → [B, 512, ~H/16, ~W/16].
    pub fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let mut x = relu(self.stem.forward(images));
        for (i, fire) in self.fires.iter().enumerate() {
            if matches!(i, 0 | 2 | 4) {
                x = halve(x);
            }
            x = fire.forward(x);
        }
        x
    }

    /// Replaces the weights by those of a safetensors file, from its bytes. The classifier of an ImageNet model is
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`Kind::Weights`] for a file that is not safetensors, or, listing them all, for tensors that are missing,
    /// unknown, of the wrong shape or not finite.
    pub fn load_safetensors(&mut self, bytes: Vec<u8>) -> Result<()> {
        let mut store = SafetensorsStore::from_bytes(Some(bytes))
            .with_key_remapping(r"^features\.0\.", "stem.")
            .with_from_adapter(FloatCastAdapter::to(DType::F32))
            .map_indices_contiguous(false)
            .allow_partial(true)
            .validate(false);
        for (i, (number, _)) in FIRES.iter().enumerate() {
            store = store.with_key_remapping(format!(r"^features\.{number}\."), format!("fires.{i}."));
        }
        let advice = "give the weights of torchvision's squeezenet1_1 as a safetensors file";
        let result = self.load_from(&mut store).map_err(|error| {
            Error::new(Kind::Weights, format!("the weights cannot be read: {error}"), advice)
        })?;
        let missing: Vec<_> = result.missing.iter().map(|(path, _)| torchvision(path)).collect();
        let unknown: Vec<_> = result
            .unused
            .iter()
            .filter(|path| !path.starts_with("classifier."))
            .map(|path| torchvision(path))
            .collect();
        let wrong: Vec<_> = result.errors.iter().map(misfit).collect();
        let faults: Vec<String> =
            [("missing", missing), ("unknown", unknown), ("of the wrong shape or type", wrong)]
                .into_iter()
                .filter(|(_, names)| !names.is_empty())
                .map(|(what, names)| format!("{what}: {}", names.join(", ")))
                .collect();
        if !faults.is_empty() {
            return Err(Error::new(
                Kind::Weights,
                format!("the weights do not fit SqueezeNet 1.1 ({})", faults.join("; ")),
                advice,
            ));
        }
        self.check_finite()
    }

    /// Refuses weights that are infinite or no numbers, naming them as torchvision does.
    fn check_finite(&self) -> Result<()> {
        let fires = FIRES.iter().zip(&self.fires).flat_map(|((number, _), fire)| {
            let layers =
                [("squeeze", &fire.squeeze), ("expand1x1", &fire.expand1x1), ("expand3x3", &fire.expand3x3)];
            layers.map(|(name, layer)| (format!("features.{number}.{name}"), layer))
        });
        for (name, layer) in [("features.0".to_owned(), &self.stem)].into_iter().chain(fires) {
            let bias = layer.bias.as_ref().map(|bias| bias.val().is_finite().all());
            let weight = layer.weight.val().is_finite().all();
            let finite = bias.into_iter().chain([weight]).all(|all| all.into_scalar::<bool>());
            if !finite {
                return Err(Error::new(
                    Kind::Weights,
                    format!("the weights of {name} are not all finite numbers"),
                    "the file is damaged; get it again",
                ));
            }
        }
        Ok(())
    }
}

/// The name of a weight in a file of torchvision.
fn torchvision(path: &str) -> String {
    if let Some(rest) = path.strip_prefix("stem.") {
        return format!("features.0.{rest}");
    }
    let fire = path.strip_prefix("fires.").and_then(|rest| rest.split_once('.'));
    match fire.and_then(|(i, rest)| Some((FIRES.get(i.parse::<usize>().ok()?)?, rest))) {
        Some(((number, _), rest)) => format!("features.{number}.{rest}"),
        None => path.to_owned(),
    }
}

/// Describes a tensor of a file that does not fit.
fn misfit(error: &ApplyError) -> String {
    match error {
        ApplyError::ShapeMismatch { path, expected, found } => {
            format!("{} is {:?} instead of {:?}", torchvision(path), found.as_slice(), expected.as_slice())
        }
        ApplyError::DTypeMismatch { path, expected, found } => {
            format!("{} is {found:?} instead of {expected:?}", torchvision(path))
        }
        ApplyError::AdapterError { path, message } | ApplyError::LoadError { path, message } => {
            format!("{}: {message}", torchvision(path))
        }
    }
}

impl Fire {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let squeezed = relu(self.squeeze.forward(x));
        let pointwise = relu(self.expand1x1.forward(squeezed.clone()));
        let spatial = relu(self.expand3x3.forward(squeezed));
        Tensor::cat(vec![pointwise, spatial], 1)
    }
}

/// 3×3 max-pooling of stride 2. A last window that extends beyond the edge counts, as in torchvision.
fn halve(x: Tensor<4>) -> Tensor<4> {
    max_pool2d(x, MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_ceil_mode(true))
}
