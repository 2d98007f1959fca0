//! The head: features → an embedding in the space of the model.
//!
//! x ↦ g(W · LayerNorm(x) + b), with LayerNorm without scale and shift, as in HAPPIER. g scales to unit length
//! ([`Geometry::Cosine`]), maps into the ball ([`Geometry::Poincare`]), or does nothing, because the signs are the code
//! ([`Geometry::Binary`]).

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::layers::Initial;
use crate::geometry::Geometry;
use crate::{Error, Kind, Result};

/// Settings of a [`Head`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HeadConfig {
    /// d, the dimension of an embedding, 1 … 4096.
    pub dimension: usize,
    /// Whether the features of each image are first scaled to mean 0 and variance 1. Default true.
    #[serde(default = "default_layer_norm")]
    pub layer_norm: bool,
    /// The space of the embedding. Default: unit vectors.
    #[serde(default)]
    pub geometry: Geometry,
    /// The weights that training begins with. Default `uniform`.
    #[serde(default)]
    pub initial_weights: HeadWeights,
}

/// The weights W [d, F] and b of a head for F features before training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeadWeights {
    /// W and b from U(−1/√F, 1/√F) for F features, torch's default.
    #[default]
    Uniform,
    /// A random W with W·Wᵀ = I (Saxe et al., 2014), or WᵀW = I if the dimension is larger than F, and b = 0. The published
    /// code of HIER begins so.
    Orthogonal,
}

fn default_layer_norm() -> bool {
    true
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct Head {
    linear: Linear,
    layer_norm: bool,
    #[module(skip)]
    geometry: Geometry,
}

impl HeadConfig {
    /// A head for `features` features.
    ///
    /// # Errors
    ///
    /// A dimension or a setting of the geometry out of range, or more bits than features.
    pub fn init(&self, features: usize, initial: &mut Initial) -> Result<Head> {
        if !(1..=4096).contains(&self.dimension) {
            return Err(Error::new(
                Kind::Config,
                format!("the dimension of the embedding is {}", self.dimension),
                "give a number from 1 to 4096; 128 is a good start",
            ));
        }
        self.geometry.validate()?;
        if self.geometry == Geometry::Binary && self.dimension > features {
            return Err(Error::new(
                Kind::Config,
                format!(
                    "the head has codes of {} bits, but the backbone has only {features} features",
                    self.dimension
                ),
                "choose at most as many bits as there are features, or a wider backbone",
            ));
        }
        Ok(Head {
            linear: match self.initial_weights {
                HeadWeights::Uniform => initial.linear(features, self.dimension),
                HeadWeights::Orthogonal => initial.orthogonal_linear(features, self.dimension),
            },
            layer_norm: self.layer_norm,
            geometry: self.geometry.clone(),
        })
    }
}

impl Head {
    /// F, the features that it takes, and d, the dimension of an embedding.
    pub fn sizes(&self) -> [usize; 2] {
        self.linear.weight.lazy_shape().dims()
    }

    /// Whether the features of each image are first scaled to mean 0 and variance 1.
    pub fn has_layer_norm(&self) -> bool {
        self.layer_norm
    }

    /// This head with the given W [d, F], row-major, and b [d], of the same sizes as its own.
    pub fn with_linear(self, weight: Vec<f32>, bias: Vec<f32>) -> Self {
        let [features, dimension] = self.sizes();
        let linear = Linear {
            weight: self.linear.weight.map(|old| {
                let learns = old.is_require_grad();
                let data = TensorData::new(weight, [dimension, features]);
                Tensor::<2>::from_data(data, &old.device()).transpose().set_require_grad(learns)
            }),
            bias: self.linear.bias.map(|old| {
                old.map(|old| {
                    let learns = old.is_require_grad();
                    Tensor::<1>::from_data(TensorData::new(bias, [dimension]), &old.device())
                        .set_require_grad(learns)
                })
            }),
        };
        Self { linear, ..self }
    }

    /// Features [B, F] → embeddings [B, d].
    pub fn forward(&self, features: Tensor<2>) -> Tensor<2> {
        let features = if self.layer_norm { standardise(features) } else { features };
        let features = self.linear.forward(features);
        self.geometry.embed(features)
    }

    /// The features of a picture's P cells, [P, F], whose mean [`Self::forward`] gets, → parts of its embedding, [P, d],
    /// that add up to it; see [`attribution`](crate::attribution).
    pub fn parts(&self, cells: Tensor<2>) -> Tensor<2> {
        let [count, _] = cells.dims();
        let cells = if self.layer_norm {
            let mean = cells.clone().mean_dim(0);
            let deviation = deviation(mean.clone() - mean.mean_dim(1));
            (cells.clone() - cells.mean_dim(1)) / deviation
        } else {
            cells
        };
        let parts = self.linear.forward(cells) / count as f64;
        // Every geometry leaves the direction of a vector as it is.
        let sum = parts.clone().sum_dim(0);
        let factor = (self.geometry.embed(sum.clone()) * sum.clone()).sum_dim(1)
            / (sum.square().sum_dim(1) + f64::from(f32::MIN_POSITIVE));
        parts * factor
    }
}

/// LayerNorm without scale and shift: rows with mean 0 and (biased) variance 1, ε = 1e-5.
fn standardise(rows: Tensor<2>) -> Tensor<2> {
    let centred = rows.clone() - rows.mean_dim(1);
    let deviation = deviation(centred.clone());
    centred / deviation
}

/// The deviation of rows of mean 0, [B, 1], with ε = 1e-5.
fn deviation(centred: Tensor<2>) -> Tensor<2> {
    (centred.square().mean_dim(1) + 1e-5).sqrt()
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tolerance};

    use super::*;
    use crate::random::stream;

    #[test]
    fn orthogonal_weights_keep_lengths() {
        let device = Device::flex();
        // Fewer features than dimensions, as many, and more.
        for (features, dimension) in [(20, 7), (6, 6), (5, 9)] {
            let config = HeadConfig {
                dimension,
                layer_norm: false,
                geometry: Geometry::Cosine,
                initial_weights: HeadWeights::Orthogonal,
            };
            let mut rng = stream(3, "weights", &[]);
            let head = config.init(features, &mut Initial::drawn(&mut rng, &device)).unwrap();
            // Burn keeps Wᵀ, [F, d].
            let transposed = head.linear.weight.val();
            assert_eq!(transposed.dims(), [features, dimension]);
            let weight = transposed.clone().transpose();
            let product =
                if dimension <= features { weight.matmul(transposed) } else { transposed.matmul(weight) };
            let identity = Tensor::<2>::eye(dimension.min(features), &device);
            product.into_data().assert_approx_eq::<f32>(&identity.into_data(), Tolerance::absolute(1e-6));
            let bias = head.linear.bias.unwrap().val().abs().max().into_scalar::<f32>();
            assert_eq!(bias, 0.0);
        }
    }
}
