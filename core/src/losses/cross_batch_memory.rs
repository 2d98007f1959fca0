//! Cross-batch memory, XBM: compares a batch with the embeddings of the previous batches (Wang et al., *Cross-Batch
//! Memory for Embedding Learning*, CVPR 2020, algorithm 1).
//!
//! L = L(batch against batch and memory) + w · L(batch against itself)
//!
//! for any loss of pairs or rankings, in the space of that loss. The memory holds the last `size` embeddings before the
//! batch; the paper's memory, and its size, include the batch. Neither the memory nor the copy of the batch beside it
//! has a gradient: only queries are moved. Embeddings change fast in the first `start` steps. Until then the memory is
//! filled but not used, and the batch is compared with itself alone.
//!
//! # Text and code
//!
//! The published code, and ROADMAP's, adds the loss of the batch itself, w = 1, and its `start` is 2000: the defaults. In
//! the paper w = 0 and `start` is 1000: the preset `cross_batch_memory_text`. On drawn creatures (recipe `biomorphs`, one
//! seed, with the same start) AP of species is 76.5 with w = 1 and 65.9 with w = 0.
//!
//! # Shapes
//!
//! The memory is [size, d], newest first, with its labels [size, L], which are −1 in rows that are not filled yet.
//! Both are parameters without gradient: a checkpoint saves them and no optimiser moves them.

use burn::module::{Module, Param, ParamId};
use burn::tensor::{Int, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Draws, Family, Loss, LossConfig, LossContext, LossEntry, Objective, PairConfig,
    Reference, buffer, not_negative, replace_buffer, within,
};
use crate::geometry::Space;
use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// Settings of [`CrossBatchMemory`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CrossBatchMemoryConfig {
    /// The loss of pairs, triplets or rankings, or a combination of such losses. Default: `pair`.
    pub loss: Box<LossConfig>,
    /// The number of embeddings in the memory, beside the batch, 1 … 2²⁴. Default 8192.
    pub size: usize,
    /// The first step at which the batch is compared with the memory. Default 2000.
    pub start: u64,
    /// w ≥ 0, the weight of the batch against itself. Default 1.
    pub batch_weight: f64,
}

impl Default for CrossBatchMemoryConfig {
    fn default() -> Self {
        let loss = Box::new(LossConfig::Pair(PairConfig::default()));
        Self { loss, size: 8192, start: 2000, batch_weight: 1.0 }
    }
}

impl BuildLoss for CrossBatchMemoryConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "cross_batch_memory",
        title: "XBM",
        family: Family::Combinations,
        summary: "any loss of pairs or rankings, also against the embeddings of previous batches",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["wang2020"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[LossEntry {
        name: "cross_batch_memory_text",
        title: "XBM (text)",
        summary: "XBM as in the paper's text, without the loss of the batch itself",
        preset: Some(r#"{ "kind": "cross_batch_memory", "start": 1000, "batch_weight": 0.0 }"#),
        ..Self::ENTRY
    }];
    type Loss = CrossBatchMemory;

    fn init(&self, context: &LossContext) -> Result<CrossBatchMemory> {
        within("cross_batch_memory", "size", self.size, 1..=1 << 24, 8192)?;
        not_negative("cross_batch_memory", "batch_weight", self.batch_weight, 1.0)?;
        if let Some(name) = loss_without_reference(&self.loss) {
            return Err(Error::new(
                Kind::Config,
                format!("the loss {name} compares no pairs of items, so it cannot use a memory of items"),
                "give cross_batch_memory a loss of pairs, triplets or rankings, and add the others in a `sum`",
            ));
        }
        let labels = TensorData::new(vec![-1; self.size * context.levels()], [self.size, context.levels()]);
        let embeddings = Tensor::zeros([self.size, context.dimension], context.device);
        Ok(CrossBatchMemory {
            loss: vec![self.loss.init(context)?],
            embeddings: buffer(embeddings),
            labels: Param::initialized(ParamId::new(), Tensor::from_data(labels, context.device)),
            start: self.start,
            batch_weight: self.batch_weight,
        })
    }
}

/// The name of the loss, or of a part of it, if that does not use a reference set.
fn loss_without_reference(loss: &LossConfig) -> Option<&'static str> {
    match loss {
        LossConfig::Sum(sum) => sum.terms.iter().find_map(|term| loss_without_reference(&term.loss)),
        LossConfig::Levels(levels) => loss_without_reference(&levels.loss),
        LossConfig::HyperbolicCrossEntropy(_)
        | LossConfig::HyperbolicMultiSimilarity(_)
        | LossConfig::Dpsh(_)
        | LossConfig::Dtsh(_) => None,
        other => {
            let entry = other.entry();
            let compares =
                matches!(entry.family, Family::AveragePrecision | Family::Decomposability | Family::Pairs);
            (!compares).then_some(entry.name)
        }
    }
}

