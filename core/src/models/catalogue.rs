//! Every backbone, one line each: the `kind` of a config, the printed lists and the tests all read it.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::drop_path::{Branches, Factors};
use super::layers::Initial;
use super::pooling::{Outputs, Pooling};
use super::published::PublishedWeights;
use super::weight_file::WeightFile;
use super::weights::{self, Replaced};
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
            /// See [`OnnxConfig`].
            #[cfg_attr(feature = "schema", schemars(description = OnnxConfig::ENTRY.summary))]
            Onnx(OnnxConfig),
        }

        /// A network from images to features.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum Backbone {
            $(#[doc = concat!("See [`", stringify!($network), "`].")] $variant($network),)+
            /// See [`Foreign`].
            Foreign(Foreign),
        }

        /// Every backbone that akin has itself.
        pub const BACKBONES: &[BackboneEntry] = &[$(<$settings>::ENTRY),+];

        impl BackboneConfig {
            /// Its entry in the catalogue.
            pub fn entry(&self) -> &'static BackboneEntry {
                match self {
                    $(Self::$variant(_) => const { &<$settings>::ENTRY },)+
                    Self::Onnx(_) => const { &OnnxConfig::ENTRY },
                }
            }

            /// F, the number of features; 0 for an ONNX file that has not been opened.
            pub fn features(&self) -> usize {
                match self {
                    $(Self::$variant(settings) => settings.features(),)+
                    Self::Onnx(settings) => settings.features(),
                }
            }

            fn make(&self, initial: &mut Initial) -> Result<Backbone> {
                Ok(match self {
                    $(Self::$variant(settings) => Backbone::$variant(settings.init(initial)?),)+
                    Self::Onnx(settings) => Backbone::Foreign(settings.init()?),
                })
            }
        }

        impl Backbone {
            /// Its entry in the catalogue.
            pub fn entry(&self) -> &'static BackboneEntry {
                match self {
                    $(Self::$variant(_) => const { &<$settings>::ENTRY },)+
                    Self::Foreign(_) => const { &OnnxConfig::ENTRY },
                }
            }

            /// Normalised images [B, 3, H, W] → features.
            ///
            /// # Errors
            ///
            /// None of akin's own backbones; a foreign one without an engine, or whose engine fails.
            pub fn outputs(&self, images: Tensor<4>) -> Result<Outputs> {
                Ok(match self {
                    $(Self::$variant(network) => network.outputs(images, None),)+
                    Self::Foreign(network) => network.forward(images)?,
                })
            }

            /// As [`Self::outputs`], without the branches that a step leaves out.
            ///
            /// # Errors
            ///
            /// As [`Self::outputs`].
            pub fn outputs_dropping(&self, images: Tensor<4>, drop_path: &DropPath) -> Result<Outputs> {
                Ok(match self {
                    $(Self::$variant(network) => {
                        let factors = Factors::new(drop_path, &network.depths(), &images);
                        network.outputs(images, Some(&factors))
                    })+
                    Self::Foreign(network) => network.forward(images)?,
                })
            }

            /// Whether it has branches that a step can leave out.
            pub fn has_branches(&self) -> bool {
                match self {
                    $(Self::$variant(network) => !network.depths().is_empty(),)+
                    Self::Foreign(_) => false,
                }
            }

            /// The multiplications of one image of side × side pixels: those of convolutions, linear layers and
            /// attention. 0 for a foreign backbone, whose layers are not known.
            pub fn multiply_adds(&self, side: u32) -> u64 {
                match self {
                    $(Self::$variant(network) => network.multiply_adds(side as usize),)+
                    Self::Foreign(_) => 0,
                }
            }

            /// This network with the tensors of a file whose names begin with `prefix`.
            pub(super) fn replace_weights(self, file: &WeightFile, prefix: &str) -> Replaced<Self> {
                match self {
                    $(Self::$variant(network) => {
                        let Replaced { network, used, missing, wrong, infinite } =
                            weights::replace(network, file, prefix, <$settings>::ENTRY.published_name);
                        Replaced { network: Self::$variant(network), used, missing, wrong, infinite }
                    })+
                    Self::Foreign(network) => weights::replace(Self::Foreign(network), file, prefix, str::to_owned),
                }
            }

            /// The network itself.
            pub(super) fn network_mut(&mut self) -> &mut dyn std::any::Any {
                match self {
                    $(Self::$variant(network) => network,)+
                    Self::Foreign(network) => network,
                }
            }

            pub(super) fn list_weights(&self) -> Vec<weights::Weight> {
                match self {
                    $(Self::$variant(network) => weights::list(network, <$settings>::ENTRY.published_name),)+
                    Self::Foreign(_) => Vec::new(),
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
        if self.has_class_token() { Pooling::ClassToken } else { Pooling::Average }
    }

    /// Whether the backbone has a class token.
    pub fn has_class_token(&self) -> bool {
        match self {
            Self::Onnx(settings) => settings.has_class_token(),
            _ => self.entry().pools,
        }
    }

    /// The backbone without what changes nothing of what it computes: where an ONNX file lies, and its licence.
    pub fn computed(&self) -> Self {
        match self {
            Self::Onnx(onnx) => Self::Onnx(OnnxConfig { path: String::new(), licence: None, ..onnx.clone() }),
            other => other.clone(),
        }
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
    /// file is read as data; nothing in it is executed. Returns the names of the tensors that were not used, without those
    /// of a published classifier.
    ///
    /// # Errors
    ///
    /// As [`PublishedWeights::parse`] and [`PublishedWeights::load`].
    pub fn load_pretrained(&mut self, bytes: Vec<u8>) -> Result<Vec<String>> {
        PublishedWeights::parse(bytes)?.load(self)
    }
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
