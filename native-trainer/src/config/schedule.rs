//! `[schedule]`: how the learning rates change during training.
//!
//! Every rate is multiplied by the same factor: the value of the curve times the value of the warm-up of the rates.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[schedule]`: see the [module](self).
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScheduleConfig {
    /// The curve of the learning rates, with its numbers.
    pub curve: Curve,
    /// The number of steps at the start in which the backbone is frozen and only head and loss learn. Default: none;
    /// at most one of `warmup_steps` and `warmup_epochs` can be set.
    pub warmup_steps: Option<u64>,
    /// The same as `warmup_steps`, as a number of epochs. Default: none.
    pub warmup_epochs: Option<u64>,
    /// The number of steps at the start over which the learning rates rise, in equal parts, to those of the curve. The
    /// curve begins with the first step all the same. Default: none; at most one of `lr_warmup_steps` and
    /// `lr_warmup_epochs` can be set.
    pub lr_warmup_steps: Option<u64>,
    /// The same as `lr_warmup_steps`, as a number of epochs. Default: none.
    pub lr_warmup_epochs: Option<u64>,
}

/// The curve of the learning rates.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Curve {
    /// Half a cosine, from the learning rates of `[optimizer]` down to `final_factor` times them.
    Cosine {
        /// The factor of the learning rates at the end, 0 … 1. Default 0.
        #[serde(default)]
        final_factor: f64,
    },
    /// No change.
    Constant {},
    /// A fall by `gamma` at given epochs.
    Steps {
        /// The epochs, counted from 0, at whose start the learning rates fall, in increasing order. Default: none;
        /// exactly one of `milestones` and `every_epochs` must be set.
        #[serde(default)]
        milestones: Vec<u64>,
        /// The number of epochs after which the learning rates fall, again and again. Default: none.
        every_epochs: Option<u64>,
        /// The factor of the learning rates at each fall, above 0 and below 1. Default 0.1.
        #[serde(default = "a_tenth")]
        gamma: f64,
    },
    /// A fall by `gamma` when evaluations get no better; needs `run.evaluate_every_epochs`.
    Plateau {
        /// The factor of the learning rates at each fall, above 0 and below 1. Default 0.1.
        #[serde(default = "a_tenth")]
        gamma: f64,
        /// The number of evaluations in a row that may be no better than the best one by `run.best_by`. After one more
        /// the learning rates fall, and the count begins again. Default 10.
        #[serde(default = "ten")]
        patience: u64,
        /// The least factor of the learning rates, 0 … 1. Default 0.
        #[serde(default)]
        final_factor: f64,
    },
}

impl Default for Curve {
    fn default() -> Self {
        Self::Cosine { final_factor: 0.0 }
    }
}

fn a_tenth() -> f64 {
    0.1
}

fn ten() -> u64 {
    10
}

/// A moment of a training.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The steps done.
    pub step: u64,
    /// The steps of the whole training.
    pub steps: u64,
    /// The steps of an epoch, at least 1.
    pub steps_per_epoch: u64,
    /// How often evaluations have made the learning rates fall.
    pub falls: u64,
}

impl ScheduleConfig {
    /// The number of steps in which the backbone is frozen.
    pub fn total_warmup_steps(&self, steps_per_epoch: usize) -> u64 {
        in_steps(self.warmup_steps, self.warmup_epochs, steps_per_epoch as u64)
    }

    /// The factor of all learning rates in the step that follows this moment, 0 … 1.
    pub fn factor(&self, moment: Moment) -> f64 {
        let Moment { step, steps, steps_per_epoch, falls } = moment;
        let epoch = step / steps_per_epoch;
        let curve = match &self.curve {
            Curve::Constant {} => 1.0,
            Curve::Cosine { final_factor } => {
                let progress = step as f64 / steps.max(1) as f64;
                let cosine = (1.0 + (std::f64::consts::PI * progress.min(1.0)).cos()) / 2.0;
                final_factor + (1.0 - final_factor) * cosine
            }
            Curve::Steps { milestones, every_epochs, gamma } => {
                let passed = milestones.iter().filter(|&&milestone| milestone <= epoch).count() as u64;
                after_falls(*gamma, every_epochs.map_or(passed, |every| epoch / every))
            }
            Curve::Plateau { gamma, final_factor, .. } => after_falls(*gamma, falls).max(*final_factor),
        };
        let warmup = in_steps(self.lr_warmup_steps, self.lr_warmup_epochs, steps_per_epoch);
        if step < warmup { curve * (step + 1) as f64 / warmup as f64 } else { curve }
    }

    /// After how many evaluations in a row that are no better than the best one the learning rates stay the same; none
    /// if no evaluation makes them fall.
    pub fn patience(&self) -> Option<u64> {
        match self.curve {
            Curve::Plateau { patience, .. } => Some(patience),
            _ => None,
        }
    }

    pub(super) fn validate(&self) -> Result<()> {
        ensure(self.warmup_steps.is_none() || self.warmup_epochs.is_none(), || {
            (
                "the config sets both schedule.warmup_steps and schedule.warmup_epochs".into(),
                "set at most one of them",
            )
        })?;
        ensure(self.lr_warmup_steps.is_none() || self.lr_warmup_epochs.is_none(), || {
            (
                "the config sets both schedule.lr_warmup_steps and schedule.lr_warmup_epochs".into(),
                "set at most one of them",
            )
        })?;
        self.curve.validate()
    }
}

