//! The H-AP surrogate of HAPPIER: a smooth upper bound of 1 − H-AP (Ramzi et al., *Hierarchical Average Precision
//! Training for Pertinent Image Retrieval*, ECCV 2022).
//!
//! For a query with scores s and shared levels l over the items of the batch (eq. 2–3),
//!
//! ```text
//! H-AP = (1 / Σ_k rel_k) Σ_k H-rank(k) / rank(k)          k: items with l_k > 0
//! rank(k)   = 1     + Σ_{j≠k} H(s_j − s_k)
//! H-rank(k) = rel_k + Σ_{j≠k} H(s_j − s_k) · min(rel_j, rel_k)
//! ```
//!
//! with H(0) = 1, as in the published code. The surrogate replaces H by [`UpperStep`] in rank(k) for the items j that
//! belong below k (l_j < l_k). H-rank(k) has two forms:
//!
//! - `smooth_rank = false`: H for all items, so that the numerator has no gradient;
//! - `smooth_rank = true`: [`LowerStep`] for the items that belong above k (l_j > l_k), and H for the others.
//!
//! # Text and code
//!
//! The defaults are the published recipes; the preset `hap_surrogate_text` is the paper's text:
//!
//! | setting | code | text |
//! |---|---|---|
//! | `smooth_rank` | a constant H-rank | a smooth one (eq. 43) |
//! | `upper_step.offset` | 1.44, a small jump at δ | continuous at δ (eq. 44): σ(5) + ½ = 1.4933 with its τ and δ |
//! | `lower_step.start_at_zero` | not used; where the code turns the smooth H-rank on, an exact tie counts 0 | an exact tie counts ½ (eq. 43) |
//!
//! The constant H-rank is the default because the smooth one has a defect. Below 0, [`LowerStep`] falls without limit, by
//! `leak` per unit of score. An item that is ranked above many items of finer levels then has a negative H-rank and a
//! negative quotient. The loss falls as the item's rank grows, so strangers are pulled up past it. The value stays an
//! upper bound of 1 − H-AP. A smaller `leak` makes such items rarer; with a constant H-rank there are none. The page of
//! [`happier`](super::happier) has the scores of both. The offset makes no difference (see
//! [`sup_ap`](mod@super::sup_ap)).
//!
//! Supplementary A.3 writes the sums with smooth steps over all positives and over all items. That is a misprint: the
//! sums that they replace run only over the items that belong above k, or below it.
//!
//! Items belong above or below k by their *level*, as in the published code and in supplementary A.3. The main text
//! compares relevances instead (eq. 5): `order = "relevances"`. The two differ only where the relevance does not grow
//! with the level. By eq. 4 a level with many items can have a lower relevance than a coarser one with few. The pages of
//! [`UpperStep`] and [`LowerStep`] say where they differ from the paper.
//!
//! Autodiff would store several B×B×B tensors. The gradient is computed in closed form, with O(B²) memory; on the CPU from
//! sorted scores, see [`smooth_ranks`](crate::smooth_ranks).
//!
//! [`UpperStep`]: crate::steps::UpperStep
//! [`LowerStep`]: crate::steps::LowerStep

use burn::module::Module;
use burn::tensor::Tensor;

use super::ranks::{
    Block, Counts, are_sorted, counts, reference_items, shared_levels, shared_places, smooth_rank_loss,
    weighted_quotients,
};
use super::{Batch, BuildLoss, Family, LossContext, LossEntry, Objective, matrix};
use crate::Result;
use crate::geometry::Space;
use crate::host::is_cpu;
use crate::query_losses::CheckedHapSurrogate;
use crate::smooth_ranks::{Places, RankSteps, SmoothRanks};
use crate::steps::tensors::heaviside;

pub use crate::query_losses::{HapSurrogateConfig, ItemOrder};

impl BuildLoss for HapSurrogateConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hap_surrogate",
        title: "H-AP surrogate",
        family: Family::AveragePrecision,
        summary: "a smooth upper bound of 1 − H-AP over all levels",
        optimises: "h_ap",
        spaces: &[Space::Cosine],
        sources: &["ramzi2022"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "hap_surrogate_text",
        title: "H-AP surrogate (text)",
        summary: "the H-AP surrogate with the smooth H-rank of the paper's text",
        preset: Some(
            r#"{ "kind": "hap_surrogate", "smooth_rank": true,
                 "upper_step": { "offset": 1.4933071490757153 }, "lower_step": { "start_at_zero": true } }"#,
        ),
        ..Self::ENTRY
    }];
    type Loss = HapSurrogate;

    fn init(&self, context: &LossContext) -> Result<HapSurrogate> {
        let settings = self.checked_for(context.classes)?;
        let ranks = SmoothRanks::new(RankSteps::Bounds {
            upper: settings.upper_step.clone(),
            lower: settings.smooth_rank.then(|| settings.lower_step.clone()),
        });
        Ok(HapSurrogate { settings, ranks })
    }
}

/// The surrogate; it has no parameters.
#[derive(Module, Debug)]
pub struct HapSurrogate {
    #[module(skip)]
    settings: CheckedHapSurrogate,
    #[module(skip)]
    ranks: SmoothRanks,
}

impl Objective for HapSurrogate {
    /// The mean over queries of 1 − H-AP, smoothed; shape `[1]`.
    ///
    /// Without a reference set a query ranks itself as one of its positives, as in the paper, so every query has a
    /// positive. Against a reference set, a query without a positive is left out of the mean; the loss is 0 if no query
    /// has one.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        if !are_sorted(batch) {
            return self.compare(batch);
        }
        let items = batch.items();
        let depth = items.labels.levels();
        let places = shared_places(batch.labels, items.labels);
        self.loss_by_sorting(batch.embeddings.clone(), reference_items(batch), depth, places)
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        Some(self.compare(batch))
    }
}

