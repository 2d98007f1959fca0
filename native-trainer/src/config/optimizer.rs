//! `[optimizer]`: how the weights are updated.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[optimizer]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OptimizerConfig {
    /// The rule that updates the weights, with its numbers.
    pub rule: Rule,
    /// The learning rate of the backbone, at least 0. Default 1e-4.
    pub lr_backbone: f64,
    /// The learning rate of each block of the backbone as a multiple of that of the next block, above 0 and at most 1. The
    /// last block has `lr_backbone`, and what comes before the first block the smallest rate (Bao et al., *BEiT*, 2022).
    /// 0.65 to 0.9 suits large vision transformers. Default 1: one rate for the whole backbone.
    pub layer_decay: f64,
    /// The learning rate of the head, at least 0. Default 5e-4.
    pub lr_head: f64,
    /// The learning rate of what the loss learns, such as proxies, at least 0. Default 1e-2.
    pub lr_proxies: f64,
    /// For the loss `sum`: a learning rate, at least 0, for what each of `loss.terms` learns, in the same order. A term
    /// that learns nothing needs one too. Default: `lr_proxies` for every term.
    pub lr_terms: Vec<f64>,
    /// The weight decay of backbone and head, at least 0. Default 1e-4.
    pub weight_decay: f64,
    /// The weight decay of what the loss learns, at least 0. Default 0.
    pub weight_decay_proxies: f64,
    /// Whether `weight_decay` applies to the vectors among the weights too: scales and shifts of normalisation, and biases.
    /// PyTorch does so unless they are put into a group without decay. Default true.
    pub decay_norms_and_biases: bool,
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
    /// less memory and more time. Batch normalisation must not be live. Default: the whole batch, or 64 images of a whole
    /// set.
    pub chunk: Option<usize>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            lr_backbone: 1e-4,
            layer_decay: 1.0,
            lr_head: 5e-4,
            lr_proxies: 1e-2,
            lr_terms: Vec::new(),
            weight_decay: 1e-4,
            weight_decay_proxies: 0.0,
            decay_norms_and_biases: true,
            clip_value: None,
            clip_norm: None,
            ema_decay: None,
            chunk: None,
        }
    }
}

/// The rule that updates the weights.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Rule {
    /// Kingma & Ba, 2015; weight decay is added to the gradient, as in PyTorch's Adam.
    Adam(Adam),
    /// Loshchilov & Hutter, 2019; weight decay is separate from the gradient.
    AdamW(Adam),
    /// Gradient descent, with momentum if it is set.
    Sgd(Sgd),
    /// Tieleman & Hinton, 2012, in PyTorch's form: ε is added to the root, and weight decay to the gradient.
    RmsProp(RmsProp),
}

impl Default for Rule {
    fn default() -> Self {
        Self::Adam(Adam::default())
    }
}

/// The numbers of Adam and AdamW.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Adam {
    /// The decay rate of the mean gradient, at least 0 and below 1. Default 0.9.
    pub beta_1: f64,
    /// The decay rate of the mean squared gradient, at least 0 and below 1. Default 0.999.
    pub beta_2: f64,
    /// A number above 0 that keeps the division finite. Default 1e-8.
    pub epsilon: f64,
}

impl Default for Adam {
    fn default() -> Self {
        Self { beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8 }
    }
}

/// The numbers of gradient descent.
#[derive(Clone, Copy, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sgd {
    /// The momentum, at least 0 and below 1. Default 0.
    pub momentum: f64,
    /// Whether the momentum is Nesterov's. It has no effect at a momentum of 0. Default false.
    pub nesterov: bool,
}

/// The numbers of RMSprop.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RmsProp {
    /// The decay rate of the mean squared gradient, at least 0 and below 1. Default 0.99.
    pub alpha: f64,
    /// A number above 0 that keeps the division finite. Default 1e-8.
    pub epsilon: f64,
    /// The momentum, at least 0 and below 1. Default 0.
    pub momentum: f64,
}

impl Default for RmsProp {
    fn default() -> Self {
        Self { alpha: 0.99, epsilon: 1e-8, momentum: 0.0 }
    }
}

impl Rule {
    /// How many numbers it keeps for each weight.
    pub fn states(&self) -> u64 {
        match self {
            Self::Adam(_) | Self::AdamW(_) => 2,
            Self::Sgd(Sgd { momentum, .. }) => u64::from(*momentum > 0.0),
            Self::RmsProp(RmsProp { momentum, .. }) => 1 + u64::from(*momentum > 0.0),
        }
    }

    fn validate(&self) -> Result<()> {
        let (decays, epsilon): (&[(&str, f64)], f64) = match *self {
            Self::Adam(Adam { beta_1, beta_2, epsilon }) | Self::AdamW(Adam { beta_1, beta_2, epsilon }) => {
                (&[("beta_1", beta_1), ("beta_2", beta_2)], epsilon)
            }
            Self::Sgd(Sgd { momentum, .. }) => (&[("momentum", momentum)], 1.0),
            Self::RmsProp(RmsProp { alpha, epsilon, momentum }) => {
                (&[("alpha", alpha), ("momentum", momentum)], epsilon)
            }
        };
        for (name, value) in decays {
            ensure((0.0..1.0).contains(value), || {
                (format!("optimizer.rule.{name} is {value}"), "give a number of at least 0 and below 1")
            })?;
        }
        ensure(epsilon.is_finite() && epsilon >= f64::MIN_POSITIVE, || {
            (format!("optimizer.rule.epsilon is {epsilon}"), "give a finite number above 0")
        })
    }
}

impl OptimizerConfig {
    pub(super) fn validate(&self) -> Result<()> {
        let numbers = [
            ("lr_backbone", self.lr_backbone, 0.0),
            ("lr_head", self.lr_head, 0.0),
            ("lr_proxies", self.lr_proxies, 0.0),
            ("weight_decay", self.weight_decay, 0.0),
            ("weight_decay_proxies", self.weight_decay_proxies, 0.0),
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
        self.rule.validate()?;
        ensure(self.layer_decay > 0.0 && self.layer_decay <= 1.0, || {
            (
                format!("optimizer.layer_decay is {}", self.layer_decay),
                "give a number above 0 and at most 1, such as 0.75; 1 is one rate for the whole backbone",
            )
        })?;
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
