//! Preprocessing: an image of any size becomes the square of numbers that a backbone expects.

use serde::{Deserialize, Serialize};

use super::{Filter, Pixels};
use crate::{Error, Kind, Result};

/// The order of the three colour planes that a backbone reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Channels {
    /// Red, green, blue, as torchvision's models.
    #[default]
    Rgb,
    /// Blue, green, red, as models that come from Caffe.
    Bgr,
}

/// How bytes become numbers: `channels`, `scale`, `mean` and `deviation` under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Normalisation {
    /// RGB, bytes / 255, minus (0.485, 0.456, 0.406), divided by (0.229, 0.224, 0.225), as torchvision's weights
    /// expect.
    Imagenet,
    /// BGR, bytes from 0 to 255, minus (104, 117, 123), as weights that come from Caffe expect.
    Caffe,
    /// BGR, bytes from 0 to 255, minus (104, 117, 128), as BN-Inception's weights expect.
    BnInception,
    /// RGB, bytes / 255, minus 0.5, divided by 0.5, which gives numbers from −1 to 1, as Inception's weights expect.
    Inception,
    /// RGB, bytes / 255, minus (0.4815, 0.4578, 0.4082), divided by (0.2686, 0.2613, 0.2758), as CLIP's weights expect;
    /// the numbers themselves have eight digits.
    Clip,
}

impl Normalisation {
    /// Channels, scale, mean and deviation.
    fn numbers(self) -> (Channels, f32, [f32; 3], [f32; 3]) {
        let bytes_to_one = 1.0 / 255.0;
        match self {
            Self::Imagenet => (Channels::Rgb, bytes_to_one, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            Self::Caffe => (Channels::Bgr, 1.0, [104.0, 117.0, 123.0], [1.0; 3]),
            Self::BnInception => (Channels::Bgr, 1.0, [104.0, 117.0, 128.0], [1.0; 3]),
            Self::Inception => (Channels::Rgb, bytes_to_one, [0.5; 3], [0.5; 3]),
            Self::Clip => (
                Channels::Rgb,
                bytes_to_one,
                [0.481_454_66, 0.457_827_5, 0.408_210_73],
                [0.268_629_54, 0.261_302_6, 0.275_777_1],
            ),
        }
    }
}

/// The numbers of a [`Preprocessing`], before they are checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreprocessingNumbers {
    /// The length of the shorter side after resizing, in pixels.
    pub resize: u32,
    /// Whether the longer side is resized to the same length, so that every image becomes a square.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub squeeze: bool,
    /// The side of the square that is cut from the centre, in pixels; at most `resize`.
    pub crop: u32,
    /// How pixels are weighted when the image is resized.
    pub filter: Filter,
    /// The order of the colour planes, and of `mean` and `deviation`.
    pub channels: Channels,
    /// Each byte (0 … 255) is multiplied by this first.
    pub scale: f32,
    /// Then this is subtracted, plane by plane.
    pub mean: [f32; 3],
    /// Then it is divided by this, plane by plane; not 0.
    pub deviation: [f32; 3],
}

/// Preprocessing as a config writes it: a name, `"imagenet"`, or a table, `{ name = "imagenet", crop = 128 }`.
///
/// ```
/// use akin_core::image::{Normalisation, Preprocessing, PreprocessingConfig};
///
/// let default = Preprocessing::new(Normalisation::Imagenet, 224)?;
/// let config: PreprocessingConfig = serde_json::from_str(r#"{ "name": "caffe", "crop": 128 }"#).unwrap();
/// assert_eq!(config.resolve(&default)?, Preprocessing::new(Normalisation::Caffe, 128)?);
/// # Ok::<(), akin_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum PreprocessingConfig {
    /// The name alone; the sizes are the default's.
    Name(Normalisation),
    /// A table of the settings that differ from the default.
    Table(PreprocessingTable),
}

