//! The weights of vision transformers and ConvNeXt under timm's names, from files with those of open_clip, of Hugging Face and of
//! DINOv2's and DINOv3's authors.

use std::collections::BTreeMap;

use super::{NumberType, StoredTensor, WeightFile};

/// The towers of pictures in files that also have a tower of texts, and the other weights of each that belong to it.
const TOWERS: [(&str, &[&str]); 3] =
    [("visual.trunk.", &[]), ("visual.", &[]), ("vision_model.", &["visual_projection.weight"])];

/// Weights that only pretraining needs, and tables that follow from the form.
const UNUSED: [&str; 8] = [
    "mask_token",
    "embeddings.mask_token",
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "rope_embed.periods",
    "local_cls_norm.weight",
    "local_cls_norm.bias",
];

/// Parts of names that timm calls otherwise. They are replaced in this order.
const RENAMED: [(&str, &str); 52] = [
    // Before the blocks.
    ("embeddings.patch_embeddings.projection.", "patch_embed.proj."),
    ("embeddings.patch_embeddings.", "patch_embed.proj."),
    ("embeddings.patch_embedding.", "patch_embed.proj."),
    ("conv1.", "patch_embed.proj."),
    ("embeddings.cls_token", "cls_token"),
    ("embeddings.class_embedding", "cls_token"),
    ("class_embedding", "cls_token"),
    ("embeddings.register_tokens", "reg_token"),
    ("register_tokens", "reg_token"),
    ("storage_tokens", "reg_token"),
    ("embeddings.position_embeddings", "pos_embed"),
    ("embeddings.position_embedding.weight", "pos_embed"),
    ("positional_embedding", "pos_embed"),
    ("pre_layrnorm.", "norm_pre."),
    ("ln_pre.", "norm_pre."),
    // In the blocks.
    ("encoder.layers.", "blocks."),
    ("encoder.layer.", "blocks."),
    ("transformer.resblocks.", "blocks."),
    ("model.layer.", "blocks."),
    (".attention.attention.query.", ".attn.q."),
    (".attention.attention.key.", ".attn.k."),
    (".attention.attention.value.", ".attn.v."),
    (".attention.output.dense.", ".attn.proj."),
    (".intermediate.dense.", ".mlp.fc1."),
    (".output.dense.", ".mlp.fc2."),
    (".self_attn.", ".attention."),
    (".attention.q_proj.", ".attn.q."),
    (".attention.k_proj.", ".attn.k."),
    (".attention.v_proj.", ".attn.v."),
    (".attention.o_proj.", ".attn.proj."),
    (".attention.out_proj.", ".attn.proj."),
    (".attn.out_proj.", ".attn.proj."),
    (".attn.in_proj_", ".attn.qkv."),
    (".layer_scale1.lambda1", ".ls1.gamma"),
    (".layer_scale2.lambda1", ".ls2.gamma"),
    (".gamma_1", ".ls1.gamma"),
    (".gamma_2", ".ls2.gamma"),
    (".layernorm_before.", ".norm1."),
    (".layernorm_after.", ".norm2."),
    (".layer_norm1.", ".norm1."),
    (".layer_norm2.", ".norm2."),
    (".ln_1.", ".norm1."),
    (".ln_2.", ".norm2."),
    (".mlp.c_fc.", ".mlp.fc1."),
    (".mlp.c_proj.", ".mlp.fc2."),
    (".mlp.up_proj.", ".mlp.fc1."),
    (".mlp.gate_proj.", ".mlp.fc1_g."),
    (".mlp.down_proj.", ".mlp.fc2."),
    (".mlp.fc1_x.", ".mlp.fc1."),
    (".mlp.w1.", ".mlp.fc1_g."),
    (".mlp.w2.", ".mlp.fc1."),
    (".mlp.w3.", ".mlp.fc2."),
];

/// Beginnings of names that timm calls otherwise: after the blocks, where parts of these names also stand in a block.
const RENAMED_BEGINNINGS: [(&str, &str); 9] = [
    ("layer.", "blocks."),
    ("layernorm.", "norm."),
    ("post_layernorm.", "norm."),
    ("ln_post.", "norm."),
    ("visual_projection.", "head."),
    ("head.probe", "attn_pool.latent"),
    ("head.layernorm.", "attn_pool.norm."),
    ("head.attn.proj.", "attn_pool.proj."),
    ("head.", "attn_pool."),
];

