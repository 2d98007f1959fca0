//! Smooth forms of 1 − NDCG for one query (Ramzi et al., TPAMI 2025).

use serde::{Deserialize, Serialize};

use super::{QueryLoss, ScoredItems, one_minus_ranked};
use crate::range::above_zero;
use crate::steps::{Smooth, UpperStep};
use crate::{Checked, Result};

/// Settings of SmoothNDCG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SmoothNdcgConfig {
    /// τ > 0, the width of the sigmoid. Default 0.01.
    pub temperature: f64,
}

impl Default for SmoothNdcgConfig {
    fn default() -> Self {
        Self { temperature: 0.01 }
    }
}

impl SmoothNdcgConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A temperature that is not above 0.
    pub fn checked(&self) -> Result<Checked<Self>> {
        above_zero("smooth_ndcg", "temperature", self.temperature, 0.01)?;
        Ok(Checked::new(self.clone()))
    }
}

impl Checked<SmoothNdcgConfig> {
    /// The sigmoid.
    pub fn step(&self) -> Checked<UpperStep> {
        UpperStep::sigmoid(self.temperature)
    }
}

/// Settings of SupNDCG.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SupNdcgConfig {
    /// H⁻, the step for items of a lower level. It is continuous by default.
    pub step: UpperStep,
}

impl SupNdcgConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A number of the step is out of range.
    pub fn checked(&self) -> Result<Checked<Self>> {
        self.step.checked()?;
        Ok(Checked::new(self.clone()))
    }
}

impl Checked<SupNdcgConfig> {
    /// H⁻.
    pub fn step(&self) -> Checked<UpperStep> {
        Checked::new(self.step.clone())
    }
}

/// The gain of a shared level, 2^l − 1.
pub(crate) fn gain(level: usize) -> f64 {
    (level as f64).exp2() - 1.0
}

/// 1 − Σ_k (2^{l_k} − 1) / log2(1 + r_k) ÷ the same sum in the order of levels, with r_k = 1 + Σ_{j≠k} σ((s_j − s_k)/τ).
///
/// A tie counts one half. Without an item of a level above 0 loss and gradient are 0.
pub fn smooth_ndcg(items: &ScoredItems, settings: &Checked<SmoothNdcgConfig>) -> QueryLoss {
    let step = settings.step();
    one_minus_ndcg(items, |_, _, t| step.at(t))
}

/// The same with H⁻ in r_k for the items of a lower level than k, and the true step for the others.
pub fn sup_ndcg(items: &ScoredItems, settings: &Checked<SupNdcgConfig>) -> QueryLoss {
    let step = settings.step();
    let below = |k: usize, j: usize| items.levels()[j] < items.levels()[k];
    one_minus_ndcg(items, |k, j, t| step.below_or_heaviside(below(k, j), t))
}

fn one_minus_ndcg(items: &ScoredItems, addend: impl Fn(usize, usize, f64) -> Smooth<f64>) -> QueryLoss {
    let mut gains: Vec<f64> = items.levels().iter().map(|&level| gain(level)).collect();
    let by_item = gains.clone();
    gains.sort_by(|a, b| b.total_cmp(a));
    let ideal: f64 = gains.iter().zip(2_u32..).map(|(gain, next)| gain / f64::from(next).log2()).sum();
    one_minus_ranked(
        items,
        |k| by_item[k] > 0.0,
        addend,
        |k, rank| {
            let logarithm = (1.0 + rank).log2();
            let value = by_item[k] / logarithm / ideal;
            let derivative = -value / (logarithm * (1.0 + rank) * std::f64::consts::LN_2);
            Smooth { value, derivative }
        },
    )
}
