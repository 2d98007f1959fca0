//! `akin train`: trains a model.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use akin_base::directory::Kind;
use akin_base::files::{check_ending, write_atomic};
use akin_base::problem::{Interrupted, problem};
use akin_base::progress::Progress;
use akin_base::quantities::rounded_bytes;
use akin_base::{directory, shell, terminal};
use akin_figures::contact_sheet::is_contact_sheet;
use akin_server::page;
use anyhow::Result;
use clap::Args;

use crate::commands::arguments::SetArgs;
use crate::config::device;
use crate::config::device::{is_out_of_memory, out_of_memory};
use crate::config::{Config, DeviceName, LogFormat};
use crate::data::{Dataset, check_output};
use crate::evaluation::paper_results::published_text;
use crate::evaluation::report::{report_text, score};
use crate::pictures::loader::Pictures;
use crate::runs::outcome::ProcessOutcome;
use crate::runs::run::Run;
use crate::training::checks::unused_settings;
use crate::training::dry_run::{LOWER_MEMORY, check_memory, dry_run, lacking_directory, lacking_problem};
use crate::training::{Outcome, Start, train};

/// Train a model from a config.
///
/// Writes a run directory with the full config, a checkpoint per epoch, a log in JSON lines and a report. The first
/// Ctrl-C finishes the step, saves a checkpoint and stops; a second one aborts.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// A TOML file, or the name of a recipe from `akin list recipes`.
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
    #[command(flatten)]
    pub sets: SetArgs,
    /// The run directory, instead of run.out.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The seed, instead of run.seed.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Replace the run in that directory.
    #[arg(long)]
    pub overwrite: bool,
    /// The device to compute on, instead of the config's `run.device`.
    #[arg(long, value_enum)]
    pub device: Option<DeviceName>,
    /// How to show progress.
    #[arg(long, value_enum, default_value_t)]
    pub progress: Progress,
    /// Also write the log as event files into the run directory, for `tensorboard --logdir runs`.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub log: Option<LogFormat>,
    /// Train nothing: check data, model and loss, print the plan with the memory and disk that it needs, and draw the
    /// first batch.
    #[arg(long)]
    pub dry_run: bool,
    /// With `--dry-run`: the picture of the first batch, a PNG file [default: NAME-first-batch.png]. A picture that a
    /// dry run drew there is replaced. Any other file is replaced only with `--overwrite`.
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    pub sheet: Option<PathBuf>,
    #[command(flatten)]
    pub outcome: OutcomeArgs,
}

/// For `akin compare`, which trains in other processes.
#[derive(Debug, Default, Args)]
pub struct OutcomeArgs {
    /// Write how the training ended to a JSON file.
    #[arg(long, hide = true, value_name = "FILE")]
    pub outcome: Option<PathBuf>,
}

impl OutcomeArgs {
    /// Writes how a training ended, if a file is given.
    pub fn write(self, result: Result<()>) -> Result<()> {
        match self.outcome {
            Some(file) => {
                let written = ProcessOutcome::new(&result).write(&file);
                result.and(written)
            }
            None => result,
        }
    }
}

/// Trains and prints the report.
pub fn run(mut args: TrainArgs) -> Result<()> {
    let outcome = std::mem::take(&mut args.outcome);
    outcome.write(train_and_print(args))
}

fn train_and_print(args: TrainArgs) -> Result<()> {
    let mut config = Config::load(&args.config, &args.sets.set)?;
    if let Some(out) = args.out {
        config.run.out = std::path::absolute(out)?;
    }
    config.run.seed = args.seed.unwrap_or(config.run.seed);
    config.run.log = args.log.or(config.run.log);
    config.run.device = args.device.unwrap_or(config.run.device);
    let progress = args.progress;
    refuse_missing(&config)?;
    unused_settings(&config, None).iter().for_each(terminal::warn);
    if args.dry_run {
        return print_plan(&args.config, config, args.sheet, args.overwrite, progress);
    }
    finish(train_new(config, args.overwrite, progress)?, progress)
}

/// Names data and weights together where both are missing, so that the second is not found out later.
fn refuse_missing(config: &Config) -> Result<()> {
    match &config.model.weights {
        Some(weights) if !weights.is_file() && !config.data.path().exists() => Err(problem(
            format!(
                "neither the data {} nor the weights {} exist",
                config.data.path().display(),
                weights.display()
            ),
            "correct data.path and model.weights; the comment at the top of a recipe says where to find them",
        )),
        _ => Ok(()),
    }
}

