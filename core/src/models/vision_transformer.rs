//! Vision transformers with 384 features, twelve blocks and six heads (Dosovitskiy et al., *An image is worth 16×16
//! words*, 2021), in timm's layout, without classifiers: ViT-S/16, DeiT-S/16 with and without distillation (Touvron et
//! al., 2021), DINO ViT-S/16 (Caron et al., 2021), and DINOv2 ViT-S/14 with registers (Oquab et al., 2024; Darcet et al.,
//! 2024).
//!
//! An image is cut into patches; a linear map of each, with an embedding of its position, is a *token*. A class token is
//! added, and in some networks a distillation token or four registers. A block is
//!
//! ```text
//! x ← x + s₁ · attention(norm₁(x))      x ← x + s₂ · mlp(norm₂(x))
//! ```
//!
//! where the scales s are learned in DINOv2 and 1 elsewhere. The projections of queries, keys and values are one matrix,
//! as in timm. An image of another size than that of the published weights has another grid of patches; the embeddings
//! of positions are interpolated for it, bicubically and with the wider window of a smaller grid, as timm does.

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::{Tensor, TensorData};

use super::attention::attention;
use super::convolution::convolve;
use super::drop_path::DropPath;
use super::entry::{BackboneEntry, fixed_backbones};
use super::gelu::gelu;
use super::layer_norm::{EPSILON, layer_norm};
use super::layers::{Cost, Initial, Window};
use super::linear::{add_linear, linear};
use super::low_rank::{AdaptedLayer, Adapter, Adapters, LoraConfig};
use super::pooling::Outputs;
use crate::Result;
use crate::random::normal;

/// F, the number of features of a token.
const FEATURES: usize = 384;
const BLOCKS: usize = 12;
const HEADS: usize = 6;

/// The published form of a network of this family.
struct Form {
    /// The side of a patch, in pixels.
    patch: usize,
    /// The side of the published grid of patches.
    grid: usize,
    distilled: bool,
    registers: usize,
    layer_scale: bool,
}

/// The form of the networks with patches of 16 pixels.
const S16: Form = Form { patch: 16, grid: 14, distilled: false, registers: 0, layer_scale: false };

const fn entry(name: &'static str, title: &'static str, summary: &'static str, patch: u32) -> BackboneEntry {
    BackboneEntry {
        weights: Some("timm"),
        classifier: &["head.", "head_dist."],
        smallest_side: patch,
        patch: Some(patch),
        batch_norm: false,
        ..BackboneEntry::new(name, title, summary)
    }
}

fixed_backbones! {
    form: Form, network: VisionTransformer, features: |_: &Form| FEATURES;
    VitS16Config =
        BackboneEntry {
            #[cfg(feature = "image")]
            normalisation: crate::image::Normalisation::Inception,
            ..entry(
                "vit_s16",
                "ViT-S/16",
                "vision transformer ViT-S/16 (Dosovitskiy et al., 2021), 384 features, timm's names of weights",
                16,
            )
        },
        S16;
    DeitS16Config =
        entry("deit_s16", "DeiT-S/16", "vision transformer DeiT-S/16 (Touvron et al., 2021), 384 features, timm's names of weights", 16),
        S16;
    DeitS16DistilledConfig =
        entry(
            "deit_s16_distilled",
            "DeiT-S/16 distilled",
            "vision transformer DeiT-S/16 with a distillation token (Touvron et al., 2021), 384 features, timm's names of weights",
            16,
        ),
        Form { distilled: true, ..S16 };
    DinoS16Config =
        entry("dino_s16", "DINO ViT-S/16", "vision transformer ViT-S/16 as trained by DINO (Caron et al., 2021), 384 features, timm's names of weights", 16),
        S16;
    Dinov2S14Config =
        entry(
            "dinov2_s14",
            "DINOv2 ViT-S/14",
            "vision transformer ViT-S/14 with four registers, as trained by DINOv2 (Oquab et al., 2024; Darcet et al., 2024), 384 features, timm's names of weights",
            14,
        ),
        Form { patch: 14, grid: 37, distilled: false, registers: 4, layer_scale: true };
}

