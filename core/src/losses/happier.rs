//! HAPPIER: the H-AP surrogate, kept from pulling fine classes apart too little by a clustering loss.
//!
//! L = (1 − λ) · L_H-AP + λ · L_clust (HAPPIER eq. 8), with [`hap_surrogate`](super::hap_surrogate) and, over the
//! fine classes, [`norm_softmax`](super::norm_softmax).

use serde::{Deserialize, Serialize};

use super::{Entry, Family, HapSurrogateConfig, Loss, LossSettings, NormSoftmaxConfig, Setting, WeightedSum};
use crate::geometry::Space;
use crate::{Error, Kind, Result};

/// Settings of HAPPIER.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HappierConfig {
    /// λ in 0 … 1. Default 0.1.
    pub lambda: f64,
    /// The surrogate.
    pub surrogate: HapSurrogateConfig,
    /// The clustering loss.
    pub clustering: NormSoftmaxConfig,
}

impl Default for HappierConfig {
    fn default() -> Self {
        Self { lambda: 0.1, surrogate: Default::default(), clustering: Default::default() }
    }
}

impl LossSettings for HappierConfig {
    const ENTRY: Entry = Entry {
        name: "happier",
        title: "HAPPIER",
        family: Family::Hierarchical,
        summary: "the H-AP surrogate on all levels with a clustering loss on the fine classes",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2022"],
        complete: true,
        preset: None,
    };
    type Loss = WeightedSum;

    fn init(&self, setting: &Setting) -> Result<WeightedSum> {
        let lambda = self.lambda;
        if !(0.0..=1.0).contains(&lambda) {
            return Err(Error::new(
                Kind::Config,
                format!("lambda of the HAPPIER loss is {lambda}"),
                "give a number from 0 (only the surrogate) to 1 (only the clustering loss)",
            ));
        }
        let surrogate = Loss::HapSurrogate(self.surrogate.init(setting)?);
        let clustering = Loss::NormSoftmax(self.clustering.init(setting)?);
        Ok(WeightedSum::new(vec![(1.0 - lambda, surrogate), (lambda, clustering)]))
    }
}
