//! ROADMAP for one query (Ramzi et al., NeurIPS 2021, eq. 2).

use serde::{Deserialize, Serialize};

use super::{CalibrationConfig, QueryLoss, ScoredItems, SupApConfig, calibration, sup_ap};
use crate::range::blend_weight;
use crate::{Checked, Result};

/// Settings of ROADMAP. The preset `roadmap_published` has those of the published code, which adds the two losses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct RoadmapConfig {
    /// λ in 0 … 1, the weight of the calibration. Default 0.5.
    pub lambda: f64,
    /// The bound of 1 − AP.
    pub sup_ap: SupApConfig,
    /// The calibration of scores.
    pub calibration: CalibrationConfig,
}

impl Default for RoadmapConfig {
    fn default() -> Self {
        Self { lambda: 0.5, sup_ap: Default::default(), calibration: Default::default() }
    }
}

impl RoadmapConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// λ is outside 0 … 1, or a setting of one of the two losses is out of range.
    pub fn checked(&self) -> Result<Checked<Self>> {
        blend_weight("ROADMAP", self.lambda)?;
        self.sup_ap.checked()?;
        self.calibration.checked()?;
        Ok(Checked::new(self.clone()))
    }
}

/// (1 − λ) · L_SupAP + λ · L_calibration, see [`sup_ap`](fn@sup_ap) and [`calibration`](fn@calibration). The quotients
/// are those of SupAP.
pub fn roadmap(items: &ScoredItems, settings: &Checked<RoadmapConfig>) -> QueryLoss {
    let bound = sup_ap(items, &Checked::new(settings.sup_ap.clone()));
    let calibrated = calibration(items, &Checked::new(settings.calibration.clone()));
    let blend = |first: f64, second: f64| (1.0 - settings.lambda) * first + settings.lambda * second;
    QueryLoss {
        value: blend(bound.value, calibrated.value),
        gradient: bound.gradient.iter().zip(calibrated.gradient).map(|(&a, b)| blend(a, b)).collect(),
        quotients: bound.quotients,
    }
}
