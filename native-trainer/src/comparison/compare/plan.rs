//! What a comparison trains: its rows, seeds and settings, and the config of every run.

use std::path::{Path, PathBuf};

use akin_base::problem::{did_you_mean, problem, repeated};
use akin_core::digest::sha256;
use akin_core::losses::{CATALOGUE, Family, LossConfig, LossEntry};
use akin_core::metrics::Metric;
use anyhow::{Context, Result};
use toml::{Table, Value};

use super::config::{CompareConfig, TunedSetting};
use super::effects::check_effects;
use super::paired::check_seeds;
use super::planned_run::PlannedRun;
use super::results::GROUPS;
use super::settings::{SECTIONS, combinations, describe};
use crate::config::recipes::row_loss;
use crate::config::{Config, DeviceName, Source, dotted, lay_over, put};
use crate::runs::run::encoder_config;

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The row's name, which is also that of its directory.
    pub name: String,
    /// The row's name in tables.
    pub label: String,
    /// The group that the row stands in.
    pub group: String,
    /// Whether the row is ranked only within its group, because the others differ in more than the loss.
    pub apart: bool,
    /// The metric that the row is tuned and judged by.
    pub optimises: Metric,
    /// The settings that the row tunes: first those of all rows, then its own.
    pub tune: Vec<TunedSetting>,
    /// What the row changes in the recipe.
    pub config: Table,
    /// The part of these settings that `vary` gave it.
    pub varied: Table,
}

/// A comparison without its results.
pub struct Plan {
    /// The name of the comparison: that of the recipe.
    pub name: String,
    /// The rows in their order.
    pub rows: Vec<Row>,
    /// The seeds in their order.
    pub seeds: Vec<u64>,
    /// The metrics that get columns.
    pub columns: Vec<Metric>,
    /// The settings that all rows tune.
    pub tune: Vec<TunedSetting>,
    /// The share of the training classes that settings are chosen on.
    pub validation_fraction: f64,
    /// Where runs and tables go.
    pub out: PathBuf,
    /// A sentence for each setting of `vary` that has no effect in some rows.
    pub unused: Vec<String>,
    source: Source,
    device: Option<DeviceName>,
}

/// What the command line gives in place of the recipe.
#[derive(Default)]
pub struct Overrides {
    /// The rows, unless empty.
    pub losses: Vec<String>,
    /// The seeds, unless empty.
    pub seeds: Vec<u64>,
    /// Where runs and tables go. Default: `compare/NAME`.
    pub out: Option<PathBuf>,
    /// Where tensors are computed.
    pub device: Option<DeviceName>,
    /// The row that the others are compared with by paired tests.
    pub paired: Option<String>,
}

