//! `[schedule]`: how the learning rates change during training.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[schedule]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// The curve of the learning rates. Default `cosine`.
    pub kind: ScheduleKind,
    /// The number of steps at the start in which the backbone is frozen and only head and loss learn. Default: none;
    /// at most one of `warmup_steps` and `warmup_epochs` can be set.
    pub warmup_steps: Option<u64>,
    /// The same as a number of epochs. Default: none.
    pub warmup_epochs: Option<u64>,
    /// `cosine`: the factor of the learning rates at the end, 0 … 1. Default 0.
    pub final_factor: f64,
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self { kind: ScheduleKind::Cosine, warmup_steps: None, warmup_epochs: None, final_factor: 0.0 }
    }
}

/// The curve of the learning rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleKind {
    /// Half a cosine, from the learning rates of `[optimizer]` down to `final_factor` times them.
    Cosine,
    /// No change.
    Constant,
}

impl ScheduleConfig {
    /// The number of steps in which the backbone is frozen.
    pub fn total_warmup_steps(&self, steps_per_epoch: usize) -> u64 {
        self.warmup_steps
            .or(self.warmup_epochs.map(|epochs| epochs.saturating_mul(steps_per_epoch as u64)))
            .unwrap_or(0)
    }

    /// The factor of all learning rates at a step, 0 … `steps`.
    pub fn factor(&self, step: u64, steps: u64) -> f64 {
        match self.kind {
            ScheduleKind::Constant => 1.0,
            ScheduleKind::Cosine => {
                let progress = step as f64 / steps.max(1) as f64;
                let cosine = (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos()) / 2.0;
                self.final_factor + (1.0 - self.final_factor) * cosine
            }
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure((0.0..=1.0).contains(&self.final_factor), || {
            (format!("schedule.final_factor is {}", self.final_factor), "give a number from 0 to 1")
        })?;
        ensure(self.warmup_steps.is_none() || self.warmup_epochs.is_none(), || {
            (
                "the config sets both schedule.warmup_steps and schedule.warmup_epochs".into(),
                "set at most one of them",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_falls_along_half_a_cosine() {
        let schedule = ScheduleConfig { final_factor: 0.1, ..ScheduleConfig::default() };
        assert_eq!(schedule.factor(0, 100), 1.0);
        assert!((schedule.factor(50, 100) - 0.55).abs() < 1e-12);
        assert!((schedule.factor(100, 100) - 0.1).abs() < 1e-12);
    }
}
