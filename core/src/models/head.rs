//! The head: features → an embedding in the space of the model.
//!
//! x ↦ g(W · LayerNorm(x) + b), with LayerNorm without scale and shift, as in HAPPIER. g scales to unit length
//! ([`Geometry::Cosine`]), maps into the ball ([`Geometry::Poincare`]), or does nothing, because the signs are the code
//! ([`Geometry::Binary`]).

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
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
            linear: initial.linear(features, self.dimension),
            layer_norm: self.layer_norm,
            geometry: self.geometry.clone(),
        })
    }
}

impl Head {
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
