//! Drop path, or stochastic depth (Huang et al., *Deep networks with stochastic depth*, 2016): in training, a block's
//! branch is left out for a picture with some probability, and otherwise divided by the probability that it stays.
//!
//! The probability grows evenly from 0 in the first block to the rate in the last one, as in timm. What is drawn for a
//! picture depends on the seed, the step and its place in the batch alone, so that chunks, workers and a resumed run draw
//! the same.

use burn::tensor::{DType, Device, Tensor, TensorData};

use super::{Backbone, VisionTransformer};
use crate::random::{stream, uniform};

/// The draws of drop path for the pictures of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct DropPath {
    /// The probability that a branch of the last block is left out, at least 0 and below 1.
    pub rate: f64,
    /// The seed of the training.
    pub seed: u64,
    /// The step.
    pub step: u64,
    /// The place in the batch of the first picture that passes.
    pub first: usize,
}

impl DropPath {
    /// The factors of the two branches of each block for B pictures, [2 · blocks, B, 1, 1].
    pub(super) fn factors(&self, blocks: usize, pictures: usize, numbers: (&Device, DType)) -> Tensor<4> {
        let mut factors = vec![0.0_f32; 2 * blocks * pictures];
        for picture in 0..pictures {
            let mut rng = stream(self.seed, "drop path", &[self.step, (self.first + picture) as u64]);
            for (branch, draw) in uniform(&mut rng, 2 * blocks, 0.0, 1.0).into_iter().enumerate() {
                let rate = self.rate * (branch / 2) as f64 / (blocks - 1).max(1) as f64;
                if f64::from(draw) >= rate {
                    factors[branch * pictures + picture] = (1.0 / (1.0 - rate)) as f32;
                }
            }
        }
        Tensor::from_data(TensorData::new(factors, [2 * blocks, pictures, 1, 1]), numbers)
    }
}

impl Backbone {
    /// A copy for one pass of training, whose blocks drop branches. A network without drop path stays as it is.
    pub fn with_drop_path(&self, drop_path: DropPath) -> Self {
        let mut copy = self.clone();
        if let Some(network) = copy.network_mut().downcast_mut::<VisionTransformer>() {
            network.set_drop_path(drop_path);
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::BackboneConfig;

    const DROP: DropPath = DropPath { rate: 0.4, seed: 3, step: 7, first: 0 };

    fn factors(drop_path: &DropPath, blocks: usize, pictures: usize) -> Vec<f32> {
        let factors = drop_path.factors(blocks, pictures, (&Device::flex(), DType::F32));
        factors.into_data().try_to_vec().unwrap()
    }

    #[test]
    fn branches_are_left_out_as_often_as_their_depth_says_and_have_mean_1() {
        let (blocks, pictures) = (5, 4000);
        for (branch, row) in factors(&DROP, blocks, pictures).chunks_exact(pictures).enumerate() {
            let rate = 0.1 * (branch / 2) as f64;
            let dropped = row.iter().filter(|&&factor| factor == 0.0).count() as f64 / pictures as f64;
            assert!((dropped - rate).abs() < 0.03, "branch {branch}: {dropped} instead of {rate}");
            let mean = row.iter().sum::<f32>() / pictures as f32;
            assert!((mean - 1.0).abs() < 0.05, "branch {branch}: {mean}");
        }
    }

    #[test]
    fn a_part_of_a_batch_has_the_draws_of_the_whole() {
        let whole = factors(&DROP, 3, 6);
        let part = factors(&DropPath { first: 4, ..DROP }, 3, 2);
        for branch in 0..6 {
            assert_eq!(whole[branch * 6 + 4..branch * 6 + 6], part[branch * 2..branch * 2 + 2]);
        }
        assert_ne!(whole, factors(&DropPath { step: 8, ..DROP }, 3, 6));
    }

    #[test]
    fn a_rate_of_0_changes_nothing_and_another_one_changes_pictures_one_by_one() {
        let device = Device::flex();
        let backbone = BackboneConfig::named("vit_s16").unwrap().init(&mut stream(0, "test", &[]), &device);
        let backbone = backbone.unwrap();
        let values: Vec<f32> = (0..3 * 3 * 32 * 32).map(|i| (i as f32 * 0.7).sin()).collect();
        let images = Tensor::<4>::from_data(TensorData::new(values, [3, 3, 32, 32]), &device);
        let token = |backbone: &Backbone, images: Tensor<4>| -> Vec<f32> {
            backbone.outputs(images).unwrap().class_token.unwrap().into_data().try_to_vec().unwrap()
        };
        let plain = token(&backbone, images.clone());
        let close = |x: &[f32], y: &[f32]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-4);
        let none = DropPath { rate: 0.0, ..DROP };
        assert!(close(&token(&backbone.with_drop_path(none), images.clone()), &plain));
        let dropped = token(&backbone.with_drop_path(DROP), images.clone());
        assert!(!close(&dropped, &plain));
        let last = DropPath { first: 2, ..DROP };
        let alone = token(&backbone.with_drop_path(last), images.narrow(0, 2, 1));
        assert!(close(&alone, &dropped[2 * 384..]));
    }
}
