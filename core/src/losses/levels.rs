//! Any loss on every level: L = Σ_l w_l · L(labels of levels 1 … l), l = 1 … L.
//!
//! The copy for level l sees a taxonomy that ends at level l. With a loss of fine labels these are the Σ baselines of
//! HAPPIER's tables (ΣTL, ΣNSM, …). Each level has its own copy of the loss with its own proxies.
//!
//! HAPPIER's tables call the triplet loss TL_SH, cite Wu et al. (*Sampling Matters*, ICCV 2017) for it, and do not say
//! what SH is. The preset `sum_triplet` reads it as semi-hard negatives, which Wu et al. compare with. For their own
//! distance-weighted sampling give `loss = { kind = "triplet_distance_weighted" }`.

use burn::module::Module;
use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Draws, Family, Loss, LossConfig, LossContext, LossEntry, Objective, Reference,
};
use crate::geometry::Space;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of [`Levels`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LevelsConfig {
    /// The loss of each level.
    pub loss: Box<LossConfig>,
    /// w_1 … w_L, coarse → fine, each ≥ 0, not all 0. Default: 1 each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

impl BuildLoss for LevelsConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "levels",
        title: "Σ over levels",
        family: Family::Combinations,
        summary: "any loss, once for each level of the taxonomy",
        optimises: "h_ap",
        spaces: &[Space::Cosine, Space::Poincare, Space::Binary],
        sources: &["ramzi2022"],
        complete: false,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "sum_norm_softmax",
            title: "ΣNSM",
            family: Family::Hierarchical,
            summary: "NormSoftmax on every level",
            spaces: &[Space::Cosine],
            sources: &["zhai2019", "ramzi2022"],
            complete: true,
            preset: Some(r#"{ "kind": "levels", "loss": { "kind": "norm_softmax" } }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "sum_proxy_anchor",
            title: "ΣPA",
            family: Family::Hierarchical,
            summary: "Proxy-Anchor on every level",
            spaces: &[Space::Cosine],
            sources: &["kim2020", "ramzi2022"],
            complete: true,
            preset: Some(r#"{ "kind": "levels", "loss": { "kind": "proxy_anchor" } }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "sum_proxy_nca",
            title: "ΣNCA",
            family: Family::Hierarchical,
            summary: "ProxyNCA++ on every level",
            spaces: &[Space::Cosine],
            sources: &["teh2020", "ramzi2022"],
            complete: true,
            preset: Some(r#"{ "kind": "levels", "loss": { "kind": "proxy_nca_plus_plus" } }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "sum_triplet",
            title: "ΣTL",
            family: Family::Hierarchical,
            summary: "the triplet loss with semi-hard negatives on every level",
            spaces: &[Space::Cosine],
            sources: &["schroff2015", "wu2017", "ramzi2022"],
            complete: true,
            preset: Some(
                r#"{ "kind": "levels", "loss": {
                    "kind": "triplet_margin",
                    "miner": { "kind": "triplet_margin_miner", "type_of_triplets": "semihard" }
                } }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = Levels;

    fn init(&self, context: &LossContext) -> Result<Levels> {
        let depth = context.levels();
        let weights = level_weights(self.weights.as_deref(), depth)?;
        let level = |level: usize| {
            let classes = context.classes.up_to(level).classes();
            self.loss.init(&LossContext { classes: &classes, ..context.part(level) })
        };
        Ok(Levels { levels: (1..=depth).map(level).collect::<Result<_>>()?, weights })
    }
}

/// One weight for each level, coarse → fine; 1 each if none are given.
pub(super) fn level_weights(given: Option<&[f64]>, depth: usize) -> Result<Vec<f64>> {
    let weights = given.map_or_else(|| vec![1.0; depth], <[f64]>::to_vec);
    if weights.len() != depth {
        return Err(Error::new(
            Kind::Config,
            format!("{} weights were given for a loss over {depth} levels", weights.len()),
            "give one weight for each level, coarse to fine",
        ));
    }
    let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
    if weights.iter().any(|&weight| weight < 0.0) || !(sum > 0.0 && sum.is_finite()) {
        return Err(Error::new(
            Kind::Config,
            format!("the weights of the levels are {weights:?}"),
            "give finite numbers of at least 0, with at least one above 0",
        ));
    }
    Ok(weights)
}

/// One loss for each level, with its weight.
#[derive(Module, Debug)]
pub struct Levels {
    levels: Vec<Loss>,
    #[module(skip)]
    weights: Vec<f64>,
}

impl Levels {
    fn for_each_level(&mut self, labels: &Labels, mut update: impl FnMut(&mut Loss, &Labels)) {
        for (loss, level) in self.levels.iter_mut().zip(1..) {
            update(loss, &labels.up_to(level));
        }
    }
}

impl Objective for Levels {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let level = |level: usize| {
            let labels = batch.labels.up_to(level);
            let reference_labels = batch.reference.as_ref().map(|reference| reference.labels.up_to(level));
            let mut level_batch = Batch { labels: &labels, reference: None, ..batch.clone() };
            if let (Some(reference), Some(labels)) = (&batch.reference, &reference_labels) {
                let Reference { embeddings, own, .. } = reference.clone();
                level_batch.reference = Some(Reference { embeddings, labels, own });
            }
            self.levels[level - 1].forward(&level_batch) * self.weights[level - 1]
        };
        (1..=self.levels.len())
            .map(level)
            .reduce(|sum, level| sum + level)
            .expect("a taxonomy has at least one level")
    }

    fn before_step(&mut self, draws: Draws) {
        self.levels.iter_mut().for_each(|level| level.before_step(draws));
    }

    fn after_step(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.for_each_level(labels, |loss, labels| loss.after_step(embeddings.clone(), labels));
    }

    fn needs_training_set(&self, epoch: u64) -> bool {
        self.levels.iter().any(|loss| loss.needs_training_set(epoch))
    }

    fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.for_each_level(labels, |loss, labels| loss.before_epoch(embeddings.clone(), labels));
    }
}
