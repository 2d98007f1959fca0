//! The space that embeddings live in: heads map features into it, losses and rankings compare embeddings in it.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::poincare::Curvature;
use crate::range::above_zero;
use crate::similarity::Similarity;

/// A space with its settings: `geometry = { kind = "poincare", curvature = 0.1 }` of a head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Geometry {
    /// Unit vectors, compared by their cosine.
    #[default]
    Cosine,
    /// Points of the Poincaré ball of radius 1/√c, compared by hyperbolic distance.
    Poincare {
        /// c > 0; the curvature of the space is −c. Default 0.1, as in HIER.
        #[serde(default)]
        #[cfg_attr(feature = "schema", schemars(with = "f64"))]
        curvature: Curvature,
        /// r > 0: longer features are shortened to this length before they are mapped into the ball, so that none ends
        /// up at its rim, where gradients vanish. Default 2.3.
        #[serde(default = "default_clip_radius")]
        clip_radius: f64,
        /// Whether gradients are scaled by the inverse of the ball's metric, (1 − c‖y‖²)²/4. Default true.
        #[serde(default = "default_riemannian")]
        riemannian: bool,
    },
    /// Vectors whose signs are the bits of a code, compared by Hamming distance.
    Binary,
}

/// A space without its settings, as losses name the spaces that they support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// See [`Geometry::Cosine`].
    Cosine,
    /// See [`Geometry::Poincare`].
    Poincare,
    /// See [`Geometry::Binary`].
    Binary,
}

impl Space {
    /// Its name in a config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Poincare => "poincare",
            Self::Binary => "binary",
        }
    }
}

fn default_clip_radius() -> f64 {
    2.3
}

fn default_riemannian() -> bool {
    true
}

impl Geometry {
    /// The Poincaré ball as HIER sets it: c = 0.1, r = 2.3, Riemannian gradients.
    pub fn poincare() -> Self {
        Self::Poincare {
            curvature: Curvature::default(),
            clip_radius: default_clip_radius(),
            riemannian: default_riemannian(),
        }
    }

    /// The similarity that ranks embeddings of the space.
    pub fn similarity(&self) -> Similarity {
        match *self {
            Self::Cosine => Similarity::Cosine,
            Self::Poincare { curvature, .. } => Similarity::Poincare { curvature },
            Self::Binary => Similarity::Hamming,
        }
    }

    /// The space.
    pub fn space(&self) -> Space {
        match self {
            Self::Cosine => Space::Cosine,
            Self::Poincare { .. } => Space::Poincare,
            Self::Binary => Space::Binary,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A clip radius that is not a finite number above 0.
    pub fn validate(&self) -> Result<()> {
        let Self::Poincare { clip_radius, .. } = self else { return Ok(()) };
        above_zero("the Poincaré ball", "clip_radius", *clip_radius, 2.3)
    }
}

#[cfg(feature = "tensor")]
pub use tensors::{distances, normalise};

#[cfg(feature = "tensor")]
mod tensors {
    use burn::tensor::Tensor;

    use super::Geometry;
    use crate::poincare::Ball;

    impl Geometry {
        /// Features [B, d] → embeddings in the space: scaled to unit length, mapped into the ball, or, for binary
        /// codes, unchanged.
        pub fn embed(&self, features: Tensor<2>) -> Tensor<2> {
            match *self {
                Self::Cosine => normalise(features),
                Self::Poincare { curvature, clip_radius, riemannian } => {
                    Ball { curvature }.embed(features, clip_radius, riemannian)
                }
                Self::Binary => features,
            }
        }

        /// The similarity of every row of x, [B, d], and y, [M, d]: minus the distance in the ball, x·y elsewhere. It is
        /// a matrix [B, M].
        pub fn scores(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
            match *self {
                Self::Poincare { curvature, .. } => -Ball { curvature }.distances(x, y),
                Self::Cosine | Self::Binary => x.matmul(y.transpose()),
            }
        }
    }

    /// Rows scaled to unit length. A zero row stays zero, with a finite gradient.
    pub fn normalise(rows: Tensor<2>) -> Tensor<2> {
        let squared_length = rows.clone().square().sum_dim(1);
        rows / (squared_length + 1e-24).sqrt()
    }

    /// The Euclidean distance of each row to each of the others, [Q, M]. Rows that are equal up to the rounding of
    /// their squares have distance 0 with gradient 0.
    pub fn distances(rows: Tensor<2>, others: Tensor<2>) -> Tensor<2> {
        let squares = rows.clone().square().sum_dim(1) + others.clone().square().sum_dim(1).transpose();
        let squared = squares.clone() - rows.matmul(others.transpose()) * 2.0;
        let rounding = 4.0 * squares.dtype().finfo().expect("embeddings are floating-point numbers").epsilon;
        let zero = squared.clone().lower_equal(squares * rounding);
        squared.mask_fill(zero.clone(), 1.0).sqrt().mask_fill(zero, 0.0)
    }
}
