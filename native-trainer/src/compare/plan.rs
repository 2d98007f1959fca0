//! What is to be compared: the rows, the seeds, the grid, and the config of every cell.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use akin_core::digest::sha256;
use akin_core::losses::{CATALOGUE, Entry, Family, LossConfig};
use akin_core::metrics::Metric;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::cell::Cell;
use super::table::GROUPS;
use crate::config::{Config, DeviceName, Source, lay_over, put};
use crate::problem::{did_you_mean, problem, repeated};
use crate::run::encoder_config;

/// `[compare]`: what `akin compare` does if it is not told otherwise.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompareConfig {
    /// The rows, in order: losses of `akin list losses`, or names of `[compare.loss]`. `all` stands for
    /// every loss that is not named beside it. A loss that does not compare as the head of the recipe does has a
    /// head of its own kind. Default: the recipe's own loss.
    pub losses: Vec<String>,
    /// Default 0, 1, 2.
    pub seeds: Vec<u64>,
    /// The metrics that have columns. AP has one for every level; R@k stands for the finest.
    /// Default: R@1, AP, H-AP, ASI, NDCG.
    pub columns: Vec<Metric>,
    /// A grid of settings that every row tries, for example `{ "optimizer.lr_head" = [1e-4, 1e-3] }`.
    /// Default: none.
    pub tune: BTreeMap<String, Vec<Value>>,
    /// Settings that every row is repeated with, a group of the table for each combination, for example
    /// `{ "model.head.dimension" = [32, 64] }`. Default: none.
    pub vary: BTreeMap<String, Vec<Value>>,
    /// tune: the share of the training classes that settings are chosen on. Default 0.25.
    pub validation_fraction: f64,
    /// Rows that are more than a loss with its defaults, by name.
    pub loss: BTreeMap<String, RowConfig>,
}

impl Default for CompareConfig {
    fn default() -> Self {
        Self {
            losses: Vec::new(),
            seeds: vec![0, 1, 2],
            columns: vec![
                Metric::Recall(NonZeroUsize::MIN),
                Metric::Ap(None),
                Metric::HAp,
                Metric::Asi,
                Metric::Ndcg(None),
            ],
            tune: BTreeMap::new(),
            vary: BTreeMap::new(),
            validation_fraction: 0.25,
            loss: BTreeMap::new(),
        }
    }
}

/// `[compare.loss.NAME]`: a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RowConfig {
    /// What tables call it. Default: the title of the loss.
    pub label: Option<String>,
    /// Which rows it stands with. Default: `hierarchical` or `fine-grained`, by the loss.
    pub group: Option<String>,
    /// The metric that it is tuned and judged by. Default: the one that the loss optimises.
    pub optimises: Option<Metric>,
    /// Sections of the config that differ: loss, model, optimizer, schedule or eval.
    pub config: Table,
}

/// A row of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name, and that of its directory.
    pub name: String,
    /// What tables call it.
    pub label: String,
    /// Which rows it stands with.
    pub group: String,
    /// Whether only the rows of its group are its rivals, as the others differ in more than the loss.
    pub apart: bool,
    /// The metric that it is tuned and judged by.
    pub optimises: Metric,
    /// What is laid over the recipe.
    pub config: Table,
}

/// All of a comparison but its results.
pub struct Plan {
    /// What the table is called.
    pub name: String,
    /// The rows in their order.
    pub rows: Vec<Row>,
    /// The seeds in their order.
    pub seeds: Vec<u64>,
    /// The metrics that have columns.
    pub columns: Vec<Metric>,
    /// The settings to choose from, each a table to lay over the config; empty without `tune`.
    pub grid: Vec<Table>,
    /// The keys of the grid.
    pub tuned: Vec<String>,
    /// The share of the training classes that settings are chosen on.
    pub validation_fraction: f64,
    /// Where everything goes.
    pub out: PathBuf,
    source: Source,
    device: Option<DeviceName>,
}

/// What the command line asks for.
pub struct Asked {
    /// The rows, instead of the recipe's.
    pub losses: Vec<String>,
    /// The seeds, instead of the recipe's.
    pub seeds: Vec<u64>,
    /// Where everything goes. Default: `compare/NAME`.
    pub out: Option<PathBuf>,
    /// Where tensors are computed.
    pub device: Option<DeviceName>,
}

