//! Losses as functions of one batch, with their default settings.
//!
//! Each takes embeddings [B, d], which it scales to unit length, and their labels, and returns a tensor of shape
//! `[1]`. The batch is compared with itself. With other settings, call [`BuildLoss::forward`], which these functions
//! call too. They fail where it fails.
//!
//! ```
//! use akin_core::losses::{self, BuildLoss, SmoothApConfig};
//! use akin_core::taxonomy::Labels;
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex().autodiff();
//! let embeddings =
//!     Tensor::<2>::from_floats([[1.0, 0.1], [0.9, 0.4], [0.2, 1.0], [0.5, 0.9]], &device).require_grad();
//! // Two levels: items 0 and 1 are of class 0, both others of class 1, and class 1 has two varieties.
//! let labels = Labels::new(2, vec![0, 0, 0, 0, 1, 1, 1, 2])?;
//!
//! let loss = losses::happier(&embeddings, &labels)?;
//! let gradient = embeddings.grad(&loss.backward()).expect("every embedding is ranked");
//! assert_eq!(gradient.dims(), [4, 2]);
//!
//! let smoother = SmoothApConfig { temperature: 0.1 }.forward(&embeddings, &labels)?;
//! # assert!(smoother.into_scalar::<f32>() > 0.0);
//! # Ok::<(), akin_core::Error>(())
//! ```
//!
//! A loss that learns proxies or keeps a memory has to outlive the batch. Make it once, and call it on every batch:
//!
//! ```
//! use akin_core::geometry::{Geometry, normalise};
//! use akin_core::losses::{Batch, BuildLoss, HappierConfig, LossContext, Objective};
//! use akin_core::taxonomy::Labels;
//! use burn::tensor::{Device, Tensor};
//!
//! let device = Device::flex().autodiff();
//! let labels = Labels::new(2, vec![0, 0, 0, 0, 1, 1, 1, 2])?;
//! let classes = labels.classes();
//! let context = LossContext::new(&classes, 2, &Geometry::Cosine, 0, &device);
//! let happier = HappierConfig::default().init(&context)?;
//!
//! let embeddings = normalise(Tensor::from_floats([[1.0, 0.1], [0.9, 0.4], [0.2, 1.0], [0.5, 0.9]], &device));
//! let loss = happier.forward(&Batch::new(embeddings, &labels));
//! # assert!(loss.into_scalar::<f32>() > 0.0);
//! # Ok::<(), akin_core::Error>(())
//! ```

use burn::tensor::Tensor;

use super::{
    BuildLoss, ContrastiveConfig, FastApConfig, HapSurrogateConfig, MultiSimilarityConfig, RoadmapConfig,
    SmoothApConfig, SupApConfig, TripletMarginConfig,
};
use crate::Result;
use crate::taxonomy::Labels;

/// HAPPIER without its clustering term (λ = 0): the [H-AP surrogate](mod@super::hap_surrogate) over all levels.
///
/// The clustering term compares embeddings with learned proxies, which a function cannot keep. For the whole loss make
/// a [`HappierConfig`](super::HappierConfig), see the [module](self).
pub fn happier(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    HapSurrogateConfig::default().forward(embeddings, labels)
}

/// [ROADMAP](mod@super::roadmap): a bound of 1 − AP over the fine classes, and calibrated scores.
pub fn roadmap(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    RoadmapConfig::default().forward(embeddings, labels)
}

/// [SupAP](mod@super::sup_ap): a smooth upper bound of 1 − AP over the fine classes.
pub fn sup_ap(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    SupApConfig::default().forward(embeddings, labels)
}

/// [Smooth-AP](mod@super::smooth_ap): 1 − AP over the fine classes, with sigmoids for steps.
pub fn smooth_ap(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    SmoothApConfig::default().forward(embeddings, labels)
}

/// [FastAP](mod@super::fast_ap): 1 − AP of a ranking in bins of distance.
pub fn fast_ap(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    FastApConfig::default().forward(embeddings, labels)
}

/// The [contrastive](mod@super::contrastive) loss of all pairs.
pub fn contrastive(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    ContrastiveConfig::default().forward(embeddings, labels)
}

/// The [triplet](mod@super::triplet_margin) loss of all triplets.
pub fn triplet_margin(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    TripletMarginConfig::default().forward(embeddings, labels)
}

/// The [Multi-Similarity](mod@super::multi_similarity) loss of mined pairs.
pub fn multi_similarity(embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
    MultiSimilarityConfig::default().forward(embeddings, labels)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::super::{HappierConfig, MarginConfig};
    use super::*;
    use crate::Kind;

    fn batch() -> (Tensor<2>, Labels) {
        let rows = [[3.0, 0.1], [0.9, 0.4], [0.2, 1.0], [-0.5, 0.9]];
        (Tensor::from_floats(rows, &Device::flex()), Labels::new(2, vec![0, 0, 1, 1, 0, 0, 1, 2]).unwrap())
    }

    #[test]
    fn the_length_of_embeddings_does_not_count() {
        let (embeddings, labels) = batch();
        for loss in
            [happier, roadmap, sup_ap, smooth_ap, fast_ap, contrastive, triplet_margin, multi_similarity]
        {
            let value =
                |scale: f64| loss(&(embeddings.clone() * scale), &labels).unwrap().into_scalar::<f32>();
            assert!((value(1.0) - value(5.0)).abs() < 1e-5);
            assert!(value(1.0) > 0.0);
        }
    }

    #[test]
    fn a_loss_with_parameters_is_refused() {
        let (embeddings, labels) = batch();
        let error = HappierConfig::default().forward(&embeddings, &labels).unwrap_err();
        assert_eq!(error.kind(), Kind::Config);
        assert!(error.message().starts_with("happier keeps 6 numbers"), "{error}");
        let learned = MarginConfig { learn_beta: true, ..Default::default() };
        assert!(learned.forward(&embeddings, &labels).is_err());
        assert!(MarginConfig::default().forward(&embeddings, &labels).is_ok());
    }

    #[test]
    fn one_label_row_is_needed_for_each_embedding() {
        let (embeddings, labels) = batch();
        let error = happier(&embeddings, &labels.select(&[0, 1, 2])).unwrap_err();
        assert_eq!(error.message(), "there are 4 embeddings and 3 rows of labels");
    }
}
