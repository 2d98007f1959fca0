//! Values out of their range, each refused with what to do.

use std::collections::HashSet;

use anyhow::Result;

use super::{
    AugmentConfig, Config, DataConfig, DataKind, ModelConfig, OptimizerConfig, OptimizerKind, RunConfig,
    SamplerConfig, ScheduleConfig,
};
use crate::problem::problem;

impl Config {
    pub(super) fn validate(&self) -> Result<()> {
        self.run.validate()?;
        self.data.validate()?;
        self.model.validate()?;
        if let Some(augment) = &self.augment {
            ensure(!self.model.freeze_backbone, || {
                (
                    "model.freeze_backbone is set beside [augment], but features are computed once, from \
                     images as they are"
                        .into(),
                    "remove [augment], or train the backbone too",
                )
            })?;
            augment.validate()?;
        }
        self.optimizer.validate()?;
        self.schedule.validate()?;
        self.eval.checked(self.data.levels.len())?;
        self.sampler.validate()
    }
}

impl SamplerConfig {
    fn validate(&self) -> Result<()> {
        let numbers = [
            ("classes_per_batch", self.classes_per_batch.unwrap_or(Self::DEFAULT_CLASSES)),
            ("images_per_class", self.images_per_class),
        ];
        for (name, number) in numbers {
            ensure(number > 0, || (format!("sampler.{name} is {number}"), "give a number of at least 1"))?;
        }
        Ok(())
    }
}

impl DataConfig {
    pub(super) fn validate(&self) -> Result<()> {
        ensure(!self.levels.is_empty(), || {
            (
                "data.levels is empty".into(),
                "name the levels, coarse to fine, for example [\"order\", \"species\"]",
            )
        })?;
        let mut seen = HashSet::new();
        for level in &self.levels {
            ensure(!level.trim().is_empty() && seen.insert(level), || {
                (
                    format!("data.levels names {level:?} twice, or not at all"),
                    "give every level a name of its own",
                )
            })?;
        }
        let mut seen = HashSet::new();
        for name in [&self.train, &self.test, &self.query, &self.gallery] {
            ensure(!name.is_empty() && seen.insert(name), || {
                (
                    format!("two splits in [data] are called {name:?}, or one has no name"),
                    "give train, test, query and gallery names of their own",
                )
            })?;
        }
        let shares =
            [("test_fraction", self.test_fraction), ("validation_fraction", self.validation_fraction)];
        for (name, share) in shares {
            ensure(share.is_none_or(|share| share > 0.0 && share < 1.0), || {
                (
                    format!("data.{name} is {}", share.unwrap_or_default()),
                    "give a share of the finest classes between 0 and 1, for example 0.5",
                )
            })?;
        }
        ensure(self.kind == DataKind::Csv || self.images.is_none(), || {
            (
                "data.images is only for CSV data".into(),
                "remove it; in a folder tree `path` says where the images are",
            )
        })
    }
}

impl ModelConfig {
    fn validate(&self) -> Result<()> {
        ensure(self.freeze_backbone || self.feature_cache.is_none(), || {
            (
                "model.feature_cache is set, but the features of a backbone that learns change with every step"
                    .into(),
                "remove it, or set model.freeze_backbone = true",
            )
        })?;
        ensure(!self.freeze_backbone || self.head.is_some(), || {
            (
                "model.freeze_backbone is set without a head, so there is nothing to train".into(),
                "add model.head, for example { dimension = 128 }",
            )
        })
    }
}

impl RunConfig {
    fn validate(&self) -> Result<()> {
        ensure(self.steps.is_some() != self.epochs.is_some(), || {
            let both =
                if self.steps.is_some() { "gives both run.steps and run.epochs" } else { "gives neither" };
            (
                format!("the config {both}, so how long to train is unclear"),
                "set exactly one of run.steps and run.epochs",
            )
        })?;
        ensure(self.steps != Some(0) && self.epochs != Some(0), || {
            ("the run would train for no step at all".into(), "set run.steps or run.epochs to 1 or more")
        })?;
        ensure(self.checkpoint_every_epochs > 0, || {
            (
                "run.checkpoint_every_epochs is 0".into(),
                "set it to 1 or more; there is always a checkpoint at the end",
            )
        })?;
        ensure(i64::try_from(self.seed).is_ok(), || {
            (
                format!("run.seed is {}", self.seed),
                "choose a seed below 2^63, the largest whole number of TOML",
            )
        })
    }
}

impl AugmentConfig {
    fn validate(&self) -> Result<()> {
        let [from, to] = self.crop_scale;
        ensure(0.0 < from && from <= to && to <= 1.0, || {
            (
                format!("augment.crop_scale is [{from}, {to}]"),
                "give two shares of the area, 0 < from ≤ to ≤ 1, for example [0.4, 1.0]",
            )
        })?;
        let [from, to] = self.crop_ratio;
        ensure(0.0 < from && from <= to && to.is_finite(), || {
            (
                format!("augment.crop_ratio is [{from}, {to}]"),
                "give two ratios of width to height, 0 < from ≤ to, for example [0.75, 1.3333]",
            )
        })
    }
}

impl OptimizerConfig {
    fn validate(&self) -> Result<()> {
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
                "optimizer.momentum and optimizer.nesterov belong to sgd, and the optimizer is another"
                    .into(),
                "set optimizer.momentum = 0 and nesterov = false, or kind = \"sgd\"; Adam's momentum is beta_1",
            )
        })?;
        ensure(!self.nesterov || self.momentum > 0.0, || {
            ("optimizer.nesterov needs a momentum".into(), "set optimizer.momentum, for example 0.9")
        })
    }
}

impl ScheduleConfig {
    fn validate(&self) -> Result<()> {
        ensure((0.0..=1.0).contains(&self.final_factor), || {
            (format!("schedule.final_factor is {}", self.final_factor), "give a number from 0 to 1")
        })?;
        ensure(self.warmup_steps.is_none() || self.warmup_epochs.is_none(), || {
            (
                "the config gives both schedule.warmup_steps and schedule.warmup_epochs".into(),
                "set at most one of them",
            )
        })
    }
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> (String, &'static str)) -> Result<()> {
    if holds {
        return Ok(());
    }
    let (message, hint) = otherwise();
    Err(problem(message, hint))
}
