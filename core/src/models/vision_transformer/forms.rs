//! The published vision transformers: their entries in the catalogue and their forms.

use super::VisionTransformer;
use super::positions::Resampling;
#[cfg(feature = "image")]
use crate::image::Normalisation;
use crate::models::entry::{BackboneEntry, fixed_backbones};

/// The form of a network of this family.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// The side of a patch, in pixels.
    pub(super) patch: usize,
    /// F, the number of features of a token.
    pub(super) features: usize,
    pub(super) blocks: usize,
    pub(super) heads: usize,
    /// The features inside an MLP.
    pub(super) hidden: usize,
    pub(super) distilled: bool,
    pub(super) registers: usize,
    pub(super) positions: Positions,
    /// Whether the tokens are normalised before the first block.
    pub(super) pre_norm: bool,
    /// ε of layer normalisation.
    pub(super) epsilon: f64,
    /// The first value of the learned scales; none if there are none.
    pub(super) layer_scale: Option<f32>,
    pub(super) activation: Activation,
    /// Whether attention pooling takes the place of the class token.
    pub(super) attention_pool: bool,
    /// The features after a projection of the normalised tokens.
    pub(super) projection: Option<usize>,
}

/// How a token learns where it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Positions {
    /// By learned embeddings that are added.
    Learned {
        /// The side of the published grid of patches.
        grid: usize,
        resampling: Resampling,
    },
    /// By rotations of queries and keys.
    Rotary,
}

/// The function inside an MLP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Activation {
    /// x · Φ(x).
    Gelu,
    /// Its approximation by the hyperbolic tangent.
    TanhGelu,
    /// x · σ(1.702 x), as OpenAI's CLIP has it.
    QuickGelu,
    /// The product of one map and the SiLU of another.
    SwiGlu,
}

impl Form {
    /// The number of features of the result.
    fn outputs(&self) -> usize {
        self.projection.unwrap_or(self.features)
    }

    /// The tokens before the patches that have an embedding of their position: all or none. With registers, these
    /// embeddings are added before the other tokens come, which then have none.
    pub(super) fn prefix(&self) -> usize {
        match self.positions {
            Positions::Learned { .. } if self.registers == 0 && !self.attention_pool => {
                1 + usize::from(self.distilled)
            }
            _ => 0,
        }
    }

    const fn small(patch: usize, side: usize) -> Self {
        Self {
            patch,
            features: 384,
            blocks: 12,
            heads: 6,
            hidden: 1536,
            distilled: false,
            registers: 0,
            positions: Positions::Learned { grid: side / patch, resampling: Resampling::Antialiased },
            pre_norm: false,
            epsilon: 1e-6,
            layer_scale: None,
            activation: Activation::Gelu,
            attention_pool: false,
            projection: None,
        }
    }

    const fn base(self) -> Self {
        Self { features: 768, heads: 12, hidden: 3072, ..self }
    }

    const fn large(self) -> Self {
        Self { features: 1024, blocks: 24, heads: 16, hidden: 4096, ..self }
    }
}

const VIT: Form = Form::small(16, 224);
/// Its scales are small at first, so that a block begins near the identity.
const DINOV2: Form = Form {
    positions: Positions::Learned { grid: 37, resampling: Resampling::Offset },
    layer_scale: Some(1e-5),
    ..Form::small(14, 518)
};
const DINOV2_REGISTERS: Form = Form {
    positions: Positions::Learned { grid: 37, resampling: Resampling::Antialiased },
    registers: 4,
    ..DINOV2
};

const CLIP: Form = Form { pre_norm: true, epsilon: 1e-5, ..VIT };
const SIGLIP: Form = Form { activation: Activation::TanhGelu, attention_pool: true, ..VIT };
const DINOV3: Form =
    Form { positions: Positions::Rotary, registers: 4, epsilon: 1e-5, layer_scale: Some(1e-5), ..VIT };

const fn entry(name: &'static str, title: &'static str, summary: &'static str, patch: u32) -> BackboneEntry {
    BackboneEntry {
        weights: Some("timm"),
        classifier: &["head.", "head_dist.", "fc_norm."],
        smallest_side: patch,
        patch: Some(patch),
        pools: true,
        batch_norm: false,
        ..BackboneEntry::new(name, title, summary)
    }
}

/// The same network whose images have numbers from −1 to 1.
const fn from_minus_one(entry: BackboneEntry) -> BackboneEntry {
    BackboneEntry {
        #[cfg(feature = "image")]
        normalisation: Normalisation::Inception,
        ..entry
    }
}

/// A tower of CLIP: its projection is part of the network.
const fn clip(entry: BackboneEntry) -> BackboneEntry {
    BackboneEntry {
        classifier: &["head.bias"],
        #[cfg(feature = "image")]
        normalisation: Normalisation::Clip,
        ..entry
    }
}

/// A network whose weights stand under the terms of DINOv3.
const fn dinov3(entry: BackboneEntry) -> BackboneEntry {
    BackboneEntry { licence: Some("DINOv3 License"), ..entry }
}