/// The table of a [`PreprocessingConfig`]. It has either a `name` or all of `channels`, `scale`, `mean` and
/// `deviation`; without them the backbone decides.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PreprocessingTable {
    /// How bytes become numbers. Default: what the backbone expects.
    pub name: Option<Normalisation>,
    /// The side of the square that is cut from the centre, in pixels, 1 … 4096. Default: what the backbone expects.
    pub crop: Option<u32>,
    /// The length of the shorter side after resizing, in pixels, `crop` … 4096. Default: the same as `crop`.
    pub resize: Option<u32>,
    /// Whether both sides are resized to `resize`, whatever the shape of the image. Default: false; the longer side is
    /// resized in proportion.
    pub squeeze: Option<bool>,
    /// How pixels are weighted when the image is resized. Default: `bilinear`.
    pub filter: Option<Filter>,
    /// Instead of `name`: the order of the colour planes, and of `mean` and `deviation`. Default: that of the name.
    pub channels: Option<Channels>,
    /// Instead of `name`: each byte (0 … 255) is multiplied by this first; not 0. Default: that of the name.
    pub scale: Option<f32>,
    /// Instead of `name`: this is subtracted next, plane by plane. Default: that of the name.
    pub mean: Option<[f32; 3]>,
    /// Instead of `name`: this is divided by last, plane by plane; not 0. Default: that of the name.
    pub deviation: Option<[f32; 3]>,
}

impl Default for PreprocessingConfig {
    fn default() -> Self {
        Self::Table(PreprocessingTable::default())
    }
}

impl PreprocessingConfig {
    /// The preprocessing itself; what the config leaves out comes from `default`, that of the backbone.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a table that has both a name and numbers that the name stands for, for one that has only
    /// some of these numbers, and for numbers that [`Preprocessing`] refuses.
    pub fn resolve(self, default: &Preprocessing) -> Result<Preprocessing> {
        let table = match self {
            Self::Name(name) => PreprocessingTable { name: Some(name), ..PreprocessingTable::default() },
            Self::Table(table) => table,
        };
        let PreprocessingTable { name, crop, resize, squeeze, filter, channels, scale, mean, deviation } =
            table;
        let given = [
            ("channels", channels.is_some()),
            ("scale", scale.is_some()),
            ("mean", mean.is_some()),
            ("deviation", deviation.is_some()),
        ];
        let named = |wanted: bool| -> String {
            let names: Vec<&str> =
                given.iter().filter(|(_, is_given)| *is_given == wanted).map(|(name, _)| *name).collect();
            names.join(", ")
        };
        let (channels, scale, mean, deviation) = match (name, channels, scale, mean, deviation) {
            (Some(name), None, None, None, None) => name.numbers(),
            (None, None, None, None, None) => {
                let PreprocessingNumbers { channels, scale, mean, deviation, .. } = default.0;
                (channels, scale, mean, deviation)
            }
            (None, Some(channels), Some(scale), Some(mean), Some(deviation)) => {
                (channels, scale, mean, deviation)
            }
            (Some(_), ..) => {
                return Err(Error::new(
                    Kind::Config,
                    format!("preprocessing has a name and also {}", named(true)),
                    "remove the name, or what it stands for: channels, scale, mean and deviation",
                ));
            }
            (None, ..) => {
                return Err(Error::new(
                    Kind::Config,
                    format!("preprocessing has {} but not {}", named(true), named(false)),
                    "give all of channels, scale, mean and deviation, or a name instead, such as imagenet",
                ));
            }
        };
        let crop = crop.unwrap_or(default.0.crop);
        let resize = resize.unwrap_or(crop);
        let (squeeze, filter) = (squeeze.unwrap_or_default(), filter.unwrap_or_default());
        PreprocessingNumbers { resize, squeeze, crop, filter, channels, scale, mean, deviation }.try_into()
    }
}

/// What happens to an image before the backbone sees it: resize, centre crop, normalise.
///
/// A value of this type is always usable: its numbers are checked when it is made or deserialised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PreprocessingNumbers", into = "PreprocessingNumbers")]
pub struct Preprocessing(PreprocessingNumbers);

impl Preprocessing {
    /// Resizes the shorter side to `side`, crops to `side` × `side` (bilinear), and normalises.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when `side` is 0 or more than 4,096.
    pub fn new(normalisation: Normalisation, side: u32) -> Result<Self> {
        let (channels, scale, mean, deviation) = normalisation.numbers();
        let filter = Filter::Bilinear;
        let (resize, crop, squeeze) = (side, side, false);
        PreprocessingNumbers { resize, squeeze, crop, filter, channels, scale, mean, deviation }.try_into()
    }

