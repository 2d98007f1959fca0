//! Stochastic depth, or drop path (Huang et al., *Deep networks with stochastic depth*, 2016): in training, each picture
//! leaves out some of the branches that a network adds to its tokens, and the others count for more.
//!
//! The rate grows from 0 at the first branch to its full value at the last, as in timm. Which branches are left out is a
//! function of the seed, the step and the number of the picture in its batch, so that a resumed run, and one that
//! computes a batch in parts, leaves out the same.

use burn::tensor::{Tensor, TensorData};
use rand::RngExt;

use super::pooling::Outputs;
use crate::random::stream;

/// What a step leaves out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DropPath {
    /// The probability of leaving out a branch of the last block, at least 0 and below 1.
    pub rate: f64,
    /// The seed of the run.
    pub seed: u64,
    /// The step.
    pub step: u64,
    /// The place in the batch of the first picture that passes.
    pub first: usize,
}

impl DropPath {
    /// The factor of each branch for the pictures that pass, branch by branch. `depths` says how deep each branch is,
    /// from 0 to 1.
    fn factors(&self, depths: &[f64], pictures: usize) -> Vec<f32> {
        let mut factors = vec![0.0; depths.len() * pictures];
        for i in 0..pictures {
            let mut rng = stream(self.seed, "drop path", &[self.step, (self.first + i) as u64]);
            for (branch, depth) in depths.iter().enumerate() {
                let keep = 1.0 - self.rate * depth;
                if rng.random::<f64>() < keep {
                    factors[branch * pictures + i] = (1.0 / keep) as f32;
                }
            }
        }
        factors
    }
}

/// The factors of the branches of a pass, [branches, B].
pub(super) struct Factors(Tensor<2>);

impl Factors {
    pub(super) fn new(path: &DropPath, depths: &[f64], images: &Tensor<4>) -> Self {
        let [pictures, _, _, _] = images.dims();
        let data = TensorData::new(path.factors(depths, pictures), [depths.len(), pictures]);
        Self(Tensor::from_data(data, (&images.device(), images.dtype())))
    }

    /// A branch's numbers [B, T, F], each picture's times its factor.
    pub(super) fn apply(factors: Option<&Self>, branch: usize, x: Tensor<3>) -> Tensor<3> {
        let Some(Self(factors)) = factors else { return x };
        let [batch, _, _] = x.dims();
        x * factors.clone().narrow(0, branch, 1).reshape([batch, 1, 1])
    }
}

/// A network that can leave out branches.
pub(super) trait Branches {
    /// How deep each branch is, from 0 to 1; empty for a network without branches that can be left out.
    fn depths(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Normalised images [B, 3, H, W] → features, with the branches times their factors.
    fn outputs(&self, images: Tensor<4>, factors: Option<&Factors>) -> Outputs;
}

/// How deep each of `count` blocks is, from 0 to 1.
pub(super) fn depths(count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |i| i as f64 / (count.max(2) - 1) as f64)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::models::BackboneConfig;

    #[test]
    fn a_part_of_a_batch_leaves_out_what_the_whole_batch_does_and_the_mean_is_one() {
        let path = DropPath { rate: 0.5, seed: 7, step: 3, first: 0 };
        let depths: Vec<f64> = depths(5).collect();
        let whole = path.factors(&depths, 2000);
        let part = DropPath { first: 700, ..path }.factors(&depths, 3);
        for (branch, part) in part.chunks_exact(3).enumerate() {
            assert_eq!(part, &whole[2000 * branch + 700..][..3]);
        }
        for (factors, depth) in whole.chunks_exact(2000).zip(depths) {
            let kept = factors.iter().filter(|&&factor| factor > 0.0).count() as f64 / 2000.0;
            let mean = factors.iter().sum::<f32>() / 2000.0;
            assert!((kept - (1.0 - 0.5 * depth)).abs() < 0.04, "{kept} at {depth}");
            assert!((mean - 1.0).abs() < 0.08, "{mean} at {depth}");
        }
        let other = DropPath { step: 4, ..path };
        assert_ne!(other.factors(&[1.0], 64), path.factors(&[1.0], 64));
    }

    #[test]
    fn a_rate_of_0_changes_nothing_and_another_one_changes_pictures_one_by_one() {
        let device = Device::flex();
        let backbone = BackboneConfig::named("vit_s16").unwrap().init(&mut stream(0, "test", &[]), &device);
        let backbone = backbone.unwrap();
        let values: Vec<f32> = (0..3 * 3 * 32 * 32).map(|i| (i as f32 * 0.7).sin()).collect();
        let images = Tensor::<4>::from_data(TensorData::new(values, [3, 3, 32, 32]), &device);
        let token = |path: &DropPath, images: Tensor<4>| -> Vec<f32> {
            let outputs = backbone.outputs_dropping(images, path).unwrap();
            outputs.class_token.unwrap().into_data().try_to_vec().unwrap()
        };
        let plain = backbone.outputs(images.clone()).unwrap().class_token.unwrap();
        let plain: Vec<f32> = plain.into_data().try_to_vec().unwrap();
        let close = |x: &[f32], y: &[f32]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-4);
        let path = DropPath { rate: 0.4, seed: 3, step: 7, first: 0 };
        assert!(close(&token(&DropPath { rate: 0.0, ..path }, images.clone()), &plain));
        let dropped = token(&path, images.clone());
        assert!(!close(&dropped, &plain));
        let alone = token(&DropPath { first: 2, ..path }, images.narrow(0, 2, 1));
        assert!(close(&alone, &dropped[2 * 384..]));
    }
}
