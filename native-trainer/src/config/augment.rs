//! `[augment]`: random changes to training images.

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::range::ensure;

/// `[augment]`: see the [module](self).
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AugmentConfig {
    /// Before the crop: the length of the shorter side that the image is resized to, 1 … 4096 pixels. Default: none; the
    /// image is cropped as it is. At most one of `resize` and `squeeze` can be set.
    pub resize: Option<u32>,
    /// Before the crop: the length of both sides that the image is resized to, whatever its shape, 1 … 4096 pixels.
    /// Default: none.
    pub squeeze: Option<u32>,
    /// How a random crop is drawn. It is then resized to the square that the model reads. Default `area`.
    pub crop: CropKind,
    /// With the crop `area`: the smallest and the largest share of the image's area that a random crop keeps, above 0 and at most 1.
    /// Default [0.4, 1].
    pub crop_scale: [f64; 2],
    /// With the crop `side`: the smallest and the largest side of a random crop, √(width × height) in pixels, above 0, for example
    /// `[40, 256]`. Default: none; `side` needs it.
    pub crop_side: Option<[f64; 2]>,
    /// With the crops `area` and `side`: the smallest and the largest width ÷ height of a random crop, above 0; with `resize` or `squeeze`
    /// from 1/4 to 4. Default [3/4, 4/3].
    pub crop_ratio: [f64; 2],
    /// Whether an image is mirrored with probability 1/2. Default true.
    pub flip: bool,
}

/// How a random crop is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CropKind {
    /// A random share of the image's area and a random shape: torchvision's `RandomResizedCrop`.
    #[default]
    Area,
    /// A random side in pixels and a random shape.
    Side,
    /// The square that the model reads, at a random place of the resized image: torchvision's `RandomCrop`. It needs
    /// `resize` or `squeeze`.
    Position,
}

impl Default for AugmentConfig {
    fn default() -> Self {
        Self {
            resize: None,
            squeeze: None,
            crop: CropKind::Area,
            crop_scale: [0.4, 1.0],
            crop_side: None,
            crop_ratio: [0.75, 4.0 / 3.0],
            flip: true,
        }
    }
}

impl AugmentConfig {
    /// `side` is that of the square that the model reads.
    pub(super) fn validate(&self, side: u32) -> Result<()> {
        for (name, length) in [("resize", self.resize), ("squeeze", self.squeeze)] {
            ensure(length.is_none_or(|length| (1..=4096).contains(&length)), || {
                (
                    format!("augment.{name} is {}", length.unwrap_or_default()),
                    "give a length from 1 to 4096 pixels",
                )
            })?;
        }
        ensure(self.resize.is_none() || self.squeeze.is_none(), || {
            (
                "the config sets both augment.resize and augment.squeeze".into(),
                "set at most one of them: `resize` keeps the shape of an image, `squeeze` makes it a square",
            )
        })?;
        let resized = self.resize.or(self.squeeze);
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
        })?;
        // A crop of a resized image is then at most 4 × 4096 pixels long.
        ensure(resized.is_none() || (from >= 0.25 && to <= 4.0), || {
            (
                format!(
                    "augment.crop_ratio is [{from}, {to}], and images are resized before they are cropped"
                ),
                "give two ratios from 0.25 to 4, or remove augment.resize and augment.squeeze",
            )
        })?;
        if let Some([from, to]) = self.crop_side {
            ensure(0.0 < from && from <= to && to.is_finite(), || {
                (
                    format!("augment.crop_side is [{from}, {to}]"),
                    "give two lengths in pixels, 0 < smallest ≤ largest, for example [40, 256]",
                )
            })?;
        }
        ensure(self.crop_side.is_some() == (self.crop == CropKind::Side), || match self.crop_side {
            None => (
                "augment.crop is `side`, but augment.crop_side is not set".into(),
                "set it to the smallest and the largest side in pixels, for example [40, 256]",
            ),
            Some(_) => (
                "augment.crop_side is set, but augment.crop is not `side`".into(),
                "remove it, or set augment.crop = \"side\"",
            ),
        })?;
        ensure(self.crop != CropKind::Position || resized.is_some_and(|length| length >= side), || {
            let length = resized.map_or("images are not resized".into(), |length| {
                format!("images are resized to {length} pixels")
            });
            (
                format!("augment.crop is `position` and the model reads {side}×{side} pixels, but {length}"),
                "set augment.resize or augment.squeeze to at least model.preprocessing.crop",
            )
        })
    }
}
