//! The calibration of scores, for one query (Ramzi et al., NeurIPS 2021, eq. 7).

use serde::{Deserialize, Serialize};

use super::{QueryLoss, ScoredItems};
use crate::{Checked, Error, Kind, Result};

/// Settings of the calibration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct CalibrationConfig {
    /// α: positives should score at least this. Default 0.9.
    pub positive: f64,
    /// β ≤ α: negatives should score at most this. Default 0.6.
    pub negative: f64,
    /// The pairs that a mean is taken over. Default: the pairs of each query, then the queries.
    pub mean: PairMean,
    /// Whether to scale embeddings to unit length first, as the published code does. The heads of akin already do.
    /// Default false.
    pub normalise_embeddings: bool,
}

/// The pairs that a mean is taken over, separately for positives and negatives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum PairMean {
    /// The pairs of each query, then the queries, as in the paper.
    #[default]
    Queries,
    /// The same, where |P_i| also counts the query itself if it is one of the items. The paper does not say which it
    /// means.
    QueriesWithSelf,
    /// All pairs of the batch that have a loss above 0, as in the published code.
    Active,
}

impl Default for CalibrationConfig {
    fn default() -> Self {
        Self { positive: 0.9, negative: 0.6, mean: PairMean::Queries, normalise_embeddings: false }
    }
}

impl CalibrationConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// α or β is not finite, or β is above α.
    pub fn checked(&self) -> Result<Checked<Self>> {
        let Self { positive, negative, .. } = *self;
        if !(positive.is_finite() && negative.is_finite() && negative <= positive) {
            return Err(Error::new(
                Kind::Config,
                format!("calibration has positive = {positive} and negative = {negative}"),
                "set two finite scores, `negative` at most `positive`; the paper has 0.9 and 0.6",
            ));
        }
        Ok(Checked::new(self.clone()))
    }
}

/// (1/|P|) Σ_{j∈P} [α − s_j]₊ + (1/|N|) Σ_{j∈N} [s_j − β]₊, with P the items of the query's own fine class and N the
/// others.
///
/// The items are those that the query is compared with, without the query itself, so that both means over the queries
/// are the same here. With [`PairMean::Active`] the means are over the items that have a loss. A mean over no items is
/// 0. The scores are given, so `normalise_embeddings` has no effect. At s = α or β the gradient is 0.
pub fn calibration(items: &ScoredItems, settings: &Checked<CalibrationConfig>) -> QueryLoss {
    let mut loss = QueryLoss { value: 0.0, gradient: vec![0.0; items.scores().len()], quotients: Vec::new() };
    for (positive, direction) in [(true, -1.0), (false, 1.0)] {
        let bound = if positive { settings.positive } else { settings.negative };
        let side: Vec<(usize, f64)> = (0..items.scores().len())
            .filter(|&item| items.is_positive(item) == positive)
            .map(|item| (item, direction * (items.scores()[item] - bound)))
            .collect();
        let active = side.iter().filter(|(_, excess)| *excess > 0.0);
        let count = match settings.mean {
            PairMean::Queries | PairMean::QueriesWithSelf => side.len(),
            PairMean::Active => active.clone().count(),
        };
        for &(item, excess) in active {
            loss.value += excess / count as f64;
            loss.gradient[item] = direction / count as f64;
        }
    }
    loss
}
