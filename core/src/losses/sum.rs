//! A weighted sum: L = Σ_t w_t · L_t, of any losses.
//!
//! Each term draws proxies of its own. In the Poincaré ball, terms that compare directions see the direction of each
//! point, which is that of the features it was mapped from: this is how HIER stands beside any other loss.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{Batch, Draws, Entry, Family, Loss, LossConfig, LossSettings, Objective, Setting};
use crate::cosine::normalise;
use crate::geometry::{Geometry, Space};
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of a [`WeightedSum`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SumConfig {
    /// The terms, at least one.
    pub terms: Vec<Term>,
}

/// One term of a weighted sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Its weight.
    pub weight: f64,
    /// Its loss.
    pub loss: LossConfig,
}

impl LossSettings for SumConfig {
    const ENTRY: Entry = Entry {
        name: "sum",
        title: "Weighted sum",
        family: Family::Combinations,
        summary: "Σ weight · loss over any losses",
        optimises: "h_ap",
        spaces: &[Space::Cosine, Space::Poincare, Space::Binary],
        sources: &[],
        complete: false,
        preset: None,
    };
    type Loss = WeightedSum;

    fn init(&self, setting: &Setting) -> Result<WeightedSum> {
        let weights: Vec<f64> = self.terms.iter().map(|term| term.weight).collect();
        // Not `sum`, whose empty one is −0.
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        if weights.is_empty() || !sum.is_finite() || sum == 0.0 {
            return Err(Error::new(
                Kind::Config,
                format!("the weights of the loss terms are {weights:?}, which sum to {sum}"),
                "give at least one term, and finite weights that do not sum to zero",
            ));
        }
        let mut directions = Vec::new();
        let mut terms = Vec::new();
        for (number, term) in self.terms.iter().enumerate() {
            let spaces = term.loss.entry().spaces;
            let of_direction =
                setting.geometry.space() == Space::Poincare && !spaces.contains(&Space::Poincare);
            let part = setting.part(number);
            let part = if of_direction { Setting { geometry: &Geometry::Cosine, ..part } } else { part };
            terms.push(term.loss.init(&part)?);
            directions.push(of_direction);
        }
        Ok(WeightedSum { weights, directions, terms })
    }
}

/// See the [module](self).
#[derive(Module, Debug)]
pub struct WeightedSum {
    #[module(skip)]
    weights: Vec<f64>,
    /// Whether a term is given directions instead of points of the ball.
    #[module(skip)]
    directions: Vec<bool>,
    terms: Vec<Loss>,
}

impl WeightedSum {
    /// The sum of these losses, at least one, with their weights.
    pub fn new(terms: Vec<(f64, Loss)>) -> Self {
        let (weights, terms): (Vec<f64>, Vec<Loss>) = terms.into_iter().unzip();
        Self { directions: vec![false; weights.len()], weights, terms }
    }
}

impl Objective for WeightedSum {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let directions = || {
            let mut batch = batch.clone();
            batch.embeddings = normalise(batch.embeddings);
            if let Some(reference) = &mut batch.reference {
                reference.embeddings = normalise(reference.embeddings.clone());
            }
            batch
        };
        let term = |number: usize| {
            let loss = &self.terms[number];
            let value =
                if self.directions[number] { loss.forward(&directions()) } else { loss.forward(batch) };
            value * self.weights[number]
        };
        (0..self.terms.len()).map(term).reduce(|sum, term| sum + term).expect("a sum has a term")
    }

    fn before_step(&mut self, draws: Draws) {
        self.terms.iter_mut().for_each(|term| term.before_step(draws));
    }

    fn after_step(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.terms.iter_mut().for_each(|term| term.after_step(embeddings.clone(), labels));
    }

    fn needs_epoch(&self) -> bool {
        self.terms.iter().any(Objective::needs_epoch)
    }

    fn after_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.terms.iter_mut().for_each(|term| term.after_epoch(embeddings.clone(), labels));
    }
}
