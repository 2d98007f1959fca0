//! `[optimizer]`: how the weights are updated.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

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
    /// The weight decay of backbone and head, at least 0. Default 1e-4.
    pub weight_decay: f64,
    /// The weight decay of what the loss learns, at least 0. Default 0.
    pub weight_decay_proxies: f64,
    /// `adam`, `adamw`: the decay rate of the mean gradient, at least 0 and below 1. Default 0.9.
    pub beta_1: f64,
    /// `adam`, `adamw`: the decay rate of the mean squared gradient, at least 0 and below 1. Default 0.999.
    pub beta_2: f64,
    /// `adam`, `adamw`: a number above 0 that keeps the division finite. Default 1e-8.
    pub epsilon: f64,
    /// `sgd`: the momentum, at least 0 and below 1. Default 0.
    pub momentum: f64,
    /// `sgd`: whether the momentum is Nesterov's. It must be above 0 then. Default false.
    pub nesterov: bool,
    /// The largest norm of the gradient of all weights together, above 0. A longer gradient is scaled down to it.
    /// Default: no limit.
    pub clip_norm: Option<f64>,
}

impl Default for OptimizerConfig {
    fn default() -> Self {
        Self {
            kind: OptimizerKind::Adam,
            lr_backbone: 1e-4,
            lr_head: 5e-4,
            lr_proxies: 1e-2,
            weight_decay: 1e-4,
            weight_decay_proxies: 0.0,
            beta_1: 0.9,
            beta_2: 0.999,
            epsilon: 1e-8,
            momentum: 0.0,
            nesterov: false,
            clip_norm: None,
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
            ("clip_norm", self.clip_norm.unwrap_or(1.0), f64::MIN_POSITIVE),
        ];
        for (name, value, least) in numbers {
            ensure(value.is_finite() && value >= least, || {
                let hint = if least > 0.0 {
                    "give a finite number above 0"
                } else {
                    "give a finite number of at least 0"
                };
                (format!("optimizer.{name} is {value}"), hint)
            })?;
        }
        for (name, value) in [("beta_1", self.beta_1), ("beta_2", self.beta_2), ("momentum", self.momentum)] {
            ensure((0.0..1.0).contains(&value), || {
                (format!("optimizer.{name} is {value}"), "give a number of at least 0 and below 1")
            })?;
        }
        ensure(self.kind == OptimizerKind::Sgd || (self.momentum == 0.0 && !self.nesterov), || {
            (
                "optimizer.momentum or optimizer.nesterov is set, but only sgd has a momentum".into(),
                "remove them, or set optimizer.kind = \"sgd\"; the momentum of Adam is beta_1",
            )
        })?;
        ensure(!self.nesterov || self.momentum > 0.0, || {
            (
                "optimizer.nesterov is true, but the momentum is 0".into(),
                "set optimizer.momentum, for example 0.9",
            )
        })
    }
}
