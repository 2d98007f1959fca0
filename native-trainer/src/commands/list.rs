//! `akin list`: the names of backbones, losses, miners, metrics, recipes and sources, and the settings of each.

use std::env;
use std::process::Command;

use akin_base::problem::{did_you_mean, problem};
use akin_base::progress::Progress;
use akin_base::quantities::{count, rounded, rounded_bytes};
use akin_base::terminal;
use akin_base::text_table::align_words;
use akin_core::losses::{LossConfig, LossEntry};
use akin_core::metrics::MetricEntry;
use akin_core::miners::{Miner, MinerEntry};
use akin_core::models::{BACKBONES, BackboneConfig, BackboneEntry};
use akin_core::sources::{SOURCES, Source};
use akin_core::{losses, metrics, miners};
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::device;
use crate::config::recipes::{RECIPES, Recipe};
use crate::config::reference::{SettingRow, inline, loss_settings, settings_of_kind};
use crate::config::{DataKind, DeviceName};
use crate::data;
use crate::training::step_cost::{StepCost, step_cost};

/// What to list.
#[derive(Debug, Subcommand)]
pub enum ListCommand {
    /// List the backbones, the networks from image to features that `model.backbone` names.
    Backbones(ListBackbonesArgs),
    /// List the losses, which the `kind` of a `[loss]` table names.
    Losses(ListLossesArgs),
    /// List the miners, which choose the pairs or triplets of a loss.
    Miners(ListMinersArgs),
    /// List the metrics that evaluation can report.
    Metrics(ListArgs),
    /// List the data sets that akin reads, which the `kind` of a `[data]` section names.
    Datasets(ListDatasetsArgs),
    /// List the built-in configs.
    Recipes(ListRecipesArgs),
    /// List the papers behind losses and metrics.
    Sources(ListSourcesArgs),
}

/// How to print a list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
}

