//! Every backbone, one line each: the `kind` of a config, the printed lists and the tests all read it.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::drop_path::{Branches, Factors};
use super::layers::Initial;
use super::pooling::{Outputs, Pooling};
use super::weights::{self, Published};
use super::*;
use crate::Result;

/// Each line is a backbone: the variant, its settings, and the network they make. The variant in snake case is its name.
macro_rules! backbones {
    ($($variant:ident: $settings:ty => $network:ty,)+) => {
        /// A backbone by name with its settings: `model.backbone` of a config.
        ///
        /// ```
        /// use akin_core::models::BackboneConfig;
        ///
        /// let small: BackboneConfig = serde_json::from_str(r#"{ "kind": "small_resnet", "width": 8 }"#).unwrap();
        /// assert_eq!(small.features(), 64);
        /// assert_eq!(BackboneConfig::named("resnet50")?.features(), 2048);
        /// # Ok::<(), akin_core::Error>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum BackboneConfig {
            $(
                #[doc = concat!("See [`", stringify!($settings), "`].")]
                #[cfg_attr(feature = "schema", schemars(description = <$settings>::ENTRY.summary))]
                $variant($settings),
            )+
        }

        /// A network from images to features.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Backbone {
            $(#[doc = concat!("See [`", stringify!($network), "`].")] $variant($network),)+
        }

        /// Every backbone.
        pub const BACKBONES: &[BackboneEntry] = &[$(<$settings>::ENTRY),+];

        impl BackboneConfig {
            /// Its entry in the catalogue.
            pub fn entry(&self) -> &'static BackboneEntry {
                match self { $(Self::$variant(_) => const { &<$settings>::ENTRY },)+ }
            }

            /// F, the number of features.
            pub fn features(&self) -> usize {
                match self { $(Self::$variant(settings) => settings.features(),)+ }
            }

            fn make(&self, initial: &mut Initial) -> Result<Backbone> {
                Ok(match self { $(Self::$variant(settings) => Backbone::$variant(settings.init(initial)?),)+ })
            }
        }

        impl Backbone {
            /// Its entry in the catalogue.
            pub fn entry(&self) -> &'static BackboneEntry {
                match self { $(Self::$variant(_) => const { &<$settings>::ENTRY },)+ }
            }

            /// Normalised images [B, 3, H, W] → features.
            pub fn outputs(&self, images: Tensor<4>) -> Outputs {
                match self { $(Self::$variant(network) => network.outputs(images, None),)+ }
            }

            /// As [`Self::outputs`], of the pictures with these numbers in their batch, without what a step leaves out.
            pub fn outputs_dropping(&self, images: Tensor<4>, path: &DropPath, pictures: Range<usize>) -> Outputs {
                match self {
                    $(Self::$variant(network) => {
                        let factors = Factors::new(path, &network.depths(), pictures, &images);
                        network.outputs(images, Some(&factors))
                    })+
                }
            }

            /// Whether it has branches that a step can leave out.
            pub fn has_branches(&self) -> bool {
                match self { $(Self::$variant(network) => !network.depths().is_empty(),)+ }
            }

            /// The multiplications of one image of side × side pixels: those of convolutions, linear layers and
            /// attention.
            pub fn multiply_adds(&self, side: u32) -> u64 {
                match self { $(Self::$variant(network) => network.multiply_adds(side as usize),)+ }
            }

            fn load(self, published: &Published) -> Result<Self> {
                Ok(match self { $(Self::$variant(network) => Self::$variant(published.load(network)?),)+ })
            }

            fn list_weights(&self) -> Vec<weights::Weight> {
                match self {
                    $(Self::$variant(network) => weights::list(network, <$settings>::ENTRY.published_name),)+
                }
            }
        }
    };
}

/// Networks without branches that can be left out.
macro_rules! without_branches {
    ($($network:ty),+) => {
        $(impl Branches for $network {
            fn outputs(&self, images: Tensor<4>, _: Option<&Factors>) -> Outputs {
                self.forward(images)
            }
        })+
    };
}
without_branches!(SmallResnet, Squeezenet, MobilenetV1, Resnet, BnInception);

backbones! {
    SmallResnet: SmallResnetConfig => SmallResnet,
    Squeezenet: SqueezenetConfig => Squeezenet,
    MobilenetV1Quarter: MobilenetV1QuarterConfig => MobilenetV1,
    Resnet18: Resnet18Config => Resnet,
    Resnet34: Resnet34Config => Resnet,
    Resnet50: Resnet50Config => Resnet,
    BnInception: BnInceptionConfig => BnInception,
    VitS16: VitS16Config => VisionTransformer,
    VitB16: VitB16Config => VisionTransformer,
    VitL16: VitL16Config => VisionTransformer,
    DeitS16: DeitS16Config => VisionTransformer,
    DeitS16Distilled: DeitS16DistilledConfig => VisionTransformer,
    DinoS16: DinoS16Config => VisionTransformer,
    Dinov2S14: Dinov2S14Config => VisionTransformer,
    Dinov2B14: Dinov2B14Config => VisionTransformer,
    Dinov2L14: Dinov2L14Config => VisionTransformer,
    Dinov2B14Reg4: Dinov2B14Reg4Config => VisionTransformer,
    Dinov2L14Reg4: Dinov2L14Reg4Config => VisionTransformer,
    ClipB16: ClipB16Config => VisionTransformer,
    OpenClipB16: OpenClipB16Config => VisionTransformer,
    Bioclip2: Bioclip2Config => VisionTransformer,
    Siglip2B16: Siglip2B16Config => VisionTransformer,
    Dinov3S16: Dinov3S16Config => VisionTransformer,
    Dinov3S16Plus: Dinov3S16PlusConfig => VisionTransformer,
    Dinov3B16: Dinov3B16Config => VisionTransformer,
    Dinov3L16: Dinov3L16Config => VisionTransformer,
    ConvnextT: ConvnextTConfig => Convnext,
    ConvnextB: ConvnextBConfig => Convnext,
}