impl Plan {
    /// The plan of a recipe.
    ///
    /// # Errors
    ///
    /// A loss that is not known, a seed or row named twice, a row that changes what all must share.
    pub fn new(source: Source, asked: Asked) -> Result<Self> {
        let compare: CompareConfig = source.compare()?;
        let base = source.config(&Table::new())?;
        let losses = if asked.losses.is_empty() { &compare.losses } else { &asked.losses };
        let mut rows = Vec::new();
        for name in losses {
            if name == "all" {
                let unnamed =
                    |entry: &&Entry| entry.complete && !losses.iter().any(|name| name == entry.name);
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
                "there is nothing to compare",
                "name losses with `--losses`, or in [compare]; `akin list losses` has them all",
            ));
        }
        for row in &mut rows {
            settle(row, &source, &base)?;
        }
        let rows =
            if compare.vary.is_empty() { rows } else { varied(&rows, &combinations("vary", &compare.vary)?) };
        let seeds = if asked.seeds.is_empty() { compare.seeds } else { asked.seeds };
        let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
        once(&names, "loss")?;
        once(&seeds.iter().map(u64::to_string).collect::<Vec<_>>(), "seed")?;
        if seeds.is_empty() {
            return Err(problem("there is no seed", "give one or more, for example `--seeds 0,1,2`"));
        }
        let name = source.name();
        let out = asked.out.unwrap_or_else(|| Path::new("compare").join(&name));
        Ok(Self {
            name,
            rows,
            seeds,
            columns: compare.columns,
            grid: combinations("tune", &compare.tune)?,
            tuned: compare.tune.into_keys().collect(),
            validation_fraction: compare.validation_fraction,
            out: std::path::absolute(out)?,
            source,
            device: asked.device,
        })
    }

    /// The recipe's own config, as far as all rows share it.
    pub fn shared(&self) -> Result<Config> {
        Ok(self.cell("untrained", "", self.seeds[0], &Table::new(), |_| {})?.config)
    }

    /// What a row begins with, before any loss. Rows with the same model share it.
    pub fn untrained(&self, row: &Row, seed: u64) -> Result<Cell> {
        let mut over = row.config.clone();
        over.retain(|section, _| section == "model" || section == "eval");
        let name = match over.is_empty() {
            true => "untrained".to_owned(),
            false => format!("untrained-{}", &sha256(over.to_string().as_bytes())[..8]),
        };
        // Rows that share it may be judged by different metrics.
        let judges = self.rows.iter().map(|row| row.optimises);
        self.cell(&name, &format!("seed-{seed}"), seed, &over, |config| measure(config, judges))
    }

    /// A cell of the table: a row with a seed, and the settings that were chosen for it.
    pub fn trained(&self, row: &Row, settings: &Table, seed: u64) -> Result<Cell> {
        let mut over = row.config.clone();
        lay_over(&mut over, settings);
        self.cell(&row.name, &format!("seed-{seed}"), seed, &over, |config| {
            config.run.name = row.label.clone();
            measure(config, [row.optimises]);
        })
    }

    /// A run over the grid, with the smallest seed that is none of the table's.
    pub fn tuning(&self, row: &Row, place: usize) -> Result<Cell> {
        let seed = (0..).find(|seed| !self.seeds.contains(seed)).expect("seeds do not end");
        let mut over = row.config.clone();
        lay_over(&mut over, &self.grid[place]);
        self.cell(&row.name, &format!("tune-{place}"), seed, &over, |config| {
            config.run.name = format!("{} (tuning)", row.label);
            config.data.validation_fraction = Some(self.validation_fraction);
            measure(config, [row.optimises]);
        })
    }

    fn cell(
        &self,
        row: &str,
        run: &str,
        seed: u64,
        over: &Table,
        change: impl FnOnce(&mut Config),
    ) -> Result<Cell> {
        let mut config = self.source.config(over)?;
        config.run.out = self.out.join(row).join(run);
        config.run.seed = seed;
        config.run.device = self.device.unwrap_or(config.run.device);
        measure(&mut config, self.columns.iter().copied());
        change(&mut config);
        let model = &mut config.model;
        // Features of fixed weights are the same for all cells.
        if model.freeze_backbone && model.feature_cache.is_none() && model.weights.is_some() {
            model.feature_cache = Some(self.out.join("features.akin"));
        }
        Ok(Cell { config })
    }
}

