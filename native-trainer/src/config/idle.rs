//! Settings that can never take effect: they are no errors, but rarely what was meant.

use super::{Config, OptimizerConfig, ScheduleConfig, ScheduleKind, setting_name};
use crate::counts::counted;

impl Config {
    /// A sentence for each setting that can never take effect in a training of this length. Lengths in epochs are compared
    /// with `run.epochs` alone, and lengths in steps with `run.steps`.
    pub fn idle_settings(&self) -> Vec<String> {
        let Self { run, schedule, model, optimizer, .. } = self;
        let mut idle = Vec::new();
        let mut late = |key: &str, begins: Option<u64>, length: Option<u64>, unit: &str, effect: &str| {
            if let (Some(begins), Some(length)) = (begins, length)
                && begins >= length
            {
                idle.push(format!(
                    "{key} is {begins}, but the training ends after {length} {unit}, so {effect}"
                ));
            }
        };
        let epochs = run.epochs;
        let milestone = schedule.milestones.last().copied();
        late("the last of schedule.milestones", milestone, epochs, "epochs", "it is never reached");
        late("schedule.every_epochs", schedule.every_epochs, epochs, "epochs", "no learning rate falls");
        let frozen = "the backbone learns nothing";
        if !model.freeze_backbone {
            late("schedule.warmup_epochs", schedule.warmup_epochs, epochs, "epochs", frozen);
            late("schedule.warmup_steps", schedule.warmup_steps, run.steps, "steps", frozen);
        }
        let rising = "the learning rates never reach their values";
        late("schedule.lr_warmup_epochs", schedule.lr_warmup_epochs, epochs, "epochs", rising);
        late("schedule.lr_warmup_steps", schedule.lr_warmup_steps, run.steps, "steps", rising);
        if run.evaluate_every_epochs > 0 {
            let every = Some(run.evaluate_every_epochs);
            late(
                "run.evaluate_every_epochs",
                every,
                epochs,
                "epochs",
                "there is only the evaluation at the end",
            );
            let mut too_patient = |name: &str, patience: Option<u64>, consequence: &str| {
                let (Some(patience), Some(epochs)) = (patience, epochs) else { return };
                // The first evaluation is the best so far. As many more have to be no better.
                if run.evaluate_every_epochs.saturating_mul(patience.saturating_add(1)) >= epochs {
                    idle.push(format!(
                        "{name} is {patience} evaluations, one every {}, so {consequence} a training of {}",
                        counted(run.evaluate_every_epochs as usize, "epoch", "epochs"),
                        counted(epochs as usize, "epoch", "epochs")
                    ));
                }
            };
            too_patient("run.patience", run.patience, "it never ends");
            let patience = (schedule.kind == ScheduleKind::Plateau).then_some(schedule.patience);
            too_patient("schedule.patience", patience, "no learning rate falls in");
        }
        let falls = matches!(schedule.kind, ScheduleKind::Steps | ScheduleKind::Plateau);
        if !falls && schedule.gamma != ScheduleConfig::default().gamma {
            idle.push(format!(
                "schedule.gamma is {}, but only `steps` and `plateau` use it, and schedule.kind is `{}`",
                schedule.gamma,
                setting_name(schedule.kind)
            ));
        }
        let has_end = matches!(schedule.kind, ScheduleKind::Cosine | ScheduleKind::Plateau);
        if !has_end && schedule.final_factor != ScheduleConfig::default().final_factor {
            idle.push(format!(
                "schedule.final_factor is {}, but only `cosine` and `plateau` use it, and schedule.kind is `{}`",
                schedule.final_factor,
                setting_name(schedule.kind)
            ));
        }
        if model.freeze_backbone && optimizer.lr_backbone != OptimizerConfig::default().lr_backbone {
            idle.push(format!(
                "optimizer.lr_backbone is {}, but model.freeze_backbone is set, so the backbone learns nothing",
                optimizer.lr_backbone
            ));
        }
        idle
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Table;

    use super::super::Source;

    fn idle(sets: &[&str]) -> Vec<String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let text = "[run]\nepochs = 10\n[data]\nkind = 'csv'\npath = 'x'\nlevels = ['a', 'b']\n[model]\n\
                    backbone = { kind = 'small_resnet' }\nhead = { dimension = 8 }\n[loss]\nkind = 'happier'\n";
        let source = Source::from_text(Path::new("x.toml"), text.into(), None, &sets).unwrap();
        source.config(&Table::new()).unwrap().idle_settings()
    }

    #[test]
    fn settings_that_take_effect_are_not_mentioned() {
        let nothing = Vec::<String>::new();
        assert_eq!(idle(&[]), nothing);
        assert_eq!(idle(&["schedule={kind='steps',milestones=[3,9],gamma=0.5}"]), nothing);
        assert_eq!(idle(&["run.evaluate_every_epochs=2", "run.patience=3"]), nothing);
        assert_eq!(idle(&["schedule.warmup_epochs=9", "schedule.lr_warmup_epochs=9"]), nothing);
        assert_eq!(
            idle(&["run.steps=5", "schedule={kind='steps',milestones=[30]}"]),
            nothing,
            "epochs are not known"
        );
    }

    #[test]
    fn settings_that_never_take_effect_are_named() {
        for (sets, part) in [
            (
                &["schedule={kind='steps',milestones=[3,10]}"][..],
                "milestones is 10, but the training ends after 10",
            ),
            (&["schedule={kind='steps',every_epochs=10}"], "no learning rate falls"),
            (&["schedule.warmup_epochs=10"], "the backbone learns nothing"),
            (&["run.steps=5", "schedule.warmup_steps=7"], "schedule.warmup_steps is 7"),
            (&["schedule.lr_warmup_epochs=11"], "never reach their values"),
            (&["run.evaluate_every_epochs=10"], "only the evaluation at the end"),
            (
                &["run.evaluate_every_epochs=2", "run.patience=4"],
                "run.patience is 4 evaluations, one every 2 epochs",
            ),
            (
                &["run.evaluate_every_epochs=1", "schedule={kind='plateau',patience=9}"],
                "schedule.patience is 9 evaluations, one every 1 epoch",
            ),
            (&["schedule.gamma=0.5"], "schedule.kind is `cosine`"),
            (&["schedule={kind='constant',final_factor=0.5}"], "schedule.kind is `constant`"),
            (&["model.freeze_backbone=true", "optimizer.lr_backbone=0.5"], "model.freeze_backbone is set"),
        ] {
            let found = idle(sets);
            assert!(found.len() == 1 && found[0].contains(part), "{sets:?}: {found:?}");
        }
    }
}
