//! `akin config`: checks a config, and shows it with every default.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use akin_base::quantities::counted;
use akin_base::text_table::align_words;
use akin_base::{shell, terminal};
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use toml::Table;

use crate::commands::arguments::SetArgs;
use crate::comparison::compare::config::CompareConfig;
use crate::comparison::compare::plan::{Overrides as CompareOverrides, Plan as ComparePlan};
use crate::comparison::tune::plan::{Overrides as TuneOverrides, Plan as TunePlan};
use crate::config::device;
use crate::config::explained::SECTIONS;
use crate::config::{Config, Origin, Source, dotted};
use crate::data::check_columns;
use crate::runs::run::encoder_config;
use crate::training::check_encoder;
use crate::training::checks::{check_loss_settings, unused_settings};

/// The commands on a config.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    Check(ConfigCheckArgs),
    Show(ConfigShowArgs),
}

/// Check a config without reading any image.
///
/// Checks every key and value, also in what `[compare]` and `[tune]` plan, and whether data, weights and back end are
/// there. Prints what the config says in a few lines. Exits with 1 if something is wrong; `akin data check` then looks at the images.
#[derive(Debug, Args)]
pub struct ConfigCheckArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Print the summary as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Show a config with every default, and where each value comes from.
///
/// Prints TOML, with a comment beside each value: the line of the file, `--set`, or the default. The values of the
/// loss, the preprocessing and the levels are those that a training would use.
#[derive(Debug, Args)]
pub struct ConfigShowArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Leave out values that are defaults.
    #[arg(long)]
    pub changed: bool,
    /// Print JSON: for each dotted key its value, and where it comes from.
    #[arg(long)]
    pub json: bool,
}

/// Which config.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// A TOML file, or the name of a recipe from `akin list recipes`.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
}

impl SourceArgs {
    fn read(&self) -> Result<(Source, Config, Option<TunePlan>)> {
        let source = Source::read(&self.config, &self.sets.set)?;
        let config = source.config(&Table::new())?;
        if source.has_command("compare") {
            source.command::<CompareConfig>("compare")?;
        }
        let tuning = match source.has_command("tune") {
            true => Some(TunePlan::new(source.clone(), TuneOverrides::default())?),
            false => None,
        };
        Ok((source, config, tuning))
    }
}

/// What `akin compare` would train; none without a section `[compare]`.
///
/// # Errors
///
/// The errors of [`ComparePlan::new`].
fn comparison(source: &Source, config: &Config) -> Result<Option<ComparePlan>> {
    if !source.has_command("compare") {
        return Ok(None);
    }
    let mut overrides = CompareOverrides::default();
    if source.command::<CompareConfig>("compare")?.losses.is_empty() {
        // `--losses` names them later. The other settings of the section are checked with the loss of the config.
        if !config.loss.entry().complete {
            return Ok(None);
        }
        overrides.losses = vec![config.loss.name().to_owned()];
    }
    ComparePlan::new(source.clone(), overrides).map(Some)
}

/// Runs a command on a config.
pub fn run(command: ConfigCommand) -> Result<()> {
    match command {
        ConfigCommand::Check(args) => check(&args),
        ConfigCommand::Show(args) => show(&args),
    }
}