/// Lets a run report metrics that it would not report by itself.
fn measure(config: &mut Config, metrics: impl IntoIterator<Item = Metric>) {
    for metric in metrics {
        if !config.eval.metrics.contains(&metric) {
            config.eval.metrics.push(metric);
        }
    }
}

/// The row of this name.
fn row(name: &str, compare: &CompareConfig) -> Result<Row> {
    let variant = compare.loss.get(name);
    let given = variant.cloned().unwrap_or_default();
    let mut config = given.config;
    let allowed = ["loss", "model", "optimizer", "schedule", "eval"];
    if let Some(section) = config.keys().find(|section| !allowed.contains(&section.as_str())) {
        return Err(problem(
            format!("[compare.loss.{name}] changes [{section}], which all rows share"),
            format!("change only {}", allowed.join(", ")),
        ));
    }
    let loss = config.entry("loss").or_insert_with(|| Value::Table(Table::new()));
    let Some(loss) = loss.as_table_mut() else {
        return Err(problem(
            format!("[compare.loss.{name}] has a loss that is not a table"),
            "write config.loss = { kind = \"NAME\" }",
        ));
    };
    let named_alone = loss.keys().all(|key| key == "kind");
    // A row may go by another name than its loss.
    let kind = loss.entry("kind").or_insert_with(|| Value::String(name.to_owned()));
    let kind = kind.as_str().unwrap_or_default();
    let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == kind) else {
        let rows = compare.loss.keys().map(String::as_str);
        let names = CATALOGUE.iter().map(|entry| entry.name).chain(rows);
        return Err(problem(
            format!("there is no loss `{kind}`"),
            format!("{}`akin list losses` names them all", did_you_mean(kind, names)),
        ));
    };
    if named_alone && !entry.complete {
        return Err(problem(
            format!("the loss `{kind}` is made of others, which its name alone does not say"),
            format!("name it in [compare.loss.NAME], with config.loss = {{ kind = \"{kind}\", … }}"),
        ));
    }
    // A preset whose settings are written out is still that preset.
    let preset = |known: &&Entry| known.name == name && known.preset.is_some();
    let entry = CATALOGUE.iter().find(preset).unwrap_or(entry);
    let optimises = match given.optimises {
        Some(metric) => metric,
        None => entry.optimises.parse()?,
    };
    Ok(Row {
        name: name.to_owned(),
        label: given.label.unwrap_or(entry.title.into()),
        group: given.group.unwrap_or(group(entry, optimises).into()),
        apart: false,
        optimises,
        config,
    })
}

/// Gives a row a head of the kind that its loss compares, if that of the recipe is another and it has said nothing of
/// it, and sets it apart if its head is not of the recipe's kind.
fn settle(row: &mut Row, source: &Source, base: &Config) -> Result<()> {
    let space_of = |config: &Config| encoder_config(config).geometry().space();
    let config = source.config(&row.config)?;
    let loss = &config.loss;
    let mut space = space_of(&config);
    if !loss.compares(space)
        && config.model.head == base.model.head
        && base.model.head.is_some()
        && let Some(&other) = loss.entry().spaces.iter().find(|&&space| loss.compares(space))
    {
        put(&mut row.config, "model.head.geometry.kind", Value::String(other.name().into()))?;
        space = other;
    }
    row.apart = space != space_of(base);
    Ok(())
}

/// The rows once with every combination of settings.
fn varied(rows: &[Row], combinations: &[Table]) -> Vec<Row> {
    let with = |settings: &Table| {
        let said = describe(settings);
        let name: Vec<String> = values(settings).into_iter().map(|(_, value)| value).collect();
        let said = said.replace("model.", "");
        rows.iter()
            .map(|row| {
                let mut config = row.config.clone();
                lay_over(&mut config, settings);
                let name = format!("{}-{}", row.name, name.join("-"));
                Row { name, group: said.clone(), apart: true, config, ..row.clone() }
            })
            .collect::<Vec<_>>()
    };
    combinations.iter().flat_map(with).collect()
}

/// Settings on one line: `optimizer.lr_head = 0.001, …`.
pub fn describe(settings: &Table) -> String {
    let said: Vec<String> =
        values(settings).into_iter().map(|(key, value)| format!("{key} = {value}")).collect();
    said.join(", ")
}