/// See the [module](self). The fields have timm's names.
#[derive(Module, Debug)]
pub struct VisionTransformer {
    patch_embed: PatchEmbedding,
    cls_token: Param<Tensor<3>>,
    dist_token: Option<Param<Tensor<3>>>,
    reg_token: Option<Param<Tensor<3>>>,
    pos_embed: Param<Tensor<3>>,
    blocks: Vec<Block>,
    norm: LayerNorm,
    /// The side of the grid that `pos_embed` was made for.
    grid: usize,
    /// The branches that this pass leaves out; none outside of training.
    #[module(skip)]
    drop_path: Option<DropPath>,
}

#[derive(Module, Debug)]
pub(super) struct PatchEmbedding {
    proj: Conv2d,
}

#[derive(Module, Debug)]
struct Block {
    norm1: LayerNorm,
    attn: Attention,
    ls1: Option<LayerScale>,
    norm2: LayerNorm,
    mlp: Mlp,
    ls2: Option<LayerScale>,
    adapters: Option<Adapters>,
}

#[derive(Module, Debug)]
struct Attention {
    qkv: Linear,
    proj: Linear,
}

#[derive(Module, Debug)]
struct Mlp {
    fc1: Linear,
    fc2: Linear,
}

#[derive(Module, Debug)]
struct LayerScale {
    gamma: Param<Tensor<1>>,
}

impl VisionTransformer {
    fn new(form: &Form, initial: &mut Initial) -> Result<Self> {
        let token = |count: usize, initial: &mut Initial| {
            initial.weight([1, count, FEATURES], |rng, count| normal(rng, count, 0.02))
        };
        let window = Window { padding: 0, bias: true, ..Window::new(form.patch, form.patch) };
        // With registers, the positions are added before the other tokens come, which then have none.
        let prefix = if form.registers > 0 { 0 } else { 1 + usize::from(form.distilled) };
        Ok(Self {
            patch_embed: PatchEmbedding { proj: initial.convolution([3, FEATURES], window) },
            cls_token: token(1, initial),
            dist_token: form.distilled.then(|| token(1, initial)),
            reg_token: (form.registers > 0).then(|| token(form.registers, initial)),
            pos_embed: token(prefix + form.grid * form.grid, initial),
            blocks: (0..BLOCKS).map(|_| Block::new(form.layer_scale, initial)).collect(),
            norm: initial.layer_norm(FEATURES, EPSILON),
            grid: form.grid,
            drop_path: None,
        })
    }

    pub(super) fn set_drop_path(&mut self, drop_path: DropPath) {
        self.drop_path = Some(drop_path);
    }

    pub(super) fn adapt(&mut self, config: &LoraConfig, initial: &mut Initial) {
        self.blocks.iter_mut().for_each(|block| block.adapt(config, initial));
    }

    pub(super) fn merge_adapters(&mut self) {
        self.blocks.iter_mut().for_each(Block::merge_adapters);
    }