    /// The numbers.
    pub fn numbers(&self) -> &PreprocessingNumbers {
        &self.0
    }

    /// The side of the square that the backbone reads, in pixels.
    pub fn side(&self) -> u32 {
        self.0.crop
    }

    /// The square of `crop` × `crop` pixels that the backbone reads.
    ///
    /// The shorter side is resized to `resize` and the longer one in proportion, rounded down as by torchvision's
    /// `Resize`; with `squeeze` the longer side is resized to the same length. Then the centre is cut out; half a pixel
    /// rounds to even, as in its `CenterCrop`. An image that already has the right size does not change.
    ///
    /// # Errors
    ///
    /// [`Kind::Image`] if the image cannot be resized.
    pub fn view(&self, image: &Pixels) -> Result<Pixels> {
        let PreprocessingNumbers { crop, filter, .. } = self.0;
        let (full, corner) = self.crop_of(image);
        image.resize_then_crop(full, corner, [crop, crop], filter)
    }

    /// The part of an image that [`Self::view`] shows, as shares of its width and height: left, top, width, height.
    pub fn region(&self, image: &Pixels) -> [f64; 4] {
        let (full, corner) = self.crop_of(image);
        let crop = f64::from(self.0.crop);
        [corner[0] / full[0], corner[1] / full[1], crop / full[0], crop / full[1]]
    }

    /// The size of the resized image, and the upper left corner of the crop in it.
    fn crop_of(&self, image: &Pixels) -> ([f64; 2], [f64; 2]) {
        let PreprocessingNumbers { resize, squeeze, crop, .. } = self.0;
        let (w, h) = (u64::from(image.width()), u64::from(image.height()));
        let short = w.min(h);
        let full =
            [w, h].map(|side| if squeeze { u64::from(resize) } else { u64::from(resize) * side / short });
        let corner = full.map(|side| ((side - u64::from(crop)) as f64 / 2.0).round_ties_even());
        (full.map(|side| side as f64), corner)
    }

    /// An image as numbers: three planes (CHW) in the order of `channels`, each `(byte · scale − mean) / deviation`.
    /// The length is `3 · width · height`.
    pub fn normalise(&self, image: &Pixels) -> Vec<f32> {
        let PreprocessingNumbers { channels, scale, mean, deviation, .. } = &self.0;
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

impl TryFrom<PreprocessingNumbers> for Preprocessing {
    type Error = Error;

    /// # Errors
    ///
    /// [`Kind::Config`] when a size is 0 or more than 4,096, the crop is larger than the resized image, a number is not
    /// finite, or the scale or a deviation is 0.
    fn try_from(numbers: PreprocessingNumbers) -> Result<Self> {
        const MAX_SIDE: u32 = 4096;
        let PreprocessingNumbers { resize, crop, scale, mean, deviation, .. } = &numbers;
        let refuse = |message: String, hint: String| Err(Error::new(Kind::Config, message, hint));
        if !(1..=MAX_SIDE).contains(resize) || !(1..=MAX_SIDE).contains(crop) {
            return refuse(
                format!("preprocessing resizes to {resize} and crops to {crop} pixels"),
                format!("choose sizes from 1 to {MAX_SIDE}"),
            );
        }
        if crop > resize {
            return refuse(
                format!("preprocessing crops to {crop} pixels, more than the {resize} it resizes to"),
                "make resize at least as large as crop".into(),
            );
        }
        let settings = [("scale", &[*scale][..]), ("mean", &mean[..]), ("deviation", &deviation[..])];
        for (name, values) in settings {
            if !values.iter().all(|value| value.is_finite()) {
                return refuse(
                    format!("the {name} of preprocessing is {values:?}"),
                    "give finite numbers".into(),
                );
            }
            if name != "mean" && values.contains(&0.0) {
                return refuse(
                    format!("the {name} of preprocessing is {values:?}, which has a 0"),
                    "give 1 to leave values unchanged".into(),
                );
            }
        }
        Ok(Self(numbers))
    }
}

impl From<Preprocessing> for PreprocessingNumbers {
    fn from(preprocessing: Preprocessing) -> Self {
        preprocessing.0
    }
}