/// The keys and values of nested tables.
pub fn values(settings: &Table) -> Vec<(String, String)> {
    fn collect(table: &Table, path: &str, values: &mut Vec<(String, String)>) {
        for (key, value) in table {
            match value {
                Value::Table(table) => collect(table, &format!("{path}{key}."), values),
                value => values.push((format!("{path}{key}"), value.to_string())),
            }
        }
    }
    let mut all = Vec::new();
    collect(settings, "", &mut all);
    all
}

/// The rows that a loss stands with in a table.
fn group(entry: &Entry, optimises: Metric) -> &'static str {
    let [fine_grained, hierarchical, hyperbolic, hashing] = GROUPS;
    match entry.family {
        Family::Hashing => hashing,
        Family::Hyperbolic => hyperbolic,
        Family::Hierarchical => hierarchical,
        _ if optimises.entry().per_level => fine_grained,
        _ => hierarchical,
    }
}

/// Every combination of the values, each as a table to lay over a config; none of no key.
fn combinations(section: &str, choices: &BTreeMap<String, Vec<Value>>) -> Result<Vec<Table>> {
    if choices.is_empty() {
        return Ok(Vec::new());
    }
    let mut grid = vec![Table::new()];
    for (key, values) in choices {
        if values.is_empty() || !key.contains('.') {
            return Err(problem(
                format!("`{key}` of compare.{section} has no values, or is no key of the config"),
                "write SECTION.KEY = [VALUE, …], the key in quotes",
            ));
        }
        let mut wider = Vec::new();
        for settings in &grid {
            for value in values {
                let mut settings = settings.clone();
                put(&mut settings, key, value.clone())?;
                wider.push(settings);
            }
        }
        grid = wider;
    }
    Ok(grid)
}

/// Refuses names that come twice.
fn once(names: &[String], what: &str) -> Result<()> {
    match repeated(names) {
        None => Ok(()),
        Some(name) => Err(problem(format!("the {what} `{name}` is named twice"), "name it once")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stands_for_every_loss_each_under_a_head_that_it_fits() {
        let source = Source::read(Path::new("biomorphs"), &[]).unwrap();
        let losses = ["all", "hpdh", "hier_published_ball"].map(str::to_owned).to_vec();
        let plan = Plan::new(source, Asked { losses, seeds: Vec::new(), out: None, device: None }).unwrap();
        let row = |name: &str| plan.rows.iter().find(|row| row.name == name);
        for entry in CATALOGUE.iter().filter(|entry| entry.complete && entry.preset.is_none()) {
            assert!(row(entry.name).is_some(), "{} has no row", entry.name);
        }
        for row in &plan.rows {
            let config = plan.trained(row, &Table::new(), 0).unwrap().config;
            let space = encoder_config(&config).geometry().space();
            assert!(config.loss.compares(space), "{} under a head of {}", row.name, space.name());
        }
        let apart = |name: &str| row(name).unwrap().apart;
        assert_eq!(
            ["happier", "hier", "hpdh", "dcwh", "hier_published_ball"].map(apart),
            [false, false, true, true, true]
        );
        // Its settings are written out in the recipe, but what it is does not change with them.
        assert_eq!(row("hier_proxy_anchor").unwrap().label, "Proxy-Anchor + HIER");
    }

    #[test]
    fn a_grid_keeps_what_belongs_to_a_kind() {
        let of = |value: Value| vec![value];
        let keys = [("h.curvature", Value::Float(0.5)), ("h.kind", Value::String("poincare".into()))];
        let tune = keys.map(|(key, value)| (key.to_owned(), of(value))).into();
        let expected = toml::toml! { h = { curvature = 0.5, kind = "poincare" } };
        assert_eq!(combinations("tune", &tune).unwrap(), [expected]);
    }

    #[test]
    fn a_grid_has_every_combination() {
        let values = |numbers: &[i64]| numbers.iter().map(|&number| Value::Integer(number)).collect();
        let tune = BTreeMap::from([("a.x".to_owned(), values(&[1, 2])), ("b.y".into(), values(&[3, 4, 5]))]);
        let grid = combinations("tune", &tune).unwrap();
        assert_eq!(grid.len(), 6);
        assert_eq!(
            grid[4],
            toml::toml! { a = { x = 2 }
            b = { y = 4 } }
        );
    }
}
