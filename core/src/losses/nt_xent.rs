//! NT-Xent: find a positive among the negatives of a query (Sohn, *Improved Deep Metric Learning with Multi-class N-pair
//! Loss Objective*, NeurIPS 2016; Chen et al., *A Simple Framework for Contrastive Learning*, ICML 2020, eq. 1).
//!
//! ```text
//! L = mean over pairs (i, j), j ∈ P_i, of −log( e^(s_ij/T) / (e^(s_ij/T) + Σ_{n ∈ N_i} e^(s_in/T)) )
//! ```
//!
//! s are cosines, T the temperature. This is InfoNCE with labels, in the form of pytorch-metric-learning: the other positives
//! of a query do not compete with j. In [`sup_con`](super::sup_con) they do. A pair that a miner chooses several times counts
//! as often.
//!
//! The loss is smooth. A pair whose query has no negative adds 0 and counts in the mean. Without pairs the loss is 0.

use burn::module::Module;
use burn::tensor::{Tensor, activation::log_sigmoid};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, log_sum_exp, mask_exponents,
};
use crate::geometry::Space;
use crate::miners::Miner;
use crate::{Checked, Result};

/// Settings of [`NtXent`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct NtXentConfig {
    /// T > 0. Default 0.07.
    pub temperature: f64,
    /// Which pairs count. Default all.
    pub miner: Miner,
}

impl Default for NtXentConfig {
    fn default() -> Self {
        Self { temperature: 0.07, miner: Miner::default() }
    }
}

impl BuildLoss for NtXentConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "nt_xent",
        title: "NT-Xent",
        family: Family::Pairs,
        summary: "cross-entropy of each positive against the negatives of its query",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["sohn2016", "chen2020", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = NtXent;

    fn init(&self, _: &LossContext) -> Result<NtXent> {
        above_zero("nt_xent", "temperature", self.temperature, 0.07)?;
        Ok(NtXent { temperature: self.temperature, miner: self.miner.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct NtXent {
    #[module(skip)]
    temperature: f64,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for NtXent {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let exponents = batch.cosines() * (1.0 / self.temperature);
        let [positives, negatives] = batch.mined_pairs(&self.miner);
        let repeated = exponents.clone() + negatives.clone().clamp_min(1.0).log();
        let competing = log_sum_exp(mask_exponents(repeated, negatives));
        let terms = -log_sigmoid(exponents - competing);
        let count = positives.clone().sum().clamp_min(1.0);
        (terms * positives).sum() / count
    }
}
