//! `akin compare`: many losses on the same data.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;
use toml::Table;

use crate::cli::CompareArgs;
use crate::compare::cell::{Cell, Ended, State, differences};
use crate::compare::plan::{Asked, Plan, Row};
use crate::compare::print::{FILES, print};
use crate::compare::report::{columns, score, title};
use crate::compare::table::{Comparison, Line, Statistic};
use crate::config::Source;
use crate::data::Dataset;
use crate::embedding::{embed, embed_features, evaluate_splits};
use crate::features::Features;
use crate::files::write_atomic;
use crate::loader::Pictures;
use crate::problem::{a_few, problem};
use crate::progress::Progress;
use crate::run::Run;
use crate::table::counted;
use crate::training::{check, interrupted, listen_to_ctrl_c};
use crate::{device, machine};

/// Trains every cell that is not there yet, and prints the table.
pub fn run(args: CompareArgs) -> Result<()> {
    let source = Source::read(&args.config, &args.sets.set)?;
    let asked = Asked { losses: args.losses, seeds: args.seeds, out: args.out, device: args.device };
    let plan = Plan::new(source, asked)?;
    let comparing = Comparing {
        overwrite: args.overwrite,
        progress: Progress::from(args.progress),
        pace: Pace::default(),
        plan: &plan,
    };
    listen_to_ctrl_c()?;
    comparing.check()?;
    let comparison = comparing.go()?;

    for (name, format) in FILES {
        let text = print(&comparison, format, false);
        write_atomic(&plan.out.join(name), |file| file.write_all(text.as_bytes()))?;
    }
    write!(stdout(), "{}", print(&comparison, args.format, stdout().is_terminal()))?;
    comparing.progress.say("Wrote", &plan.out.join("table.{md,tex,csv,json}").display().to_string());

    let failed: Vec<String> = comparison.lines.iter().flat_map(|line| &line.failed).cloned().collect();
    if !failed.is_empty() {
        return Err(problem(
            format!("{} failed: {}", counted(failed.len(), "training", "trainings"), a_few(&failed)),
            "the table is without them; the same command tries them again",
        ));
    }
    let worse: Vec<&str> = comparison
        .lines
        .iter()
        .filter(|line| line.beats() != Some(true))
        .map(|line| line.name.as_str())
        .collect();
    if args.check && !worse.is_empty() {
        return Err(problem(
            format!("no better than the untrained encoder by what they optimise: {}", a_few(&worse)),
            "train longer, or with other learning rates",
        ));
    }
    Ok(())
}

/// A comparison under way.
struct Comparing<'a> {
    plan: &'a Plan,
    overwrite: bool,
    progress: Progress,
    pace: Pace,
}

