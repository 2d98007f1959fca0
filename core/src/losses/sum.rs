//! A weighted sum of any losses: L = Σ_t w_t · L_t.
//!
//! Each term draws its own proxies. In the Poincaré ball, terms that compare directions receive the direction of each
//! point, which is the direction of the features it was mapped from. This lets HIER be added to any other loss.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Draws, Family, Hier, Loss, LossConfig, LossContext, LossEntry, Objective, normalise_if,
};
use crate::geometry::{Geometry, Space, normalise};
use crate::range::blend_weight;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of a [`WeightedSum`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SumConfig {
    /// The terms, at least one.
    pub terms: Vec<Term>,
}

/// One term of a weighted sum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Its weight.
    pub weight: f64,
    /// Its loss.
    pub loss: LossConfig,
}

impl BuildLoss for SumConfig {
    const ENTRY: LossEntry = LossEntry {
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

    fn init(&self, context: &LossContext) -> Result<WeightedSum> {
        let weights: Vec<f64> = self.terms.iter().map(|term| term.weight).collect();
        // Not `sum`, which gives −0 for no terms.
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        let size: f64 = weights.iter().map(|weight| weight.abs()).sum();
        // By rounding, 0.1 + 0.2 − 0.3 is not exactly 0.
        let sum = if (sum / size).abs() <= 1e-9 { 0.0 } else { sum };
        if !sum.is_finite() || sum == 0.0 {
            return Err(Error::new(
                Kind::Config,
                format!("the weights of the loss terms are {weights:?}, which sum to {sum}"),
                "give at least one term, and finite weights with a sum other than 0",
            ));
        }
        let mut directions = Vec::new();
        let mut terms = Vec::new();
        for (number, term) in self.terms.iter().enumerate() {
            let compares_directions =
                context.geometry.space() == Space::Poincare && !term.loss.supports(Space::Poincare);
            let part = context.part(number);
            let part =
                if compares_directions { LossContext { geometry: &Geometry::Cosine, ..part } } else { part };
            terms.push(term.loss.init(&part)?);
            directions.push(compares_directions);
        }
        Ok(WeightedSum { weights, directions, terms })
    }
}

/// The terms with their weights.
#[derive(Module, Debug)]
pub struct WeightedSum {
    #[module(skip)]
    weights: Vec<f64>,
    /// Whether a term receives directions instead of points of the ball.
    #[module(skip)]
    directions: Vec<bool>,
    terms: Vec<Loss>,
}

impl WeightedSum {
    /// The weighted sum of these losses, at least one.
    pub fn new(terms: Vec<(f64, Loss)>) -> Self {
        let (weights, terms): (Vec<f64>, Vec<Loss>) = terms.into_iter().unzip();
        Self { directions: vec![false; weights.len()], weights, terms }
    }

    /// (1 − λ) · first + λ · second, for the loss of this title.
    ///
    /// # Errors
    ///
    /// λ is outside 0 … 1.
    pub(super) fn blend(title: &str, lambda: f64, [first, second]: [Loss; 2]) -> Result<Self> {
        blend_weight(title, lambda)?;
        Ok(Self::new(vec![(1.0 - lambda, first), (lambda, second)]))
    }

    /// Σ_t w_t · L_t of the terms, each of which is computed by `term`.
    fn add_up(&self, batch: &Batch, term: impl Fn(&Loss, &Batch) -> Tensor<1>) -> Tensor<1> {
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
            let value = if self.directions[number] { term(loss, &directions()) } else { term(loss, batch) };
            value * self.weights[number]
        };
        (0..self.terms.len())
            .map(term)
            .reduce(|sum, term| sum + term)
            .expect("`init` requires at least one term")
    }

    /// Each term with the embeddings that it receives: these, or their directions.
    fn terms_with_inputs(&mut self, embeddings: Tensor<2>) -> impl Iterator<Item = (&mut Loss, Tensor<2>)> {
        let inputs =
            self.directions.iter().map(move |&directions| normalise_if(directions, embeddings.clone()));
        self.terms.iter_mut().zip(inputs)
    }
}

