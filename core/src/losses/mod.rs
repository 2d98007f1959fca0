//! What training minimises: one loss a file, and the one enum that names them all.
//!
//! A loss takes a [`Batch`], embeddings [B, d] with their labels, and returns a tensor of shape
//! [1]. Inside a batch a query belongs to its own list, as in the papers. What a loss learns, its
//! proxies, makes it a Burn module, so that the optimiser and the checkpoint see them.
//!
//! | loss | file | source |
//! |---|---|---|
//! | H-AP surrogate | [`hap_surrogate`] | HAPPIER (Ramzi et al., ECCV 2022), eq. 2–6, 43 |
//! | NormSoftmax, which is also HAPPIER's clustering loss | [`norm_softmax`] | Zhai & Wu, BMVC 2019; HAPPIER eq. 7 |
//! | HAPPIER = (1 − λ) surrogate + λ clustering | [`LossConfig::Happier`] | HAPPIER eq. 8 |
//! | any weighted sum | [`LossConfig::Sum`] | |
//!
//! # Adding a loss
//!
//! Write its file: a page that gives the equation, its source, shapes, defaults and what the
//! gradient does at ties and without positives; a serde config with `deny_unknown_fields`; `init`,
//! which checks it; `forward`. Add a variant to [`LossConfig`] and [`Loss`]. Add its golden file to
//! the golden test and compare its gradient with central differences in `core/tests/gradients.rs`.

pub mod hap_surrogate;
pub mod norm_softmax;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

pub use hap_surrogate::{HapSurrogate, HapSurrogateConfig};
pub use norm_softmax::{NormSoftmax, NormSoftmaxConfig};

/// What a loss is given: embeddings with their labels, and, for rectangular cases, another set to
/// rank.
pub struct Batch<'a> {
    /// [B, d], as the head gives them.
    pub embeddings: Tensor<2>,
    /// The labels of the rows.
    pub labels: &'a Labels,
    /// What the rows are ranked against; none: the batch itself.
    pub reference: Option<(Tensor<2>, &'a Labels)>,
}

impl Batch<'_> {
    /// The items that queries of this batch rank.
    pub fn ranked(&self) -> (Tensor<2>, &Labels) {
        match &self.reference {
            Some((embeddings, labels)) => (embeddings.clone(), labels),
            None => (self.embeddings.clone(), self.labels),
        }
    }
}

/// What a loss has to know before training: the classes, the embedding, the seed.
pub struct Setting<'a> {
    /// Classes of the training set at each level, coarse → fine; their labels count from 0.
    pub classes: &'a [usize],
    /// d, the dimension of an embedding.
    pub dimension: usize,
    /// The run's seed; proxies come from its stream `proxies`.
    pub seed: u64,
    /// Where proxies live.
    pub device: &'a Device,
}

impl Setting<'_> {
    /// Classes of the finest level.
    pub fn fine_classes(&self) -> usize {
        self.classes.last().copied().unwrap_or(0)
    }
}

/// A loss by name with its settings: the `[loss]` table of a config.
///
/// ```
/// let loss: akin_core::losses::LossConfig =
///     serde_json::from_str(r#"{ "kind": "happier", "lambda": 0.1 }"#).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LossConfig {
    /// NormSoftmax over the fine classes.
    NormSoftmax(NormSoftmaxConfig),
    /// The H-AP surrogate alone.
    HapSurrogate(HapSurrogateConfig),
    /// HAPPIER eq. 8: (1 − λ) · surrogate + λ · clustering.
    Happier {
        /// λ in 0 … 1. Default 0.1.
        #[serde(default = "default_lambda")]
        lambda: f64,
        /// The surrogate.
        #[serde(default)]
        surrogate: HapSurrogateConfig,
        /// The clustering loss.
        #[serde(default)]
        clustering: NormSoftmaxConfig,
    },
    /// Σ weight · loss.
    Sum {
        /// The terms, at least one.
        terms: Vec<Term>,
    },
}

/// One term of a weighted sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Its weight.
    pub weight: f64,
    /// Its loss.
    pub loss: LossConfig,
}

fn default_lambda() -> f64 {
    0.1
}