impl Comparing<'_> {
    /// Whether every training could begin, before the first does.
    fn check(&self) -> Result<()> {
        let plan = self.plan;
        let first = plan.untrained(plan.seeds[0])?;
        let data = |cell: &Cell| Dataset::load(&cell.config.data, cell.config.run.seed);
        let dataset = data(&first)?;
        let validation =
            if plan.grid.is_empty() { None } else { Some(data(&plan.tuning(&plan.rows[0], 0)?)?) };
        let device = device::open(first.config.run.device)?;
        let able = |cell: Cell, dataset: &Dataset| {
            let pictures = Pictures::new(&dataset.items);
            check(
                &Run { directory: cell.config.run.out.clone(), config: cell.config },
                dataset,
                &pictures,
                &device,
            )
        };
        for row in &plan.rows {
            let of_row = || format!("the row `{}`", row.name);
            for place in 0..plan.grid.len() {
                let cell = plan.tuning(row, place).with_context(of_row)?;
                cell.keep(self.overwrite)?;
                able(cell, validation.as_ref().unwrap_or(&dataset)).with_context(of_row)?;
            }
            able(plan.trained(row, &Table::new(), plan.seeds[0])?, &dataset).with_context(of_row)?;
            if plan.grid.is_empty() {
                for &seed in &plan.seeds {
                    plan.trained(row, &Table::new(), seed)?.keep(self.overwrite)?;
                }
            }
        }
        Ok(())
    }

    /// Trains what is not there yet.
    fn go(&self) -> Result<Comparison> {
        let plan = self.plan;
        let base = plan.untrained(plan.seeds[0])?.config;
        let columns = columns(&plan.columns, &base.data.levels);
        let untrained = self.untrained()?;
        let start = |metric: &str, level: Option<&str>| {
            Statistic::of(untrained.iter().filter_map(|report| score(report, metric, level)).collect())
        };
        self.pace.expect(plan.rows.len() * (plan.grid.len() + plan.seeds.len()));
        // All settings are chosen before the first seed, so that a changed grid is noticed early.
        let chosen = plan.rows.iter().map(|row| self.tune(row)).collect::<Result<Vec<_>>>()?;
        let mut lines = Vec::new();
        for (row, chosen) in plan.rows.iter().zip(chosen) {
            let (mut reports, mut runs, mut failed) = (Vec::new(), Vec::new(), Vec::new());
            for &seed in &plan.seeds {
                let cell = plan.trained(row, &chosen, seed)?;
                match self.train(&cell, row, &format!("seed {seed}"))? {
                    None => {
                        reports.push(cell.read("report.json")?);
                        runs.push(cell.read("run.json")?);
                    }
                    Some(reason) => failed.push(format!("{}, seed {seed}: {reason}", row.name)),
                }
            }
            let over = |metric: &str, level: Option<&str>| {
                Statistic::of(reports.iter().filter_map(|report| score(report, metric, level)).collect())
            };
            let cost =
                |key: &str| Statistic::of(runs.iter().filter_map(|run: &Value| run[key].as_f64()).collect());
            lines.push(Line {
                name: row.name.clone(),
                label: row.label.clone(),
                family: row.family.clone(),
                scores: columns.iter().map(|column| over(&column.metric, column.level.as_deref())).collect(),
                optimises: row.optimises.clone(),
                optimised: over(&row.optimises, None),
                untrained: start(&row.optimises, None),
                seconds_per_step: cost("seconds_per_step"),
                peak_memory_bytes: cost("peak_memory_bytes"),
                chosen,
                config: row.config.clone(),
                failed,
            });
        }
        let mut comparison = Comparison {
            name: plan.name.clone(),
            command: command(),
            date: machine::today(),
            machine: machine::describe(),
            budget: self.budget()?,
            seeds: plan.seeds.clone(),
            untrained: columns.iter().map(|column| start(&column.metric, column.level.as_deref())).collect(),
            columns,
            lines,
        };
        comparison.group();
        Ok(comparison)
    }

    /// The reports of what training begins with: one for each seed, or one for all where it does not
    /// depend on the seed.
    fn untrained(&self) -> Result<Vec<Value>> {
        let mut reports = Vec::new();
        for &seed in &self.plan.seeds {
            let cell = self.plan.untrained(seed)?;
            let mut config = cell.config.clone();
            reports.push(self.measure(cell)?);
            let data = &mut config.data;
            let fixed = data.test_fraction.or(data.validation_fraction).is_none();
            if fixed && config.model.weights.is_some() {
                break;
            }
        }
        Ok(reports)
    }

    /// The report of an encoder before its training.
    fn measure(&self, cell: Cell) -> Result<Value> {
        // Only these have a say in it.
        let depends = ["data.", "model.", "eval.", "run.seed"];
        let same = Run::open(cell.directory()).is_ok_and(|run| {
            let changed = differences(&run.config, &cell.config);
            !changed.iter().any(|key| depends.iter().any(|part| key.starts_with(part)))
        });
        if same && cell.directory().join("report.json").is_file() {
            return cell.read("report.json");
        }
        let (directory, config) = (cell.directory().to_owned(), cell.config.clone());
        let run = Run { directory, config };
        let device = device::open(run.config.run.device)?;
        let dataset = Dataset::load(&run.config.data, run.config.run.seed)?;
        let pictures = Pictures::new(&dataset.items);
        let encoder = run.untrained(&device)?;
        // An untrained encoder is no run that anyone would miss.
        run.create(same || self.overwrite || !run.directory.exists())?;
        let features = match run.config.model.freeze_backbone {
            true => {
                let progress = self.progress;
                Some(Features::load(&run.config, &encoder, &dataset, &pictures, &device, progress)?)
            }
            false => None,
        };
        let mut report = evaluate_splits(&dataset, &run.config.eval, |items| match &features {
            Some(features) => embed_features(&encoder, features, items, &device),
            None => embed(&encoder, &pictures, items, &device, self.progress),
        })?
        .report;
        report.per_query.clear();
        run.write_json("report.json", &report)?;
        cell.read("report.json")
    }

    /// The settings of the grid that serve a row best by its metric on the validation classes; none
    /// without a grid.
    fn tune(&self, row: &Row) -> Result<Table> {
        let mut best: Option<(f64, &Table)> = None;
        for (place, settings) in self.plan.grid.iter().enumerate() {
            let cell = self.plan.tuning(row, place)?;
            let named = format!("setting {} of {}", place + 1, self.plan.grid.len());
            if self.train(&cell, row, &named)?.is_some() {
                continue;
            }
            let Some(score) = score(&cell.read("report.json")?, &row.optimises, None) else { continue };
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, settings));
            }
        }
        if best.is_none() && !self.plan.grid.is_empty() {
            return Err(problem(
                format!("no setting of compare.tune has a score with the loss `{}`", row.name),
                "see why with `akin train` on one of the TOML files in its folder, and change the grid",
            ));
        }
        Ok(best.map(|(_, settings)| settings.clone()).unwrap_or_default())
    }

    /// Trains a cell unless it is done; the reason if it failed.
    fn train(&self, cell: &Cell, row: &Row, named: &str) -> Result<Option<String>> {
        let named = format!("{}, {named}", row.name);
        cell.keep(self.overwrite)?;
        if cell.state() == State::Done {
            self.pace.skip();
            return Ok(None);
        }
        self.progress.say("Training", &named);
        let began = Instant::now();
        let ended = cell.train()?;
        if matches!(ended, Ended::Stopped) || interrupted() {
            eprintln!("     Stopped in {named}; the same command continues");
            std::process::exit(130);
        }
        let left = self.pace.trained(began.elapsed());
        match ended {
            Ended::Failed(reason) => {
                self.progress.say("Failed", &format!("{named}: {reason}"));
                Ok(Some(reason))
            }
            _ => {
                let report = cell.read("report.json")?;
                let score = score(&report, &row.optimises, None).map_or("–".into(), percent);
                let took = began.elapsed().as_secs_f64();
                let what = format!("{named}: {} {score} in {took:.0} s; {left}", title(&row.optimises));
                self.progress.say("Trained", &what);
                Ok(None)
            }
        }
    }

    /// What every row was given, in words.
    fn budget(&self) -> Result<String> {
        let config = self.plan.untrained(self.plan.seeds[0])?.config;
        let length = match (config.run.steps, config.run.epochs) {
            (Some(steps), _) => counted(steps as usize, "step", "steps"),
            (None, epochs) => counted(epochs.unwrap_or(0) as usize, "epoch", "epochs"),
        };
        let sampler = &config.sampler;
        let batch = format!("{} classes × {} images", sampler.classes_per_batch, sampler.images_per_class);
        let tuning = match self.plan.grid.len() {
            0 => "no tuning, every loss with its defaults".to_owned(),
            settings => format!(
                "{} of {}, one seed each, chosen on {:.0} % of the training classes by what the loss optimises",
                counted(settings, "setting", "settings"),
                self.plan.tuned.join(" × "),
                100.0 * self.plan.validation_fraction
            ),
        };
        Ok(format!("{length} of {batch}; {tuning}"))
    }
}

/// How many cells are left, and how long they may take.
#[derive(Default)]
struct Pace {
    state: std::cell::Cell<(usize, usize, Duration)>,
}

impl Pace {
    fn expect(&self, cells: usize) {
        self.state.set((cells, 0, Duration::ZERO));
    }

    fn skip(&self) {
        let (left, trained, time) = self.state.get();
        self.state.set((left.saturating_sub(1), trained, time));
    }

    /// Counts a training and says what is left.
    fn trained(&self, took: Duration) -> String {
        let (left, trained, time) = self.state.get();
        let (left, trained, time) = (left.saturating_sub(1), trained + 1, time + took);
        self.state.set((left, trained, time));
        let minutes = (time / trained as u32 * left as u32).as_secs().div_ceil(60);
        format!("{left} left, about {minutes} min")
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// The command line as it was given.
fn command() -> String {
    let words = std::env::args().skip(1).map(|word| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=.,/:@+".contains(c));
        if plain { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    });
    std::iter::once("akin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