impl Plan {
    /// The plan of a recipe.
    ///
    /// # Errors
    ///
    /// An unknown loss, a seed or row named twice, a row that changes what all rows share; a training whose config would
    /// be wrong, by its row, `vary` or `tune`; a setting of `vary` that has no effect.
    pub fn new(source: Source, overrides: Overrides) -> Result<Self> {
        let compare: CompareConfig = source.command("compare")?;
        let base = source.config(&Table::new())?;
        let losses = if overrides.losses.is_empty() { &compare.losses } else { &overrides.losses };
        let mut rows = Vec::new();
        for name in losses {
            if name == "all" {
                let unnamed =
                    |entry: &&LossEntry| entry.complete && !losses.iter().any(|name| name == entry.name);
                let mut known = Vec::new();
                for entry in CATALOGUE.iter().filter(unnamed) {
                    let config = LossConfig::named(entry.name)?;
                    // Two names may stand for the same settings.
                    if !known.contains(&config) {
                        known.push(config);
                        rows.push(row(entry.name, &compare)?);
                    }
                }
            } else {
                rows.push(row(name, &compare)?);
            }
        }
        if rows.is_empty() {
            return Err(problem(
                "the config has no losses to compare",
                "name them with `--losses`, or in [compare]; `akin list losses` lists all losses",
            ));
        }
        for row in &mut rows {
            fit_head(row, &source, &base)?;
        }
        let mut unused = Vec::new();
        if !compare.vary.is_empty() {
            let in_vary = || source.place(&["compare", "vary"]);
            let combinations = combinations(&compare.vary).with_context(in_vary)?;
            let repeated = repeat_rows(&rows, &combinations);
            let config = |row| row_config(row, &source);
            let configs = repeated.iter().map(config).collect::<Result<Vec<_>>>()?;
            let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
            let place = |key: &str| source.place(&["compare", "vary", key]);
            unused = check_effects(&compare.vary, &names, &combinations, &configs, place)?;
            rows = repeated;
        }
        for row in &mut rows {
            add_published(row, &source, &base)?;
        }
        let seeds = if overrides.seeds.is_empty() { compare.seeds } else { overrides.seeds };
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        refuse_repeated(&names, "loss")?;
        refuse_repeated(&seeds.iter().map(u64::to_string).collect::<Vec<_>>(), "seed")?;
        if seeds.is_empty() {
            return Err(problem(
                "compare.seeds is empty",
                "give at least one seed, for example `--seeds 0,1,2`",
            ));
        }
        if let Some(against) = &overrides.paired {
            if !names.contains(against) {
                return Err(problem(
                    format!("`--paired {against}` names no row"),
                    format!(
                        "{}the rows are {}",
                        did_you_mean(against, names.iter().map(String::as_str)),
                        names.join(", ")
                    ),
                ));
            }
            check_seeds(seeds.len())?;
        }
        let name = source.name();
        let out = overrides.out.unwrap_or_else(|| Path::new("compare").join(&name));
        let plan = Self {
            name,
            rows,
            seeds,
            columns: compare.columns,
            tune: compare.tune,
            validation_fraction: compare.validation_fraction,
            out: std::path::absolute(out)?,
            unused,
            source,
            device: overrides.device,
        };
        plan.trainings()?;
        Ok(plan)
    }

    /// The config of each row, and of each value that a row tunes, with the place that says what is in it.
    ///
    /// # Errors
    ///
    /// A config that is wrong.
    pub fn trainings(&self) -> Result<Vec<(String, Config)>> {
        let mut trainings = Vec::new();
        for row in &self.rows {
            trainings.push((row_place(row, &self.source), row_config(row, &self.source)?));
            for setting in &row.tune {
                let is_shared = self.tune.iter().any(|shared| shared.key == setting.key);
                let path: &[&str] =
                    if is_shared { &["compare", "tune"] } else { &["compare", "loss", &row.name, "tune"] };
                for settings in setting.choices()? {
                    let place = || {
                        let settings = describe(&settings);
                        format!(
                            "{}: `tune` with {settings} in the row `{}`",
                            self.source.place(path),
                            row.name
                        )
                    };
                    let mut changes = row.config.clone();
                    lay_over(&mut changes, &settings);
                    trainings.push((place(), self.source.config_with(&changes, place)?));
                }
            }
        }
        Ok(trainings)
    }

    /// The recipe's own config. Rows change only its sections loss, model, optimizer, schedule and eval.
    pub fn shared(&self) -> Result<Config> {
        Ok(self.run("untrained", "", self.seeds[0], &Table::new(), |_| {})?.config)
    }

    /// The encoder that a row begins with. Rows with the same model share it.
    pub fn untrained(&self, row: &Row, seed: u64) -> Result<PlannedRun> {
        let mut changes = row.config.clone();
        changes.retain(|section, _| section == "model" || section == "eval");
        let name = match changes.is_empty() {
            true => "untrained".to_owned(),
            false => format!("untrained-{}", &sha256(changes.to_string().as_bytes())[..8]),
        };
        // Rows that share it may be judged by different metrics.
        let judges = self.rows.iter().map(|row| row.optimises);
        self.run(&name, &format!("seed-{seed}"), seed, &changes, |config| add_metrics(config, judges))
    }

