//! What JavaScript calls.

use akin_bridge::{Result, misuse, thrown, to_js};
use akin_core::{Error, Kind};
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

use crate::messages::{Description, State};
use crate::{Creatures, Run, Settings, Space, offers};

/// The training ground: the creatures, and one or two runs.
#[wasm_bindgen]
pub struct Ground {
    creatures: Creatures,
    runs: Vec<Run>,
}

#[wasm_bindgen]
impl Ground {
    /// Reads the text of `creatures.json`.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str) -> Result<Ground> {
        Ok(Self { creatures: Creatures::read(text).map_err(thrown)?, runs: Vec::new() })
    }

    /// Names and labels of the creatures.
    pub fn describe(&self) -> JsValue {
        let (taxonomy, labels) = (self.creatures.taxonomy(), self.creatures.labels());
        let names = |level| {
            let count = taxonomy.class_count(level) as u32;
            (0..count).map(|class| taxonomy.class_name(level, class)).collect()
        };
        let mut held_out = vec![false; self.creatures.len()];
        self.creatures.part(true).into_iter().for_each(|i| held_out[i] = true);
        to_js(&Description {
            levels: taxonomy.level_names(),
            classes: (1..=taxonomy.depth()).map(names).collect(),
            labels: labels.ids(),
            held_out,
            features: self.creatures.features(),
        })
    }

    /// The losses that fit a space, which is JSON.
    pub fn losses(&self, space: &str) -> Result<JsValue> {
        let space: Space = read(space)?;
        Ok(to_js(&offers(&self.creatures, space)))
    }

    /// Replaces all runs by new ones, one for each of these settings, before their first step. The settings are
    /// JSON.
    pub fn start(&mut self, settings: &str) -> Result<()> {
        let settings: Vec<Settings> = read(settings)?;
        let new = |settings| Run::new(&self.creatures, settings).map_err(thrown);
        self.runs = settings.iter().map(new).collect::<Result<_>>()?;
        Ok(())
    }

    /// Takes a step in run `number`. Returns the loss of its batch.
    pub fn step(&mut self, number: usize) -> Result<f64> {
        Ok(self.runs.get_mut(number).ok_or_else(|| misuse("there is no such run"))?.step())
    }

    /// Where run `number` stands, with its scores if `measured`.
    pub fn state(&self, number: usize, measured: bool) -> Result<JsValue> {
        let run = self.runs.get(number).ok_or_else(|| misuse("there is no such run"))?;
        let points = run.points();
        let measure = || run.measure(&self.creatures, &points).map_err(thrown);
        let measures = measured.then(measure).transpose()?;
        let proxies = run.proxies();
        let tree = run.tree(&self.creatures, &points);
        Ok(to_js(&State { step: run.steps(), proxies, tree, measures, points }))
    }
}

/// A value from JSON. The module reads JSON already, and a second reader, of JavaScript objects, would make it larger.
fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        let hint = "give the fields that www/src/messages/training.ts describes";
        thrown(Error::new(Kind::Config, format!("the settings cannot be read: {error}"), hint))
    })
}