fixed_backbones! {
    form: Form, network: VisionTransformer, features: |form: &Form| form.outputs();
    VitS16Config =
        from_minus_one(entry("vit_s16", "ViT-S/16", "vision transformer ViT-S/16 (Dosovitskiy et al., 2021), 384 features", 16)),
        VIT;
    VitB16Config =
        from_minus_one(entry("vit_b16", "ViT-B/16", "vision transformer ViT-B/16 (Dosovitskiy et al., 2021), 768 features", 16)),
        VIT.base();
    VitL16Config =
        from_minus_one(entry("vit_l16", "ViT-L/16", "vision transformer ViT-L/16 (Dosovitskiy et al., 2021), 1024 features", 16)),
        VIT.large();
    DeitS16Config =
        entry("deit_s16", "DeiT-S/16", "vision transformer DeiT-S/16 (Touvron et al., 2021), 384 features", 16),
        VIT;
    DeitS16DistilledConfig =
        entry(
            "deit_s16_distilled",
            "DeiT-S/16 distilled",
            "vision transformer DeiT-S/16 with a distillation token (Touvron et al., 2021), 384 features",
            16,
        ),
        Form { distilled: true, ..VIT };
    DinoS16Config =
        entry("dino_s16", "DINO ViT-S/16", "vision transformer ViT-S/16 as trained by DINO (Caron et al., 2021), 384 features", 16),
        VIT;
    Dinov2S14Config =
        entry(
            "dinov2_s14",
            "DINOv2 ViT-S/14",
            "vision transformer ViT-S/14 with four registers, as trained by DINOv2 (Oquab et al., 2024; Darcet et al., 2024), 384 features",
            14,
        ),
        DINOV2_REGISTERS;
    Dinov2B14Config =
        entry("dinov2_b14", "DINOv2 ViT-B/14 without registers", "vision transformer ViT-B/14 without registers, as trained by DINOv2 (Oquab et al., 2024), 768 features", 14),
        DINOV2.base();
    Dinov2L14Config =
        entry("dinov2_l14", "DINOv2 ViT-L/14 without registers", "vision transformer ViT-L/14 without registers, as trained by DINOv2 (Oquab et al., 2024), 1024 features", 14),
        DINOV2.large();
    Dinov2B14Reg4Config =
        entry(
            "dinov2_b14_reg4",
            "DINOv2 ViT-B/14",
            "vision transformer ViT-B/14 with four registers, as trained by DINOv2 (Oquab et al., 2024; Darcet et al., 2024), 768 features",
            14,
        ),
        DINOV2_REGISTERS.base();
    Dinov2L14Reg4Config =
        entry(
            "dinov2_l14_reg4",
            "DINOv2 ViT-L/14",
            "vision transformer ViT-L/14 with four registers, as trained by DINOv2 (Oquab et al., 2024; Darcet et al., 2024), 1024 features",
            14,
        ),
        DINOV2_REGISTERS.large();
    ClipB16Config =
        clip(entry("clip_b16", "CLIP ViT-B/16", "tower of pictures ViT-B/16 of OpenAI's CLIP (Radford et al., 2021) with quick GELU, 512 features after its projection", 16)),
        Form { activation: Activation::QuickGelu, projection: Some(512), ..CLIP.base() };
    OpenClipB16Config =
        clip(entry("open_clip_b16", "OpenCLIP ViT-B/16", "tower of pictures ViT-B/16 of CLIP as trained by OpenCLIP (Cherti et al., 2023) with GELU, 512 features after its projection", 16)),
        Form { projection: Some(512), ..CLIP.base() };
    Bioclip2Config =
        clip(entry("bioclip2", "BioCLIP 2", "tower of pictures ViT-L/14 of BioCLIP 2 (Gu et al., 2025) with GELU, 768 features after its projection", 14)),
        Form {
            patch: 14,
            positions: Positions::Learned { grid: 16, resampling: Resampling::Antialiased },
            projection: Some(768),
            ..CLIP.large()
        };
    Siglip2B16Config =
        from_minus_one(BackboneEntry {
            classifier: &[],
            ..entry("siglip2_b16", "SigLIP 2 ViT-B/16", "tower of pictures ViT-B/16 of SigLIP 2 (Tschannen et al., 2025) with attention pooling, 768 features", 16)
        }),
        SIGLIP.base();
    Dinov3S16Config =
        dinov3(entry("dinov3_s16", "DINOv3 ViT-S/16", "vision transformer ViT-S/16 as trained by DINOv3 (Siméoni et al., 2025), 384 features", 16)),
        DINOV3;
    Dinov3S16PlusConfig =
        dinov3(entry("dinov3_s16_plus", "DINOv3 ViT-S+/16", "vision transformer ViT-S+/16 with gated MLPs, as trained by DINOv3 (Siméoni et al., 2025), 384 features", 16)),
        Form { activation: Activation::SwiGlu, ..DINOV3 };
    Dinov3B16Config =
        dinov3(entry("dinov3_b16", "DINOv3 ViT-B/16", "vision transformer ViT-B/16 as trained by DINOv3 (Siméoni et al., 2025), 768 features", 16)),
        DINOV3.base();
    Dinov3L16Config =
        dinov3(entry("dinov3_l16", "DINOv3 ViT-L/16", "vision transformer ViT-L/16 as trained by DINOv3 (Siméoni et al., 2025), 1024 features", 16)),
        DINOV3.large();
}
