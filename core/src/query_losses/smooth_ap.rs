//! Smooth-AP of one query (Brown et al., ECCV 2020).

use serde::{Deserialize, Serialize};

use super::{Addends, QueryLoss, ScoredItems, constant, one_minus_quotients};
use crate::range::above_zero;
use crate::steps::UpperStep;
use crate::{Checked, Result};

/// Settings of Smooth-AP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct SmoothApConfig {
    /// τ > 0, the width of the sigmoid. Default 0.01.
    pub temperature: f64,
}

impl Default for SmoothApConfig {
    fn default() -> Self {
        Self { temperature: 0.01 }
    }
}

impl SmoothApConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A temperature that is not above 0.
    pub fn checked(&self) -> Result<Checked<Self>> {
        above_zero("smooth_ap", "temperature", self.temperature, 0.01)?;
        Ok(Checked::new(self.clone()))
    }
}

impl Checked<SmoothApConfig> {
    /// The sigmoid: an [`UpperStep`] without its line.
    pub fn step(&self) -> Checked<UpperStep> {
        UpperStep::sigmoid(self.temperature)
    }
}

/// 1 − (1/|P|) Σ_{k∈P} a_k / r_k, with a_k = 1 + Σ_{j∈P, j≠k} σ((s_j − s_k)/τ) and r_k = 1 + Σ_{j≠k} σ((s_j − s_k)/τ).
///
/// P are the items of the query's own fine class. A tie counts one half. Without any such item loss and gradient are 0.
pub fn smooth_ap(items: &ScoredItems, settings: &Checked<SmoothApConfig>) -> QueryLoss {
    let step = settings.step();
    one_minus_quotients(
        items,
        &items.positive_weights(),
        |_| [1.0, 1.0],
        |_, j, t| {
            let rank = step.at(t);
            Addends { above: if items.is_positive(j) { rank } else { constant(0.0) }, rank }
        },
    )
}
