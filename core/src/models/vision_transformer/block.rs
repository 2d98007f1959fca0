//! A block of a transformer: attention, then an MLP, each added to the tokens.

use burn::module::{Module, Param};
use burn::nn::{LayerNorm, Linear};
use burn::tensor::{Tensor, activation};

use super::forms::{Activation, Form};
use super::positions::{Rotation, rotate};
use crate::models::attention::attention;
use crate::models::drop_path::Factors;
use crate::models::gelu::gelu;
use crate::models::layer_norm::layer_norm;
use crate::models::layers::Initial;
use crate::models::linear::{add_linear, linear};
use crate::models::low_rank::{AdaptedLayer, Adapter, Adapters, LoraConfig, map};

#[derive(Module, Debug)]
pub(super) struct Block {
    norm1: LayerNorm,
    attn: Attention,
    ls1: Option<LayerScale>,
    norm2: LayerNorm,
    mlp: Mlp,
    ls2: Option<LayerScale>,
    adapters: Adapters,
}

#[derive(Module, Debug)]
struct Attention {
    qkv: Linear,
    proj: Linear,
}

impl Attention {
    /// Queries, keys and values, as DINOv3 has them: its keys have no bias.
    fn without_bias_of_keys(&self, adapter: &Option<Adapter>, x: Tensor<3>) -> Tensor<3> {
        let layer = Linear { weight: self.qkv.weight.clone(), bias: None };
        let projections = map(&layer, adapter, x);
        let Some(bias) = &self.qkv.bias else { return projections };
        let bias = bias.val();
        let third = bias.dims()[0] / 3;
        let [queries, keys, values] = [0, 1, 2].map(|part| bias.clone().narrow(0, part * third, third));
        projections + Tensor::cat(vec![queries, keys.zeros_like(), values], 0).unsqueeze()
    }
}

/// Two linear layers with an activation between them. With a gate `fc1_g` it is SwiGLU (Shazeer, *GLU variants improve
/// transformer*, 2020).
#[derive(Module, Debug)]
pub(super) struct Mlp {
    fc1_g: Option<Linear>,
    fc1: Linear,
    fc2: Linear,
}

#[derive(Module, Debug)]
struct LayerScale {
    gamma: Param<Tensor<1>>,
}

impl Block {
    pub(super) fn new(form: &Form, initial: &mut Initial) -> Self {
        let Form { features, epsilon, .. } = *form;
        let scale = |initial: &Initial| {
            form.layer_scale.map(|value| LayerScale { gamma: initial.constant([features], value) })
        };
        Self {
            norm1: initial.layer_norm(features, epsilon),
            attn: Attention {
                qkv: initial.linear(features, 3 * features),
                proj: initial.linear(features, features),
            },
            ls1: scale(initial),
            norm2: initial.layer_norm(features, epsilon),
            mlp: Mlp::new(form, initial),
            ls2: scale(initial),
            adapters: Adapters::default(),
        }
    }

    pub(super) fn adapt(&mut self, config: &LoraConfig, initial: &mut Initial) {
        let mut adapter = |layer, adapted: &Linear| Adapter::new(config, layer, adapted, initial);
        self.adapters = Adapters {
            qkv: adapter(AdaptedLayer::Qkv, &self.attn.qkv),
            proj: adapter(AdaptedLayer::Proj, &self.attn.proj),
            fc1: adapter(AdaptedLayer::Fc1, &self.mlp.fc1),
            fc2: adapter(AdaptedLayer::Fc2, &self.mlp.fc2),
        };
    }

    pub(super) fn merge_adapters(&mut self) {
        let Adapters { qkv, proj, fc1, fc2 } = std::mem::take(&mut self.adapters);
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

    /// The tokens after this block. Its branches are number `branch` of the factors and the next.
    pub(super) fn forward(
        &self,
        x: Tensor<3>,
        form: &Form,
        rotation: Option<&Rotation>,
        factors: Option<&Factors>,
        branch: usize,
    ) -> Tensor<3> {
        let add = |x: Tensor<3>,
                   branch: usize,
                   layer: &Linear,
                   adapter: &Option<Adapter>,
                   inner: Tensor<3>,
                   scale: &Option<LayerScale>| {
            if scale.is_none() && factors.is_none() && adapter.is_none() {
                return add_linear(x, layer, inner);
            }
            let inner = map(layer, adapter, inner);
            let inner = match scale {
                Some(scale) => inner * scale.gamma.val().unsqueeze(),
                None => inner,
            };
            x + Factors::apply(factors, branch, inner)
        };
        let Adapters { qkv, proj, fc1, fc2 } = &self.adapters;
        let inner = layer_norm(&self.norm1, form.epsilon, x.clone());
        let projections = match rotation {
            Some(rotation) => rotate(self.attn.without_bias_of_keys(qkv, inner), form.heads, rotation),
            None => map(&self.attn.qkv, qkv, inner),
        };
        let x = add(x, branch, &self.attn.proj, proj, attention(projections, form.heads), &self.ls1);
        let inner = layer_norm(&self.norm2, form.epsilon, x.clone());
        let inner = self.mlp.inner(inner, form.activation, fc1);
        add(x, branch + 1, &self.mlp.fc2, fc2, inner, &self.ls2)
    }

    #[cfg(test)]
    pub(super) fn set_bias_of_projections(&mut self, bias: Tensor<1>) {
        self.attn.qkv.bias = Some(Param::from_tensor(bias));
    }

    pub(super) fn linear_layers(&self) -> impl Iterator<Item = &Linear> {
        [&self.attn.qkv, &self.attn.proj].into_iter().chain(self.mlp.linear_layers())
    }
}

impl Mlp {
    pub(super) fn new(form: &Form, initial: &mut Initial) -> Self {
        let Form { features, hidden, .. } = *form;
        Self {
            fc1_g: (form.activation == Activation::SwiGlu).then(|| initial.linear(features, hidden)),
            fc1: initial.linear(features, hidden),
            fc2: initial.linear(hidden, features),
        }
    }

    /// What the last layer maps.
    fn inner(&self, x: Tensor<3>, form: Activation, adapter: &Option<Adapter>) -> Tensor<3> {
        let gate = self.fc1_g.as_ref().map(|gate| activation::silu(linear(gate, x.clone())));
        let inner = map(&self.fc1, adapter, x);
        match form {
            Activation::Gelu => gelu(inner),
            Activation::TanhGelu => activation::gelu_approximate(inner),
            Activation::QuickGelu => inner.clone() * activation::sigmoid(inner * 1.702),
            Activation::SwiGlu => inner * gate.expect("`new` makes a gate for this activation"),
        }
    }

    /// The output, added to the tokens `x`.
    pub(super) fn add_to(&self, x: Tensor<3>, inner: Tensor<3>, form: &Form) -> Tensor<3> {
        add_linear(x, &self.fc2, self.inner(inner, form.activation, &None))
    }

    pub(super) fn linear_layers(&self) -> impl Iterator<Item = &Linear> {
        self.fc1_g.iter().chain([&self.fc1, &self.fc2])
    }
}