impl HapSurrogate {
    /// In tensor operations: O(B² · K) for K positives of a query.
    fn compare(&self, batch: &Batch) -> Tensor<1> {
        let items = batch.items();
        let shared = shared_levels(batch.labels, items.labels);
        self.loss_by_comparing(batch.embeddings.clone(), items.embeddings, items.labels.levels(), &shared)
    }

    /// As [`Objective::forward`], from the shared levels (0 … `depth`) of queries and items, [Q, N] row by row, instead
    /// of labels.
    ///
    /// # Panics
    ///
    /// If there are no queries or no items.
    pub fn forward_shared(
        &self,
        queries: Tensor<2>,
        items: Tensor<2>,
        depth: usize,
        shared: &[usize],
    ) -> Tensor<1> {
        if !is_cpu(&queries.device()) {
            return self.loss_by_comparing(queries, items, depth, shared);
        }
        let [size, _] = items.dims();
        self.loss_by_sorting(queries, Some(items), depth, |query, levels| {
            levels.extend(shared[query * size..][..size].iter().map(|&level| level as u32));
        })
    }

    /// On the CPU. `levels` fills in the shared levels of a query.
    fn loss_by_sorting(
        &self,
        queries: Tensor<2>,
        items: Option<Tensor<2>>,
        depth: usize,
        levels: impl Fn(usize, &mut Vec<u32>) + Sync,
    ) -> Tensor<1> {
        // Items without gradient are compared as a set of their own.
        let items = match self.settings.stop_gradient {
            true => Some(items.unwrap_or_else(|| queries.clone()).without_autodiff()),
            false => items,
        };
        smooth_rank_loss(queries, items, &self.ranks, |query, Places { of_items, relevances }| {
            levels(query, of_items);
            relevances.extend(self.settings.relevance.by_level(&counts(of_items, depth)));
            if self.settings.order == ItemOrder::Relevances {
                let by_level = relevances.clone();
                relevances.sort_by(f64::total_cmp);
                relevances.dedup();
                let place = |rel: &f64| relevances.partition_point(|other| other < rel) as u32;
                let places: Vec<u32> = by_level.iter().map(place).collect();
                let ranked = of_items.iter_mut().filter(|item| **item != Places::LEFT_OUT);
                ranked.for_each(|item| *item = places[*item as usize]);
            }
        })
    }

    /// In tensor operations.
    fn loss_by_comparing(
        &self,
        queries: Tensor<2>,
        items: Tensor<2>,
        depth: usize,
        shared: &[usize],
    ) -> Tensor<1> {
        let items = if self.settings.stop_gradient { items.detach() } else { items };
        let scores = queries.matmul(items.transpose());
        let [queries, size] = scores.dims();

        let mut relevances = Vec::with_capacity(queries * size);
        let mut weights = Vec::with_capacity(queries * size);
        let mut counted = 0_u32;
        for levels in shared.chunks(size) {
            let mut counts = vec![0; depth + 1];
            levels.iter().for_each(|&level| counts[level] += 1);
            let by_level = self.settings.relevance.by_level(&counts);
            let total: f64 = levels.iter().map(|&level| by_level[level]).sum();
            let weight = if total > 0.0 { 1.0 / total } else { 0.0 };
            relevances.extend(levels.iter().map(|&level| by_level[level]));
            weights.extend(levels.iter().map(|&level| if level > 0 { weight } else { 0.0 }));
            counted += u32::from(total > 0.0);
        }
        let constant = |values: Vec<f64>| matrix(values, [queries, size], &scores);
        let relevances = constant(relevances);
        let order = match self.settings.order {
            ItemOrder::Levels => constant(shared.iter().map(|&level| level as f64).collect()),
            ItemOrder::Relevances => relevances.clone(),
        };
        weights.iter_mut().for_each(|weight| *weight /= f64::from(counted.max(1)));

        let h_ap = weighted_quotients(scores, weights, |t, block| self.count(t, block, &order, &relevances));
        -h_ap + f64::from(counted.min(1))
    }

    /// The H-rank and the rank of every item. `order` and `relevances` are [Q, N]; an item belongs above those of lower
    /// `order`.
    fn count(&self, t: Tensor<3>, block: &Block, order: &Tensor<2>, relevances: &Tensor<2>) -> Counts {
        let below = block.along_j(order).lower(block.along_k(order));
        let above = block.along_j(order).greater(block.along_k(order));
        let shape = t.dims();
        let shared =
            block.along_k(relevances).expand(shape).min_pair(block.along_j(relevances).expand(shape));
        // At j = k the step is H(0) = 1: it supplies the 1 of the rank and the rel_k of the H-rank.
        let hard = heaviside(t.clone());

        let upper = self.settings.upper_step.apply(t.clone());
        let rank = hard.clone().mask_where(below.clone(), upper.value).sum_dim(2);
        let rank_slope = upper.derivative.mask_fill(below.bool_not(), 0.0);
        if !self.settings.smooth_rank {
            return Counts { above: (hard * shared).sum_dim(2), above_slope: None, rank, rank_slope };
        }
        let lower = self.settings.lower_step.apply(t);
        let step = hard.mask_where(above.clone(), lower.value);
        let step_slope = lower.derivative.mask_fill(above.bool_not(), 0.0);
        Counts {
            above: (step * shared.clone()).sum_dim(2),
            above_slope: Some(step_slope * shared),
            rank,
            rank_slope,
        }
    }
}