/// A loss with its memory.
#[derive(Module, Debug)]
pub struct CrossBatchMemory {
    /// One loss, in a vector because a module cannot hold a box.
    loss: Vec<Loss>,
    /// [size, d], newest first.
    embeddings: Param<Tensor<2>>,
    /// [size, L], −1 in rows that are not filled yet.
    labels: Param<Tensor<2, Int>>,
    #[module(skip)]
    start: u64,
    #[module(skip)]
    batch_weight: f64,
}

impl CrossBatchMemory {
    /// The embeddings and labels of the batch, followed by those of the memory, newest first.
    fn with_memory(&self, items: &Reference) -> (Tensor<2>, Labels) {
        let remembered = self.labels.val().into_data().convert::<i64>();
        let remembered = remembered.try_to_vec::<i64>().expect("it was converted to i64");
        // Rows at the end that are not filled yet hold −1, which is no u32.
        let remembered = remembered.into_iter().map_while(|id| u32::try_from(id).ok());
        let levels = items.labels.levels();
        let ids: Vec<u32> = items.labels.ids().iter().copied().chain(remembered).collect();
        let filled = ids.len() / levels - items.labels.len();

        let batch = items.embeddings.clone().without_autodiff();
        let embeddings = match filled {
            0 => batch,
            _ => Tensor::cat(vec![batch, self.embeddings.val().without_autodiff().slice(0..filled)], 0),
        };
        (embeddings, Labels::new(levels, ids).expect("the memory holds whole rows"))
    }
}

impl Objective for CrossBatchMemory {
    /// The batch must have the levels that the loss was made for.
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let [loss] = self.loss.as_slice() else { unreachable!("`init` puts one loss there") };
        if batch.draws.step < self.start {
            return loss.forward(batch);
        }
        let items = batch.items();
        let (embeddings, labels) = self.with_memory(&items);
        let reference = Reference { embeddings, labels: &labels, own: items.own };
        let remembered = loss.forward(&batch.clone().with_reference(reference));
        if self.batch_weight == 0.0 {
            return remembered;
        }
        remembered + loss.forward(batch) * self.batch_weight
    }

    fn before_step(&mut self, draws: Draws) {
        self.loss.iter_mut().for_each(|loss| loss.before_step(draws));
    }

    fn after_step(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.loss.iter_mut().for_each(|loss| loss.after_step(embeddings.clone(), labels));
        let memory = self.embeddings.val().without_autodiff();
        let [size, _] = memory.dims();
        let newest = embeddings.without_autodiff().cast(memory.dtype());
        self.embeddings =
            replace_buffer(&self.embeddings, Tensor::cat(vec![newest, memory], 0).slice(0..size));
        self.labels = self.labels.clone().map(|memory| {
            let [size, levels] = memory.dims();
            let ids = labels.ids().iter().map(|&id| i64::from(id)).collect();
            let newest = TensorData::new(ids, [labels.len(), levels]);
            let newest = Tensor::from_data(newest, (&memory.device(), memory.dtype()));
            Tensor::cat(vec![newest, memory], 0).slice(0..size)
        });
    }

    fn needs_training_set(&self, epoch: u64) -> bool {
        self.loss.iter().any(|loss| loss.needs_training_set(epoch))
    }

    fn before_epoch(&mut self, embeddings: Tensor<2>, labels: &Labels) {
        self.loss.iter_mut().for_each(|loss| loss.before_epoch(embeddings.clone(), labels));
    }
}

#[cfg(test)]
mod tests {
    use burn::store::ModuleRecord;
    use burn::tensor::Device;

    use super::*;
    use crate::geometry::Geometry;

    fn labels(fine: &[u32]) -> Labels {
        Labels::new(2, fine.iter().flat_map(|&class| [class / 2, class]).collect()).unwrap()
    }

    fn memory(config: &CrossBatchMemoryConfig, device: &Device) -> CrossBatchMemory {
        let classes = labels(&[0, 1, 2, 3]);
        config.init(&LossContext::new(&classes, 2, &Geometry::Cosine, 0, device)).unwrap()
    }

    fn value(loss: &CrossBatchMemory, batch: &Batch) -> f32 {
        loss.forward(batch).into_data().try_to_vec().unwrap()[0]
    }

