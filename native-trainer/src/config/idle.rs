//! Settings that can never take effect: they are no errors, but rarely what was meant.

use akin_base::counts::counted;
use akin_core::encoder::{BatchNormMode, Precision};
use akin_core::losses::LossConfig;
use serde_json::{Value, json};

use super::{
    Config, DataKind, OptimizerConfig, OptimizerKind, SamplerConfig, ScheduleConfig, ScheduleKind,
    setting_name,
};

/// A setting that has no effect beside the others, whatever its value is.
struct Idle {
    key: &'static str,
    value: Value,
    default: Value,
    why: String,
}

const ADAM: &[&str] = &["adam", "adamw"];
const NONE: Value = Value::Null;

impl Config {
    /// A sentence for each setting that is not at its default and can never take effect. A length in epochs is compared
    /// with one in steps only if the steps of an epoch are known.
    pub fn idle_settings(&self, steps_per_epoch: Option<u64>) -> Vec<String> {
        let idle = self.idle().into_iter().filter(|idle| idle.value != idle.default);
        let mut sentences: Vec<String> = idle
            .map(|Idle { key, value, why, .. }| match value {
                Value::String(text) => format!("{key} is {text}, but {why}"),
                value => format!("{key} is {value}, but {why}"),
            })
            .collect();
        sentences.extend(self.late(steps_per_epoch));
        sentences
    }

