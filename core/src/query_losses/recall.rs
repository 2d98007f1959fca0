//! Smooth forms of 1 − R@K for one query (Ramzi et al., TPAMI 2025).

use serde::{Deserialize, Serialize};

use super::{QueryLoss, ScoredItems, one_minus_ranked};
use crate::range::above_zero;
use crate::steps::{Smooth, UpperStep};
use crate::{Checked, Error, Kind, Result};

/// The published cut-offs of SupRecall.
const CUTOFFS: [usize; 5] = [1, 2, 4, 8, 16];

/// Settings of SmoothRecall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SmoothRecallConfig {
    /// The cut-offs K, at least one, each at least 1. The loss is the mean over them. Default 1, 2, 4, 8, 16.
    pub cutoffs: Vec<usize>,
    /// T > 0, the width of the sigmoid of K − rank, in ranks. Default 1.
    pub cutoff_temperature: f64,
    /// τ > 0, the width of the sigmoid in a rank. Default 0.01.
    pub temperature: f64,
}

impl Default for SmoothRecallConfig {
    fn default() -> Self {
        Self { cutoffs: CUTOFFS.to_vec(), cutoff_temperature: 1.0, temperature: 0.01 }
    }
}

impl SmoothRecallConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// No cut-off, one of 0, or a temperature that is not above 0.
    pub fn checked(&self) -> Result<Checked<Self>> {
        check_cutoffs("smooth_recall", &self.cutoffs, self.cutoff_temperature)?;
        above_zero("smooth_recall", "temperature", self.temperature, 0.01)?;
        Ok(Checked::new(self.clone()))
    }
}

impl Checked<SmoothRecallConfig> {
    /// The sigmoid.
    pub fn step(&self) -> Checked<UpperStep> {
        UpperStep::sigmoid(self.temperature)
    }
}

/// Settings of SupRecall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SupRecallConfig {
    /// The cut-offs K, at least one, each at least 1. The loss is the mean over them. Default 1, 2, 4, 8, 16.
    pub cutoffs: Vec<usize>,
    /// T > 0, the width of the sigmoid of K − rank, in ranks. Default 1.
    pub cutoff_temperature: f64,
    /// H⁻, the step for negatives. It is continuous by default.
    pub step: UpperStep,
}

impl Default for SupRecallConfig {
    fn default() -> Self {
        Self { cutoffs: CUTOFFS.to_vec(), cutoff_temperature: 1.0, step: UpperStep::default() }
    }
}

impl SupRecallConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// No cut-off, one of 0, or a number of a step that is out of range.
    pub fn checked(&self) -> Result<Checked<Self>> {
        check_cutoffs("sup_recall", &self.cutoffs, self.cutoff_temperature)?;
        self.step.checked()?;
        Ok(Checked::new(self.clone()))
    }
}

impl Checked<SupRecallConfig> {
    /// H⁻.
    pub fn step(&self) -> Checked<UpperStep> {
        Checked::new(self.step.clone())
    }
}

fn check_cutoffs(loss: &str, cutoffs: &[usize], temperature: f64) -> Result<()> {
    above_zero(loss, "cutoff_temperature", temperature, 1.0)?;
    if cutoffs.is_empty() || cutoffs.contains(&0) {
        return Err(Error::new(
            Kind::Config,
            format!("the cutoffs of {loss} are {cutoffs:?}"),
            "give at least one whole number of at least 1; 1, 2, 4, 8, 16 are usual",
        ));
    }
    Ok(())
}

/// 1 − the mean over the K of Σ_{k∈P} σ((K − r_k)/T) ÷ min(|P|, K), with r_k = 1 + Σ_{j≠k} σ((s_j − s_k)/τ).
///
/// P are the items of the query's own fine class. A tie counts one half. Without any such item loss and gradient are 0.
pub fn smooth_recall(items: &ScoredItems, settings: &Checked<SmoothRecallConfig>) -> QueryLoss {
    let step = settings.step();
    one_minus_recall(items, &settings.cutoffs, settings.cutoff_temperature, |_, t| step.at(t))
}

/// The same with H⁻ in r_k for the items that are not in P, and the true step for the others.
pub fn sup_recall(items: &ScoredItems, settings: &Checked<SupRecallConfig>) -> QueryLoss {
    let step = settings.step();
    one_minus_recall(items, &settings.cutoffs, settings.cutoff_temperature, |j, t| {
        step.below_or_heaviside(!items.is_positive(j), t)
    })
}

fn one_minus_recall(
    items: &ScoredItems,
    cutoffs: &[usize],
    temperature: f64,
    addend: impl Fn(usize, f64) -> Smooth<f64>,
) -> QueryLoss {
    let positives = (0..items.scores().len()).filter(|&item| items.is_positive(item)).count();
    one_minus_ranked(
        items,
        |k| items.is_positive(k),
        |_, j, t| addend(j, t),
        |_, rank| {
            let hits = cutoffs.iter().map(|&cutoff| {
                let share = 1.0 / (cutoffs.len() as f64 * positives.min(cutoff) as f64);
                let hit = 1.0 / (1.0 + ((rank - cutoff as f64) / temperature).exp());
                Smooth { value: share * hit, derivative: -share * hit * (1.0 - hit) / temperature }
            });
            hits.fold(Smooth { value: 0.0, derivative: 0.0 }, |sum, hit| Smooth {
                value: sum.value + hit.value,
                derivative: sum.derivative + hit.derivative,
            })
        },
    )
}