impl BackboneConfig {
    /// The backbone of a name, with its defaults.
    ///
    /// # Errors
    ///
    /// An unknown name.
    pub fn named(name: &str) -> Result<Self> {
        serde_json::from_value(serde_json::json!({ "kind": name })).map_err(|error| {
            Error::new(Kind::Config, error.to_string(), "use a name that `akin list backbones` prints")
        })
    }

    /// The pooling that the backbone was trained with: its own if it has one, else the mean over positions.
    pub fn pooling(&self) -> Pooling {
        if self.entry().pools { Pooling::ClassToken } else { Pooling::Average }
    }

    /// What the backbone expects of images.
    #[cfg(feature = "image")]
    pub fn preprocessing(&self) -> crate::image::Preprocessing {
        let entry = self.entry();
        crate::image::Preprocessing::new(entry.normalisation, entry.side)
            .expect("every side is from 1 to 4096")
    }

    /// The backbone with random weights.
    ///
    /// # Errors
    ///
    /// A setting out of range.
    pub fn init(&self, rng: &mut ChaCha8Rng, device: &Device) -> Result<Backbone> {
        self.make(&mut Initial::drawn(rng, device))
    }

    /// The backbone without weights, which takes no memory: to be loaded, or to be counted.
    ///
    /// # Errors
    ///
    /// A setting out of range.
    pub fn absent(&self, device: &Device) -> Result<Backbone> {
        self.make(&mut Initial::absent(device))
    }
}

impl Backbone {
    /// The number of its weights, without the statistics of batch normalisation.
    pub fn parameters(&self) -> u64 {
        self.list_weights().iter().filter(|weight| weight.learns).map(weights::Weight::count).sum()
    }

    /// The names of its weights in published files, in the order in which a visitor of the module sees them.
    pub fn weight_names(&self) -> Vec<String> {
        self.list_weights().into_iter().map(|weight| weight.name).collect()
    }

    /// Replaces the weights by published ones, from the bytes of a file: safetensors, or `.pth` as torch writes it. The
    /// file is read as data; nothing in it is executed. The weights of the classifier are left out.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] for a backbone that has no published weights; [`Kind::Weights`] for a file that cannot be read,
    /// and, listing them all, for tensors that are missing, unknown, of another shape or type, or not finite.
    pub fn load_pretrained(&mut self, bytes: Vec<u8>) -> Result<()> {
        let entry = self.entry();
        if entry.weights.is_none() {
            let others: Vec<&str> =
                BACKBONES.iter().filter(|entry| entry.weights.is_some()).map(|entry| entry.name).collect();
            return Err(Error::new(
                Kind::Config,
                format!(
                    "weights are given for a backbone that has no published weights, such as {}",
                    entry.name
                ),
                format!(
                    "remove the weights to start from random ones, or choose another backbone: {}",
                    others.join(", ")
                ),
            ));
        }
        let published = Published::new(bytes, entry)?;
        match self.clone().load(&published) {
            Ok(loaded) => *self = loaded,
            Err(error) => {
                let device = self.devices().pop().expect("a network has weights");
                let others = backbones_of(entry, |weight| published.has(weight), &device);
                return Err(published.explain(error, &others));
            }
        }
        Ok(())
    }
}

/// The backbones other than `this` whose weights all stand in a file, each with the same shape.
fn backbones_of(
    this: &BackboneEntry,
    has: impl Fn(&weights::Weight) -> bool,
    device: &Device,
) -> Vec<&'static str> {
    let fits = |entry: &&BackboneEntry| {
        let config = BackboneConfig::named(entry.name).expect("each entry has its variant's name");
        let backbone = config.absent(device).expect("the defaults are in range");
        entry.name != this.name && entry.weights.is_some() && backbone.list_weights().iter().all(&has)
    };
    BACKBONES.iter().filter(fits).map(|entry| entry.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_entry_is_that_of_its_variant() {
        for entry in BACKBONES {
            let config = BackboneConfig::named(entry.name).unwrap();
            assert_eq!(config.entry().name, entry.name);
            assert_eq!(serde_json::to_value(&config).unwrap()["kind"], entry.name);
        }
        let error = BackboneConfig::named("resnet19").unwrap_err();
        assert!(error.message().contains("resnet18"), "{error}");
    }
}
