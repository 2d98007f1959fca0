//! Settings that can never take effect. They are no errors, but rarely what was meant.
//!
//! A key of another kind cannot be written. What stands here depends on settings in other tables, on the length of the
//! training, or on the images.

use std::path::PathBuf;

use akin_base::quantities::counted;
use akin_core::encoder::{BatchNormMode, Precision};
use akin_core::losses::LossConfig;
use serde_json::{Value, json};

use super::{Config, Curve, OptimizerConfig, Rule, Selection, Sgd, SplitNames};

/// A setting that has no effect beside the others, whatever its value is.
#[derive(Clone)]
struct Unused {
    key: &'static str,
    value: Value,
    default: Value,
    why: String,
}

const NONE: Value = Value::Null;

impl Config {
    /// A sentence for each setting that is not at its default and can never take effect. A length in epochs is compared
    /// with one in steps only if the steps of an epoch are known.
    pub fn unused_settings(&self, steps_per_epoch: Option<u64>) -> Vec<String> {
        let unused = self.unused().into_iter().filter(|unused| unused.value != unused.default);
        let mut sentences: Vec<String> = unused
            .map(|Unused { key, value, why, .. }| match value {
                Value::String(text) => format!("{key} is {text}, but {why}"),
                value => format!("{key} is {value}, but {why}"),
            })
            .collect();
        sentences.extend(self.late(steps_per_epoch));
        sentences
    }

    /// The sentences of [`Self::unused_settings`] that hold for every one of some configs.
    pub fn unused_in_all<'a>(configs: impl IntoIterator<Item = &'a Self>) -> Vec<String> {
        let each = configs.into_iter().map(|config| config.unused_settings(None));
        each.reduce(|all, own| all.into_iter().filter(|sentence| own.contains(sentence)).collect())
            .unwrap_or_default()
    }

    /// Why a setting has no effect, whatever its value is; none if it has one.
    pub fn why_unused(&self, key: &str) -> Option<String> {
        let is_key = |unused: &Unused| {
            key == unused.key || key.strip_prefix(unused.key).is_some_and(|rest| rest.starts_with('.'))
        };
        self.unused().into_iter().find(is_key).map(|unused| unused.why)
    }

    /// Every setting that has no effect beside the others. The first entry of a key is the one that counts.
    fn unused(&self) -> Vec<Unused> {
        [self.without_use(), self.names_without_use()].concat()
    }

    /// Settings of a part that the training does not have.
    fn without_use(&self) -> Vec<Unused> {
        let Self { run, augment, model, loss, optimizer, schedule, .. } = self;
        let mut unused = Vec::new();
        let mut add = |key: &'static str, value: Value, default: Value, why: &str| {
            unused.push(Unused { key, value, default, why: why.to_owned() });
        };
        let default = OptimizerConfig::default();
        if let Rule::Sgd(Sgd { momentum: 0.0, nesterov }) = optimizer.rule {
            add("optimizer.rule.nesterov", json!(nesterov), json!(false), "optimizer.rule.momentum is 0");
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
            add("optimizer.layer_decay", json!(optimizer.layer_decay), json!(1.0), why);
            add("model.lora", json!(model.lora), NONE, why);
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
        if model.lora.is_some() {
            let [value, default] = &patches;
            let why = "model.lora is set, so only the adapters of the backbone are trained";
            add("model.freeze_patch_embedding", value.clone(), default.clone(), why);
        } else if model.freeze_backbone || backbone.patch.is_none() {
            let [value, default] = patches;
            add("model.freeze_patch_embedding", value, default, &without("patches"));
            add("model.drop_path", json!(model.drop_path), json!(0.0), &without("drop path"));
        }
        if run.evaluate_every_epochs == 0 {
            let why = "run.evaluate_every_epochs is 0, so there is only the evaluation at the end";
            add("run.best_by", json!(run.best_by), json!("h_ap"), why);
            add("run.patience", json!(run.patience), NONE, why);
        }
        unused
    }

    /// Names of splits and of their column where the splits are drawn, or the gallery is the training split.
    fn names_without_use(&self) -> Vec<Unused> {
        let (Some(names), default) = (self.data.split_names(), SplitNames::default()) else {
            return Vec::new();
        };
        let is_drawn = self.split.test_fraction.is_some().then_some("split.test_fraction draws the splits");
        let gallery = is_drawn.or(self.split.train_is_gallery.then_some("split.train_is_gallery is set"));
        let default_column = "split".to_owned();
        let column = self.data.table().map_or(&default_column, |table| &table.split_column);
        let settings = [
            ("data.splits.train", &names.train, &default.train, is_drawn),
            ("data.splits.test", &names.test, &default.test, is_drawn),
            ("data.splits.query", &names.query, &default.query, is_drawn),
            ("data.splits.gallery", &names.gallery, &default.gallery, gallery),
            ("data.split_column", column, &default_column, is_drawn),
        ];
        let unused = |(key, value, default, why): (_, &String, &String, Option<&str>)| {
            Some(Unused { key, value: json!(value), default: json!(default), why: why?.to_owned() })
        };
        settings.into_iter().filter_map(unused).collect()
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
        if let Curve::Steps { milestones, every_epochs, .. } = &schedule.curve {
            let milestone = milestones.last().copied();
            add("the last of schedule.curve.milestones", milestone, "epochs", "it is never reached");
            add("schedule.curve.every_epochs", *every_epochs, "epochs", "no learning rate falls");
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
            too_patient("schedule.curve.patience", schedule.patience(), "no learning rate falls in");
        }
        late
    }
}