impl WeightFile {
    /// This file with timm's names and shapes for the weights of a vision transformer or of ConvNeXt. Names that are nobody's stay as they
    /// are.
    pub fn with_timm_names(mut self) -> Self {
        if self.tensors.keys().any(|name| name.contains("encoder.stages.")) {
            let tensors = std::mem::take(&mut self.tensors).into_iter();
            self.tensors = tensors.map(|(name, tensor)| (convnext_name(&name), tensor)).collect();
            return self;
        }
        let tensors = self.tower();
        let has_map_head = tensors.contains_key("head.probe");
        let masked: Vec<String> = tensors
            .keys()
            .filter(|name| name.ends_with(".bias_mask"))
            .map(|name| timm_name(name.trim_end_matches("_mask"), has_map_head))
            .collect();
        self.tensors = tensors
            .into_iter()
            .filter(|(name, _)| !UNUSED.contains(&name.as_str()) && !name.ends_with(".bias_mask"))
            .map(|(name, tensor)| (timm_name(&name, has_map_head), tensor))
            .collect();
        self.join_projections();
        self.mask_keys(masked);
        self.split_pooling();
        self.shape_tokens();
        self.move_first_position();
        self
    }

    /// The weights of the tower of pictures without its prefix; all weights, if the file has one tower alone.
    fn tower(&mut self) -> BTreeMap<String, StoredTensor> {
        let tensors = std::mem::take(&mut self.tensors);
        let is_of = |prefix: &str| tensors.keys().any(|name| name.starts_with(prefix));
        let Some((prefix, others)) = TOWERS.into_iter().find(|(prefix, _)| is_of(prefix)) else {
            return tensors;
        };
        let own = tensors.into_iter().filter_map(|(name, tensor)| match name.strip_prefix(prefix) {
            Some(name) => Some((name.to_owned(), tensor)),
            None => others.contains(&name.as_str()).then_some((name, tensor)),
        });
        own.collect()
    }

    /// Sets the biases of the keys to 0 in these biases of queries, keys and values. DINOv3's own files have a mask that
    /// does so, and what it covers need not be finite.
    fn mask_keys(&mut self, biases: Vec<String>) {
        for name in biases {
            let values = self.tensors.get(&name).and_then(|tensor| self.values(tensor));
            if let Some(mut values) = values {
                let third = values.len() / 3;
                values[third..2 * third].fill(0.0);
                self.add(name, vec![values.len()], values);
            }
        }
    }

    /// Joins the projections of queries, keys and values. A bias that a file does not have is 0.
    fn join_projections(&mut self) {
        let blocks: Vec<String> = self.tensors.keys().filter_map(|name| block_of(name)).collect();
        for block in blocks {
            let weights = ["q", "k", "v"].map(|part| self.take(&format!("{block}.attn.{part}.weight")));
            let biases = ["q", "k", "v"].map(|part| self.take(&format!("{block}.attn.{part}.bias")));
            if let [Some(queries), Some(keys), Some(values)] = &weights
                && [queries, keys, values].iter().all(|weight| weight.shape.len() == 2)
            {
                let inputs = queries.shape[1];
                let rows = [queries, keys, values].map(|weight| weight.shape[0]);
                let joined: Option<Vec<Vec<f32>>> =
                    [queries, keys, values].into_iter().map(|weight| self.values(weight)).collect();
                if let Some(joined) = joined {
                    self.add(
                        format!("{block}.attn.qkv.weight"),
                        vec![rows.iter().sum(), inputs],
                        joined.concat(),
                    );
                }
                let bias = biases.iter().zip(rows).map(|(bias, rows)| match bias {
                    Some(bias) => self.values(bias),
                    None => Some(vec![0.0; rows]),
                });
                if let Some(bias) = bias.collect::<Option<Vec<_>>>() {
                    let bias = bias.concat();
                    self.add(format!("{block}.attn.qkv.bias"), vec![bias.len()], bias);
                }
            }
            // timm's DINOv3 without a bias, and with one for queries and values alone.
            let (name, own) = (format!("{block}.attn.qkv.bias"), ["q_bias", "v_bias"]);
            let own = own.map(|part| self.take(&format!("{block}.attn.{part}")));
            if let Some(weight) = self.tensors.get(&format!("{block}.attn.qkv.weight"))
                && !self.tensors.contains_key(&name)
            {
                let mut bias = vec![0.0; weight.shape[0]];
                let third = bias.len() / 3;
                for (tensor, start) in own.iter().zip([0, 2 * third]) {
                    if let Some(values) = tensor.as_ref().and_then(|tensor| self.values(tensor))
                        && values.len() == third
                    {
                        bias[start..start + third].copy_from_slice(&values);
                    }
                }
                self.add(name, vec![bias.len()], bias);
            }
        }
    }

    /// Splits the projections of attention pooling, which Hugging Face has in one matrix.
    fn split_pooling(&mut self) {
        for kind in ["weight", "bias"] {
            let name = format!("attn_pool.attention.in_proj_{kind}");
            let Some(all) = self.tensors.remove(&name) else { continue };
            let third = all.shape.first().map_or(0, |rows| rows / 3);
            for (part, rows) in [("q", 0..third), ("kv", third..3 * third)] {
                let mut own = all.clone();
                own.start += rows.start * own.strides[0] * own.numbers.bytes();
                own.shape[0] = rows.len();
                self.tensors.insert(format!("attn_pool.{part}.{kind}"), own);
            }
        }
    }

