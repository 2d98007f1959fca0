//! Attention pooling (Zhai et al., *Scaling vision transformers*, 2022): a learned query attends to all tokens, and an
//! MLP follows. SigLIP has it instead of a class token.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear};
use burn::tensor::{Tensor, activation::softmax};

use super::block::Mlp;
use super::forms::Form;
use crate::models::layer_norm::layer_norm;
use crate::models::layers::{Cost, Initial};
use crate::models::linear::linear;
use crate::random::normal;

/// The fields have timm's names.
#[derive(Module, Debug)]
pub(super) struct AttentionPool {
    latent: Param<Tensor<3>>,
    q: Linear,
    kv: Linear,
    proj: Linear,
    norm: LayerNorm,
    mlp: Mlp,
}

impl AttentionPool {
    pub(super) fn new(form: &Form, initial: &mut Initial) -> Self {
        let features = form.features;
        Self {
            latent: initial.weight([1, 1, features], |rng, count| normal(rng, count, 0.02)),
            q: initial.linear(features, features),
            kv: initial.linear(features, 2 * features),
            proj: initial.linear(features, features),
            norm: initial.layer_norm(features, form.epsilon),
            mlp: Mlp::new(form, initial),
        }
    }

    /// [B, T, F] → [B, F].
    pub(super) fn forward(&self, x: Tensor<3>, form: &Form) -> Tensor<2> {
        let [batch, tokens, features] = x.dims();
        let (heads, width) = (form.heads, features / form.heads);
        // [2, B, heads, T, width]
        let both = linear(&self.kv, x).reshape([batch, tokens, 2, heads, width]).permute([2, 0, 3, 1, 4]);
        let part = |i: usize| both.clone().narrow(0, i, 1).squeeze_dim::<4>(0);
        let queries = linear(&self.q, self.latent.val()).reshape([1, heads, 1, width]);
        let queries = queries.expand([batch, heads, 1, width]) * (1.0 / (width as f64).sqrt());
        let weights = softmax(queries.matmul(part(0).swap_dims(2, 3)), 3);
        let read = weights.matmul(part(1)).reshape([batch, 1, features]);
        let x = linear(&self.proj, read);
        let inner = layer_norm(&self.norm, form.epsilon, x.clone());
        self.mlp.add_to(x, inner, form).squeeze_dim::<2>(1)
    }

    /// Adds the multiplications of one picture.
    pub(super) fn add_cost(&self, tokens: usize, cost: &mut Cost) {
        cost.linear(&self.kv, tokens);
        [&self.q, &self.proj]
            .into_iter()
            .chain(self.mlp.linear_layers())
            .for_each(|layer| cost.linear(layer, 1));
        cost.multiply_adds += 2 * (tokens * self.latent.lazy_shape()[2]) as u64;
    }
}
