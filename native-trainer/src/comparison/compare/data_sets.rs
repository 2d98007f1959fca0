//! What the runs of a comparison would be made with today.

use std::cell::RefCell;

use anyhow::{Context, Result};

use super::planned_run::{PlannedRun, Provenance};
use crate::config::{Config, Selection};
use crate::data::Dataset;

/// The data sets of a comparison. Each is read once.
#[derive(Default)]
pub struct DataSets {
    known: RefCell<Vec<(Selection, Provenance)>>,
}

impl DataSets {
    /// Reads the data set of a config, checks it, and keeps its digest.
    ///
    /// # Errors
    ///
    /// The errors of [`Dataset::load`].
    pub fn load(&self, config: &Config) -> Result<Dataset> {
        let selection = config.selection();
        let dataset = Dataset::load(&selection)?;
        self.known.borrow_mut().push((selection, Provenance::now(dataset.digest())));
        Ok(dataset)
    }

    /// What a run would be made with.
    ///
    /// # Errors
    ///
    /// The errors of [`Dataset::load`].
    pub fn provenance(&self, planned: &PlannedRun) -> Result<Provenance> {
        let selection = planned.config.selection();
        let find = || {
            let known = self.known.borrow();
            known.iter().find(|(known, _)| *known == selection).map(|(_, provenance)| provenance.clone())
        };
        if find().is_none() {
            self.load(&planned.config)?;
        }
        find().context("the data set has just been read")
    }
}