fn check(args: &ConfigCheckArgs) -> Result<()> {
    let (source, config, tuning) = args.source.read()?;
    let comparison = comparison(&source, &config)?;
    let file = source.file().display();
    let missing = |[section, key]: [&str; 2], path: &Path| {
        let place = source.place(&[section, key]);
        problem(
            format!("{place}: {section}.{key} is {}, which does not exist", path.display()),
            "correct the path",
        )
    };
    if !config.data.path().exists() {
        return Err(missing(["data", "path"], config.data.path()));
    }
    check_columns(&config.selection())?;
    if let Some(weights) = config.model.weights.as_ref().filter(|weights| !weights.is_file()) {
        return Err(missing(["model", "weights"], weights));
    }
    let device = device::open(config.run.device)?;
    let encoder = encoder_config(&config);
    let side = encoder.preprocessing.side();
    // A backbone that cannot read images of this size is refused here, and weights of another one.
    match config.model.weights {
        None => drop(encoder.absent(&device)?),
        Some(_) => check_encoder(&config, &device)?,
    }
    check_loss_settings(&config)?;
    let mut unused = unused_settings(&config, None);
    if let Some(comparison) = &comparison {
        for (place, config) in comparison.trainings()? {
            check_loss_settings(&config).context(place)?;
        }
        unused.extend_from_slice(&comparison.unused);
    }
    if let Some(tuning) = &tuning {
        for (place, config) in tuning.extremes()? {
            check_loss_settings(&config).context(place)?;
        }
    }
    unused.iter().for_each(terminal::warn);
    let length = match (config.run.steps, config.run.epochs) {
        (Some(steps), _) => counted(steps as usize, "step", "steps"),
        (None, epochs) => counted(epochs.unwrap_or_default() as usize, "epoch", "epochs"),
    };
    let rows = [
        ("config", file.to_string()),
        ("data", format!("{} {}", config.data.kind().name(), shell::path(config.data.path()))),
        ("levels", config.data.levels().join(", ")),
        ("backbone", format!("{}, images of {side}×{side}", encoder.backbone.entry().name)),
        ("embedding", format!("{} dimensions, {}", encoder.dimension(), encoder.geometry().space().name())),
        ("loss", config.loss.describe()),
        ("batch", config.sampler.describe()),
        ("length", length),
        ("device", crate::config::setting_name(config.run.device)),
        ("run", shell::path(&config.run.out)),
    ];
    if args.json {
        let rows: Map<String, Value> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        terminal::print(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, value)| vec![name.into(), value]).collect();
    terminal::print(align_words(&["", ""], &rows, None).trim_start_matches('\n'))?;
    Ok(())
}

fn show(args: &ConfigShowArgs) -> Result<()> {
    let (source, config, _) = args.source.read()?;
    let mut settings: Vec<(String, String, Origin)> = dotted(&Table::try_from(&config)?)
        .into_iter()
        .map(|(key, value)| {
            let origin = source.origin(&key);
            (key, value, origin)
        })
        .filter(|(_, _, origin)| !args.changed || *origin != Origin::Default)
        .collect();
    let place = |key: &str| {
        let place = SECTIONS.iter().position(|section| key.split('.').next() == Some(*section));
        place.unwrap_or(SECTIONS.len())
    };
    settings.sort_by_key(|(key, ..)| (place(key), key.clone()));
    let text = if args.json { json_of(&settings)? } else { toml_of(&settings) };
    terminal::print(&text)?;
    Ok(())
}

/// Sections of TOML, with comments in a column.
fn toml_of(settings: &[(String, String, Origin)]) -> String {
    const WIDEST: usize = 60;
    let lines: Vec<(&str, String, String)> = settings
        .iter()
        .map(|(key, value, origin)| {
            let (section, key) = key.split_once('.').unwrap_or(("", key));
            let comment = match origin {
                Origin::File(line) => format!("line {line}"),
                Origin::Set => "--set".into(),
                Origin::Default => "default".into(),
            };
            (section, format!("{key} = {value}"), comment)
        })
        .collect();
    let lengths = lines.iter().map(|(_, line, _)| line.chars().count());
    let width = lengths.filter(|&length| length <= WIDEST).max().unwrap_or(0);
    let mut text = String::new();
    let mut open = "";
    for (section, line, comment) in &lines {
        if *section != open {
            text += &format!("{}[{section}]\n", if open.is_empty() { "" } else { "\n" });
            open = section;
        }
        text += &format!("{line:<width$}  # {comment}\n");
    }
    text.trim_end().to_owned()
}

fn json_of(settings: &[(String, String, Origin)]) -> Result<String> {
    let entry = |(key, value, origin): &(String, String, Origin)| -> Result<(String, Value)> {
        let table: Table = toml::from_str(&format!("value = {value}"))?;
        let value = serde_json::to_value(&table["value"])?;
        let entry = match origin {
            Origin::File(line) => json!({ "value": value, "from": "file", "line": line }),
            Origin::Set => json!({ "value": value, "from": "set" }),
            Origin::Default => json!({ "value": value, "from": "default" }),
        };
        Ok((key.clone(), entry))
    };
    let entries = settings.iter().map(entry).collect::<Result<Map<String, Value>>>()?;
    Ok(serde_json::to_string_pretty(&entries)?)
}
