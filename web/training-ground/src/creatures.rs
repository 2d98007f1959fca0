//! The creatures: what is measured of each, its labels, and whether its species is held out.

use akin_core::taxonomy::{ClassIdentity, Labels, Taxonomy};
use akin_core::{Error, Kind, Result};
use serde::Deserialize;

/// Drawn creatures that a network learns to embed.
#[derive(Clone, Debug)]
pub struct Creatures {
    taxonomy: Taxonomy,
    labels: Labels,
    held_out: Vec<bool>,
    /// [N, F], row after row.
    measurements: Vec<f32>,
    features: usize,
}

/// The file, as `akin-biomorphs` writes it.
#[derive(Deserialize)]
struct File {
    levels: Vec<String>,
    creatures_per_species: usize,
    species: Vec<Species>,
    measurements: Vec<Vec<u8>>,
}

#[derive(Deserialize)]
struct Species {
    names: Vec<String>,
    held_out: bool,
}

impl Creatures {
    /// Reads `creatures.json`.
    ///
    /// # Errors
    ///
    /// A text that is not this file, or whose parts do not fit each other; a set without a training species or without
    /// a held-out one.
    pub fn read(text: &str) -> Result<Self> {
        let damaged = |what: String| {
            Error::new(Kind::Config, format!("the file of creatures is damaged: {what}"), "reload the page")
        };
        let file: File = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        let each = file.creatures_per_species;
        let features = file.measurements.first().map_or(0, Vec::len);
        if each == 0 || features == 0 || file.measurements.len() != each * file.species.len() {
            return Err(damaged(format!(
                "{} rows of measurements, {} species of {each} creatures",
                file.measurements.len(),
                file.species.len()
            )));
        }
        if file.measurements.iter().any(|row| row.len() != features) {
            return Err(damaged("rows of different lengths".into()));
        }
        if [true, false].iter().any(|&side| file.species.iter().all(|species| species.held_out == side)) {
            return Err(damaged("every species is held out, or none is".into()));
        }
        let rows: Vec<Vec<String>> =
            file.species.iter().flat_map(|species| vec![species.names.clone(); each]).collect();
        let (taxonomy, labels) = Taxonomy::from_rows(&file.levels, &rows, ClassIdentity::Path)?;
        let held_out = file.species.iter().flat_map(|species| vec![species.held_out; each]).collect();
        // 0 … 255 becomes −2 … 2, so that measurements have a deviation of about 1.
        let scaled = |value: u8| (f32::from(value) - 127.5) / 63.75;
        let measurements = file.measurements.into_iter().flatten().map(scaled).collect();
        Ok(Self { taxonomy, labels, held_out, measurements, features })
    }

    /// N, the number of creatures.
    pub fn len(&self) -> usize {
        self.held_out.len()
    }

    /// Whether there are none. There always are some.
    pub fn is_empty(&self) -> bool {
        self.held_out.is_empty()
    }

    /// F, the number of measurements of each.
    pub fn features(&self) -> usize {
        self.features
    }

    /// The measurements of creature `i`, −2 … 2.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.measurements[i * self.features..][..self.features]
    }

    /// The names of levels and classes.
    pub fn taxonomy(&self) -> &Taxonomy {
        &self.taxonomy
    }

    /// The classes of all creatures, [N, L].
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The creatures whose species is held out, or those that a network learns from.
    pub fn part(&self, held_out: bool) -> Vec<usize> {
        (0..self.len()).filter(|&i| self.held_out[i] == held_out).collect()
    }
}
