//! Blackbox-AP: the true AP, with a gradient from a second ranking (Rolínek et al., *Optimizing Rank-Based Metrics
//! with Blackbox Differentiation*, CVPR 2020).
//!
//! r_k is the rank of item k by decreasing score, divided by N; p_k is its rank among the positives, divided by N.
//!
//! ```text
//! L = mean over queries i of 1 − (1/|P_i|) Σ_{k∈P_i} p_k / r_k
//! ∂L/∂s := (r(s + λ g) − r(s)) / λ,        g = ∂L/∂r: g_k ∝ p_k / r_k² for positives, else 0
//! ```
//!
//! The value is piecewise constant, so its own gradient is 0. The rule above is the gradient of a piecewise linear
//! interpolation, which is coarser for a larger λ. It treats p as a constant. Before the ranking, the scores of
//! positives are lowered by α/2 and those of negatives are raised by α/2, so that the order has to hold by a margin.
//!
//! # Text and code
//!
//! `blackbox_ap` is the text. The code, `blackbox_ap_published`, multiplies each shift by |z|, z ~ N(0, 1). On drawn
//! creatures (recipe `biomorphs`, one seed) AP of species is 90.3 with the text and 87.6 with the code.
//!
//! # Queries and ties
//!
//! A query ranks itself as one of its positives, as in the published code, so every query of a batch has a positive.
//! Against a reference set, a query without a positive is left out of the mean; the loss is 0 if no query has one.
//! Ties are broken by the order of the items. Ranks are sorted on the CPU.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, matrix, not_negative,
    read_values, with_gradient,
};
use crate::Result;
use crate::geometry::Space;
use crate::random::normal;

/// Settings of [`BlackboxAp`]. The preset `blackbox_ap_published` has the random margin of the published code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BlackboxApConfig {
    /// λ > 0: how far scores move for the second ranking. Default 4.
    pub lambda: f64,
    /// α ≥ 0, the margin between positives and negatives. Default 0.02.
    pub margin: f64,
    /// Whether each pair's margin is multiplied by a draw of |N(0, 1)|. Default false.
    pub random_margin: bool,
}

impl Default for BlackboxApConfig {
    fn default() -> Self {
        Self { lambda: 4.0, margin: 0.02, random_margin: false }
    }
}

impl BuildLoss for BlackboxApConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "blackbox_ap",
        title: "Blackbox-AP",
        family: Family::AveragePrecision,
        summary: "the true 1 − AP, with a gradient from a second ranking",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["rolinek2020"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "blackbox_ap_published",
        title: "Blackbox-AP (code)",
        summary: "Blackbox-AP with the random margin of its published code",
        preset: Some(r#"{ "kind": "blackbox_ap", "random_margin": true }"#),
        ..Self::ENTRY
    }];
    type Loss = BlackboxAp;

    fn init(&self, _: &LossContext) -> Result<BlackboxAp> {
        above_zero("blackbox_ap", "lambda", self.lambda, 4.0)?;
        not_negative("blackbox_ap", "margin", self.margin, 0.02)?;
        Ok(BlackboxAp { config: self.clone() })
    }
}

/// The loss; it has no parameters.
#[derive(Module, Debug)]
pub struct BlackboxAp {
    #[module(skip)]
    config: BlackboxApConfig,
}

impl Objective for BlackboxAp {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let pairs = batch.labels.len() * batch.items().labels.len();
        let noise = if self.config.random_margin {
            let draws = normal(&mut batch.draws.stream("blackbox_ap"), pairs, 1.0);
            draws.into_iter().map(f64::from).collect()
        } else {
            vec![1.0; pairs]
        };
        self.forward_with_noise(batch, &noise)
    }
}

impl BlackboxAp {
    /// As [`Objective::forward`], with the margin of each pair multiplied by |z|. `noise` holds z, [B, N], row by row.
    pub fn forward_with_noise(&self, batch: &Batch, noise: &[f64]) -> Tensor<1> {
        let scores = batch.scores();
        let [positives, negatives] = batch.pairs_with_self();
        let [_, size] = scores.dims();
        let margin =
            matrix(noise.iter().map(|z| self.config.margin * z.abs()).collect(), scores.dims(), &scores);
        let shifted = scores.clone().without_autodiff() + margin * (negatives.clone() - 0.5);

        let positives: Vec<bool> =
            read_values(positives).into_iter().map(|positive| positive > 0.0).collect();
        let negatives: Vec<bool> =
            read_values(negatives).into_iter().map(|negative| negative > 0.0).collect();
        let counted = positives.chunks(size).filter(|row| row.contains(&true)).count().max(1);
        let (mut loss, mut gradient) = (0.0, vec![0.0; positives.len()]);
        for (row, scores) in read_values(shifted).chunks(size).enumerate() {
            // Items whose pair with the query is not decided are left out of its ranking.
            let ranked: Vec<usize> =
                (row * size..(row + 1) * size).filter(|&at| positives[at] || negatives[at]).collect();
            let scores: Vec<f64> = ranked.iter().map(|at| scores[at % size]).collect();
            let ranked_positives: Vec<bool> = ranked.iter().map(|&at| positives[at]).collect();
            let mut slopes = Vec::with_capacity(ranked.len());
            loss += self.query_loss(&scores, &ranked_positives, counted as f64, &mut slopes);
            ranked.into_iter().zip(slopes).for_each(|(at, slope)| gradient[at] = slope);
        }
        let gradient = matrix(gradient, scores.dims(), &scores);
        let value = matrix(vec![loss], [1, 1], &scores).reshape([1]);
        with_gradient(scores, value, gradient)
    }

    /// The part of the mean that one of `queries` queries adds. Appends its gradient, by the rule above, to `gradient`.
    fn query_loss(&self, scores: &[f64], positives: &[bool], queries: f64, gradient: &mut Vec<f64>) -> f64 {
        let count = positives.iter().filter(|&&positive| positive).count();
        let weight = if count > 0 { 1.0 / (count as f64 * queries) } else { 0.0 };
        let ranks = relative_ranks(scores);
        let size = scores.len() as f64;
        let mut ranked_positives: Vec<usize> = (0..scores.len()).filter(|&k| positives[k]).collect();
        ranked_positives.sort_by(|&a, &b| ranks[a].total_cmp(&ranks[b]));

        let mut loss = 0.0;
        let mut moved_scores = scores.to_vec();
        for (&k, place) in ranked_positives.iter().zip(1_u32..) {
            let rank_among_positives = f64::from(place) / size;
            loss += weight * (1.0 - rank_among_positives / ranks[k]);
            moved_scores[k] += self.config.lambda * weight * rank_among_positives / (ranks[k] * ranks[k]);
        }
        let moved_ranks = relative_ranks(&moved_scores);
        gradient.extend(
            ranks.iter().zip(moved_ranks).map(|(before, after)| (after - before) / self.config.lambda),
        );
        loss
    }
}

/// The rank of each item by decreasing score, 1 … N, over N.
fn relative_ranks(scores: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut ranks = vec![0.0; scores.len()];
    for (place, item) in order.into_iter().enumerate() {
        ranks[item] = (place + 1) as f64 / scores.len() as f64;
    }
    ranks
}
