//! Vision transformers (Dosovitskiy et al., *An image is worth 16×16 words*, 2021), in timm's layout, without
//! classifiers: one network, of which every published one is a [form](forms).
//!
//! An image is cut into patches; a linear map of each, with an embedding of its position, is a *token*. A class token is
//! added, and in some networks a distillation token or four registers (Darcet et al., *Vision transformers need
//! registers*, 2024). A block is
//!
//! ```text
//! x ← x + s₁ · attention(norm₁(x))      x ← x + s₂ · mlp(norm₂(x))
//! ```
//!
//! where the scales s are learned in DINOv2 and DINOv3 and 1 elsewhere. The projections of queries, keys and values are
//! one matrix, as in timm. The result is the normalised class token, or what a learned query reads from all tokens by
//! attention (SigLIP), in CLIP with a projection after it.
//!
//! Files that have the names of open_clip or of Hugging Face are read by these, see
//! [`WeightFile::with_timm_names`](super::WeightFile::with_timm_names).

mod attention_pool;
mod block;
mod forms;
mod positions;

use burn::module::{Module, Param};
use burn::nn::conv::Conv2d;
use burn::nn::{LayerNorm, Linear};
use burn::tensor::Tensor;

use attention_pool::AttentionPool;
use block::Block;
pub use forms::*;
use forms::{Form, Positions};
pub(super) use positions::antialiased;
pub use positions::dinov2_positions;

use super::convolution::convolve;
use super::drop_path::{Branches, Factors, depths};
use super::layer_norm::layer_norm;
use super::layers::{Cost, Initial, Window};
use super::linear::linear;
use super::low_rank::LoraConfig;
use super::pooling::Outputs;
use crate::Result;
use crate::random::normal;

/// See the [module](self). The fields have timm's names.
#[derive(Module, Debug)]
pub struct VisionTransformer {
    patch_embed: PatchEmbedding,
    cls_token: Option<Param<Tensor<3>>>,
    dist_token: Option<Param<Tensor<3>>>,
    reg_token: Option<Param<Tensor<3>>>,
    pos_embed: Option<Param<Tensor<3>>>,
    norm_pre: Option<LayerNorm>,
    blocks: Vec<Block>,
    norm: LayerNorm,
    attn_pool: Option<AttentionPool>,
    head: Option<Linear>,
    #[module(skip)]
    form: Form,
}

#[derive(Module, Debug)]
pub(super) struct PatchEmbedding {
    proj: Conv2d,
}

impl VisionTransformer {
    fn new(form: &Form, initial: &mut Initial) -> Result<Self> {
        let Form { features, epsilon, .. } = *form;
        let token = |count: usize, initial: &mut Initial| {
            initial.weight([1, count, features], |rng, count| normal(rng, count, 0.02))
        };
        let window = Window { padding: 0, bias: !form.pre_norm, ..Window::new(form.patch, form.patch) };
        Ok(Self {
            patch_embed: PatchEmbedding { proj: initial.convolution([3, features], window) },
            cls_token: (!form.attention_pool).then(|| token(1, initial)),
            dist_token: form.distilled.then(|| token(1, initial)),
            reg_token: (form.registers > 0).then(|| token(form.registers, initial)),
            pos_embed: match form.positions {
                Positions::Learned { grid, .. } => Some(token(form.prefix() + grid * grid, initial)),
                Positions::Rotary => None,
            },
            norm_pre: form.pre_norm.then(|| initial.layer_norm(features, epsilon)),
            blocks: (0..form.blocks).map(|_| Block::new(form, initial)).collect(),
            norm: initial.layer_norm(features, epsilon),
            attn_pool: form.attention_pool.then(|| AttentionPool::new(form, initial)),
            head: form.projection.map(|outputs| Linear { bias: None, ..initial.linear(features, outputs) }),
            form: *form,
        })
    }

    pub(super) fn adapt(&mut self, config: &LoraConfig, initial: &mut Initial) {
        self.blocks.iter_mut().for_each(|block| block.adapt(config, initial));
    }

    pub(super) fn merge_adapters(&mut self) {
        self.blocks.iter_mut().for_each(Block::merge_adapters);
    }

