//! How deep in a backbone a weight is, for learning rates that differ by depth.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::Backbone;

impl Backbone {
    /// The depth of each of its weights, in the order in which a visitor of the module sees them. What comes before the
    /// first block, such as the embeddings of patches and positions, is at 0, the first block at 1. What comes after the
    /// last block is as deep as that.
    ///
    /// These are the layers of timm's and BEiT's learning rates for a network without a classifier.
    pub fn depths(&self) -> Vec<usize> {
        let mut walk = Walk::default();
        self.visit(&mut walk);
        walk.depths
    }
}

#[derive(Default)]
struct Walk {
    path: Vec<String>,
    /// The block of the last weight; empty before the first block.
    block: Vec<String>,
    depth: usize,
    depths: Vec<usize>,
}

impl Walk {
    /// The path of the block at this place: up to the first number, and numbers that follow it. Empty outside of blocks.
    fn block(&self) -> &[String] {
        let is_number = |part: &String| part.bytes().all(|byte| byte.is_ascii_digit());
        let Some(first) = self.path.iter().position(is_number) else { return &[] };
        let numbers = self.path[first..].iter().take_while(|part| is_number(part)).count();
        &self.path[..first + numbers]
    }
}

impl ModuleVisitor for Walk {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, _: &Param<Tensor<D>>) {
        let block = self.block();
        if !block.is_empty() && block != self.block {
            self.block = block.to_vec();
            self.depth += 1;
        }
        self.depths.push(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use crate::models::{BACKBONES, BackboneConfig};

    /// The depths that timm 1.0.31 gives the weights of these networks, by
    /// `group_parameters(model, model.group_matcher(coarse=False), reverse=True)` with `num_classes=0`.
    #[test]
    fn depths_are_those_of_timm() {
        let depth = |name: &str, weight: &str| {
            let backbone = BackboneConfig::named(name).unwrap().absent(&Device::flex()).unwrap();
            let place = backbone.weight_names().iter().position(|own| own == weight).unwrap();
            backbone.depths()[place]
        };
        for (name, weight, expected) in [
            ("vit_s16", "cls_token", 0),
            ("vit_s16", "pos_embed", 0),
            ("vit_s16", "patch_embed.proj.bias", 0),
            ("vit_s16", "blocks.0.norm1.weight", 1),
            ("vit_s16", "blocks.10.mlp.fc2.bias", 11),
            ("vit_s16", "blocks.11.attn.qkv.weight", 12),
            ("vit_s16", "norm.weight", 12),
            ("deit_s16_distilled", "dist_token", 0),
            ("dinov2_s14", "reg_token", 0),
            ("dinov2_s14", "blocks.3.ls1.gamma", 4),
            ("resnet50", "conv1.weight", 0),
            ("resnet50", "bn1.bias", 0),
            ("resnet50", "layer1.0.downsample.0.weight", 1),
            ("resnet50", "layer1.0.conv3.weight", 1),
            ("resnet50", "layer1.1.conv1.weight", 2),
            ("resnet50", "layer4.2.bn3.weight", 16),
        ] {
            assert_eq!(depth(name, weight), expected, "{name}: {weight}");
        }
        assert_eq!(depth("squeezenet", "features.12.expand3x3.bias"), 8);
    }

    #[test]
    fn every_backbone_has_blocks() {
        for entry in BACKBONES {
            let backbone = BackboneConfig::named(entry.name).unwrap().absent(&Device::flex()).unwrap();
            let depths = backbone.depths();
            assert_eq!(depths.len(), backbone.weight_names().len());
            assert!(depths.is_sorted() && depths[0] == 0 && depths[depths.len() - 1] > 1, "{}", entry.name);
        }
    }
}