/// Prints what a training would do, and draws its first batch.
fn print_plan(
    source: &Path,
    config: Config,
    sheet: Option<PathBuf>,
    overwrite: bool,
    progress: Progress,
) -> Result<()> {
    let sheet = sheet.unwrap_or_else(|| {
        let name = config.run.out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        PathBuf::from(format!("{name}-first-batch.png"))
    });
    check_ending("--sheet", &sheet, "png")?;
    let lacking_directory = lacking_directory(&config, overwrite);
    // A dry run is repeated until the plan is right.
    let overwrite = overwrite || is_contact_sheet(&sheet);
    let inputs: Vec<PathBuf> = [source.to_owned()].into_iter().chain(config.model.weights.clone()).collect();
    check_output(&sheet, &inputs, &config.selection(), overwrite)?;
    if config.data.would_read(&sheet)? {
        return Err(problem(
            format!("the picture {} would be read as one of the images of the data set", sheet.display()),
            "name a file elsewhere with `--sheet FILE`",
        ));
    }
    let mut plan = dry_run(config)?;
    plan.lacking.extend(lacking_directory);
    plan.late.iter().for_each(terminal::warn);
    write_atomic(&sheet, |file| file.write_all(&plan.sheet))?;
    terminal::print(&plan.text)?;
    progress.say("Drew", &format!("the first batch in {}", sheet.display()));
    if !plan.lacking.is_empty() {
        return Err(lacking_problem(&plan.lacking));
    }
    Ok(())
}

/// Trains in a new run directory.
pub fn train_new(config: Config, overwrite: bool, progress: Progress) -> Result<(Run, Outcome)> {
    let directory = config.run.out.clone();
    directory::check(Kind::Run, &directory, overwrite)?;
    train_run(Run { directory, config }, Start::New { overwrite }, progress)
}

/// Prints the report of a training, where the run is, and which command comes next.
///
/// # Errors
///
/// [`Interrupted`] after Ctrl-C.
pub fn finish((run, outcome): (Run, Outcome), progress: Progress) -> Result<()> {
    let directory = shell::path(&run.directory);
    match outcome {
        Outcome::Done(report) => {
            terminal::print(&report_text(&report))?;
            if let Some(published) = &run.config.published
                && let Some(text) = published_text(published, None, |result, metric| {
                    score(&report, metric, result.level.as_deref())
                })
            {
                terminal::print(&format!("\n{text}"))?;
            }
            progress.say("Finished", &format!("the run is in {directory}"));
            progress
                .say("Next", &format!("`akin export {directory} --out bundle` writes it for the browser"));
            progress.say("", &page::next_serve(&directory, "does so, and shows it at once"));
            Ok(())
        }
        Outcome::Stopped { step } => {
            Err(Interrupted(format!("after step {step}; continue with `akin resume {directory}`")).into())
        }
    }
}

/// Continues a run from its last checkpoint.
pub fn continue_run(run: Run, progress: Progress) -> Result<(Run, Outcome)> {
    if directory::is_complete(Kind::Run, &run.directory)? {
        // A process may have been killed after the training, before the run took its place.
        if let Some(place) = directory::finish_replacement(Kind::Run, &run.directory)? {
            return Err(problem(
                format!("the run was finished; it is now in {}", place.display()),
                "there is nothing to resume; evaluate it with `akin eval RUN`",
            ));
        }
        return Err(problem(
            format!("the run {} is finished; there is nothing to resume", run.directory.display()),
            "evaluate it with `akin eval RUN`, or train a new run with more steps",
        ));
    }
    train_run(run, Start::Checkpoint, progress)
}

/// Trains with the data and the device of the run.
fn train_run(run: Run, start: Start, progress: Progress) -> Result<(Run, Outcome)> {
    let devices = device::open_workers(run.config.run.device, run.config.run.workers)?;
    let dataset = Dataset::load(&run.config.selection())?;
    let pictures = Pictures::of(&dataset);
    check_memory(&run, &dataset, &pictures, &devices[0])?;
    // Back ends report a device without memory by an error or by a panic.
    let train = || train(&run, &dataset, &pictures, &devices, start, progress);
    let trained = match catch_unwind(AssertUnwindSafe(train)) {
        Ok(Err(error)) => match out_of_memory(&error) {
            Some(words) => Err(too_little_memory(&run, &words)),
            None => Err(error),
        },
        Ok(trained) => trained,
        Err(panic) if is_out_of_memory(message_of(&*panic)) => {
            Err(too_little_memory(&run, message_of(&*panic)))
        }
        Err(panic) => resume_unwind(panic),
    };
    let (outcome, directory) = trained?;
    Ok((Run { directory, ..run }, outcome))
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

/// Whether a run can be resumed. While a run is replaced, its directory holds the older one, which is complete.
fn is_unfinished(run: &Run) -> bool {
    matches!(directory::is_complete(Kind::Run, &run.directory), Ok(false))
}

/// The error of a device that has too little memory for a step. `words` is the message of the back end.
fn too_little_memory(run: &Run, words: &str) -> anyhow::Error {
    let needed = match dry_run(run.config.clone()) {
        Ok(plan) => format!(": a step needs about {}", rounded_bytes(plan.memory)),
        Err(_) => String::new(),
    };
    let continued = if run.file("checkpoint.akin").is_file() && is_unfinished(run) {
        format!(
            "; on a device with more memory, `akin resume {}` continues from the checkpoint",
            shell::path(&run.directory)
        )
    } else {
        String::new()
    };
    problem(
        format!("the device has too little memory{needed} (the back end says: {})", words.trim()),
        format!("{LOWER_MEMORY}; `akin train CONFIG --dry-run` says what a step needs then{continued}"),
    )
}