impl Loss {
    /// The terms of a loss that a config writes as a `sum`; none for any other loss.
    pub fn terms(&self) -> &[Self] {
        match self {
            Self::Sum(sum) => &sum.terms,
            _ => &[],
        }
    }
}

impl Objective for WeightedSum {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        self.add_up(batch, Loss::forward)
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        let term = |loss: &Loss, batch: &Batch| loss.on_tensors(batch).unwrap_or_else(|| loss.forward(batch));
        Some(self.add_up(batch, term))
    }

    fn before_step(&mut self, draws: Draws) {
        self.terms.iter_mut().for_each(|term| term.before_step(draws));
    }

    fn after_step(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        for (term, input) in self.terms_with_inputs(embeddings) {
            term.after_step(input, labels);
        }
    }

    fn hierarchy(&self) -> Option<&Hier> {
        self.terms.iter().find_map(Objective::hierarchy)
    }

    fn needs_training_set(&self, epoch: u64) -> bool {
        self.terms.iter().any(|loss| loss.needs_training_set(epoch))
    }

    fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        for (term, input) in self.terms_with_inputs(embeddings) {
            term.before_epoch(input, labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    /// A loss for two fine classes of one parent, in the ball.
    fn in_the_ball(json: &str, device: &Device) -> Result<Loss> {
        let config: LossConfig = serde_json::from_str(json).unwrap();
        let classes = Labels::new(2, vec![0, 0, 0, 1]).unwrap();
        config.init(&LossContext::new(&classes, 2, &Geometry::poincare(), 0, device))
    }

    #[test]
    fn weights_that_sum_to_zero_up_to_rounding_are_refused() {
        let sum = |weights: &[f64]| {
            let term = |&weight: &f64| Term { weight, loss: LossConfig::named("pair").unwrap() };
            let config = SumConfig { terms: weights.iter().map(term).collect() };
            let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
            config.init(&LossContext::new(&classes, 2, &Geometry::Cosine, 0, &device))
        };
        for weights in [&[0.1, 0.2, -0.3][..], &[0.0], &[], &[f64::NAN], &[f64::MAX, f64::MAX]] {
            assert_eq!(sum(weights).unwrap_err().kind(), Kind::Config, "{weights:?}");
        }
        let message = sum(&[0.1, 0.2, -0.3]).unwrap_err().message().to_owned();
        assert!(message.ends_with("which sum to 0"), "{message}");
        assert!(sum(&[1e-6, 1.0, -1.0]).is_ok());
    }

    #[test]
    fn after_a_step_a_term_receives_the_directions_that_it_compares() {
        let device = Device::flex();
        let json = r#"{ "kind": "sum", "terms": [
            { "weight": 1.0, "loss": { "kind": "cross_batch_memory", "start": 0 } }
        ] }"#;
        let mut loss = in_the_ball(json, &device).unwrap();
        let labels = Labels::new(2, vec![0, 0]).unwrap();
        loss.after_step(Tensor::from_data([[0.0, 0.5]], &device), &labels);
        // The remembered point and the query have the same direction, so the pair's loss 1 − s is 0.
        let batch = Batch::new(Tensor::from_data([[0.0, 0.1]], &device), &labels);
        assert!(loss.forward(&batch).into_scalar::<f32>().abs() < 1e-6);
    }

    #[test]
    fn a_term_of_levels_may_compare_directions_in_the_ball() {
        let terms = |inner: &str| {
            format!(
                r#"{{ "kind": "sum", "terms": [
                    {{ "weight": 1.0, "loss": {{ "kind": "hier", "proxies": 4 }} }},
                    {{ "weight": 1.0, "loss": {inner} }}
                ] }}"#
            )
        };
        let device = Device::flex();
        assert!(in_the_ball(&terms(r#"{ "kind": "sum_proxy_anchor" }"#), &device).is_ok());
        let error = in_the_ball(&terms(r#"{ "kind": "dpsh" }"#), &device).unwrap_err();
        assert!(error.message().contains("the loss dpsh cannot compare"), "{error}");
    }
}