    /// [B, 3, H, W] → the tokens of the patches, [B, 384, H/p, W/p], and the class token, [B, 384]; with a distillation
    /// token, the mean of both.
    pub fn forward(&self, images: Tensor<4>) -> Outputs {
        let patches = convolve(&self.patch_embed.proj, images);
        let [batch, _, height, width] = patches.dims();
        let patches = patches.reshape([batch, FEATURES, height * width]).swap_dims(1, 2);
        let (prefix, positions) = self.positions(height, width);
        let repeated = |token: &Param<Tensor<3>>| {
            let [_, count, _] = token.dims();
            token.val().expand([batch, count, FEATURES])
        };
        let mut first = vec![repeated(&self.cls_token)];
        first.extend(self.dist_token.as_ref().map(repeated));
        first.extend(self.reg_token.as_ref().map(repeated));
        let first = Tensor::cat(first, 1);
        let [_, others, _] = first.dims();
        let first = match prefix {
            Some(prefix) => first + prefix,
            None => first,
        };
        let mut x = Tensor::cat(vec![first, patches + positions], 1);
        let numbers = (&x.device(), x.dtype());
        let factors =
            self.drop_path.as_ref().map(|drop_path| drop_path.factors(self.blocks.len(), batch, numbers));
        for (place, block) in self.blocks.iter().enumerate() {
            let branch = |i| Some(factors.clone()?.narrow(0, 2 * place + i, 1).squeeze_dim::<3>(0));
            x = block.forward(x, [branch(0), branch(1)]);
        }
        let x = layer_norm(&self.norm, x);
        let means = if self.dist_token.is_some() { 2 } else { 1 };
        let class_token = x.clone().narrow(1, 0, means).mean_dim(1).squeeze_dim::<2>(1);
        let maps =
            x.narrow(1, others, height * width).swap_dims(1, 2).reshape([batch, FEATURES, height, width]);
        Outputs { maps, class_token: Some(class_token) }
    }

    /// The embeddings of positions for a grid: those of the tokens before the patches, and those of the patches,
    /// [1, height · width, F].
    fn positions(&self, height: usize, width: usize) -> (Option<Tensor<3>>, Tensor<3>) {
        let all = self.pos_embed.val();
        let [_, count, _] = all.dims();
        let prefix = count - self.grid * self.grid;
        let first = (prefix > 0).then(|| all.clone().narrow(1, 0, prefix));
        let grid = all.narrow(1, prefix, self.grid * self.grid);
        if [height, width] == [self.grid; 2] {
            return (first, grid);
        }
        let numbers = (&grid.device(), grid.dtype());
        let matrix = |to: usize| {
            Tensor::<2>::from_data(TensorData::new(resampling(self.grid, to), [to, self.grid]), numbers)
        };
        let rows = matrix(height).matmul(grid.reshape([self.grid, self.grid * FEATURES]));
        let rows = rows.reshape([height, self.grid, FEATURES]);
        let cells = matrix(width).unsqueeze::<3>().expand([height, width, self.grid]).matmul(rows);
        (first, cells.reshape([1, height * width, FEATURES]))
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.patch_embed.proj);
        let registers =
            self.reg_token.as_ref().map_or(0, |token| token.lazy_shape().num_elements() / FEATURES);
        let tokens = cost.side * cost.side + 1 + usize::from(self.dist_token.is_some()) + registers;
        for block in &self.blocks {
            for layer in [&block.attn.qkv, &block.attn.proj, &block.mlp.fc1, &block.mlp.fc2] {
                cost.linear(layer, tokens);
            }
            cost.multiply_adds += (2 * tokens * tokens * FEATURES) as u64;
        }
        cost.multiply_adds
    }
}

impl Block {
    fn new(layer_scale: bool, initial: &mut Initial) -> Self {
        // Small at first, so that a block begins near the identity, as in DINOv2.
        let scale =
            |initial: &Initial| layer_scale.then(|| LayerScale { gamma: initial.constant([FEATURES], 1e-5) });
        Self {
            norm1: initial.layer_norm(FEATURES, EPSILON),
            attn: Attention {
                qkv: initial.linear(FEATURES, 3 * FEATURES),
                proj: initial.linear(FEATURES, FEATURES),
            },
            ls1: scale(initial),
            norm2: initial.layer_norm(FEATURES, EPSILON),
            mlp: Mlp {
                fc1: initial.linear(FEATURES, 4 * FEATURES),
                fc2: initial.linear(4 * FEATURES, FEATURES),
            },
            ls2: scale(initial),
            adapters: None,
        }
    }

    fn adapt(&mut self, config: &LoraConfig, initial: &mut Initial) {
        let mut adapter = |layer, adapted: &Linear| Adapter::new(config, layer, adapted, initial);
        self.adapters = Some(Adapters {
            qkv: adapter(AdaptedLayer::Qkv, &self.attn.qkv),
            proj: adapter(AdaptedLayer::Proj, &self.attn.proj),
            fc1: adapter(AdaptedLayer::Fc1, &self.mlp.fc1),
            fc2: adapter(AdaptedLayer::Fc2, &self.mlp.fc2),
        });
    }