impl Selection {
    /// A sentence for each setting that has no effect on these images: those at `paths`, whose queries rank each other or
    /// a gallery of their own. Settings that have no effect on any images are in [`Config::unused_settings`].
    pub fn unused_settings(&self, rank_each_other: bool, paths: &[PathBuf]) -> Vec<String> {
        let mut sentences = Vec::new();
        // Other settings say then which images are evaluated on.
        let names =
            self.data.split_names().filter(|_| !self.split.is_drawn() && !self.split.train_is_gallery);
        if let Some(SplitNames { test, query, gallery, .. }) = names {
            let (unused, evaluated) = match rank_each_other {
                true => (
                    vec![("query", query), ("gallery", gallery)],
                    format!("the images of `{test}` rank each other"),
                ),
                false => (
                    vec![("test", test)],
                    format!("the queries are `{query}` and the gallery is `{gallery}`"),
                ),
            };
            for (key, name) in unused.iter().filter(|(key, name)| key != name) {
                sentences
                    .push(format!("data.splits.{key} is {name}, but no image is in that split: {evaluated}"));
            }
        }
        if let Some(folder) = self.data.table().and_then(|table| table.images.as_ref())
            && !paths.iter().any(|path| path.starts_with(folder))
        {
            sentences.push(format!(
                "data.images is {}, but {} names no image in that folder",
                folder.display(),
                self.data.path().display()
            ));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use toml::Table;

    use super::super::{Config, Source};

    fn unused(sets: &[&str]) -> Vec<String> {
        config(&sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>()).unused_settings(None)
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
        assert_eq!(unused(&[]), nothing);
        assert_eq!(unused(&["schedule.curve={kind='steps',milestones=[3,9],gamma=0.5}"]), nothing);
        assert_eq!(unused(&["run.evaluate_every_epochs=2", "run.patience=3"]), nothing);
        assert_eq!(unused(&["schedule.warmup_epochs=9", "schedule.lr_warmup_epochs=9"]), nothing);
        assert_eq!(
            unused(&["run.steps=5", "schedule.curve={kind='steps',milestones=[30]}"]),
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
        assert_eq!((late.unused_settings(None), late.unused_settings(Some(8))), (vec![], vec![]));
        assert!(
            late.unused_settings(Some(7))[0].contains("is 70 steps, but the training ends after 10 epochs")
        );
        let late = config(&["run.steps=20", "schedule.lr_warmup_epochs=3"]);
        assert_eq!(late.unused_settings(Some(6)), Vec::<String>::new());
        assert!(
            late.unused_settings(Some(7))[0].contains("is 3 epochs, but the training ends after 20 steps")
        );
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
            assert_eq!(config.unused_settings(None), Vec::<String>::new(), "{}", recipe.name);
            checked += 1;
        }
        assert!(checked > 0);
    }

    #[test]
    fn what_is_unused_in_some_rows_only_is_not_mentioned() {
        let [frozen, trained] = ["true", "false"].map(|frozen| {
            config(&[
                format!("model.freeze_backbone={frozen}"),
                "optimizer.lr_backbone=0.5".into(),
                "run.patience=3".into(),
            ])
        });
        let both = Config::unused_in_all([&frozen, &trained]);
        assert!(both.len() == 1 && both[0].starts_with("run.patience is 3"), "{both:?}");
        assert_eq!(
            (frozen.why_unused("optimizer.lr_head"), trained.why_unused("augment.flip")),
            (None, None)
        );
        assert!(frozen.why_unused("augment.flip").is_some());
    }

    #[test]
    fn settings_that_never_take_effect_are_named() {
        for (sets, part) in [
            (
                &["schedule.curve={kind='steps',milestones=[3,10]}"][..],
                "milestones is 10 epochs, but the training ends after 10",
            ),
            (&["schedule.curve={kind='steps',every_epochs=10}"], "no learning rate falls"),
            (&["schedule.warmup_epochs=10"], "the backbone learns nothing"),
            (&["run.steps=5", "schedule.warmup_steps=7"], "schedule.warmup_steps is 7"),
            (&["schedule.lr_warmup_epochs=11"], "never reach their values"),
            (&["run.evaluate_every_epochs=10"], "only the evaluation at the end"),
            (
                &["run.evaluate_every_epochs=2", "run.patience=4"],
                "run.patience is 4 evaluations, one every 2 epochs",
            ),
            (
                &["run.evaluate_every_epochs=1", "schedule.curve={kind='plateau',patience=9}"],
                "schedule.curve.patience is 9 evaluations, one every 1 epoch",
            ),
            (&["run.patience=3"], "run.patience is 3, but run.evaluate_every_epochs is 0"),
            (&["run.best_by=ap"], "run.best_by is ap, but run.evaluate_every_epochs is 0"),
            (&["optimizer.rule={kind='sgd',nesterov=true}"], "optimizer.rule.momentum is 0"),
            (&["optimizer.lr_terms=[1.0]"], "loss.kind is `happier`"),
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
                &["split.train_is_gallery=true", "data.splits.gallery=x"],
                "data.splits.gallery is x, but split.train_is_gallery",
            ),
            (
                &["split.test_fraction=0.5", "data.splits.test=x"],
                "data.splits.test is x, but split.test_fraction",
            ),
            (
                &["split.test_fraction=0.5", "data.split_column=x"],
                "data.split_column is x, but split.test_fraction",
            ),
            (&["model.freeze_backbone=true", "optimizer.lr_backbone=0.5"], "model.freeze_backbone is set"),
        ] {
            let found = unused(sets);
            assert!(found.len() == 1 && found[0].contains(part), "{sets:?}: {found:?}");
        }
    }

    /// What is unused in a CSV file with these settings, if its queries rank each other or not, and it has these images.
    fn unused_in(data: &str, rank_each_other: bool, paths: &[&str]) -> Vec<String> {
        let config = config(&[format!("data={{kind='csv',path='/x.csv',levels=['kind'],{data}}}")]);
        let paths: Vec<_> = paths.iter().map(PathBuf::from).collect();
        config.selection().unused_settings(rank_each_other, &paths)
    }

    #[test]
    fn splits_without_an_image_are_named() {
        assert_eq!(
            unused_in("splits={gallery='database',query='probe'}", true, &[]),
            [
                "data.splits.query is probe, but no image is in that split: the images of `test` rank each other",
                "data.splits.gallery is database, but no image is in that split: the images of `test` rank each other",
            ]
        );
        assert_eq!(
            unused_in("splits={query='probe',test='held-out'}", false, &[]),
            [
                "data.splits.test is held-out, but no image is in that split: the queries are `probe` and the gallery is `gallery`"
            ]
        );
        assert_eq!(unused_in("splits={query='probe'}", false, &[]), Vec::<String>::new());
    }

    #[test]
    fn a_folder_without_an_image_of_the_file_is_named() {
        assert_eq!(unused_in("images='/photos'", true, &["/a.png", "/photos/b.png"]), Vec::<String>::new());
        assert_eq!(
            unused_in("images='/photos'", true, &["/a.png"]),
            ["data.images is /photos, but /x.csv names no image in that folder"]
        );
    }
}