    #[test]
    fn the_memory_holds_the_last_embeddings_newest_first() {
        let device = Device::flex().autodiff();
        let config = CrossBatchMemoryConfig { size: 3, start: 0, batch_weight: 0.0, ..Default::default() };
        let mut loss = memory(&config, &device);
        let plain = device.clone().without_autodiff();
        for (rows, classes) in [([[1.0, 0.0], [0.0, 1.0]], [0, 1]), ([[0.6, 0.8], [0.8, 0.6]], [2, 3])] {
            loss.after_step(Tensor::from_data(rows, &plain), &labels(&classes));
        }
        let remembered: Vec<f32> = loss.embeddings.val().into_data().try_to_vec().unwrap();
        assert_eq!(remembered, [0.6, 0.8, 0.8, 0.6, 1.0, 0.0]);
        assert_eq!(
            loss.labels.val().into_data().convert::<i64>().try_to_vec::<i64>().unwrap(),
            [1, 2, 1, 3, 0, 0]
        );

        // Only the oldest embedding has the query's class; its score is 0. The scores 0.8 and 0.6 are above the margin.
        let (query, query_labels) = (Tensor::from_data([[0.0, 1.0]], &device), labels(&[0]));
        let expected = (1.0 - 0.0) + 0.8 + 0.6;
        assert!((value(&loss, &Batch::new(query.clone(), &query_labels)) - expected).abs() < 1e-6);

        // A checkpoint restores the memory.
        let bytes = loss.clone().into_record().into_bytes().unwrap();
        let resumed =
            memory(&config, &device).try_load_record(ModuleRecord::from_bytes(bytes).unwrap()).unwrap();
        assert!((value(&resumed, &Batch::new(query, &query_labels)) - expected).abs() < 1e-6);
    }

    #[test]
    fn the_memory_is_used_from_its_start_and_the_batch_can_be_added() {
        let device = Device::flex().autodiff();
        let batch_labels = labels(&[0, 0]);
        let rows = Tensor::from_data([[1.0, 0.0], [0.0, 1.0]], &device);
        let batch = Batch::new(rows, &batch_labels);
        let late = Batch { draws: Draws { seed: 0, step: 5 }, ..batch.clone() };
        let mut loss =
            memory(&CrossBatchMemoryConfig { start: 5, batch_weight: 0.5, ..Default::default() }, &device);
        loss.after_step(Tensor::from_data([[1.0, 0.0]], &device.clone().without_autodiff()), &labels(&[0]));
        assert_eq!(value(&loss, &batch), 1.0);
        assert_eq!(value(&loss, &late), 1.5 + 0.5);
    }

    #[test]
    fn a_loss_that_compares_items_can_have_a_memory_in_its_space() {
        let (classes, device) = (labels(&[0, 1, 2, 3]), Device::flex());
        let init = |inner: &str, geometry: &Geometry| {
            let json =
                format!(r#"{{ "kind": "cross_batch_memory", "loss": {{ "kind": "{inner}" }}, "start": 0 }}"#);
            let config: LossConfig = serde_json::from_str(&json).unwrap();
            config.init(&LossContext::new(&classes, 2, geometry, 0, &device))
        };
        let (batch_labels, rows) = (labels(&[0, 0]), Tensor::from_data([[0.5, 0.0], [0.0, 0.5]], &device));
        for (inner, geometry) in [
            ("hyperbolic_cross_entropy", Geometry::poincare()),
            ("hyperbolic_multi_similarity", Geometry::poincare()),
            ("dpsh", Geometry::Binary),
            ("dtsh", Geometry::Binary),
        ] {
            let mut loss = init(inner, &geometry).unwrap();
            let batch = Batch::new(rows.clone(), &batch_labels);
            let before = loss.forward(&batch).into_scalar::<f32>();
            loss.after_step(Tensor::from_data([[0.5, 0.1], [0.3, 0.1]], &device), &labels(&[0, 3]));
            assert_ne!(loss.forward(&batch).into_scalar::<f32>(), before, "{inner}");
        }
        let error = init("pair", &Geometry::poincare()).unwrap_err();
        assert!(error.message().contains("the loss pair cannot compare poincare embeddings"), "{error}");
    }

    #[test]
    fn a_loss_that_compares_no_items_is_refused() {
        let classes = labels(&[0, 1, 2, 3]);
        let device = Device::flex();
        let context = LossContext::new(&classes, 2, &Geometry::Cosine, 0, &device);
        let message = |json: &str| {
            let config: LossConfig = serde_json::from_str(json).unwrap();
            config.init(&context).unwrap_err().message().to_owned()
        };
        let inner = |loss: &str| format!(r#"{{ "kind": "cross_batch_memory", "loss": {loss} }}"#);
        assert!(message(&inner(r#"{ "kind": "norm_softmax" }"#)).contains("the loss norm_softmax compares"));
        assert!(
            message(&inner(r#"{ "kind": "levels", "loss": { "kind": "norm_softmax" } }"#))
                .contains("norm_softmax")
        );
        assert!(
            message(&inner(&inner(r#"{ "kind": "pair" }"#))).contains("the loss cross_batch_memory compares")
        );
        assert!(
            message(r#"{ "kind": "cross_batch_memory", "size": 0 }"#)
                .contains("size of cross_batch_memory is 0")
        );
    }
}
