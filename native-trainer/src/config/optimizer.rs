//! `[optimizer]`: how the weights are updated.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

const DEFAULT_ALPHA: f64 = 0.99;

/// `[optimizer]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// The rule that updates the weights. Default `adam`.
    pub kind: OptimizerKind,
    /// The learning rate of the backbone, at least 0. Default 1e-4.
    pub lr_backbone: f64,
    /// The learning rate of the head, at least 0. Default 5e-4.
    pub lr_head: f64,
    /// The learning rate of what the loss learns, such as proxies, at least 0. Default 1e-2.
    pub lr_proxies: f64,
    /// For the loss `sum`: a learning rate, at least 0, for what each of `loss.terms` learns, in the same order. A term
    /// that learns nothing needs one too. Default: `lr_proxies` for every term.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lr_terms: Vec<f64>,
    /// The weight decay of backbone and head, at least 0. Default 1e-4.
    pub weight_decay: f64,
    /// The weight decay of what the loss learns, at least 0. Default 0.
    pub weight_decay_proxies: f64,
    /// Whether `weight_decay` applies to the vectors among the weights too: scales and shifts of normalisation, and biases.
    /// PyTorch does so unless they are put into a group without decay. Default true.
    #[serde(skip_serializing_if = "is_true")]
    pub decay_norms_and_biases: bool,
    /// `adam`, `adamw`: the decay rate of the mean gradient, at least 0 and below 1. Default 0.9.
    pub beta_1: f64,
    /// `adam`, `adamw`: the decay rate of the mean squared gradient, at least 0 and below 1. Default 0.999.
    pub beta_2: f64,
    /// `rmsprop`: the decay rate of the mean squared gradient, at least 0 and below 1. Default 0.99.
    #[serde(skip_serializing_if = "is_default_alpha")]
    pub alpha: f64,
    /// `adam`, `adamw`, `rmsprop`: a number above 0 that keeps the division finite. Default 1e-8.
    pub epsilon: f64,
    /// `sgd`, `rmsprop`: the momentum, at least 0 and below 1. Default 0.
    pub momentum: f64,
    /// `sgd`: whether the momentum is Nesterov's. It has no effect at a momentum of 0. Default false.
    pub nesterov: bool,
    /// The largest absolute value of a number in a gradient, above 0. A larger one is cut to it, before `clip_norm` is
    /// applied. Default: no limit.
    pub clip_value: Option<f64>,
    /// The largest norm of the gradient of all weights together, above 0. A longer gradient is scaled down to it.
    /// Default: no limit.
    pub clip_norm: Option<f64>,
    /// The decay of a moving average of the encoder's weights, above 0 and below 1, for example 0.999. It begins at the
    /// initial weights. What is evaluated, saved and exported is the average then. Default: none.
    pub ema_decay: Option<f64>,
    /// The number of images that pass the backbone at once. A larger batch passes it in chunks of this size, twice: to get
    /// the embeddings, and to get their gradients once the loss of the whole batch is known. The result is the same, with
    /// less memory and more time. Batch normalisation must not be live. Default: the whole batch.
    pub chunk: Option<usize>,
}

// The config of a run leaves out a newer setting that has its default, as the config of an older akin does.
fn is_true(value: &bool) -> bool {
    *value
}

fn is_default_alpha(value: &f64) -> bool {
    *value == DEFAULT_ALPHA
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            kind: OptimizerKind::Adam,
            lr_backbone: 1e-4,
            lr_head: 5e-4,
            lr_proxies: 1e-2,
            lr_terms: Vec::new(),
            weight_decay: 1e-4,
            weight_decay_proxies: 0.0,
            decay_norms_and_biases: true,
            beta_1: 0.9,
            beta_2: 0.999,
            alpha: DEFAULT_ALPHA,
            epsilon: 1e-8,
            momentum: 0.0,
            nesterov: false,
            clip_value: None,
            clip_norm: None,
            ema_decay: None,
            chunk: None,
        }
    }
}

/// The rule that updates the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptimizerKind {
    /// Kingma & Ba, 2015; weight decay is added to the gradient, as in PyTorch's Adam.
    Adam,
    /// Loshchilov & Hutter, 2019; weight decay is separate from the gradient.
    AdamW,
    /// Gradient descent, with momentum if it is set.
    Sgd,
    /// Tieleman & Hinton, 2012, in PyTorch's form: ε is added to the root, and weight decay to the gradient.
    RmsProp,
}

impl OptimizerConfig {
    pub(super) fn validate(&self) -> Result<()> {
        let numbers = [
            ("lr_backbone", self.lr_backbone, 0.0),
            ("lr_head", self.lr_head, 0.0),
            ("lr_proxies", self.lr_proxies, 0.0),
            ("weight_decay", self.weight_decay, 0.0),
            ("weight_decay_proxies", self.weight_decay_proxies, 0.0),
            ("epsilon", self.epsilon, f64::MIN_POSITIVE),
            ("clip_value", self.clip_value.unwrap_or(1.0), f64::MIN_POSITIVE),
            ("clip_norm", self.clip_norm.unwrap_or(1.0), f64::MIN_POSITIVE),
        ];
        let rates = self.lr_terms.iter().map(|&rate| ("lr_terms", rate, 0.0));
        for (name, value, least) in numbers.into_iter().chain(rates) {
            ensure(value.is_finite() && value >= least, || {
                let hint = if least > 0.0 {
                    "give a finite number above 0"
                } else {
                    "give a finite number of at least 0"
                };
                (format!("optimizer.{name} is {value}"), hint)
            })?;
        }
        let decays = [
            ("beta_1", self.beta_1),
            ("beta_2", self.beta_2),
            ("alpha", self.alpha),
            ("momentum", self.momentum),
        ];
        for (name, value) in decays {
            ensure((0.0..1.0).contains(&value), || {
                (format!("optimizer.{name} is {value}"), "give a number of at least 0 and below 1")
            })?;
        }
        let ema_decay = self.ema_decay.unwrap_or(0.5);
        ensure(ema_decay > 0.0 && ema_decay < 1.0, || {
            (
                format!("optimizer.ema_decay is {ema_decay}"),
                "give a number above 0 and below 1, such as 0.999",
            )
        })?;
        ensure(self.chunk != Some(0), || {
            ("optimizer.chunk is 0".into(), "give a number of images, or remove it to pass whole batches")
        })
    }
}
