//! The entry of a backbone in the catalogue, and backbones that are an entry and a form.

/// What is known about a backbone before it is made.
#[derive(Clone, Copy, Debug)]
pub struct BackboneEntry {
    /// Its `kind` in a config.
    pub name: &'static str,
    /// Its name in print.
    pub title: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The package whose names its published weights have; none if there are no published weights.
    pub weights: Option<&'static str>,
    /// The prefixes of the weights that are not loaded: those of the classifier.
    pub classifier: &'static [&'static str],
    /// The side of the images that it expects, in pixels.
    pub side: u32,
    /// The smallest side of an image that it can read, in pixels.
    pub smallest_side: u32,
    /// The side of a transformer's patches, in pixels; the side of an image is a multiple of it.
    pub patch: Option<u32>,
    /// How bytes become the numbers that it expects.
    #[cfg(feature = "image")]
    pub normalisation: crate::image::Normalisation,
    /// Whether it pools its features itself: by a class token, by attention, or by a mean that it normalises.
    pub pools: bool,
    /// Whether it has batch normalisation.
    pub batch_norm: bool,
    /// The licence of its published weights, if it binds whoever passes on what was trained from them.
    pub licence: Option<&'static str>,
    /// The published name of the weight at a path of the network.
    pub(super) published_name: fn(&str) -> String,
}

impl BackboneEntry {
    /// A convolutional network with batch normalisation that reads images of 224 pixels, normalised as for torchvision.
    pub(super) const fn new(name: &'static str, title: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            title,
            summary,
            weights: None,
            classifier: &[],
            side: 224,
            smallest_side: 32,
            patch: None,
            pools: false,
            #[cfg(feature = "image")]
            normalisation: crate::image::Normalisation::Imagenet,
            batch_norm: true,
            licence: None,
            published_name: str::to_owned,
        }
    }
}

/// Declares backbones without settings: their config, entry and form, from which the network is made.
macro_rules! fixed_backbones {
    (
        form: $form:ty, network: $network:ty, features: $features:expr;
        $($config:ident = $entry:expr, $value:expr;)+
    ) => {
        $(
            /// A backbone without settings.
            #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
            #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
            #[serde(deny_unknown_fields)]
            pub struct $config {}

            impl $config {
                const FORM: $form = $value;
                /// Its entry in the catalogue.
                pub const ENTRY: $crate::models::BackboneEntry = $entry;

                /// F, the number of features.
                pub fn features(&self) -> usize {
                    let features: fn(&$form) -> usize = $features;
                    features(&Self::FORM)
                }

                pub(in crate::models) fn init(
                    &self,
                    initial: &mut $crate::models::layers::Initial,
                ) -> $crate::Result<$network> {
                    <$network>::new(&Self::FORM, initial)
                }
            }
        )+
    };
}
pub(super) use fixed_backbones;