    /// The training of a row with a seed, and the settings that were chosen for the row.
    pub fn trained(&self, row: &Row, settings: &Table, seed: u64) -> Result<PlannedRun> {
        let mut changes = row.config.clone();
        lay_over(&mut changes, settings);
        self.run(&row.name, &format!("seed-{seed}"), seed, &changes, |config| {
            config.run.name = row.label.clone();
            add_metrics(config, [row.optimises]);
        })
    }

    /// A training for tuning: a row with some settings, on a part of the training classes, with the smallest seed
    /// that the table does not use.
    pub fn trial(&self, row: &Row, settings: &Table) -> Result<PlannedRun> {
        let seed = (0..).find(|seed| !self.seeds.contains(seed)).expect("seeds do not end");
        let mut changes = row.config.clone();
        lay_over(&mut changes, settings);
        let name = format!("tune-{}", &sha256(settings.to_string().as_bytes())[..8]);
        self.run(&row.name, &name, seed, &changes, |config| {
            config.run.name = format!("{}, {}", row.label, describe(settings));
            config.split.validation_fraction = Some(self.validation_fraction);
            add_metrics(config, [row.optimises]);
        })
    }

    fn run(
        &self,
        row: &str,
        name: &str,
        seed: u64,
        changes: &Table,
        finish: impl FnOnce(&mut Config),
    ) -> Result<PlannedRun> {
        let mut config = self.source.config(changes)?;
        config.run.out = self.out.join(row).join(name);
        config.run.seed = seed;
        config.run.device = self.device.unwrap_or(config.run.device);
        add_metrics(&mut config, self.columns.iter().copied());
        finish(&mut config);
        let model = &mut config.model;
        // The features of fixed weights are the same for all runs.
        if model.freeze_backbone && model.feature_cache.is_none() && model.weights.is_some() {
            model.feature_cache = Some(self.out.join("features.akin"));
        }
        Ok(PlannedRun { config })
    }
}

/// Adds metrics to the report of a run.
fn add_metrics(config: &mut Config, metrics: impl IntoIterator<Item = Metric>) {
    for metric in metrics {
        if !config.eval.metrics.contains(&metric) {
            config.eval.metrics.push(metric);
        }
    }
}

/// The row of a name.
fn row(name: &str, compare: &CompareConfig) -> Result<Row> {
    let given = compare.loss.get(name).cloned().unwrap_or_default();
    let mut config = given.config;
    if let Some(section) =
        config.keys().find(|section| !SECTIONS.contains(&section.as_str()) && *section != "published")
    {
        return Err(problem(
            format!("[compare.loss.{name}] changes [{section}], which all rows share"),
            format!("change only {}", SECTIONS.join(", ")),
        ));
    }
    let Some(loss) = row_loss(&mut config, name) else {
        return Err(problem(
            format!("config.loss of [compare.loss.{name}] is not a table"),
            "write config.loss = { kind = \"NAME\" }",
        ));
    };
    let name_alone = loss.keys().all(|key| key == "kind");
    // A row may have another name than its loss.
    let kind = loss["kind"].as_str().unwrap_or_default();
    let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == kind) else {
        let rows = compare.loss.keys().map(String::as_str);
        let names = CATALOGUE.iter().map(|entry| entry.name).chain(rows);
        return Err(problem(
            format!("unknown loss `{kind}`"),
            format!("{}`akin list losses` lists all of them", did_you_mean(kind, names)),
        ));
    };
    if name_alone && !entry.complete {
        return Err(problem(
            format!("the loss `{kind}` combines other losses, and its name does not say which"),
            format!("write [compare.loss.NAME] with config.loss = {{ kind = \"{kind}\", … }}"),
        ));
    }
    // A preset whose settings are written out is still that preset.
    let preset = |known: &&LossEntry| known.name == name && known.preset.is_some();
    let entry = CATALOGUE.iter().find(preset).unwrap_or(entry);
    let optimises = match given.optimises {
        Some(metric) => metric,
        None => entry.optimises.parse()?,
    };
    let tune = [&compare.tune[..], &given.tune].concat();
    let keys: Vec<&str> = tune.iter().map(|setting| setting.key.as_str()).collect();
    if let Some(key) = repeated(&keys) {
        return Err(problem(
            format!("the row `{name}` tunes `{key}` twice"),
            "name each key once, in `tune` of [compare] or of the row",
        ));
    }
    for setting in &tune {
        setting.choices()?;
    }
    Ok(Row {
        name: name.to_owned(),
        label: given.label.unwrap_or(entry.title.into()),
        group: given.group.unwrap_or(default_group(entry, optimises).into()),
        apart: false,
        optimises,
        tune,
        config,
        varied: Table::new(),
    })
}

