//! `[augment]`: random changes to training images.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[augment]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// The smallest and the largest share of the image's area that a random crop keeps, above 0 and at most 1.
    /// Default [0.4, 1].
    pub crop_scale: [f64; 2],
    /// The smallest and the largest width ÷ height of a random crop, above 0. Default [3/4, 4/3].
    pub crop_ratio: [f64; 2],
    /// Whether an image is mirrored with probability 1/2. Default true.
    pub flip: bool,
}

impl Default for AugmentConfig {
    fn default() -> Self {
        Self { crop_scale: [0.4, 1.0], crop_ratio: [0.75, 4.0 / 3.0], flip: true }
    }
}

impl AugmentConfig {
    pub(super) fn validate(&self) -> Result<()> {
        let [from, to] = self.crop_scale;
        ensure(0.0 < from && from <= to && to <= 1.0, || {
            (
                format!("augment.crop_scale is [{from}, {to}]"),
                "give two shares of the area, 0 < smallest ≤ largest ≤ 1, for example [0.4, 1.0]",
            )
        })?;
        let [from, to] = self.crop_ratio;
        ensure(0.0 < from && from <= to && to.is_finite(), || {
            (
                format!("augment.crop_ratio is [{from}, {to}]"),
                "give two ratios of width to height, 0 < smallest ≤ largest, for example [0.75, 1.3333]",
            )
        })
    }
}