    /// Gives tokens and positions the shape [1, T, F], and open_clip's projection that of a linear layer.
    fn shape_tokens(&mut self) {
        for (name, tensor) in &mut self.tensors {
            while ["cls_token", "pos_embed"].contains(&name.as_str()) && tensor.shape.len() < 3 {
                tensor.shape.insert(0, 1);
                tensor.strides.insert(0, 0);
            }
        }
        if let Some(mut projection) = self.tensors.remove("proj") {
            projection.shape.reverse();
            projection.strides.reverse();
            self.tensors.insert("head.weight".into(), projection);
        }
    }

    /// With registers, timm adds the position of the class token to the token.
    fn move_first_position(&mut self) {
        let (Some(token), Some(positions)) = (self.tensors.get("cls_token"), self.tensors.get("pos_embed"))
        else {
            return;
        };
        let [1, count, features] = positions.shape[..] else { return };
        let is_square = |count: usize| count.isqrt().pow(2) == count;
        if !self.tensors.contains_key("reg_token")
            || token.shape != [1, 1, features]
            || count == 0
            || is_square(count)
            || !is_square(count - 1)
        {
            return;
        }
        if let (Some(mut token), Some(positions)) = (self.values(token), self.values(positions)) {
            let (first, others) = positions.split_at(features);
            token.iter_mut().zip(first).for_each(|(token, position)| *token += position);
            self.add("cls_token".into(), vec![1, 1, features], token);
            self.add("pos_embed".into(), vec![1, count - 1, features], others.to_vec());
        }
    }

    fn take(&mut self, name: &str) -> Option<StoredTensor> {
        self.tensors.remove(name)
    }

    /// Adds a tensor of these numbers, behind the bytes of the file.
    fn add(&mut self, name: String, shape: Vec<usize>, values: Vec<f32>) {
        let start = self.bytes.len();
        self.bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let strides = StoredTensor::contiguous(&shape);
        self.tensors.insert(name, StoredTensor { shape, numbers: NumberType::F32, start, strides });
    }
}

/// The name of a weight of Hugging Face's ConvNeXt.
fn convnext_name(name: &str) -> String {
    let mut name = name.strip_prefix("convnext.").unwrap_or(name).to_owned();
    for (other, timm) in [
        ("embeddings.patch_embeddings.", "stem.0."),
        ("embeddings.layernorm.", "stem.1."),
        ("encoder.", ""),
        (".layers.", ".blocks."),
        (".downsampling_layer.", ".downsample."),
        (".dwconv.", ".conv_dw."),
        (".layernorm.", ".norm."),
        (".pwconv1.", ".mlp.fc1."),
        (".pwconv2.", ".mlp.fc2."),
        (".layer_scale_parameter", ".gamma"),
    ] {
        name = name.replace(other, timm);
    }
    match name.strip_prefix("layernorm.") {
        Some(rest) => format!("head.norm.{rest}"),
        None => name,
    }
}

/// The block of a weight of an attention's queries, or of all its projections.
fn block_of(name: &str) -> Option<String> {
    let block = name.strip_suffix(".attn.q.weight").or_else(|| name.strip_suffix(".attn.qkv.weight"))?;
    Some(block.to_owned())
}

fn timm_name(name: &str, has_map_head: bool) -> String {
    let mut name = name.to_owned();
    for (other, timm) in RENAMED {
        if name.contains(other) {
            name = name.replace(other, timm);
        }
    }
    for (other, timm) in RENAMED_BEGINNINGS {
        if let Some(rest) = name.strip_prefix(other)
            && (other != "head." || has_map_head)
        {
            return format!("{timm}{rest}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use safetensors::Dtype;
    use safetensors::tensor::TensorView;

    use super::*;

    #[test]
    fn a_mask_takes_the_bias_of_the_keys_whatever_it_holds() {
        let name = "blocks.0.attn.qkv.bias";
        let bytes: Vec<u8> =
            [1.0, 2.0, f32::NAN, 4.0, 5.0, 6.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let view = || TensorView::new(Dtype::F32, vec![6], &bytes).unwrap();
        let of = |names: &[&str]| {
            let file = safetensors::serialize(names.iter().map(|name| (*name, view())), None).unwrap();
            WeightFile::parse(file).unwrap().with_timm_names()
        };
        let masked = of(&[name, "blocks.0.attn.qkv.bias_mask"]);
        assert_eq!(masked.tensors().keys().collect::<Vec<_>>(), [name]);
        assert_eq!(masked.values(&masked.tensors()[name]).unwrap(), [1.0, 2.0, 0.0, 0.0, 5.0, 6.0]);
        let plain = of(&[name]);
        assert!(plain.values(&plain.tensors()[name]).unwrap()[2].is_nan());
    }
}