/// The config of a row with the settings of the recipe.
fn row_config(row: &Row, source: &Source) -> Result<Config> {
    source.config_with(&row.config, || row_place(row, source))
}

/// What a row changes, and where that stands.
fn row_place(row: &Row, source: &Source) -> String {
    let keys: Vec<String> = dotted(&row.varied).into_iter().map(|(key, _)| key).collect();
    let varied = || format!("`vary` with {} in the row `{}`", describe(&row.varied), row.name);
    match &keys[..] {
        [] => format!("{}: the row `{}`", source.place(&["compare", "loss", &row.name]), row.name),
        [key] => format!("{}: {}", source.place(&["compare", "vary", key]), varied()),
        _ => format!("{}: {}", source.place(&["compare", "vary"]), varied()),
    }
}

/// Gives a row a head that its loss can use, if the loss cannot use the recipe's head and the row does not set one.
/// Sets the row apart if its head is not of the recipe's geometry.
fn fit_head(row: &mut Row, source: &Source, base: &Config) -> Result<()> {
    let space_of = |config: &Config| encoder_config(config).geometry().space();
    let config = row_config(row, source)?;
    let loss = &config.loss;
    let mut space = space_of(&config);
    if !loss.supports(space)
        && config.model.head == base.model.head
        && base.model.head.is_some()
        && let Some(&other) = loss.entry().spaces.iter().find(|&&space| loss.supports(space))
    {
        put(&mut row.config, "model.head.geometry.kind", Value::String(other.name().into()))?;
        space = other;
    }
    row.apart = space != space_of(base);
    Ok(())
}

/// Gives a row what the recipe's own `[published]` says, if the row trains what the recipe does.
fn add_published(row: &mut Row, source: &Source, base: &Config) -> Result<()> {
    if let Some(published) = &base.published
        && !row.config.contains_key("published")
        && row_config(row, source)?.to_toml() == base.to_toml()
    {
        row.config.insert("published".into(), Value::try_from(published)?);
    }
    Ok(())
}

/// The rows once with each of several settings; the settings name the group.
fn repeat_rows(rows: &[Row], combinations: &[Table]) -> Vec<Row> {
    let with_settings = |settings: &Table| {
        let group = describe(settings).replace("model.", "");
        // A folder gets the same name.
        let plain = |value: String| value.trim_matches('"').replace(['/', '\\'], "-");
        let values: Vec<String> = dotted(settings).into_iter().map(|(_, value)| plain(value)).collect();
        rows.iter()
            .map(|row| {
                let mut config = row.config.clone();
                lay_over(&mut config, settings);
                let name = format!("{}-{}", row.name, values.join("-"));
                let varied = settings.clone();
                Row { name, group: group.clone(), apart: true, config, varied, ..row.clone() }
            })
            .collect::<Vec<_>>()
    };
    combinations.iter().flat_map(with_settings).collect()
}

/// The group of a row that does not name one.
fn default_group(entry: &LossEntry, optimises: Metric) -> &'static str {
    let [fine_grained, hierarchical, hyperbolic, hashing] = GROUPS;
    match entry.family {
        Family::Hashing => hashing,
        Family::Hyperbolic => hyperbolic,
        Family::Hierarchical => hierarchical,
        _ if optimises.entry().per_level => fine_grained,
        _ => hierarchical,
    }
}