impl LossConfig {
    /// The loss in a few words, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::NormSoftmax(config) => {
                format!("NormSoftmax on the finest level (T = {})", config.temperature)
            }
            Self::HapSurrogate(_) => "the H-AP surrogate on all levels".into(),
            Self::Happier { lambda, .. } => format!("HAPPIER on all levels (λ = {lambda})"),
            Self::Sum { terms } => {
                let terms: Vec<String> =
                    terms.iter().map(|term| format!("{} × {}", term.weight, term.loss.describe())).collect();
                terms.join(" + ")
            }
        }
    }

    /// Checks the settings and draws the proxies.
    ///
    /// # Errors
    ///
    /// A setting out of its range; weights that are not finite or sum to zero.
    pub fn init(&self, setting: &Setting) -> Result<Loss> {
        Ok(match self {
            Self::NormSoftmax(config) => Loss::NormSoftmax(config.init(setting)?),
            Self::HapSurrogate(config) => Loss::HapSurrogate(config.init(setting)?),
            Self::Happier { lambda, surrogate, clustering } => {
                if !(0.0..=1.0).contains(lambda) {
                    return Err(Error::new(
                        Kind::Config,
                        format!("lambda of the HAPPIER loss is {lambda}"),
                        "give a number from 0 (only the surrogate) to 1 (only the clustering loss)",
                    ));
                }
                Loss::Sum(WeightedSum {
                    weights: vec![1.0 - lambda, *lambda],
                    terms: vec![
                        Loss::HapSurrogate(surrogate.init(setting)?),
                        Loss::NormSoftmax(clustering.init(setting)?),
                    ],
                })
            }
            Self::Sum { terms } => {
                let weights: Vec<f64> = terms.iter().map(|term| term.weight).collect();
                // Not `sum`, whose empty one is −0.
                let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
                if weights.is_empty() || !sum.is_finite() || sum == 0.0 {
                    return Err(Error::new(
                        Kind::Config,
                        format!("the weights of the loss terms are {weights:?}, which sum to {sum}"),
                        "give at least one term, and finite weights that do not sum to zero",
                    ));
                }
                let terms = terms.iter().map(|term| term.loss.init(setting)).collect::<Result<_>>()?;
                Loss::Sum(WeightedSum { weights, terms })
            }
        })
    }
}

/// A loss ready to train with.
#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant)]
pub enum Loss {
    /// See [`norm_softmax`].
    NormSoftmax(NormSoftmax),
    /// See [`hap_surrogate`].
    HapSurrogate(HapSurrogate),
    /// A weighted sum.
    Sum(WeightedSum),
}

/// Σ weight · loss.
#[derive(Module, Debug)]
pub struct WeightedSum {
    #[module(skip)]
    weights: Vec<f64>,
    terms: Vec<Loss>,
}

impl Loss {
    /// The loss of a batch, shape [1].
    pub fn forward(&self, batch: &Batch) -> Tensor<1> {
        match self {
            Self::NormSoftmax(loss) => loss.forward(batch),
            Self::HapSurrogate(loss) => loss.forward(batch),
            Self::Sum(sum) => sum
                .terms
                .iter()
                .zip(&sum.weights)
                .map(|(term, &weight)| term.forward(batch) * weight)
                .reduce(|sum, term| sum + term)
                .expect("`LossConfig::init` refuses an empty sum"),
        }
    }
}

/// Plain numbers as a constant matrix, on the device and of the type of `like`.
fn matrix(values: Vec<f64>, shape: [usize; 2], like: &Tensor<2>) -> Tensor<2> {
    let device = like.device().without_autodiff();
    Tensor::from_data(TensorData::new(values, shape), (&device, like.dtype()))
}

/// A scalar `value` whose gradient with respect to `inputs` is `gradient`, whatever computed the
/// two. It is value + (Σ gradient · inputs − the same, detached): the bracket is exactly 0 and
/// linear in the inputs.
fn with_gradient(inputs: Tensor<2>, value: Tensor<1>, gradient: Tensor<2>) -> Tensor<1> {
    let linear = (inputs * gradient).sum();
    value + linear.clone() - linear.detach()
}
