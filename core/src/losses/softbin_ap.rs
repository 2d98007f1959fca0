//! SoftBin-AP, AP_Q: average precision of a ranking in bins of similarity (Revaud et al., *Learning with Average
//! Precision: Training Image Retrieval with a Listwise Loss*, ICCV 2019).
//!
//! M bins are centred at equal steps from similarity 1 down to `lowest`. A soft histogram counts the positives h⁺ and
//! all items h in them:
//!
//! ```text
//! L = mean over queries i of 1 − (1/|P_i|) Σ_b h⁺_b H⁺_b / H_b
//! ```
//!
//! Items beyond the first or the last centre count in that bin. A query ranks itself as one of its positives, as in
//! the published code; it is always in the first bin and has no gradient there, because its similarity to itself is
//! fixed. So every query of a batch has a positive. Against a reference set, a query without a positive is left out of
//! the mean; the loss is 0 if no query has one. The gradient is that of the equation.
//!
//! # Text and code
//!
//! `softbin_ap` is the text: 20 bins over scores from −1 to 1. `softbin_ap_published` is the code: 25 bins over scores from
//! 0 to 1. On drawn creatures (recipe `biomorphs`, one seed) AP of species is 88.4 with the text and 88.2 with the code.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::histogram::{cumulative, histograms, precision};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, query_mean_weights, within};
use crate::geometry::Space;
use crate::{Error, Kind, Result};

/// Settings of [`SoftbinAp`]. The preset `softbin_ap_published` has those of the published code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct SoftbinApConfig {
    /// M, 2 … 1000. Default 20.
    pub bins: usize,
    /// The centre of the last bin, in −1 … 1. Default −1.
    pub lowest: f64,
    /// The precision at the items of one bin. Default: the precision down to the end of the bin.
    pub ties: BinTies,
}

/// The precision at the items of one bin, which are tied. The bin has c items and c⁺ positives; there are C and C⁺ down
/// to its end, C₋ and C⁺₋ down to its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BinTies {
    /// C⁺ / C.
    #[default]
    End,
    /// (C⁺₋ + C⁺ + 1) / (C₋ + C + 1), about the middle of the bin.
    Middle,
    /// The mean over all orders of the bin, TAP of He et al. (CVPR 2018), with an integral for the sum over its items and
    /// the published code's ρ = (c⁺ − 1) / (c − 1): (c ρ + (C⁺₋ + 1 − ρ (C₋ + 1)) ln((C + 1) / (C₋ + 1))) / c.
    /// The gradient is very large where a bin holds about one item.
    Mean,
}

impl Default for SoftbinApConfig {
    fn default() -> Self {
        Self { bins: 20, lowest: -1.0, ties: BinTies::End }
    }
}

impl BuildLoss for SoftbinApConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "softbin_ap",
        title: "SoftBin-AP",
        family: Family::AveragePrecision,
        summary: "1 − AP of a ranking in bins of similarity",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["revaud2019", "he2018"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "softbin_ap_published",
        title: "SoftBin-AP (code)",
        summary: "SoftBin-AP as in its published code: 25 bins over scores from 0 to 1",
        sources: &["revaud2019"],
        preset: Some(r#"{ "kind": "softbin_ap", "bins": 25, "lowest": 0.0 }"#),
        ..Self::ENTRY
    }];
    type Loss = SoftbinAp;

    fn init(&self, _: &LossContext) -> Result<SoftbinAp> {
        within("softbin_ap", "number of bins", self.bins, 2..=1000, 20)?;
        if !(-1.0..1.0).contains(&self.lowest) {
            return Err(Error::new(
                Kind::Config,
                format!("lowest of softbin_ap is {}", self.lowest),
                "set it to at least −1 and below 1; −1 and 0 are usual",
            ));
        }
        Ok(SoftbinAp { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct SoftbinAp {
    #[module(skip)]
    config: SoftbinApConfig,
}

impl Objective for SoftbinAp {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let SoftbinApConfig { bins, lowest, .. } = self.config;
        let [class_mates, _] = batch.pairs();
        let [positives, negatives] = batch.pairs_with_self();
        let own = (positives.clone() - class_mates).bool();
        let weights = query_mean_weights(positives.clone());

        let scores = batch.scores();
        let last = (bins - 1) as f64;
        let positions = ((-scores + 1.0) * (last / (1.0 - lowest))).clamp(0.0, last).mask_fill(own, 0.0);
        let all = positives.clone() + negatives;
        let [weight, positive, all] = histograms(&positions, [&weights, &positives, &all], bins);
        weights.sum() - (weight * self.precision(positive, all)).sum()
    }
}

impl SoftbinAp {
    /// The precision at the items of each bin, from the positives and the items in it; all are [Q, bins].
    fn precision(&self, positives: Tensor<2>, all: Tensor<2>) -> Tensor<2> {
        if self.config.ties == BinTies::End {
            return precision(positives, all);
        }
        let before_and_after = |bins: Tensor<2>| {
            let end = cumulative(bins.clone());
            (end.clone() - bins, end)
        };
        let (positives_before, positives_after) = before_and_after(positives.clone());
        let (before, after) = before_and_after(all.clone());
        if self.config.ties == BinTies::Middle {
            return (positives_before + positives_after + 1.0) / (before + after + 1.0);
        }
        let without_one = |count: &Tensor<2>| (count.clone() - 1.0).clamp_min(0.0);
        let ratio = without_one(&positives) / (without_one(&all) + 1e-8);
        let ends = ((after + 1.0) / (before.clone() + 1.0)).log();
        let sum = all.clone() * ratio.clone() + (positives_before + 1.0 - ratio * (before + 1.0)) * ends;
        sum / (all + 1e-8)
    }
}
