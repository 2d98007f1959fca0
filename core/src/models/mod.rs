//! Backbones and heads: images [B, 3, H, W] → features [B, F] → embeddings [B, d].
//!
//! | backbone | file | features F |
//! |---|---|---|
//! | small residual network | [`small_resnet`] | 8 × width |
//! | SqueezeNet 1.1 | [`squeezenet`] | 512 |
//! | MobileNetV1 ×0.25 | [`mobilenet_v1`] | 256 |
//! | ResNet-18, 34, 50 | [`resnet`] | 512, 512, 2048 |
//! | BN-Inception | [`bn_inception`] | 1024 |
//! | vision transformers: ViT, DeiT, DINO, CLIP, SigLIP | [`vision_transformer`] | 384 to 1024 |
//! | ConvNeXt-T, B | [`convnext`] | 768, 1024 |
//! | any network in an ONNX file | [`foreign`] | its own |
//!
//! A backbone gives features at each position of an image, and a transformer those of its class token; [`Pooling`] makes
//! one vector of them, and the [`head`] maps it to an embedding. Initial weights are drawn from a named random stream
//! and not by the device, so that a seed gives the same weights on every back end. Published weights are read from
//! files by the names that their authors gave them: [`Backbone::load_pretrained`].
//!
//! # How to add a backbone
//!
//! `CONTRIBUTING.md` says how: a file, and a line in `catalogue.rs`.

mod attention;
mod batch_norm;
pub mod bn_inception;
mod catalogue;
pub mod convnext;
mod convolution;
mod depth;
mod drop_path;
mod entry;
#[cfg(test)]
mod fixtures;
pub mod foreign;
mod gelu;
pub mod head;
mod layer_norm;
mod layers;
mod linear;
mod low_rank;
mod max_pool;
pub mod mobilenet_v1;
#[cfg(feature = "cpu")]
mod operator;
mod pooling;
mod published;
mod rectified_sum;
pub mod resnet;
pub mod small_resnet;
pub mod squeezenet;
pub mod vision_transformer;
mod weight_file;
mod weights;

use crate::{Error, Kind};

pub use bn_inception::{BnInception, BnInceptionConfig};
pub use catalogue::{BACKBONES, Backbone, BackboneConfig};
pub use convnext::{Convnext, ConvnextBConfig, ConvnextTConfig};
pub use drop_path::DropPath;
pub use entry::BackboneEntry;
pub use foreign::{Foreign, ForeignNetwork, ForeignOutput, OnnxConfig};
pub use head::{Head, HeadConfig, HeadWeights};
pub use layers::Initial;
pub use low_rank::{AdaptedLayer, LoraConfig};
pub use mobilenet_v1::{MobilenetV1, MobilenetV1QuarterConfig};
pub use pooling::{Outputs, Pooling};
pub use published::{LinearLayer, PublishedWeights};
pub use resnet::{Resnet, Resnet18Config, Resnet34Config, Resnet50Config};
pub use small_resnet::{SmallResnet, SmallResnetConfig};
pub use squeezenet::{Squeezenet, SqueezenetConfig};
pub use vision_transformer::*;
pub use weight_file::{NumberType, StoredTensor, WeightFile};