    /// The sentences of [`Self::idle_settings`] that hold for every one of some configs.
    pub fn idle_in_all<'a>(configs: impl IntoIterator<Item = &'a Self>) -> Vec<String> {
        let each = configs.into_iter().map(|config| config.idle_settings(None));
        each.reduce(|all, own| all.into_iter().filter(|sentence| own.contains(sentence)).collect())
            .unwrap_or_default()
    }

    /// Why a setting has no effect, whatever its value is; none if it has one.
    pub fn why_idle(&self, key: &str) -> Option<String> {
        let is_key = |idle: &Idle| {
            key == idle.key || key.strip_prefix(idle.key).is_some_and(|rest| rest.starts_with('.'))
        };
        self.idle().into_iter().find(is_key).map(|idle| idle.why)
    }

    /// Every setting that has no effect beside the others. The first entry of a key is the one that counts.
    fn idle(&self) -> Vec<Idle> {
        [self.set_for_other_kinds(), self.without_use(), self.set_for_other_data()]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Settings of another kind of optimiser, schedule or sampler.
    fn set_for_other_kinds(&self) -> Vec<Idle> {
        let Self { sampler, optimizer, schedule, .. } = self;
        let (optimizers, schedules) = (OptimizerConfig::default(), ScheduleConfig::default());
        // Every config has a K.
        let k = SamplerConfig::default().images_per_class();
        let classes: &[&str] = &["classes", "class_pairs"];
        let settings: [(&'static str, Value, Value, &[&str]); 16] = [
            ("optimizer.beta_1", json!(optimizer.beta_1), json!(optimizers.beta_1), ADAM),
            ("optimizer.beta_2", json!(optimizer.beta_2), json!(optimizers.beta_2), ADAM),
            ("optimizer.alpha", json!(optimizer.alpha), json!(optimizers.alpha), &["rmsprop"]),
            (
                "optimizer.epsilon",
                json!(optimizer.epsilon),
                json!(optimizers.epsilon),
                &["adam", "adamw", "rmsprop"],
            ),
            (
                "optimizer.momentum",
                json!(optimizer.momentum),
                json!(optimizers.momentum),
                &["sgd", "rmsprop"],
            ),
            ("optimizer.nesterov", json!(optimizer.nesterov), json!(false), &["sgd"]),
            ("schedule.milestones", json!(schedule.milestones), json!([]), &["steps"]),
            ("schedule.every_epochs", json!(schedule.every_epochs), NONE, &["steps"]),
            ("schedule.gamma", json!(schedule.gamma), json!(schedules.gamma), &["steps", "plateau"]),
            ("schedule.patience", json!(schedule.patience), json!(schedules.patience), &["plateau"]),
            (
                "schedule.final_factor",
                json!(schedule.final_factor),
                json!(schedules.final_factor),
                &["cosine", "plateau"],
            ),
            ("sampler.classes_per_batch", json!(sampler.classes_per_batch), NONE, classes),
            ("sampler.images_per_class", json!(sampler.images_per_class()), json!(k), classes),
            ("sampler.level", json!(sampler.level), NONE, classes),
            ("sampler.batches_per_pair", json!(sampler.batches_per_pair), NONE, &["class_pairs"]),
            ("sampler.batch_size", json!(sampler.batch_size), NONE, &["random"]),
        ];
        let mut idle = Vec::new();
        for (key, value, default, kinds) in settings {
            let (section, kind) = match key.split_once('.') {
                Some(("optimizer", _)) => ("optimizer", setting_name(optimizer.kind)),
                Some(("schedule", _)) => ("schedule", setting_name(schedule.kind)),
                _ => ("sampler", setting_name(sampler.kind)),
            };
            if !kinds.contains(&kind.as_str()) {
                let uses = match kinds {
                    [others @ .., last] if !others.is_empty() => {
                        format!("`{}` and `{last}` use", others.join("`, `"))
                    }
                    _ => format!("`{}` uses", kinds.concat()),
                };
                let why = format!("only {uses} it, and {section}.kind is `{kind}`");
                idle.push(Idle { key, value, default, why });
            }
        }
        idle
    }

    /// Settings of a part that the training does not have.
    fn without_use(&self) -> Vec<Idle> {
        let Self { run, augment, model, loss, optimizer, schedule, .. } = self;
        let mut idle = Vec::new();
        let mut add = |key: &'static str, value: Value, default: Value, why: &str| {
            idle.push(Idle { key, value, default, why: why.to_owned() });
        };
        let default = OptimizerConfig::default();
        if optimizer.kind == OptimizerKind::Sgd && optimizer.momentum == 0.0 {
            add("optimizer.nesterov", json!(optimizer.nesterov), json!(false), "optimizer.momentum is 0");
        }
        if !matches!(loss, LossConfig::Sum(_)) {
            let why = format!("only the loss `sum` has terms, and loss.kind is `{}`", loss.name());
            add("optimizer.lr_terms", json!(optimizer.lr_terms), json!([]), &why);
        } else if !optimizer.lr_terms.is_empty() {
            let why = "optimizer.lr_terms has a rate for each term";
            add("optimizer.lr_proxies", json!(optimizer.lr_proxies), json!(default.lr_proxies), why);
        }
        let batch_norm = [json!(model.batch_norm), json!(BatchNormMode::Live)];
        let patches = [json!(model.freeze_patch_embedding), json!(false)];
        let backbone = model.backbone.entry();
        if model.freeze_backbone {
            let why = "model.freeze_backbone is set, so the backbone learns nothing";
            let features = "model.freeze_backbone is set: features are computed once, without augmentation and in \
                            single precision";
            add("optimizer.lr_backbone", json!(optimizer.lr_backbone), json!(default.lr_backbone), why);
            add("schedule.warmup_steps", json!(schedule.warmup_steps), NONE, why);
            add("schedule.warmup_epochs", json!(schedule.warmup_epochs), NONE, why);
            let single = json!(Precision::Single);
            add("run.precision", json!(run.precision), single, features);
            add("augment", json!(augment.as_ref().map(|_| "set")), NONE, features);
        } else {
            let why = "the backbone is trained, so its features change with every step";
            add("model.feature_cache", json!(model.feature_cache), NONE, why);
        }
        let without = |part: &str| match model.freeze_backbone {
            true => "model.freeze_backbone is set, so the backbone learns nothing".to_owned(),
            false => format!("the backbone {} has no {part}", backbone.name),
        };
        if model.freeze_backbone || !backbone.batch_norm {
            let [value, default] = batch_norm;
            add("model.batch_norm", value, default, &without("batch normalisation"));
        }
        if model.freeze_backbone || backbone.patch.is_none() {
            let [value, default] = patches;
            add("model.freeze_patch_embedding", value, default, &without("patches"));
        }
        if run.evaluate_every_epochs == 0 {
            let why = "run.evaluate_every_epochs is 0, so there is only the evaluation at the end";
            add("run.best_by", json!(run.best_by), json!("h_ap"), why);
            add("run.patience", json!(run.patience), NONE, why);
        }
        idle
    }

    /// Names of splits and columns that this data set does not have.
    fn set_for_other_data(&self) -> Vec<Idle> {
        let data = &self.data;
        let own = format!("`{}` has splits of its own", data.kind.name());
        let no_columns = format!("`{}` has no columns", data.kind.name());
        let has_own = !data.kind.levels(false).is_empty();
        let is_drawn = data.test_fraction.is_some().then_some("data.test_fraction draws the splits");
        let splits = if has_own { Some(own.as_str()) } else { is_drawn };
        let gallery = splits.or(data.train_is_gallery.then_some("data.train_is_gallery is set"));
        let columns = (has_own || data.kind == DataKind::Folder).then_some(no_columns.as_str());
        let settings = [
            ("data.train", &data.train, "train", splits),
            ("data.test", &data.test, "test", splits),
            ("data.query", &data.query, "query", splits),
            ("data.gallery", &data.gallery, "gallery", gallery),
            ("data.split_column", &data.split_column, "split", columns.or(is_drawn)),
            ("data.path_column", &data.path_column, "path", columns),
        ];
        let idle = |(key, value, default, why): (_, &String, &str, Option<&str>)| {
            Some(Idle { key, value: json!(value), default: json!(default), why: why?.to_owned() })
        };
        settings.into_iter().filter_map(idle).collect()
    }

    /// A sentence for each setting that would take effect after the end of the training.
    fn late(&self, steps_per_epoch: Option<u64>) -> Vec<String> {
        let Self { run, schedule, model, .. } = self;
        let mut late = Vec::new();
        let in_steps = |epochs: Option<u64>| {
            epochs.zip(steps_per_epoch).map(|(epochs, each)| epochs.saturating_mul(each))
        };
        let mut add = |key: &str, begins: Option<u64>, unit: &str, effect: &str| {
            let Some(begins) = begins else { return };
            let (ends, other_unit) =
                if unit == "steps" { (run.steps, run.epochs) } else { (run.epochs, run.steps) };
            let is_late = match (ends, other_unit) {
                (Some(ends), _) => begins >= ends,
                (None, Some(epochs)) if unit == "steps" => {
                    in_steps(Some(epochs)).is_some_and(|ends| begins >= ends)
                }
                (None, Some(steps)) => in_steps(Some(begins)).is_some_and(|begins| begins >= steps),
                (None, None) => false,
            };
            if is_late {
                let length = |number: u64, unit: &str| {
                    counted(number as usize, unit.strip_suffix('s').unwrap_or(unit), unit)
                };
                let ends = match (run.steps, run.epochs) {
                    (Some(steps), _) => length(steps, "steps"),
                    (None, epochs) => length(epochs.unwrap_or(0), "epochs"),
                };
                let begins = length(begins, unit);
                late.push(format!("{key} is {begins}, but the training ends after {ends}, so {effect}"));
            }
        };
        if schedule.kind == ScheduleKind::Steps {
            let milestone = schedule.milestones.last().copied();
            add("the last of schedule.milestones", milestone, "epochs", "it is never reached");
            add("schedule.every_epochs", schedule.every_epochs, "epochs", "no learning rate falls");
        }
        if !model.freeze_backbone {
            let frozen = "the backbone learns nothing";
            add("schedule.warmup_epochs", schedule.warmup_epochs, "epochs", frozen);
            add("schedule.warmup_steps", schedule.warmup_steps, "steps", frozen);
        }
        let rising = "the learning rates never reach their values";
        add("schedule.lr_warmup_epochs", schedule.lr_warmup_epochs, "epochs", rising);
        add("schedule.lr_warmup_steps", schedule.lr_warmup_steps, "steps", rising);
        if run.evaluate_every_epochs > 0 {
            let every = Some(run.evaluate_every_epochs);
            add("run.evaluate_every_epochs", every, "epochs", "there is only the evaluation at the end");
            let mut too_patient = |name: &str, patience: Option<u64>, consequence: &str| {
                let (Some(patience), Some(epochs)) = (patience, run.epochs) else { return };
                // The first evaluation is the best so far. As many more have to be no better.
                if run.evaluate_every_epochs.saturating_mul(patience.saturating_add(1)) >= epochs {
                    late.push(format!(
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
        late
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use toml::Table;

    use super::super::{Config, Source};

    fn idle(sets: &[&str]) -> Vec<String> {
        config(&sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>()).idle_settings(None)
    }

    fn config(sets: &[String]) -> Config {
        let text = "[run]\nepochs = 10\n[data]\nkind = 'csv'\npath = 'x'\nlevels = ['a', 'b']\n[model]\n\
                    backbone = { kind = 'small_resnet' }\nhead = { dimension = 8 }\n[loss]\nkind = 'happier'\n";
        let source = Source::from_text(Path::new("x.toml"), text.into(), None, sets).unwrap();
        source.config(&Table::new()).unwrap()
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
    fn lengths_in_epochs_and_in_steps_are_compared_once_the_steps_of_an_epoch_are_known() {
        let config = |sets: &[&str]| {
            let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
            config(&sets)
        };
        let late = config(&["schedule.warmup_steps=70"]);
        assert_eq!((late.idle_settings(None), late.idle_settings(Some(8))), (vec![], vec![]));
        assert!(
            late.idle_settings(Some(7))[0].contains("is 70 steps, but the training ends after 10 epochs")
        );
        let late = config(&["run.steps=20", "schedule.lr_warmup_epochs=3"]);
        assert_eq!(late.idle_settings(Some(6)), Vec::<String>::new());
        assert!(late.idle_settings(Some(7))[0].contains("is 3 epochs, but the training ends after 20 steps"));
    }

    #[test]
    fn no_recipe_has_a_setting_without_effect() {
        let mut checked = 0;
        for recipe in crate::config::recipes::RECIPES {
            let text = recipe.text.replace("${AKIN_DATA}", "data");
            let config =
                Source::from_text(Path::new(recipe.name), text, None, &[]).unwrap().config(&Table::new());
            // Some leave the loss to their rows.
            let Ok(config) = config else { continue };
            assert_eq!(config.idle_settings(None), Vec::<String>::new(), "{}", recipe.name);
            checked += 1;
        }
        assert!(checked > 0);
    }

    #[test]
    fn what_is_idle_in_some_rows_only_is_not_mentioned() {
        let [sgd, adam] = ["sgd", "adam"].map(|kind| {
            config(&[
                format!("optimizer.kind={kind}"),
                "optimizer.momentum=0.5".into(),
                "run.patience=3".into(),
            ])
        });
        let both = Config::idle_in_all([&sgd, &adam]);
        assert!(both.len() == 1 && both[0].starts_with("run.patience is 3"), "{both:?}");
        assert_eq!((sgd.why_idle("optimizer.momentum"), adam.why_idle("augment.flip")), (None, None));
        assert!(sgd.why_idle("optimizer.beta_1").is_some());
    }

    #[test]
    fn settings_that_never_take_effect_are_named() {
        for (sets, part) in [
            (
                &["schedule={kind='steps',milestones=[3,10]}"][..],
                "milestones is 10 epochs, but the training ends after 10",
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
            (&["schedule.gamma=0.5"], "only `steps` and `plateau` use it, and schedule.kind is `cosine`"),
            (&["schedule.milestones=[3]"], "schedule.milestones is [3], but only `steps` uses it"),
            (&["schedule.every_epochs=3"], "schedule.every_epochs is 3, but only `steps` uses it"),
            (&["run.patience=3"], "run.patience is 3, but run.evaluate_every_epochs is 0"),
            (&["run.best_by=ap"], "run.best_by is ap, but run.evaluate_every_epochs is 0"),
            (&["optimizer.momentum=0.9"], "only `sgd` and `rmsprop` use it, and optimizer.kind is `adam`"),
            (&["optimizer.nesterov=true"], "only `sgd` uses it, and optimizer.kind is `adam`"),
            (&["optimizer={kind='sgd',nesterov=true}"], "optimizer.momentum is 0"),
            (
                &["optimizer={kind='sgd',beta_1=0.5}"],
                "optimizer.beta_1 is 0.5, but only `adam` and `adamw` use it",
            ),
            (&["optimizer.lr_terms=[1.0]"], "loss.kind is `happier`"),
            (&["sampler.batch_size=8"], "sampler.batch_size is 8, but only `random` uses it"),
            (&["sampler.batches_per_pair=8"], "sampler.kind is `classes`"),
            (&["sampler={kind='random',images_per_class=2}"], "sampler.images_per_class is 2, but only"),
            (&["model.feature_cache='x'"], "its features change with every step"),
            (&["model.freeze_patch_embedding=true"], "small_resnet has no patches"),
            (
                &["model.freeze_backbone=true", "augment.flip=true"],
                "augment is set, but model.freeze_backbone",
            ),
            (
                &["model.freeze_backbone=true", "run.precision=half"],
                "run.precision is half, but model.freeze_b",
            ),
            (
                &["model.freeze_backbone=true", "schedule.warmup_steps=3"],
                "schedule.warmup_steps is 3, but model",
            ),
            (
                &["data.train_is_gallery=true", "data.gallery=x"],
                "data.gallery is x, but data.train_is_gallery",
            ),
            (&["data.test_fraction=0.5", "data.test=x"], "data.test is x, but data.test_fraction"),
            (&["data={kind='sop',path='x',test='x'}"], "data.test is x, but `sop` has splits of its own"),
            (&["schedule={kind='constant',final_factor=0.5}"], "schedule.kind is `constant`"),
            (&["model.freeze_backbone=true", "optimizer.lr_backbone=0.5"], "model.freeze_backbone is set"),
        ] {
            let found = idle(sets);
            assert!(found.len() == 1 && found[0].contains(part), "{sets:?}: {found:?}");
        }
    }
}