fn refuse_repeated(names: &[String], what: &str) -> Result<()> {
    match repeated(names) {
        None => Ok(()),
        Some(name) => Err(problem(format!("the {what} `{name}` is named twice"), "name it once")),
    }
}

#[cfg(test)]
mod tests {
    use akin_base::problem::parts;

    use super::*;
    use crate::config::recipes::RECIPES;
    use crate::training::checks::check_loss_settings;

    fn plan(losses: &[&str], sets: &[&str]) -> Result<Plan, (String, Option<String>)> {
        let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
        let losses = losses.iter().map(|&loss| loss.to_owned()).collect();
        let source = Source::read(Path::new("biomorphs"), &sets).unwrap();
        Plan::new(source, Overrides { losses, ..Overrides::default() }).map_err(|error| parts(&error))
    }

    #[test]
    fn a_setting_without_effect_in_any_row_is_refused() {
        for (set, part) in [
            (
                "{'model.freeze_patch_embedding'=[true,false]}",
                "has model.freeze_patch_embedding, which has no effect: the backbone small_resnet has no patches",
            ),
            (
                "{'schedule.curve.gamma'=[0.1,0.5]}",
                "unknown key `gamma` in [schedule.curve]: it belongs to `steps`, `plateau`, not to `cosine`",
            ),
            (
                "{optimizer=[{lr_head=0.1},{lr_head=0.1,rule={kind='adam'}}]}",
                "has no effect: all of its values give the same config",
            ),
            ("{'loss.lambda'=[0.1,0.1]}", "gives `loss.lambda` the value 0.1 twice"),
            ("{'loss.margin'=[1,1.0]}", "gives `loss.margin` the value 1.0 twice"),
        ] {
            let set = format!("compare.vary={set}");
            let (message, hint) = plan(&["happier"], &[&set]).err().unwrap();
            assert!(message.contains(part) && message.contains("`--set compare.vary="), "{set}: {message}");
            assert!(hint.is_some(), "{set}");
        }
        let (message, _) =
            plan(&["smooth_ap"], &["compare.vary={'optimizer.lr_proxies'=[0.1,0.5]}"]).err().unwrap();
        assert!(message.contains("which has no effect: the loss smooth_ap has no proxies"), "{message}");
    }

    #[test]
    fn a_setting_without_effect_in_some_rows_is_told_with_them() {
        let unused =
            |losses: &[&str], set: &str| plan(losses, &[&format!("compare.vary={set}")]).unwrap().unused;
        let nothing = Vec::<String>::new();
        assert_eq!(unused(&["happier"], "{'loss.lambda'=[0.1,0.5]}"), nothing);
        assert_eq!(
            unused(&["happier"], "{'schedule.curve.final_factor'=[0.1]}"),
            nothing,
            "it is not repeated"
        );
        let rates = "{'optimizer.lr_proxies'=[0.1,0.5]}";
        let [sentence] = &unused(&["proxy_anchor", "smooth_ap", "happier"], rates)[..] else {
            panic!("one sentence")
        };
        assert_eq!(
            sentence,
            "`vary` has optimizer.lr_proxies, which has no effect in the row `smooth_ap`: the loss smooth_ap has no proxies"
        );
        let rates = "{'model.freeze_backbone'=[true,false],'optimizer.lr_backbone'=[0.1,0.5]}";
        let [sentence] = &unused(&["happier"], rates)[..] else { panic!("one sentence") };
        let part = "optimizer.lr_backbone, which has no effect in the row `happier` with model.freeze_backbone = true";
        assert!(sentence.contains(part), "{sentence}");
    }

    #[test]
    fn kinds_of_a_table_may_vary() {
        let curves =
            "compare.vary={'schedule.curve.kind'=['cosine','constant'],'optimizer.rule.kind'=['adam','sgd']}";
        assert_eq!(plan(&["happier"], &[curves]).unwrap().rows.len(), 4);
    }

