//! SupCon: find each positive among all items (Khosla et al., *Supervised Contrastive Learning*, NeurIPS 2020, eq. 2).
//!
//! ```text
//! L = mean over queries i of −(1/|P_i|) Σ_{j ∈ P_i} log( e^(s_ij/T) / Σ_{a ∈ P_i ∪ N_i} e^(s_ia/T) )
//! ```
//!
//! s are cosines, T the temperature. The mean is over the queries with a positive; the loss is 0 if no query has one. A pair
//! that a miner chooses several times counts once. The loss is smooth.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, log_sum_exp, mask_above_zero,
    mask_exponents, query_mean_weights,
};
use crate::geometry::Space;
use crate::miners::Miner;
use crate::{Checked, Result};

/// Settings of [`SupCon`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SupConConfig {
    /// T > 0. Default 0.1.
    pub temperature: f64,
    /// Which pairs count. Default all.
    pub miner: Miner,
}

impl Default for SupConConfig {
    fn default() -> Self {
        Self { temperature: 0.1, miner: Miner::default() }
    }
}

impl BuildLoss for SupConConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "sup_con",
        title: "SupCon",
        family: Family::Pairs,
        summary: "cross-entropy of each positive against all items",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["khosla2020", "musgrave2020library"],
        complete: true,
        preset: None,
    };
    type Loss = SupCon;

    fn init(&self, _: &LossContext) -> Result<SupCon> {
        above_zero("sup_con", "temperature", self.temperature, 0.1)?;
        Ok(SupCon { temperature: self.temperature, miner: self.miner.checked()? })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct SupCon {
    #[module(skip)]
    temperature: f64,
    #[module(skip)]
    miner: Checked<Miner>,
}

impl Objective for SupCon {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let exponents = batch.cosines() * (1.0 / self.temperature);
        let [positives, negatives] = batch.mined_pairs(&self.miner).map(|counts| mask_above_zero(&counts));
        let all = log_sum_exp(mask_exponents(exponents.clone(), positives.clone() + negatives));
        ((all - exponents) * query_mean_weights(positives)).sum()
    }
}
