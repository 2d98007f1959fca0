//! Multi-Similarity loss: weighs each pair by its own score and by the other pairs of its query (Wang et al.,
//! *Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning*, CVPR 2019, eq. 15).
//!
//! ```text
//! L = (1/B) Σ_i [ (1/α) log(1 + Σ_{j ∈ P_i} e^(−α(s_ij − λ))) + (1/β) log(1 + Σ_{j ∈ N_i} e^(β(s_ij − λ))) ]
//! ```
//!
//! s are cosines, α and β the weights of positives and negatives, λ the base that both are measured from. P_i and N_i
//! hold only the pairs that the paper's [miner](crate::miners::MultiSimilarityMiner) chooses. A pair that another miner
//! chooses several times counts once.
//!
//! # Text and code
//!
//! The defaults, λ = 0.5 and β = 40, are those of the published code; the preset `multi_similarity_text` has λ = 1 and
//! β = 50. A base of 1 is the score of equal vectors, so a negative counts little until it is nearly equal to the query. On
//! drawn creatures (recipe `biomorphs`, one seed) AP of species is 86.2 with the code's settings and 78.8 with the text's.
//! pytorch-metric-learning and Proxy-Anchor use λ = 0.5 and β = 50; HIER uses the same without a miner.
//!
//! # Gradient
//!
//! The loss is smooth, except where the miner's choice changes; the choice itself has no gradient. A query without
//! pairs adds 0 and counts in the mean.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, finite, log_one_plus_sum_exp,
    mask_above_zero,
};
use crate::geometry::Space;
use crate::miners::{Miner, MultiSimilarityMiner};
use crate::{Checked, Result};

/// Settings of [`MultiSimilarity`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct MultiSimilarityConfig {
    /// α > 0, the weight of positives. Default 2.
    pub alpha: f64,
    /// β > 0, the weight of negatives. Default 40.
    pub beta: f64,
    /// λ, the base. Default 0.5.
    pub base: f64,
    /// Which pairs count. Default the paper's miner, with ε = 0.1.
    pub miner: Miner,
}

impl Default for MultiSimilarityConfig {
    fn default() -> Self {
        Self {
            alpha: 2.0,
            beta: 40.0,
            base: 0.5,
            miner: Miner::MultiSimilarityMiner(MultiSimilarityMiner::default()),
        }
    }
}

impl BuildLoss for MultiSimilarityConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "multi_similarity",
        title: "Multi-Similarity",
        family: Family::Pairs,
        summary: "mined pairs, each weighed by its own score and by the other pairs of its query",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2019"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "multi_similarity_text",
        title: "Multi-Similarity (text)",
        summary: "Multi-Similarity as in the paper's text: λ = 1 and β = 50",
        preset: Some(r#"{ "kind": "multi_similarity", "beta": 50.0, "base": 1.0 }"#),
        ..Self::ENTRY
    }];
    type Loss = MultiSimilarity;

    fn init(&self, _: &LossContext) -> Result<MultiSimilarity> {
        above_zero("multi_similarity", "alpha", self.alpha, 2.0)?;
        above_zero("multi_similarity", "beta", self.beta, 40.0)?;
        finite("multi_similarity", "base", self.base, 0.5)?;
        Ok(MultiSimilarity { config: self.clone(), miner: self.miner.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct MultiSimilarity {
    #[module(skip)]
    config: MultiSimilarityConfig,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for MultiSimilarity {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let MultiSimilarityConfig { alpha, beta, base, .. } = self.config;
        let beyond = batch.cosines() - base;
        let [positives, negatives] = batch.mined_pairs(&self.miner).map(|counts| mask_above_zero(&counts));
        let positive_terms = log_one_plus_sum_exp(beyond.clone() * -alpha, positives) * (1.0 / alpha);
        let negative_terms = log_one_plus_sum_exp(beyond * beta, negatives) * (1.0 / beta);
        (positive_terms + negative_terms).sum() * (1.0 / batch.labels.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;
    use crate::taxonomy::Labels;
    use burn::tensor::Device;

    #[test]
    fn settings_out_of_range_are_refused() {
        let (classes, device) = (Labels::new(1, vec![0, 1]).unwrap(), Device::flex());
        let context = LossContext::new(&classes, 4, &Geometry::Cosine, 0, &device);
        let message = |config: MultiSimilarityConfig| config.init(&context).unwrap_err().to_string();
        let text = message(MultiSimilarityConfig { alpha: 0.0, ..Default::default() });
        assert!(text.contains("the alpha of multi_similarity is 0"), "{text}");
        message(MultiSimilarityConfig { base: f64::NAN, ..Default::default() });
        let miner = Miner::MultiSimilarityMiner(MultiSimilarityMiner { epsilon: -0.1 });
        message(MultiSimilarityConfig { miner, ..Default::default() });
    }

    #[test]
    fn steep_weights_do_not_overflow() {
        let (labels, device) = (Labels::new(1, vec![0, 0, 1]).unwrap(), Device::flex().autodiff());
        let classes = labels.classes();
        let context = LossContext::new(&classes, 2, &Geometry::Cosine, 0, &device);
        let config = MultiSimilarityConfig { beta: 1e4, base: -1.0, ..Default::default() };
        let rows = Tensor::<2>::from_data([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], &device).require_grad();
        let value = config.init(&context).unwrap().forward(&Batch::new(rows.clone(), &labels));
        let gradient = rows.grad(&value.backward()).unwrap().into_data().try_to_vec::<f32>().unwrap();
        assert!(gradient.iter().all(|x| x.is_finite()), "{gradient:?}");
        assert!(value.into_data().try_to_vec::<f32>().unwrap()[0].is_finite());
    }
}
