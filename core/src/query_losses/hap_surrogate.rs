//! The H-AP surrogate of HAPPIER for one query (Ramzi et al., ECCV 2022).

use serde::{Deserialize, Deserializer, Serialize};

use super::{Addends, QueryLoss, ScoredItems, constant, one_minus_quotients};
use crate::relevance::{CheckedRelevance, Relevance};
use crate::steps::{LowerStep, Smooth, UpperStep, heaviside};
use crate::taxonomy::Labels;
use crate::{Checked, Result};

/// Settings of the H-AP surrogate. The defaults are those of the published code; the preset `hap_surrogate_text` has those
/// of the paper's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct HapSurrogateConfig {
    /// The relevance of an item by its shared level, with class sizes counted over the batch. Default: HAPPIER, eq. 4
    /// with α = 1. HAPPIER_F has a larger α (3 to 5).
    pub relevance: Relevance,
    /// H⁻, for items that belong below. Default: that of [`UpperStep`], with the offset 1.44.
    #[serde(deserialize_with = "read_upper_step")]
    pub upper_step: UpperStep,
    /// H⁺, for items that belong above; used with `smooth_rank`.
    pub lower_step: LowerStep,
    /// What says which items belong above another. Default: their levels.
    pub order: ItemOrder,
    /// Whether the H-rank is smooth and has a gradient. A smooth H-rank can be negative; the loss then pushes the item
    /// further down the ranking. Default false.
    pub smooth_rank: bool,
    /// Whether the ranked items have no gradient, so that only queries move. Default false.
    pub stop_gradient: bool,
}

/// What says which items belong above another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ItemOrder {
    /// A finer shared level, as in the published code.
    #[default]
    Levels,
    /// A higher relevance, as in eq. 5.
    Relevances,
}

impl Default for HapSurrogateConfig {
    fn default() -> Self {
        Self {
            relevance: Relevance::HierarchicalAp { alpha: 1.0 },
            upper_step: published_step(),
            lower_step: LowerStep::default(),
            order: ItemOrder::Levels,
            smooth_rank: false,
            stop_gradient: false,
        }
    }
}

/// H⁻ of the published code.
fn published_step() -> UpperStep {
    UpperStep { offset: Some(1.44), ..UpperStep::default() }
}

/// An upper step in which the offset is 1.44 unless it is given.
#[derive(Deserialize)]
#[serde(remote = "UpperStep", deny_unknown_fields, default = "published_step")]
struct PublishedStep {
    temperature: f64,
    slope: Option<f64>,
    threshold: Option<f64>,
    offset: Option<f64>,
    start: f64,
    start_at_zero: bool,
}

fn read_upper_step<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<UpperStep, D::Error> {
    PublishedStep::deserialize(deserializer)
}

impl HapSurrogateConfig {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// A setting of the relevance or of a step is out of range.
    pub fn checked(&self, depth: usize) -> Result<CheckedHapSurrogate> {
        self.with_relevance(self.relevance.checked(depth)?)
    }

    /// As [`checked`](Self::checked), for labels that may have a matrix of relevance.
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked).
    pub fn checked_for(&self, labels: &Labels) -> Result<CheckedHapSurrogate> {
        self.with_relevance(self.relevance.checked_for(labels)?)
    }

    fn with_relevance(&self, relevance: CheckedRelevance) -> Result<CheckedHapSurrogate> {
        Ok(CheckedHapSurrogate {
            relevance,
            upper_step: self.upper_step.checked()?,
            lower_step: self.lower_step.checked()?,
            order: self.order,
            smooth_rank: self.smooth_rank,
            stop_gradient: self.stop_gradient,
        })
    }
}

/// A [`HapSurrogateConfig`] whose settings are in range and fit a taxonomy of L levels.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedHapSurrogate {
    pub(crate) relevance: CheckedRelevance,
    pub(crate) upper_step: Checked<UpperStep>,
    pub(crate) lower_step: Checked<LowerStep>,
    pub(crate) order: ItemOrder,
    pub(crate) smooth_rank: bool,
    pub(crate) stop_gradient: bool,
}

/// 1 − (1 / Σ rel) Σ_k H-rank(k) / rank(k) over the items k with l_k > 0, with smooth steps in both ranks (eq. 2–5).
///
/// The rank counts an item j that belongs below k by the upper step, the H-rank one that belongs above k by the lower
/// step, if it is smooth; all others count by H, with H(0) = 1 and without a gradient. |Ω(l)| is counted over the items.
/// Without any relevance loss and gradient are 0. `stop_gradient` concerns embeddings, so it has no effect here.
///
/// # Panics
///
/// When the settings were checked for another number of levels.
pub fn hap_surrogate(items: &ScoredItems, settings: &CheckedHapSurrogate) -> QueryLoss {
    let levels = items.levels();
    let mut counts = vec![0; items.depth() + 1];
    levels.iter().for_each(|&level| counts[level] += 1);
    let by_level = settings.relevance.by_level(&counts);
    let relevance = |item: usize| by_level[levels[item]];
    let total: f64 = (0..levels.len()).map(relevance).sum();
    let weights: Vec<f64> =
        levels.iter().map(|&level| if level > 0 && total > 0.0 { 1.0 / total } else { 0.0 }).collect();
    let place = |item: usize| match settings.order {
        ItemOrder::Levels => levels[item] as f64,
        ItemOrder::Relevances => relevance(item),
    };
    one_minus_quotients(
        items,
        &weights,
        |k| [relevance(k), 1.0],
        |k, j, t| {
            let hard = constant(heaviside(t));
            let rank = if place(j) < place(k) { settings.upper_step.at(t) } else { hard };
            let smooth = settings.smooth_rank && place(j) > place(k);
            let step = if smooth { settings.lower_step.at(t) } else { hard };
            let shared = relevance(j).min(relevance(k));
            let above = Smooth { value: step.value * shared, derivative: step.derivative * shared };
            Addends { above, rank }
        },
    )
}
