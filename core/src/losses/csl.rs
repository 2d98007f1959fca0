//! Cross-scale learning: an item is closer to the proxy of its fine class than to any proxy outside its class at each
//! level, by a margin that is larger for coarser levels.
//!
//! There is one proxy for each fine class, of unit length ŵ_p; y = y_i is the item's class. N_il are the proxies whose
//! label at level l is not the item's (Sun et al., CVPR 2021, in the form of HAPPIER's code):
//!
//! ```text
//! L_l = (1/B) Σ_i log(1 + Σ_{p ∈ N_il} e^{s(x_i·ŵ_p − x_i·ŵ_y + m_l)})
//! L   = Σ_l L_l
//! ```
//!
//! The paper's authors published no code. The sum over proxies replaces the paper's search for the hardest negative.
//! A coarser level has fewer proxies outside the item's class, so its margin can be larger.
//!
//! Embeddings are [B, d] and are not normalised, proxies are [C, d]. A level with a single class gives 0. Ties are not
//! special: the loss is smooth.

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, log_one_plus_sum_exp, matrix,
    one_hot,
};
use crate::geometry::{Space, normalise};
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of [`Csl`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CslConfig {
    /// s > 0, the scale of the cosines. Default 32.
    pub scale: f64,
    /// m_1 … m_L, coarse → fine, each ≥ 0. Default, as in HAPPIER's recipes: evenly from 0.45 down to 0.25 for two or
    /// three levels, and from 0.75 down to 0.15 for more; 0.25 for a single level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margins: Option<Vec<f64>>,
    /// Whether to take the mean over levels instead of the sum. Default false.
    pub average_levels: bool,
}

impl Default for CslConfig {
    fn default() -> Self {
        Self { scale: 32.0, margins: None, average_levels: false }
    }
}

/// The margins of a taxonomy with `levels` levels, coarse → fine.
fn default_margins(levels: usize) -> Vec<f64> {
    let (coarsest, finest) = if levels > 3 { (0.75, 0.15) } else { (0.45, 0.25) };
    let step = (coarsest - finest) / (levels - 1).max(1) as f64;
    (0..levels).rev().map(|above_finest| finest + step * above_finest as f64).collect()
}

/// One proxy for each fine class, with its label path.
#[derive(Module, Debug)]
pub struct Csl {
    /// [C, d], of any length.
    pub proxies: Param<Tensor<2>>,
    /// [C, L].
    #[module(skip)]
    classes: Labels,
    #[module(skip)]
    margins: Vec<f64>,
    #[module(skip)]
    config: CslConfig,
}

impl BuildLoss for CslConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "csl",
        title: "CSL",
        family: Family::Hierarchical,
        summary: "closer to the proxy of the item's fine class than to all others, with a margin for each level",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["sun2021", "ramzi2022"],
        complete: true,
        preset: None,
    };
    type Loss = Csl;

    /// Proxies come from U(−1/√d, 1/√d).
    fn init(&self, context: &LossContext) -> Result<Csl> {
        above_zero("csl", "scale", self.scale, 32.0)?;
        let levels = context.levels();
        let margins = self.margins.clone().unwrap_or_else(|| default_margins(levels));
        let in_range = |margin: &f64| *margin >= 0.0 && margin.is_finite();
        if margins.len() != levels || !margins.iter().all(in_range) {
            return Err(Error::new(
                Kind::Config,
                format!("the margins of csl are {margins:?}, but there are {levels} levels"),
                "give one finite number of at least 0 for each level, coarse to fine",
            ));
        }
        let proxies = context.class_proxies(1);
        Ok(Csl { proxies, classes: context.fine_paths(), margins, config: self.clone() })
    }
}

impl Csl {
    /// L_1 … L_L, coarse → fine.
    pub fn levels(&self, embeddings: Tensor<2>, labels: &Labels) -> Vec<Tensor<1>> {
        let (items, scale) = (labels.len(), self.config.scale);
        let scores = embeddings.matmul(normalise(self.proxies.val()).transpose());
        let shape = scores.dims();
        let own = one_hot(labels, shape[1], &scores);
        let lead = scores.clone() - (scores * own).sum_dim(1);
        let level = |(&margin, level): (&f64, usize)| {
            let (item_classes, proxy_classes) = (labels.column(level), self.classes.column(level));
            let outside = item_classes
                .iter()
                .flat_map(|class| proxy_classes.iter().map(move |other| f64::from(u8::from(class != other))));
            let outside = matrix(outside.collect(), shape, &lead);
            log_one_plus_sum_exp((lead.clone() + margin) * scale, outside).sum() * (1.0 / items as f64)
        };
        self.margins.iter().zip(1..).map(level).collect()
    }
}

impl Objective for Csl {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        batch.on_known(|batch| {
            let levels = self.levels(batch.embeddings.clone(), batch.labels);
            let share = if self.config.average_levels { 1.0 / levels.len() as f64 } else { 1.0 };
            levels.into_iter().reduce(|sum, level| sum + level).expect("a taxonomy has at least one level")
                * share
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn default_margins_are_those_of_happiers_recipes() {
        let rounded =
            |levels| default_margins(levels).iter().map(|m| (m * 100.0).round()).collect::<Vec<_>>();
        assert_eq!(rounded(1), [25.0]);
        assert_eq!(rounded(2), [45.0, 25.0]);
        assert_eq!(rounded(3), [45.0, 35.0, 25.0]);
        assert_eq!(rounded(7), [75.0, 65.0, 55.0, 45.0, 35.0, 25.0, 15.0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let error = refusal(&CslConfig { margins: Some(vec![0.3]), ..Default::default() });
        assert_eq!(error.message(), "the margins of csl are [0.3], but there are 2 levels");
        let error = refusal(&CslConfig { margins: Some(vec![0.3, f64::NAN]), ..Default::default() });
        assert!(error.message().contains("NaN"), "{error}");
        let error = refusal(&CslConfig { scale: 0.0, ..Default::default() });
        assert_eq!(error.message(), "the scale of csl is 0");
    }
}
