//! Smooth-HAP of one query: H-AP with sigmoids (Ramzi et al., ECCV 2022, table 5).

use serde::{Deserialize, Serialize};

use super::{Addends, QueryLoss, ScoredItems, one_minus_quotients};
use crate::range::above_zero;
use crate::relevance::{CheckedRelevance, Relevance};
use crate::steps::{Smooth, UpperStep};
use crate::taxonomy::Labels;
use crate::{Checked, Result};

/// Settings of Smooth-HAP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SmoothHapConfig {
    /// The relevance of an item by its shared level, with class sizes counted over the batch. Default: HAPPIER, eq. 4
    /// with α = 1.
    pub relevance: Relevance,
    /// τ > 0, the width of the sigmoid. Default 0.01.
    pub temperature: f64,
}

impl Default for SmoothHapConfig {
    fn default() -> Self {
        Self { relevance: Relevance::HierarchicalAp { alpha: 1.0 }, temperature: 0.01 }
    }
}

impl SmoothHapConfig {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// A setting of the relevance is out of range, or the temperature is not above 0.
    pub fn checked(&self, depth: usize) -> Result<CheckedSmoothHap> {
        self.with_relevance(self.relevance.checked(depth)?)
    }

    /// As [`checked`](Self::checked), for labels that may have a matrix of relevance.
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked).
    pub fn checked_for(&self, labels: &Labels) -> Result<CheckedSmoothHap> {
        self.with_relevance(self.relevance.checked_for(labels)?)
    }

    fn with_relevance(&self, relevance: CheckedRelevance) -> Result<CheckedSmoothHap> {
        above_zero("smooth_hap", "temperature", self.temperature, 0.01)?;
        Ok(CheckedSmoothHap { relevance, step: UpperStep::sigmoid(self.temperature) })
    }
}

/// A [`SmoothHapConfig`] whose settings are in range and fit a taxonomy of L levels.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedSmoothHap {
    pub(crate) relevance: CheckedRelevance,
    pub(crate) step: Checked<UpperStep>,
}

/// 1 − (1 / Σ rel) Σ_k H-rank(k) / rank(k) over the items k with a relevance, with the sigmoid of (s_j − s_k)/τ for the
/// step of every other item j in both ranks.
///
/// |Ω(l)| is counted over the items. A tie counts one half. Without any relevance loss and gradient are 0.
///
/// # Panics
///
/// When the settings were checked for another number of levels.
pub fn smooth_hap(items: &ScoredItems, settings: &CheckedSmoothHap) -> QueryLoss {
    let levels = items.levels();
    let mut counts = vec![0; items.depth() + 1];
    levels.iter().for_each(|&level| counts[level] += 1);
    let by_level = settings.relevance.by_level(&counts);
    let relevance = |item: usize| by_level[levels[item]];
    let total: f64 = (0..levels.len()).map(relevance).sum();
    let weight = |item: usize| if relevance(item) > 0.0 { 1.0 / total } else { 0.0 };
    let weights: Vec<f64> = (0..levels.len()).map(weight).collect();
    one_minus_quotients(
        items,
        &weights,
        |k| [relevance(k), 1.0],
        |k, j, t| {
            let rank = settings.step.at(t);
            let shared = relevance(j).min(relevance(k));
            let above = Smooth { value: rank.value * shared, derivative: rank.derivative * shared };
            Addends { above, rank }
        },
    )
}