    #[test]
    fn all_stands_for_every_loss_each_with_a_head_that_it_can_use() {
        let source = Source::read(Path::new("biomorphs"), &[]).unwrap();
        let losses = ["all", "hpdh", "hier_ball"].map(str::to_owned).to_vec();
        let plan = Plan::new(source, Overrides { losses, ..Overrides::default() }).unwrap();
        let row = |name: &str| plan.rows.iter().find(|row| row.name == name);
        for entry in CATALOGUE.iter().filter(|entry| entry.complete && entry.preset.is_none()) {
            assert!(row(entry.name).is_some(), "{} has no row", entry.name);
        }
        for row in &plan.rows {
            let config = plan.trained(row, &Table::new(), 0).unwrap().config;
            let space = encoder_config(&config).geometry().space();
            assert!(config.loss.supports(space), "{} with a head for {}", row.name, space.name());
        }
        let apart = |name: &str| row(name).unwrap().apart;
        assert_eq!(
            ["happier", "hier", "hpdh", "dcwh", "hier_ball"].map(apart),
            [false, false, true, true, true]
        );
        // Its settings are written out in the recipe, but it is still the preset.
        assert_eq!(row("hier_proxy_anchor").unwrap().label, "Proxy-Anchor + HIER");
    }

    #[test]
    fn a_row_is_named_by_its_values_as_one_folder() {
        let varied = "compare.vary={'loss.lambda'=[0.5],'model.weights'=['a/b.pth','c.pth']}";
        let names: Vec<String> =
            plan(&["happier"], &[varied]).unwrap().rows.into_iter().map(|row| row.name).collect();
        assert_eq!(names, ["happier-0.5-a-b.pth", "happier-0.5-c.pth"]);
    }

    #[test]
    fn a_loss_of_the_recipes_kind_keeps_its_settings() {
        let sets = ["loss={kind='happier',lambda=0.3}".to_owned()];
        let source = Source::read(Path::new("biomorphs"), &sets).unwrap();
        let losses = ["happier", "happier_text", "roadmap"].map(str::to_owned).to_vec();
        let plan = Plan::new(source, Overrides { losses, ..Overrides::default() }).unwrap();
        let losses: Vec<LossConfig> =
            plan.rows.iter().map(|row| plan.trained(row, &Table::new(), 0).unwrap().config.loss).collect();
        let setting = |loss: &LossConfig| serde_json::to_value(loss).unwrap()["lambda"].as_f64();
        assert_eq!(setting(&losses[0]), Some(0.3));
        let defaults = ["happier_text", "roadmap"].map(|name| LossConfig::named(name).unwrap());
        assert_eq!(losses[1..], defaults);
    }

    #[test]
    fn every_recipe_is_a_config_and_compares_known_losses() {
        for recipe in RECIPES.iter().filter(|recipe| recipe.trains()) {
            let text = recipe.text.replace("${AKIN_DATA}", "data");
            let sets = ["data.path=labels.csv".to_owned()];
            let source = Source::from_text(Path::new(recipe.name), text, None, &sets).unwrap();
            source.config(&Table::new()).unwrap();
            if !recipe.compares() {
                continue;
            }
            let plan = Plan::new(source, Overrides::default()).unwrap();
            assert_eq!(plan.unused, Vec::<String>::new(), "{}", recipe.name);
            for (place, config) in plan.trainings().unwrap() {
                check_loss_settings(&config).context(place).unwrap();
            }
            for row in &plan.rows {
                let run = plan.trained(row, &Table::new(), 0).unwrap();
                assert!(run.directory().ends_with(format!("{}/seed-0", row.name)));
                for settings in row.tune.iter().flat_map(|setting| setting.choices().unwrap()) {
                    plan.trial(row, &settings).unwrap();
                }
            }
        }
    }
}