/// The arguments of `akin list backbones`.
#[derive(Debug, Args)]
pub struct ListBackbonesArgs {
    /// Measure what a training step of 64 images costs on this machine: its memory, and its time with AdamW. A few images
    /// are measured and multiplied up, which takes some seconds for each backbone.
    #[arg(long)]
    pub costs: bool,
    /// Print the cost of a step of this backbone as JSON.
    #[arg(long, value_name = "NAME", hide = true)]
    pub cost_of: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `akin list losses`.
#[derive(Debug, Args)]
pub struct ListLossesArgs {
    /// List the settings of this loss, with their defaults and meaning.
    #[arg(long, value_name = "NAME")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `akin list miners`.
#[derive(Debug, Args)]
pub struct ListMinersArgs {
    /// List the settings of this miner, with their defaults and meaning.
    #[arg(long, value_name = "NAME")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `akin list datasets`.
#[derive(Debug, Args)]
pub struct ListDatasetsArgs {
    /// Show everything about this data set: levels, published counts, layout, licence, and where it is.
    #[arg(long, value_name = "NAME")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `akin list recipes`.
#[derive(Debug, Args)]
pub struct ListRecipesArgs {
    /// Print this recipe as TOML, for example to edit a copy of it.
    #[arg(long, value_name = "NAME", conflicts_with = "json")]
    pub show: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// The arguments of `akin list sources`.
#[derive(Debug, Args)]
pub struct ListSourcesArgs {
    /// Print a BibTeX entry for each source.
    #[arg(long, conflicts_with = "json")]
    pub bibtex: bool,
    #[command(flatten)]
    pub list: ListArgs,
}

/// A list: its columns and their cells.
struct List {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// Prints a list, the settings of one loss or miner, one recipe, or BibTeX.
pub fn run(command: ListCommand) -> Result<()> {
    let text = match command {
        ListCommand::Backbones(ListBackbonesArgs { cost_of: Some(name), .. }) => {
            let config = BackboneConfig::named(&name)?;
            serde_json::to_string(&step_cost(&config, STEP, &device::open(DeviceName::Auto)?)?)?
        }
        ListCommand::Backbones(args) => backbones(args.costs)?.print(&args.list)?,
        ListCommand::Losses(ListLossesArgs { show: Some(name), list }) => loss(&name, &list)?,
        ListCommand::Losses(args) if args.list.json => {
            serde_json::to_string_pretty(&*losses::CATALOGUE)? + "\n"
        }
        ListCommand::Losses(args) => losses().print(&args.list)?,
        ListCommand::Miners(ListMinersArgs { show: Some(name), list }) => miner(&name, &list)?,
        ListCommand::Miners(args) => miners().print(&args.list)?,
        ListCommand::Metrics(args) => metrics().print(&args)?,
        ListCommand::Datasets(ListDatasetsArgs { show: Some(name), list }) => dataset(&name)?.print(&list)?,
        ListCommand::Datasets(args) => datasets().print(&args.list)?,
        ListCommand::Recipes(ListRecipesArgs { show: Some(name), .. }) => recipe(&name)?.text.to_owned(),
        ListCommand::Recipes(args) => recipes().print(&args.list)?,
        ListCommand::Sources(args) if args.bibtex => {
            let entries: Vec<&str> = SOURCES.iter().map(|source| source.bibtex).collect();
            entries.join("\n\n") + "\n"
        }
        ListCommand::Sources(args) => sources().print(&args.list)?,
    };
    terminal::print(text.trim_end())?;
    Ok(())
}

impl List {
    /// The list as a table, or as JSON with an object for each row.
    fn print(&self, args: &ListArgs) -> Result<String> {
        if args.json {
            let object = |row: &Vec<String>| -> Value {
                self.header.iter().zip(row).map(|(key, value)| ((*key).to_owned(), json!(value))).collect()
            };
            let objects: Vec<Value> = self.rows.iter().map(object).collect();
            return Ok(serde_json::to_string_pretty(&objects)? + "\n");
        }
        // In a pipe or a file a row stays on one line.
        Ok(align_words(&self.header, &self.rows, terminal::width()) + "\n")
    }
}

/// A loss and its settings.
fn loss(name: &str, args: &ListArgs) -> Result<String> {
    let settings = settings(loss_settings(name)?);
    if args.json {
        return settings.print(args);
    }
    let entry = losses::CATALOGUE.iter().find(|entry| entry.name == name);
    let about = entry.map_or_else(String::new, |entry| {
        let spaces: Vec<&str> = entry.spaces.iter().map(|space| space.name()).collect();
        let preset = match entry.preset.map(serde_json::from_str::<Value>) {
            Some(Ok(preset)) => format!("Short for {}.\n", inline(&preset)),
            _ => String::new(),
        };
        format!(
            "{}{}\nOptimises {}. The geometry of the head must be {}.\n{}{preset}\n",
            titled(entry.title, entry.summary),
            cited(entry.sources),
            entry.optimises,
            spaces.join(" or "),
            match labels_of(entry) {
                "tree" => "It needs one label path for each item.\n",
                "any" => "Items may have several label paths, or a matrix of relevance.\n",
                _ => "",
            },
        )
    });
    Ok(about + &settings.print(args)?)
}

/// A miner and its settings.
fn miner(name: &str, args: &ListArgs) -> Result<String> {
    let names = || miners::CATALOGUE.iter().map(|entry| entry.name);
    let entry = miners::CATALOGUE.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let hint = format!("{}`akin list miners` lists all of them", did_you_mean(name, names()));
        problem(format!("unknown miner `{name}`"), hint)
    })?;
    let settings = settings(settings_of_kind::<Miner>(name, None));
    if args.json {
        return settings.print(args);
    }
    let settings =
        if settings.rows.is_empty() { "It has no settings.\n".into() } else { settings.print(args)? };
    Ok(format!("{}{}\n\n{settings}", titled(entry.title, entry.summary), cited(entry.sources)))
}

fn settings(rows: Vec<SettingRow>) -> List {
    // Markdown's marks mean nothing on a terminal.
    let plain = |text: String| text.replace('`', "");
    let row = |row: SettingRow| {
        let text = row.text();
        vec![row.key, plain(row.value), plain(row.default), text]
    };
    List { header: vec!["setting", "value", "default", "meaning"], rows: rows.into_iter().map(row).collect() }
}

fn losses() -> List {
    let row = |entry: &LossEntry| {
        vec![
            entry.name.to_owned(),
            entry.optimises.to_owned(),
            labels_of(entry).to_owned(),
            entry.spaces.iter().map(|space| space.name()).collect::<Vec<_>>().join(", "),
            format!("{}{}", titled(entry.title, entry.summary), cited(entry.sources)),
        ]
    };
    List {
        header: vec!["loss", "optimises", "labels", "geometry", "summary"],
        rows: losses::CATALOGUE.iter().map(row).collect(),
    }
}

/// What labels a loss works with: those of a tree alone; also several label paths or a matrix of relevance; or what its
/// parts work with.
fn labels_of(entry: &LossEntry) -> &'static str {
    match LossConfig::named(entry.name) {
        Ok(loss) if loss.needs_tree() => "tree",
        Ok(_) => "any",
        // Only a combination has settings without defaults.
        Err(_) => "as its parts",
    }
}

/// The title of an entry and its summary.
fn titled(title: &str, summary: &str) -> String {
    format!("{title}: {summary}")
}

/// Sources in brackets; nothing without sources.
fn cited(sources: &[&str]) -> String {
    if sources.is_empty() { String::new() } else { format!(" [{}]", sources.join(", ")) }
}

/// The cost of a step of a backbone, measured by another process: this one keeps memory of what it measured before.
fn cost_in_a_new_process(name: &str) -> Result<StepCost> {
    let arguments = ["list", "backbones", "--cost-of", name];
    let output =
        Command::new(env::current_exe()?).args(arguments).stderr(terminal::stderr_of_child()).output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| {
        problem(
            format!("the process that measured {name} ended without a result"),
            "there may be too little memory; `akin list backbones` without --costs needs none",
        )
    })
}

/// The images of the step whose cost is listed.
const STEP: u64 = 64;

fn backbones(costs: bool) -> Result<List> {
    let device = device::open(DeviceName::Auto)?;
    let row = |entry: &BackboneEntry| -> Result<Vec<String>> {
        let config = BackboneConfig::named(entry.name)?;
        let backbone = config.absent(&device)?;
        let mut row = vec![
            entry.name.to_owned(),
            config.features().to_string(),
            format!("{0}×{0}", entry.side),
            rounded(backbone.parameters()),
            rounded(backbone.multiply_adds(entry.side)),
            if entry.batch_norm { "yes" } else { "no" }.to_owned(),
            entry.weights.unwrap_or("none").to_owned(),
        ];
        if costs {
            Progress::default().say("Measuring", entry.title);
            let StepCost { memory, seconds } = cost_in_a_new_process(entry.name)?;
            row.push(memory.map_or("unknown".into(), rounded_bytes));
            row.push(seconds.map_or("too little memory".into(), |seconds| format!("{seconds:.1} s")));
        }
        row.push(entry.summary.replace('`', ""));
        Ok(row)
    };
    let costs = if costs { &["memory at 64", "step of 64"][..] } else { &[] };
    Ok(List {
        header: [
            &["backbone", "features", "image", "parameters", "multiply-adds", "batch norm", "weights"][..],
            costs,
            &["summary"],
        ]
        .concat(),
        rows: BACKBONES.iter().map(row).collect::<Result<_>>()?,
    })
}

fn miners() -> List {
    let row = |entry: &MinerEntry| {
        let summary = format!("{}{}", titled(entry.title, entry.summary), cited(entry.sources));
        vec![entry.name.to_owned(), summary]
    };
    List { header: vec!["miner", "summary"], rows: miners::CATALOGUE.iter().map(row).collect() }
}

fn metrics() -> List {
    let row = |entry: &MetricEntry| {
        vec![
            entry.spelling(),
            if entry.per_level { "each level" } else { "all levels" }.to_owned(),
            entry.unit.to_string(),
            if entry.greater_is_better { "higher" } else { "lower" }.to_owned(),
            entry.source.to_owned(),
            format!("{}: {}", entry.symbol, entry.title),
            entry.formula.to_owned(),
            entry.elsewhere().unwrap_or_default().replace('`', ""),
        ]
    };
    List {
        header: vec!["metric", "over", "range", "better", "source", "summary", "formula", "elsewhere"],
        rows: metrics::CATALOGUE.iter().map(row).collect(),
    }
}

fn datasets() -> List {
    let row = |kind: &DataKind| {
        let entry = data::entry(*kind);
        let levels = match kind.levels(true) {
            [] => "named by the config".to_owned(),
            levels => levels.join(", "),
        };
        vec![kind.name(), entry.title.to_owned(), levels, entry.content.to_owned()]
    };
    List { header: vec!["kind", "title", "levels", "content"], rows: DataKind::ALL.iter().map(row).collect() }
}

/// Everything about a data set.
fn dataset(name: &str) -> Result<List> {
    let kind = DataKind::named(name)?;
    let entry = data::entry(kind);
    let mut rows = Vec::new();
    let mut add = |key: &str, value: String| rows.push(vec![key.to_owned(), value]);
    add("content", entry.content.to_owned());
    add("layout", entry.layout.to_owned());
    if !kind.levels(true).is_empty() {
        add("levels", kind.levels(true).join(", "));
    }
    if let Some(counts) = &entry.counts {
        for split in counts.splits {
            let classes = split.classes.iter().map(|&(level, classes)| format!("{level} {}", count(classes)));
            let classes = classes.collect::<Vec<_>>().join(", ");
            let classes = if classes.is_empty() { classes } else { format!("; classes: {classes}") };
            add(split.split, format!("{} images{classes}", count(split.images.published())));
        }
        add("counts", format!("published in {}", counts.published_in));
    }
    add("licence", entry.licence.to_owned());
    match &entry.source {
        data::listing::Source::Own => {}
        data::listing::Source::Public(files) => {
            add("source", format!("`akin data fetch {name}` downloads it"));
            for file in *files {
                let checksum = file.md5.map_or(String::new(), |md5| format!(" (MD5 {md5})"));
                add("source", format!("{}{checksum}", file.address));
            }
        }
        data::listing::Source::Page(page) => add("source", (*page).to_owned()),
    }
    Ok(List { header: vec!["data set", entry.title], rows })
}

fn recipes() -> List {
    let row = |recipe: &Recipe| {
        let command = match recipe {
            recipe if recipe.compares() => "compare",
            recipe if recipe.tunes() => "tune",
            recipe if !recipe.trains() => "eval",
            _ => "train",
        };
        vec![recipe.name.to_owned(), format!("akin {command}"), recipe.title().to_owned()]
    };
    List { header: vec!["recipe", "for", "title"], rows: RECIPES.iter().map(row).collect() }
}

fn sources() -> List {
    let row = |source: &Source| vec![source.key.to_owned(), source.title()];
    List { header: vec!["source", "title"], rows: SOURCES.iter().map(row).collect() }
}

fn recipe(name: &str) -> Result<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name).ok_or_else(|| {
        let near = did_you_mean(name, RECIPES.iter().map(|recipe| recipe.name));
        problem(format!("unknown recipe `{name}`"), format!("{near}`akin list recipes` lists all of them"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_loss_and_miner_can_be_shown() {
        let args = ListArgs { json: false };
        for entry in losses::CATALOGUE.iter() {
            assert!(loss(entry.name, &args).unwrap().starts_with(entry.title), "{}", entry.name);
        }
        for entry in miners::CATALOGUE {
            assert!(miner(entry.name, &args).unwrap().starts_with(entry.title), "{}", entry.name);
        }
    }
}