    /// The tokens before those of the patches.
    fn first_tokens(&self) -> impl Iterator<Item = &Param<Tensor<3>>> {
        [&self.cls_token, &self.dist_token, &self.reg_token].into_iter().flatten()
    }

    /// Adds learned embeddings of positions to the patches of a grid, and to the tokens before them if these have some.
    fn add_positions(
        &self,
        mut first: Vec<Tensor<3>>,
        patches: Tensor<3>,
        sides: [usize; 2],
    ) -> (Vec<Tensor<3>>, Tensor<3>) {
        let (Some(all), Positions::Learned { grid, resampling, .. }) = (&self.pos_embed, self.form.positions)
        else {
            return (first, patches);
        };
        let (all, prefix) = (all.val(), self.form.prefix());
        if prefix > 0 {
            first = vec![Tensor::cat(first, 1) + all.clone().narrow(1, 0, prefix)];
        }
        let cells = all.narrow(1, prefix, grid * grid);
        (first, patches + positions::resampled(cells, grid, sides, resampling))
    }

    /// The multiplications of one picture.
    pub(super) fn multiply_adds(&self, side: usize) -> u64 {
        let mut cost = Cost::new(side);
        cost.convolution(&self.patch_embed.proj);
        let first: usize = self.first_tokens().map(|token| token.lazy_shape()[1]).sum();
        let tokens = cost.side * cost.side + first;
        for block in &self.blocks {
            block.linear_layers().for_each(|layer| cost.linear(layer, tokens));
            cost.multiply_adds += (2 * tokens * tokens * self.form.features) as u64;
        }
        if let Some(pool) = &self.attn_pool {
            pool.add_cost(tokens, &mut cost);
        }
        if let Some(head) = &self.head {
            cost.linear(head, tokens);
        }
        cost.multiply_adds
    }
}

impl Branches for VisionTransformer {
    fn depths(&self) -> Vec<f64> {
        depths(self.blocks.len()).flat_map(|depth| [depth; 2]).collect()
    }

    /// [B, 3, H, W] → the tokens of the patches, [B, F, H/p, W/p], and the class token, [B, F]; with a distillation
    /// token, the mean of both; with attention pooling, its result.
    fn outputs(&self, images: Tensor<4>, factors: Option<&Factors>) -> Outputs {
        let Form { heads, epsilon, .. } = self.form;
        let patches = convolve(&self.patch_embed.proj, images);
        let [batch, features, height, width] = patches.dims();
        let patches = patches.reshape([batch, features, height * width]).swap_dims(1, 2);
        let first = self.first_tokens().map(|token| {
            let [_, count, _] = token.dims();
            token.val().expand([batch, count, features])
        });
        let first: Vec<_> = first.collect();
        let (first, patches) = self.add_positions(first, patches, [height, width]);
        let mut x = Tensor::cat(first.into_iter().chain([patches]).collect(), 1);
        if let Some(norm) = &self.norm_pre {
            x = layer_norm(norm, epsilon, x);
        }
        let [_, tokens, _] = x.dims();
        let others = tokens - height * width;
        let rotation = match self.form.positions {
            Positions::Rotary => {
                let numbers = (&x.device(), x.dtype());
                Some(positions::rotation(others, [height, width], features / heads, numbers))
            }
            Positions::Learned { .. } => None,
        };
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.forward(x, &self.form, rotation.as_ref(), factors, 2 * i);
        }
        x = layer_norm(&self.norm, epsilon, x);
        let pooled = self.attn_pool.as_ref().map(|pool| pool.forward(x.clone(), &self.form));
        if let Some(head) = &self.head {
            x = linear(head, x);
        }
        let class_token = pooled.unwrap_or_else(|| {
            let means = 1 + usize::from(self.dist_token.is_some());
            x.clone().narrow(1, 0, means).mean_dim(1).squeeze_dim::<2>(1)
        });
        let [_, _, features] = x.dims();
        let maps =
            x.narrow(1, others, height * width).swap_dims(1, 2).reshape([batch, features, height, width]);
        Outputs { maps, class_token: Some(class_token) }
    }
}

#[cfg(test)]
mod tests;