impl Curve {
    fn validate(&self) -> Result<()> {
        let check_gamma = |gamma: f64| {
            ensure(gamma > 0.0 && gamma < 1.0, || {
                (format!("schedule.curve.gamma is {gamma}"), "give a number above 0 and below 1")
            })
        };
        let check_factor = |factor: f64| {
            ensure((0.0..=1.0).contains(&factor), || {
                (format!("schedule.curve.final_factor is {factor}"), "give a number from 0 to 1")
            })
        };
        match self {
            Self::Constant {} => Ok(()),
            Self::Cosine { final_factor } => check_factor(*final_factor),
            Self::Plateau { gamma, final_factor, .. } => {
                check_gamma(*gamma)?;
                check_factor(*final_factor)
            }
            Self::Steps { milestones, every_epochs, gamma } => {
                check_gamma(*gamma)?;
                ensure(*every_epochs != Some(0), || {
                    ("schedule.curve.every_epochs is 0".into(), "set it to 1 or more, or remove it")
                })?;
                ensure(
                    milestones.first() != Some(&0) && milestones.is_sorted_by(|one, next| one < next),
                    || {
                        (
                            format!("schedule.curve.milestones is {milestones:?}"),
                            "give epochs of at least 1, each later than the one before",
                        )
                    },
                )?;
                ensure(milestones.is_empty() == every_epochs.is_some(), || {
                    let which = if every_epochs.is_some() { "both" } else { "neither" };
                    (
                        format!(
                            "the curve is `steps`, but the config sets {which} of schedule.curve.milestones and \
                             schedule.curve.every_epochs"
                        ),
                        "set exactly one of them, for example schedule.curve.milestones = [30, 70]",
                    )
                })
            }
        }
    }
}

/// The factor after some falls.
fn after_falls(gamma: f64, falls: u64) -> f64 {
    gamma.powf(falls as f64)
}

/// A length that is given in steps or in epochs; 0 if it is not given.
fn in_steps(steps: Option<u64>, epochs: Option<u64>, steps_per_epoch: u64) -> u64 {
    steps.or(epochs.map(|epochs| epochs.saturating_mul(steps_per_epoch))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The factor at a step of a training of 100 steps in 10 epochs, after some falls.
    fn factor(schedule: &ScheduleConfig, step: u64, falls: u64) -> f64 {
        schedule.factor(Moment { step, steps: 100, steps_per_epoch: 10, falls })
    }

    fn of(curve: Curve) -> ScheduleConfig {
        ScheduleConfig { curve, ..ScheduleConfig::default() }
    }

    #[test]
    fn the_learning_rate_falls_along_half_a_cosine() {
        let schedule = of(Curve::Cosine { final_factor: 0.1 });
        assert_eq!(factor(&schedule, 0, 0), 1.0);
        assert!((factor(&schedule, 50, 0) - 0.55).abs() < 1e-12);
        assert!((factor(&schedule, 100, 0) - 0.1).abs() < 1e-12);
    }

    /// As torch's `MultiStepLR` and `StepLR`.
    #[test]
    fn the_learning_rate_falls_at_the_start_of_epochs() {
        let milestones = of(Curve::Steps { milestones: vec![3, 7], every_epochs: None, gamma: 0.25 });
        let at = |schedule: &ScheduleConfig, steps: &[u64]| -> Vec<f64> {
            steps.iter().map(|&step| factor(schedule, step, 0)).collect()
        };
        assert_eq!(at(&milestones, &[0, 29, 30, 69, 70, 99]), [1.0, 1.0, 0.25, 0.25, 0.0625, 0.0625]);
        let every = of(Curve::Steps { milestones: Vec::new(), every_epochs: Some(4), gamma: 0.5 });
        assert_eq!(at(&every, &[0, 39, 40, 79, 80]), [1.0, 1.0, 0.5, 0.5, 0.25]);
    }

    #[test]
    fn evaluations_make_the_learning_rate_fall_down_to_the_least_factor() {
        let plateau = of(Curve::Plateau { gamma: 0.5, patience: 1, final_factor: 0.2 });
        assert_eq!([0, 1, 2, 3, 100].map(|falls| factor(&plateau, 50, falls)), [1.0, 0.5, 0.25, 0.2, 0.2]);
    }

    #[test]
    fn the_learning_rate_rises_to_that_of_any_curve() {
        let plateau = Curve::Plateau { gamma: 0.1, patience: 10, final_factor: 0.0 };
        for curve in [of(Curve::default()), of(Curve::Constant {}), of(plateau)] {
            for warm in [
                ScheduleConfig { lr_warmup_steps: Some(20), ..curve.clone() },
                ScheduleConfig { lr_warmup_epochs: Some(2), ..curve.clone() },
            ] {
                for (step, share) in [(0, 0.05), (9, 0.5), (19, 1.0), (20, 1.0), (60, 1.0)] {
                    let expected = share * factor(&curve, step, 1);
                    assert!((factor(&warm, step, 1) - expected).abs() < 1e-12, "{warm:?} at {step}");
                }
            }
        }
    }
}