    fn merge_adapters(&mut self) {
        let Some(Adapters { qkv, proj, fc1, fc2 }) = self.adapters.take() else { return };
        for (adapter, layer) in [
            (qkv, &mut self.attn.qkv),
            (proj, &mut self.attn.proj),
            (fc1, &mut self.mlp.fc1),
            (fc2, &mut self.mlp.fc2),
        ] {
            if let Some(adapter) = adapter {
                adapter.merge_into(layer);
            }
        }
    }

    /// The tokens after the block. `factors`, [B, 1, 1], multiply what attention and MLP add.
    fn forward(&self, x: Tensor<3>, factors: [Option<Tensor<3>>; 2]) -> Tensor<3> {
        let adapters = self.adapters.as_ref();
        let map = |layer: &Linear, adapter: Option<&Adapter>, x: Tensor<3>| match adapter {
            Some(adapter) => linear(layer, x.clone()) + adapter.forward(x),
            None => linear(layer, x),
        };
        let add =
            |x: Tensor<3>, layer, adapter: Option<&Adapter>, inner, scale: &Option<LayerScale>, factor| {
                let scale = scale.as_ref().map(|scale| scale.gamma.val().unsqueeze());
                match [scale, factor].into_iter().flatten().reduce(|scale, factor| scale * factor) {
                    Some(scale) => x + map(layer, adapter, inner) * scale,
                    None if adapter.is_some() => x + map(layer, adapter, inner),
                    None => add_linear(x, layer, inner),
                }
            };
        let [of_attention, of_mlp] = factors;
        let adapter = adapters.and_then(|adapters| adapters.qkv.as_ref());
        let inner = attention(map(&self.attn.qkv, adapter, layer_norm(&self.norm1, x.clone())), HEADS);
        let adapter = adapters.and_then(|adapters| adapters.proj.as_ref());
        let x = add(x, &self.attn.proj, adapter, inner, &self.ls1, of_attention);
        let adapter = adapters.and_then(|adapters| adapters.fc1.as_ref());
        let inner = gelu(map(&self.mlp.fc1, adapter, layer_norm(&self.norm2, x.clone())));
        let adapter = adapters.and_then(|adapters| adapters.fc2.as_ref());
        add(x, &self.mlp.fc2, adapter, inner, &self.ls2, of_mlp)
    }
}

/// The matrix [to, from] that resamples `from` values at `to` places by Keys' cubic with a = −1/2, whose window widens
/// for a smaller `to`: what torch's `interpolate` does with `mode="bicubic", antialias=True`.
pub(super) fn resampling(from: usize, to: usize) -> Vec<f32> {
    let cubic = |x: f64| {
        let x = x.abs();
        match x {
            _ if x < 1.0 => (1.5 * x - 2.5) * x * x + 1.0,
            _ if x < 2.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            _ => 0.0,
        }
    };
    let scale = from as f64 / to as f64;
    let widening = scale.max(1.0);
    let mut matrix = vec![0.0; to * from];
    for (i, row) in matrix.chunks_exact_mut(from).enumerate() {
        let centre = scale * (i as f64 + 0.5);
        let weight = |j: usize| cubic((j as f64 + 0.5 - centre) / widening);
        let sum: f64 = (0..from).map(weight).sum();
        for (j, value) in row.iter_mut().enumerate() {
            *value = (weight(j) / sum) as f32;
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resampling_keeps_constants_and_one_of_the_same_size_keeps_everything() {
        for (from, to) in [(14, 6), (14, 20), (37, 16), (14, 1)] {
            for row in resampling(from, to).chunks_exact(from) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{from} to {to}: {row:?}");
            }
        }
        let same = resampling(5, 5);
        assert!((0..25).all(|i| (same[i] - f32::from(i % 6 == 0)).abs() < 1e-6), "{same:?}");
    }
}
