//! The encoders that the trainings begin with, evaluated before any training.

use akin_base::directory::{self, Draft, Kind};
use akin_base::progress::Progress;
use akin_core::evaluate::Report;
use anyhow::Result;

use super::data_sets::DataSets;
use super::plan::{Plan, Row};
use super::planned_run::{PlannedRun, Provenance};
use super::results::{Column, Untrained, scores};
use crate::config::device;
use crate::config::{NO_RESULT_DEPENDS_ON, Protocol, differences};
use crate::data::Dataset;
use crate::evaluation::dyml_protocol;
use crate::evaluation::embedding::{embed_items, evaluate_splits};
use crate::pictures::features::Features;
use crate::pictures::loader::Pictures;
use crate::runs::run::{Run, untrained_config};

/// What an untrained encoder was evaluated with. It has no `run.json`, because there was no training.
const PROVENANCE: &str = "provenance.json";

/// The untrained encoders of a comparison. Rows with the same model share one.
pub struct UntrainedEncoders(Vec<UntrainedEncoder>);

struct UntrainedEncoder {
    label: String,
    /// The rows that begin with it.
    rows: Vec<String>,
    /// One for each seed, or a single one where all seeds have the same.
    reports: Vec<Report>,
}

impl UntrainedEncoders {
    /// Evaluates the encoders that have no report yet.
    ///
    /// # Errors
    ///
    /// Data or weights that cannot be read.
    pub fn evaluate(plan: &Plan, data: &DataSets, progress: Progress) -> Result<Self> {
        let mut encoders: Vec<(_, UntrainedEncoder)> = Vec::new();
        for row in &plan.rows {
            let PlannedRun { config } = plan.untrained(row, plan.seeds[0])?;
            let encoder = untrained_config(&config);
            let key = (encoder.clone(), config.model.weights, config.eval);
            if let Some((_, known)) = encoders.iter_mut().find(|(other, _)| *other == key) {
                known.rows.push(row.name.clone());
                continue;
            }
            let label = format!("untrained, {} {}", encoder.geometry().space().name(), encoder.dimension());
            let runs = distinct_runs(plan, row)?;
            let reports = runs.iter().map(|run| evaluate(run, data, progress)).collect::<Result<Vec<_>>>()?;
            encoders.push((key, UntrainedEncoder { label, rows: vec![row.name.clone()], reports }));
        }
        let mut encoders: Vec<UntrainedEncoder> = encoders.into_iter().map(|(_, encoder)| encoder).collect();
        if let [encoder] = &mut encoders[..] {
            encoder.label = "untrained".into();
        }
        Ok(Self(encoders))
    }

    /// The reports of the encoder that a row begins with.
    pub fn reports(&self, row: &Row) -> &[Report] {
        let encoder = self.0.iter().find(|encoder| encoder.rows.contains(&row.name));
        encoder.map_or(&[], |encoder| &encoder.reports)
    }

    /// Their rows of the table.
    pub fn table_rows(&self, columns: &[Column]) -> Vec<Untrained> {
        let row = |encoder: &UntrainedEncoder| Untrained {
            label: encoder.label.clone(),
            scores: scores(&encoder.reports, columns),
        };
        self.0.iter().map(row).collect()
    }
}

/// A run for each seed, or a single one where the encoder and the split do not depend on the seed: stored weights
/// without a head, on splits that are not drawn.
fn distinct_runs(plan: &Plan, row: &Row) -> Result<Vec<PlannedRun>> {
    let mut runs = plan.seeds.iter().map(|&seed| plan.untrained(row, seed)).collect::<Result<Vec<_>>>()?;
    let config = &runs[0].config;
    let headless = untrained_config(config).head.is_none();
    if !config.split.is_drawn_by_run_seed() && headless && config.model.weights.is_some() {
        runs.truncate(1);
    }
    Ok(runs)
}

/// The report of an encoder before its training, from its run directory or evaluated now.
fn evaluate(planned: &PlannedRun, data: &DataSets, progress: Progress) -> Result<Report> {
    let provenance = data.provenance(planned)?;
    // The report depends on nothing else.
    let relevant = ["data.", "split.", "model.", "eval.", "run.seed"];
    let unchanged = Run::open(planned.directory()).is_ok_and(|run| {
        let changed = differences(&run.config, &planned.config, &NO_RESULT_DEPENDS_ON);
        !changed.iter().any(|key| relevant.iter().any(|part| key.starts_with(part)))
    });
    let same_data = || planned.read::<Provenance>(PROVENANCE).is_ok_and(|made| made == provenance);
    if unchanged && directory::is_complete(Kind::Run, planned.directory())? && same_data() {
        return planned.read("report.json");
    }
    let (directory, config) = (planned.directory().to_owned(), planned.config.clone());
    let run = Run { directory, config };
    let device = device::open(run.config.run.device)?;
    let dataset = Dataset::load(&run.config.selection())?;
    let pictures = Pictures::of(&dataset);
    let encoder = run.untrained(&device)?;
    let features = match run.config.model.freeze_backbone {
        true => Some(Features::load(&run.config, &encoder, &dataset, &pictures, &device, progress)?),
        false => None,
    };
    let embed =
        |items: &[usize]| embed_items(&encoder, &pictures, features.as_ref(), items, &device, progress);
    let mut report = match run.config.split.protocol {
        Protocol::Whole => evaluate_splits(&dataset, &run.config.eval, progress, embed)?.report,
        Protocol::Dyml => dyml_protocol::report(&encoder, &run.config, &device, progress)?,
    };
    report.per_query.clear();
    // An outdated report may be replaced without asking: it takes no training to make it again.
    let draft = Draft::create(Kind::Run, &run.directory, true)?;
    let run = Run { directory: draft.directory().to_owned(), config: run.config };
    run.write_config()?;
    run.write_json("report.json", &report)?;
    run.write_json(PROVENANCE, &provenance)?;
    draft.complete()?;
    Ok(report)
}
