//! SupAP of one query (Ramzi et al., NeurIPS 2021).

use serde::{Deserialize, Serialize};

use super::{Addends, QueryLoss, ScoredItems, constant, one_minus_quotients};
use crate::steps::{UpperStep, heaviside};
use crate::{Checked, Result};

/// Settings of SupAP. The preset `sup_ap_published` has the offset 1.44 of the published code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct SupApConfig {
    /// H⁻, the step for negatives. It is continuous by default.
    pub step: UpperStep,
}

impl SupApConfig {
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

impl Checked<SupApConfig> {
    /// H⁻.
    pub fn step(&self) -> Checked<UpperStep> {
        Checked::new(self.step.clone())
    }
}

/// 1 − (1/|P|) Σ_{k∈P} r⁺_k / (r⁺_k + r⁻_k), with r⁺_k = Σ_{j∈P} H(s_j − s_k) and r⁻_k = Σ_{j∉P} H⁻(s_j − s_k):
/// ROADMAP, eq. 3–5.
///
/// P are the items of the query's own fine class. H(0) is 1, and H has no gradient. Without any such item loss and
/// gradient are 0.
pub fn sup_ap(items: &ScoredItems, settings: &Checked<SupApConfig>) -> QueryLoss {
    let step = settings.step();
    one_minus_quotients(
        items,
        &items.positive_weights(),
        |_| [1.0, 1.0],
        |_, j, t| {
            if items.is_positive(j) {
                Addends { above: constant(heaviside(t)), rank: constant(heaviside(t)) }
            } else {
                Addends { above: constant(0.0), rank: step.at(t) }
            }
        },
    )
}
