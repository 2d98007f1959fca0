//! From an image of any size to the square and the numbers that a backbone was trained on.

use serde::{Deserialize, Serialize};

use super::{Filter, Pixels};
use crate::{Error, Kind, Result};

/// The order of the three colour planes that a backbone reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// Red, green, blue: torchvision's models.
    #[default]
    Rgb,
    /// Blue, green, red: models that come from Caffe.
    Bgr,
}

/// The settings of a [`Preprocessing`], before they are checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The length of the shorter side after resizing, in pixels.
    pub resize: u32,
    /// The side of the square that is cut from the centre, in pixels; at most `resize`.
    pub crop: u32,
    /// How the image is resampled.
    pub filter: Filter,
    /// The order of the planes, and of `mean` and `deviation`.
    pub channels: Channels,
    /// Each byte (0 … 255) is multiplied by this first.
    pub scale: f32,
    /// Then this is subtracted, plane by plane in the order of `channels`.
    pub mean: [f32; 3],
    /// Then it is divided by this, plane by plane in the order of `channels`; not 0.
    pub deviation: [f32; 3],
}

/// What is done to an image before the backbone sees it: resize, centre crop, normalise.
///
/// A value of this type is always usable: it is checked when made or deserialised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "Settings", into = "Settings")]
pub struct Preprocessing(Settings);

impl Preprocessing {
    /// torchvision's convention: RGB, bytes / 255, minus [0.485, 0.456, 0.406], over [0.229, 0.224, 0.225].
    ///
    /// Like the other constructors it resizes the shorter side to `side` and crops to `side` × `side`, bilinear.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when `side` is 0 or more than 4,096.
    pub fn imagenet(side: u32) -> Result<Self> {
        Self::square(side, Channels::Rgb, 1.0 / 255.0, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    }

    /// Caffe's convention: BGR, bytes as they are, minus [104, 117, 123] (blue 104, green 117, red 123).
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when `side` is 0 or more than 4,096.
    pub fn caffe(side: u32) -> Result<Self> {
        Self::square(side, Channels::Bgr, 1.0, [104.0, 117.0, 123.0], [1.0; 3])
    }

    /// RGB from −1 to 1: bytes / 255, minus 0.5, over 0.5.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when `side` is 0 or more than 4,096.
    pub fn plain(side: u32) -> Result<Self> {
        Self::square(side, Channels::Rgb, 1.0 / 255.0, [0.5; 3], [0.5; 3])
    }

    fn square(
        side: u32,
        channels: Channels,
        scale: f32,
        mean: [f32; 3],
        deviation: [f32; 3],
    ) -> Result<Self> {
        let filter = Filter::Bilinear;
        Settings { resize: side, crop: side, filter, channels, scale, mean, deviation }.try_into()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.0
    }

    /// The side of the square that the backbone reads, in pixels.
    pub fn side(&self) -> u32 {
        self.0.crop
    }

    /// The square of `crop` × `crop` pixels that the backbone reads.
    ///
    /// The shorter side is resized to `resize`, the longer one in proportion (rounded down, as torchvision's
    /// `Resize`), then the centre is cut out (half pixels round to even, as its `CenterCrop`). An image
    /// that already has the size stays as it is.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] should the image not be resizable.
    pub fn view(&self, image: &Pixels) -> Result<Pixels> {
        let Settings { resize, crop, filter, .. } = self.0;
        let (w, h) = (u64::from(image.width()), u64::from(image.height()));
        let short = w.min(h);
        let full = [w, h].map(|side| u64::from(resize) * side / short);
        let corner = full.map(|side| ((side - u64::from(crop)) as f64 / 2.0).round_ties_even());
        let full = full.map(|side| side as f64);
        image.resize_then_crop(full, corner, [crop, crop], filter)
    }

    /// The numbers of an image: three planes (CHW) in the order of `channels`, each
    /// `(byte · scale − mean) / deviation`. The length is `3 · width · height`.
    pub fn normalise(&self, image: &Pixels) -> Vec<f32> {
        let Settings { channels, scale, mean, deviation, .. } = &self.0;
        let order = match channels {
            Channels::Rgb => [0, 1, 2],
            Channels::Bgr => [2, 1, 0],
        };
        let mut planes = Vec::with_capacity(image.data().len());
        for (plane, channel) in order.into_iter().enumerate() {
            let values = image.data()[channel..].iter().step_by(3);
            planes.extend(values.map(|&byte| (f32::from(byte) * scale - mean[plane]) / deviation[plane]));
        }
        planes
    }
}

impl TryFrom<Settings> for Preprocessing {
    type Error = Error;

    /// # Errors
    ///
    /// [`Kind::Config`] when a size is 0 or more than 4,096, the crop larger than the resized image, a number not
    /// finite, or the scale or a deviation 0.
    fn try_from(settings: Settings) -> Result<Self> {
        const MAX_SIDE: u32 = 4096;
        let Settings { resize, crop, scale, mean, deviation, .. } = &settings;
        let fault = if !(1..=MAX_SIDE).contains(resize) || !(1..=MAX_SIDE).contains(crop) {
            Some((
                format!("preprocessing resizes to {resize} and crops to {crop} pixels"),
                format!("choose sizes from 1 to {MAX_SIDE}"),
            ))
        } else if crop > resize {
            Some((
                format!("preprocessing crops to {crop} pixels, more than the {resize} it resizes to"),
                "make resize at least as large as crop".into(),
            ))
        } else if ![scale].into_iter().chain(mean).chain(deviation).all(|number| number.is_finite()) {
            Some((
                "preprocessing has a number that is not finite".into(),
                "correct scale, mean or deviation".into(),
            ))
        } else if *scale == 0.0 || deviation.contains(&0.0) {
            Some((
                "preprocessing has a scale or deviation of 0".into(),
                "choose 1 to leave values as they are".into(),
            ))
        } else {
            None
        };
        match fault {
            Some((message, hint)) => Err(Error::new(Kind::Config, message, hint)),
            None => Ok(Self(settings)),
        }
    }
}

impl From<Preprocessing> for Settings {
    fn from(preprocessing: Preprocessing) -> Self {
        preprocessing.0
    }
}
