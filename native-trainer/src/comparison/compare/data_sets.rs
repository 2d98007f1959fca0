//! What the runs of a comparison would be made with today.

use std::cell::RefCell;

use anyhow::{Context, Result};

use super::planned_run::{PlannedRun, Provenance};
use crate::config::{Config, DataConfig};
use crate::data::Dataset;

/// The data sets of a comparison. Each is read once.
#[derive(Default)]
pub struct DataSets {
    /// The section `[data]` and the seed of a split that is drawn.
    known: RefCell<Vec<(DataConfig, Option<u64>, Provenance)>>,
}

impl DataSets {
    /// Reads the data set of a config, checks it, and keeps its digest.
    ///
    /// # Errors
    ///
    /// The errors of [`Dataset::load`].
    pub fn load(&self, config: &Config) -> Result<Dataset> {
        let dataset = Dataset::load(&config.data, config.run.seed)?;
        let (data, seed) = key(config);
        self.known.borrow_mut().push((data.clone(), seed, Provenance::now(dataset.digest())));
        Ok(dataset)
    }

    /// What a run would be made with.
    ///
    /// # Errors
    ///
    /// The errors of [`Dataset::load`].
    pub fn provenance(&self, planned: &PlannedRun) -> Result<Provenance> {
        let (data, seed) = key(&planned.config);
        let find = || {
            let known = self.known.borrow();
            known.iter().find(|known| (&known.0, known.1) == (data, seed)).map(|known| known.2.clone())
        };
        if find().is_none() {
            self.load(&planned.config)?;
        }
        find().context("the data set has just been read")
    }
}

/// What the data set of a config depends on.
fn key(config: &Config) -> (&DataConfig, Option<u64>) {
    (&config.data, config.data.splits_by_run_seed().then_some(config.run.seed))
}
