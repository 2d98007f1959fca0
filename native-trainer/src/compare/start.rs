//! What the rows begin with: encoders before their training, measured.

use anyhow::Result;
use serde_json::Value;

use super::cell::{Cell, differences};
use super::plan::{Plan, Row};
use super::report::{Column, scores};
use super::table::Untrained;
use crate::data::Dataset;
use crate::device;
use crate::embedding::{embed_items, evaluate_splits};
use crate::features::Features;
use crate::loader::Pictures;
use crate::progress::Progress;
use crate::run::{MARK, Run, untrained_config};

/// All of a comparison; rows with the same model share one.
pub struct Starts(Vec<Start>);

struct Start {
    label: String,
    /// The rows that begin with it.
    rows: Vec<String>,
    reports: Vec<Value>,
}

impl Starts {
    /// Measures them, unless that is done.
    ///
    /// # Errors
    ///
    /// Data or weights that cannot be read.
    pub fn measure(plan: &Plan, progress: Progress) -> Result<Self> {
        let mut starts: Vec<(_, Start)> = Vec::new();
        for row in &plan.rows {
            let Cell { config } = plan.untrained(row, plan.seeds[0])?;
            let encoder = untrained_config(&config);
            let depends = (encoder.clone(), config.model.weights, config.eval);
            if let Some((_, start)) = starts.iter_mut().find(|(other, _)| *other == depends) {
                start.rows.push(row.name.clone());
                continue;
            }
            let label = format!("untrained, {} {}", encoder.geometry().space().name(), encoder.dimension());
            let cells = cells(plan, row)?;
            let reports = cells.iter().map(|cell| measure(cell, progress)).collect::<Result<Vec<_>>>()?;
            starts.push((depends, Start { label, rows: vec![row.name.clone()], reports }));
        }
        let mut starts: Vec<Start> = starts.into_iter().map(|(_, start)| start).collect();
        if let [start] = &mut starts[..] {
            start.label = "untrained".into();
        }
        Ok(Self(starts))
    }

    /// The reports of what a row begins with.
    pub fn of_row(&self, row: &Row) -> &[Value] {
        let start = self.0.iter().find(|start| start.rows.contains(&row.name));
        start.map_or(&[], |start| &start.reports)
    }

    /// Rows for the table.
    pub fn untrained(&self, columns: &[Column]) -> Vec<Untrained> {
        let of =
            |start: &Start| Untrained { label: start.label.clone(), scores: scores(&start.reports, columns) };
        self.0.iter().map(of).collect()
    }
}

/// One for each seed, or one for all where it does not depend on the seed: without a head, stored
/// weights on a given split are always the same.
fn cells(plan: &Plan, row: &Row) -> Result<Vec<Cell>> {
    let mut cells = plan.seeds.iter().map(|&seed| plan.untrained(row, seed)).collect::<Result<Vec<_>>>()?;
    let config = &cells[0].config;
    let headless = untrained_config(config).head.is_none();
    if !config.data.draws_split() && headless && config.model.weights.is_some() {
        cells.truncate(1);
    }
    Ok(cells)
}

/// The report of an encoder before its training.
fn measure(cell: &Cell, progress: Progress) -> Result<Value> {
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
    // Nothing was trained here that anyone would miss.
    run.create(run.file(MARK).is_file())?;
    let features = match run.config.model.freeze_backbone {
        true => Some(Features::load(&run.config, &encoder, &dataset, &pictures, &device, progress)?),
        false => None,
    };
    let embed =
        |items: &[usize]| embed_items(&encoder, &pictures, features.as_ref(), items, &device, progress);
    let mut report = evaluate_splits(&dataset, &run.config.eval, embed)?.report;
    report.per_query.clear();
    run.write_json("report.json", &report)?;
    cell.read("report.json")
}
