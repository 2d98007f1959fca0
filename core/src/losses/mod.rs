//! The losses that training minimises: one loss a file, and a [`catalogue`] that names them all.
//!
//! A loss takes a [`Batch`], embeddings [B, d] with their labels, and returns a tensor of shape `[1]`. A query of a
//! batch ranks itself too, as in the papers. A loss with proxies is a Burn module, so the optimiser and the checkpoint
//! see them. Vectors that a loss sets itself (centres, a memory) are buffers: parameters without gradient, which only
//! the checkpoint sees. For a loss as a function of one batch see [`functions`].
//!
//! # Notation
//!
//! B is the batch size, d the dimension of an embedding, L the number of levels, C the number of fine classes. x_i are
//! embeddings, y_i fine labels, s_ij = x_i·x_j scores, l_ij shared levels. P_i and N_i are the items of the same and of
//! another fine class than i, without i itself unless a file says otherwise. σ is the sigmoid, H the step function, and
//! \[x\]₊ is max(x, 0).
//!
//! # Building blocks
//!
//! | to get | use |
//! |---|---|
//! | scores, cosines, distances, and the pairs of one class | [`Batch::scores`], `Batch::cosines`, `Batch::distances`, [`Batch::pairs`] |
//! | the pairs or triplets that a [miner](crate::miners) chooses | [`Batch::mined_pairs`], [`Batch::mine`] |
//! | the items that queries are compared with | [`Batch::items`]: the batch, or a reference set |
//! | proxies | [`LossContext::class_proxies`], [`LossContext::uniform_proxies`], [`LossContext::normal_proxies`] |
//! | buffers | [`LossContext::buffer`] |
//! | random draws | [`Draws::stream`] at a step, [`LossContext::stream`] at the start |
//! | constants, masks, means, closed-form gradients | `algebra.rs` |
//! | functions of ranks, on the CPU in O(B² log B); rankings in bins | `ranks.rs`; `histogram.rs` |
//! | smooth steps; the settings of losses that use them | [`crate::steps`]; [`crate::query_losses`] |
//! | distances | [`crate::geometry::distances`], [`Geometry::scores`] |
//! | range checks of settings | `range.rs`, one function for each kind of range |
//! | several losses in one | [`WeightedSum`], [`Levels`], [`CrossBatchMemory`]; a config can put them around any loss |
//! | the other reading of a paper, or a variant of its tables | a preset, in [`BuildLoss::PRESETS`] of the loss |
//!
//! Every loss works in f32 and f64: for any batch, loss and gradient are finite, and 0 if there is nothing to compare.
//! Two facts about Burn: dividing a tensor by a number rounds the gradient to f32, so multiply by the reciprocal; and a
//! root has an infinite slope at 0, so mask it there.
//!
//! # Unknown labels
//!
//! A pair that is not decided at a level has no term there, see [`crate::unknown`]. So, at the finest level that a loss
//! sees:
//!
//! - losses of pairs, triplets and bins leave the pair out: it is neither positive nor negative;
//! - losses of ranks leave the item out of the query's ranking, and losses of all levels count |Ω(l)| without it. A query
//!   whose fine class is unknown has no positive of that class, not even itself. Losses of all levels rank for it by the
//!   levels at which it is known: left out, the items of its finest known class would be missing where they belong, at the
//!   top;
//! - a softmax over classes has no target for an item of unknown class, and leaves it out;
//! - Proxy-Anchor and HPL push the item away from the proxies of classes that it is decided not to be of. HPL also pulls it
//!   to a coarse proxy if all classes that it may be of are in that group.
//!
//! In [`Levels`] each copy sees what is known at its level, so that the proxies of known levels learn. The kernels keep
//! their cost. Where ranks are computed on another device than the CPU, a batch with unknown labels is ranked on the CPU.
//!
//! # Text and code
//!
//! Where the text of a paper and its published code differ, both have a name. The name without a suffix is the reading
//! that works; the other one is a preset, `NAME_text` or `NAME_published`. A reading works if it trains better in the
//! tables of `native-trainer/recipes/tables`; where both train equally well, it is the text. The page of the loss has a
//! section *Text and code* with the differences and with this evidence.
//!
//! # How to add a loss
//!
//! `CONTRIBUTING.md` lists the files to touch. The config is a serde struct with `deny_unknown_fields` and `default`;
//! its [`BuildLoss`] has the [`LossEntry`] and an `init` that checks every number. The [`catalogue`] gives the loss its
//! name in a config (`kind = "…"`), its line in `akin list losses` and its section in `CONFIG.md`. The tests of
//! `gradients.rs` and `catalogue.rs` read the catalogue and cover a new loss without a change.

mod algebra;
pub mod angular;
pub mod arc_face;
pub mod blackbox_ap;
pub mod calibration;
pub mod catalogue;
pub mod circle;
mod class_centres;
mod class_proxies;
mod config_value;
pub mod contrastive;
pub mod cos_face;
pub mod cross_batch_memory;
pub mod csl;
pub mod csq;
pub mod dcdh;
pub mod dcwh;
pub mod dpsh;
pub mod dtsh;
pub mod fast_ap;
pub mod functions;
pub mod hap_surrogate;
pub mod happier;
pub mod hier;
pub mod hierarchical_proxy;
mod histogram;
pub mod hpdh;
pub mod hyperbolic_cross_entropy;
pub mod hyperbolic_multi_similarity;
pub mod levels;
pub mod lifted_structure;
pub mod margin;
mod mined;
pub mod multi_similarity;
pub mod n_pairs;
pub mod ndcg;
pub mod norm_softmax;
pub mod nt_xent;
pub mod pair;
pub mod proxy_anchor;
pub mod proxy_nca;
pub mod ranked_list;
mod ranks;
pub mod recall;
pub mod roadmap;
pub mod smooth_ap;
pub mod smooth_hap;
pub mod soft_triple;
pub mod softbin_ap;
pub mod sphere_face;
pub mod sum;
pub mod sup_ap;
pub mod sup_con;
pub mod triplet_margin;

use burn::module::{Module, Param};
use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::geometry::{Geometry, Space, distances, normalise};
use crate::random::{normal, stream, uniform};
use crate::range::{above_zero, finite, not_negative, within};
use crate::taxonomy::{Labels, UNKNOWN};
use crate::{Error, Kind, Result};

use algebra::{
    apart, buffer, float_mask, log_one_plus_sum_exp, log_sum_exp, mask_above_zero, mask_exponents, matrix,
    membership, normalise_if, one_hot, quantisation_error, query_mean_weights, read_values,
    reciprocal_or_zero, replace_buffer, select_rows, with_gradient,
};

pub use angular::{Angular, AngularConfig};
pub use arc_face::{ArcFace, ArcFaceConfig};
pub use blackbox_ap::{BlackboxAp, BlackboxApConfig};
pub use calibration::{Calibration, CalibrationConfig, PairMean};
pub use catalogue::{CATALOGUE, Loss, LossConfig};
pub use circle::{Circle, CircleConfig};
pub use class_proxies::{ClassProxies, ProxyLoss};
pub use config_value::changes_kind;
pub use contrastive::{Contrastive, ContrastiveConfig};
pub use cos_face::{CosFace, CosFaceConfig};
pub use cross_batch_memory::{CrossBatchMemory, CrossBatchMemoryConfig};
pub use csl::{Csl, CslConfig};
pub use csq::{Csq, CsqConfig};
pub use dcdh::{Dcdh, DcdhConfig};
pub use dcwh::{Dcwh, DcwhConfig};
pub use dpsh::{Dpsh, DpshConfig};
pub use dtsh::{Dtsh, DtshConfig};
pub use fast_ap::{FastAp, FastApConfig};
pub use functions::{
    contrastive, fast_ap, happier, multi_similarity, roadmap, smooth_ap, sup_ap, triplet_margin,
};
pub use hap_surrogate::{HapSurrogate, HapSurrogateConfig, ItemOrder};
pub use happier::HappierConfig;
pub use hier::{Hier, HierConfig};
pub use hierarchical_proxy::{HierarchicalProxy, HierarchicalProxyConfig};
pub use hpdh::{Hpdh, HpdhConfig};
pub use hyperbolic_cross_entropy::{HyperbolicCrossEntropy, HyperbolicCrossEntropyConfig};
pub use hyperbolic_multi_similarity::{HyperbolicMultiSimilarity, HyperbolicMultiSimilarityConfig};
pub use levels::{Levels, LevelsConfig};
pub use lifted_structure::{LiftedStructure, LiftedStructureConfig};
pub use margin::{Margin, MarginConfig};
pub use multi_similarity::{MultiSimilarity, MultiSimilarityConfig};
pub use n_pairs::{NPairs, NPairsConfig};
pub use ndcg::{Ndcg, SmoothNdcgConfig, SupNdcgConfig};
pub use norm_softmax::{NormSoftmax, NormSoftmaxConfig};
pub use nt_xent::{NtXent, NtXentConfig};
pub use pair::{Pair, PairConfig};
pub use proxy_anchor::ProxyAnchorConfig;
pub use proxy_nca::ProxyNcaConfig;
pub use ranked_list::{RankedList, RankedListConfig};
pub use recall::{Recall, SmoothRecallConfig, SupRecallConfig};
pub use roadmap::RoadmapConfig;
pub use smooth_ap::{SmoothAp, SmoothApConfig};
pub use smooth_hap::{SmoothHap, SmoothHapConfig};
pub use soft_triple::{SoftTriple, SoftTripleConfig};
pub use softbin_ap::{BinTies, SoftbinAp, SoftbinApConfig};
pub use sphere_face::{SphereFace, SphereFaceConfig};
pub use sum::{SumConfig, Term, WeightedSum};
pub use sup_ap::{SupAp, SupApConfig};
pub use sup_con::{SupCon, SupConConfig};
pub use triplet_margin::{TripletMargin, TripletMarginConfig};

/// The input of a loss: embeddings with their labels, and optionally another set to compare them with.
#[derive(Clone)]
pub struct Batch<'a> {
    /// [B, d], the output of the head.
    pub embeddings: Tensor<2>,
    /// [B, L], the labels of the rows.
    pub labels: &'a Labels,
    /// The set that the rows are compared with. None: the batch itself.
    pub reference: Option<Reference<'a>>,
    /// The source of random draws.
    pub draws: Draws,
}

/// A set that the rows of a batch are compared with.
#[derive(Clone)]
pub struct Reference<'a> {
    /// [M, d].
    pub embeddings: Tensor<2>,
    /// [M, L], the labels of the rows.
    pub labels: &'a Labels,
    /// The row at which the batch begins, if the set contains it: item `own + i` is query i.
    pub own: Option<usize>,
}

/// The random draws of one step. They follow from the run's seed and the step, so a resumed run draws the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// The run's seed.
    pub seed: u64,
    /// The step of the run, counted from 0.
    pub step: u64,
}

impl Draws {
    /// The named stream of random numbers at this step.
    pub fn stream(&self, name: &str) -> ChaCha8Rng {
        stream(self.seed, name, &[self.step])
    }
}

impl<'a> Batch<'a> {
    /// A batch that is compared with itself, with the draws of step 0 of seed 0.
    pub fn new(embeddings: Tensor<2>, labels: &'a Labels) -> Self {
        Self { embeddings, labels, reference: None, draws: Draws::default() }
    }

    /// The same batch with these draws.
    pub fn with_draws(self, draws: Draws) -> Self {
        Self { draws, ..self }
    }

    /// The same batch, compared with this set.
    pub fn with_reference(self, reference: Reference<'a>) -> Self {
        Self { reference: Some(reference), ..self }
    }

    /// The items that the rows of this batch are compared with: the reference set, or the batch itself.
    pub fn items(&self) -> Reference<'a> {
        self.reference.clone().unwrap_or_else(|| Reference {
            embeddings: self.embeddings.clone(),
            labels: self.labels,
            own: Some(0),
        })
    }

    /// s_ij = x_i·x_j of each row with each item, [B, M].
    pub fn scores(&self) -> Tensor<2> {
        self.embeddings.clone().matmul(self.items().embeddings.transpose())
    }

    /// The cosine of each row with each item, [B, M].
    pub(crate) fn cosines(&self) -> Tensor<2> {
        normalise(self.embeddings.clone()).matmul(normalise(self.items().embeddings).transpose())
    }

    /// The cosine of each row with each proxy of proxies [C, d] of the fine classes, and 1 at the row's own class: both
    /// [B, C].
    pub(crate) fn class_cosines(&self, proxies: Tensor<2>) -> [Tensor<2>; 2] {
        let [classes, _] = proxies.dims();
        let cosines = normalise(self.embeddings.clone()).matmul(normalise(proxies).transpose());
        let own = one_hot(self.labels, classes, &cosines);
        [cosines, own]
    }

    /// The Euclidean distance of each row to each item, both scaled to unit length, [B, M].
    pub(crate) fn distances(&self) -> Tensor<2> {
        distances(normalise(self.embeddings.clone()), normalise(self.items().embeddings))
    }

    /// The items of each row's fine class, without the row itself, and those of the other classes: two 0/1 matrices
    /// [B, M], positives and negatives. A pair that is not decided is neither.
    pub fn pairs(&self) -> [Tensor<2>; 2] {
        let items = self.items();
        self.decided_pairs(|i, j| items.own.is_none_or(|own| own + i != j))
    }

    /// As [`pairs`](Self::pairs), and each row is a positive of itself if its fine class is known.
    pub(crate) fn pairs_with_self(&self) -> [Tensor<2>; 2] {
        self.decided_pairs(|_, _| true)
    }

    fn decided_pairs(&self, counts: impl Fn(usize, usize) -> bool) -> [Tensor<2>; 2] {
        let items = self.items().labels;
        let (rows, columns, finest) = (self.labels.len(), items.len(), items.levels());
        let (mut positives, mut negatives) = (vec![0.0; rows * columns], vec![0.0; rows * columns]);
        let are_classes = self.labels.are_classes() && items.are_classes();
        let (row_classes, item_classes) = (self.labels.column(finest), items.column(finest));
        for i in 0..rows {
            for j in (0..columns).filter(|&j| counts(i, j)) {
                let same = match are_classes {
                    true => Some(row_classes[i] == item_classes[j]),
                    false => self.labels.shared(i, items, j).share(finest),
                };
                match same {
                    Some(true) => positives[i * columns + j] = 1.0,
                    Some(false) => negatives[i * columns + j] = 1.0,
                    None => {}
                }
            }
        }
        [positives, negatives].map(|values| matrix(values, [rows, columns], &self.embeddings))
    }

    /// `loss` of the rows and items whose fine class is known; 0 if no row's is.
    pub(crate) fn on_known(&self, loss: impl FnOnce(&Batch) -> Tensor<1>) -> Tensor<1> {
        let known_rows = |labels: &Labels| {
            (0..labels.len()).filter(|&i| labels.known(i) == labels.levels()).collect::<Vec<_>>()
        };
        let rows = known_rows(self.labels);
        let item_rows = self.reference.as_ref().map(|reference| known_rows(reference.labels));
        let all_items = self.reference.as_ref().zip(item_rows.as_ref());
        if rows.len() == self.labels.len()
            && all_items.is_none_or(|(all, known)| known.len() == all.labels.len())
        {
            return loss(self);
        }
        if rows.is_empty() || item_rows.as_ref().is_some_and(Vec::is_empty) {
            return self.embeddings.clone().sum() * 0.0;
        }
        let labels = self.labels.select(&rows);
        let item_labels = self.reference.as_ref().zip(item_rows.as_ref());
        let item_labels = item_labels.map(|(reference, rows)| reference.labels.select(rows));
        let reference = self.reference.as_ref().zip(item_rows.as_ref()).zip(item_labels.as_ref());
        let reference = reference.map(|((reference, rows), labels)| Reference {
            embeddings: select_rows(&reference.embeddings, rows),
            labels,
            own: reference.own.map(|own| rows.iter().filter(|&&row| row < own).count()),
        });
        loss(&Batch {
            embeddings: select_rows(&self.embeddings, &rows),
            labels: &labels,
            reference,
            draws: self.draws,
        })
    }
}

/// The facts that a loss is made from: the classes, the embedding, the seed and the device.
#[derive(Clone)]
pub struct LossContext<'a> {
    /// The label path of each fine class of the training set, row c for class c, and then the paths that are known to a
    /// coarser level only, see [`Labels::classes`]. At every level the known labels count from 0 without gaps.
    pub classes: &'a Labels,
    /// d, the dimension of an embedding.
    pub dimension: usize,
    /// The space of the embeddings.
    pub geometry: &'a Geometry,
    /// The run's seed. Proxies are drawn from its stream `proxies`.
    pub seed: u64,
    /// The position of this loss among the parts of a larger one, so that each part draws its own proxies. Empty for a
    /// whole loss.
    pub position: Vec<u64>,
    /// The device of proxies and buffers.
    pub device: &'a Device,
}

impl<'a> LossContext<'a> {
    /// The context of a whole loss.
    pub fn new(
        classes: &'a Labels,
        dimension: usize,
        geometry: &'a Geometry,
        seed: u64,
        device: &'a Device,
    ) -> Self {
        Self { classes, dimension, geometry, seed, position: Vec::new(), device }
    }

    /// L, the number of levels.
    pub fn levels(&self) -> usize {
        self.classes.levels()
    }

    /// The number of classes at a level, 1 … L.
    pub fn class_count(&self, level: usize) -> usize {
        let known = self.classes.column(level).into_iter().filter(|&class| class != UNKNOWN);
        known.max().map_or(0, |class| class as usize + 1)
    }

    /// C, the number of fine classes.
    pub fn fine_classes(&self) -> usize {
        self.class_count(self.levels())
    }

    /// The label path of each fine class, [C, L].
    pub fn fine_paths(&self) -> Labels {
        self.classes.select(&(0..self.fine_classes()).collect::<Vec<_>>())
    }

    /// The context of part `number` of a larger loss.
    pub fn part(&self, number: usize) -> Self {
        let mut part = self.clone();
        part.position.push(number as u64);
        part
    }

    /// Proxies of the fine classes, `each` of them for a class, from U(−1/√d, 1/√d): [C·each, d], class by class.
    pub fn class_proxies(&self, each: usize) -> Param<Tensor<2>> {
        self.uniform_proxies(self.fine_classes() * each, 1.0 / (self.dimension as f64).sqrt())
    }

    /// Proxies [count, d] from U(−bound, bound).
    pub fn uniform_proxies(&self, count: usize, bound: f64) -> Param<Tensor<2>> {
        let bound = bound as f32;
        let values = uniform(&mut self.stream("proxies"), count * self.dimension, -bound, bound);
        Param::from_tensor(self.vectors(values, count))
    }

    /// Proxies [count, d] from N(0, deviation²).
    pub fn normal_proxies(&self, count: usize, deviation: f64) -> Param<Tensor<2>> {
        let values = normal(&mut self.stream("proxies"), count * self.dimension, deviation as f32);
        Param::from_tensor(self.vectors(values, count))
    }

    /// Vectors [count, d] that the loss sets itself: the checkpoint saves them, the optimiser does not move them.
    pub fn buffer(&self, values: Vec<f32>, count: usize) -> Param<Tensor<2>> {
        buffer(self.vectors(values, count))
    }

    /// The named stream of random numbers for this part of the loss.
    pub fn stream(&self, name: &str) -> ChaCha8Rng {
        stream(self.seed, name, &self.position)
    }

    fn vectors(&self, values: Vec<f32>, count: usize) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values, [count, self.dimension]), self.device)
    }
}

/// The settings of one loss, which are its table in a config, and how to make the loss from them.
pub trait BuildLoss {
    /// Its entry in the catalogue.
    const ENTRY: LossEntry;
    /// Named settings of this loss: the other reading of its paper, and variants in the papers' tables.
    const PRESETS: &'static [LossEntry] = &[];
    /// The loss that these settings make.
    type Loss: Objective + Module;

    /// Checks the settings and draws the proxies.
    ///
    /// # Errors
    ///
    /// A setting is out of range, or does not fit the classes or the embedding.
    fn init(&self, context: &LossContext) -> Result<Self::Loss>;

    /// The loss of one batch that is compared with itself, shape `[1]`, for a loss without parameters.
    ///
    /// `embeddings` are [B, d]. They are mapped into the space of the loss as a head does, see [`Geometry::embed`];
    /// for most losses this scales them to unit length. Random draws are those of [`Draws::default`].
    ///
    /// # Errors
    ///
    /// A setting is out of range; the numbers of embeddings and of labels differ; the loss has proxies or a memory,
    /// so that it has to be made with [`Self::init`] and kept.
    fn forward(&self, embeddings: &Tensor<2>, labels: &Labels) -> Result<Tensor<1>> {
        let [rows, dimension] = embeddings.dims();
        if rows != labels.len() {
            return Err(Error::new(
                Kind::Embeddings,
                format!("there are {rows} embeddings and {} rows of labels", labels.len()),
                "give one row of labels for each embedding",
            ));
        }
        let geometry = match Self::ENTRY.spaces[0] {
            Space::Cosine => Geometry::Cosine,
            Space::Poincare => Geometry::poincare(),
            Space::Binary => Geometry::Binary,
        };
        let classes = labels.classes();
        let loss = self.init(&LossContext::new(&classes, dimension, &geometry, 0, &embeddings.device()))?;
        if loss.num_params() > 0 {
            return Err(Error::new(
                Kind::Config,
                format!(
                    "{} keeps {} numbers from batch to batch, such as proxies",
                    Self::ENTRY.name,
                    loss.num_params()
                ),
                "make the loss once with `init`, keep it, and call `forward` on each `Batch`",
            ));
        }
        Ok(loss.forward(&Batch::new(geometry.embed(embeddings.clone()), labels)))
    }
}

/// A loss that can be computed and trained.
pub trait Objective {
    /// The loss of a batch, shape `[1]`.
    fn forward(&self, batch: &Batch) -> Tensor<1>;

    /// The same loss in tensor operations, as [`Self::forward`] computes it on a GPU. None: it does so everywhere.
    fn on_tensors(&self, _batch: &Batch) -> Option<Tensor<1>> {
        None
    }

    /// Called before each step.
    fn before_step(&mut self, _draws: Draws) {}

    /// Called after each step with the embeddings of the batch, without gradient.
    fn after_step(&mut self, _embeddings: Tensor<2>, _labels: &Labels) {}

    /// Whether [`Self::before_epoch`] is called at the start of this epoch, counted from 0.
    fn needs_training_set(&self, _epoch: u64) -> bool {
        false
    }

    /// Called at the start of an epoch with the embeddings of the whole training set, without gradient, if
    /// [`Self::needs_training_set`].
    fn before_epoch(&mut self, _embeddings: Tensor<2>, _labels: &Labels) {}

    /// The first [`Hier`] in this loss, whose proxies are ancestors of the items.
    fn hierarchy(&self) -> Option<&Hier> {
        None
    }
}

/// The entry of a loss or preset in the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossEntry {
    /// Its name in a config: `kind = "…"`.
    pub name: &'static str,
    /// Its name in tables of results.
    pub title: &'static str,
    /// Its family, by which lists are grouped.
    pub family: Family,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The metric that it is meant to raise, as a config writes it: `ap`, `recall@1`.
    pub optimises: &'static str,
    /// The spaces of the embeddings that it can compare. Those of a combination follow from its parts, see
    /// [`LossConfig::supports`].
    pub spaces: &'static [Space],
    /// Keys of [`crate::sources`].
    pub sources: &'static [&'static str],
    /// Whether every setting has a default.
    pub complete: bool,
    /// For a preset, its settings as JSON.
    pub preset: Option<&'static str>,
}

/// The families of losses, in the order of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Smooth versions of average precision.
    AveragePrecision,
    /// Scores that mean the same in every batch.
    Decomposability,
    /// Pairs and triplets of items.
    Pairs,
    /// Items against learned vectors, one or more for each class.
    Proxies,
    /// Several levels of the taxonomy at once.
    Hierarchical,
    /// Distances of the Poincaré ball.
    Hyperbolic,
    /// Codes of bits.
    Hashing,
    /// Losses made of other losses.
    Combinations,
}

/// Checks that codes have at least two bits.
fn check_two_bits(loss: &str, context: &LossContext) -> Result<()> {
    if context.dimension >= 2 {
        return Ok(());
    }
    Err(Error::new(
        Kind::Config,
        format!("codes of {} bit are too short for {loss}", context.dimension),
        "set the dimension of the head to 2 or more; 16 to 64 are usual",
    ))
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A loss of two classes in four dimensions of the ball, by its config.
    pub(super) fn in_the_ball(json: &str) -> Result<Loss> {
        let config: LossConfig = serde_json::from_str(json).unwrap();
        let classes = Labels::new(1, vec![0, 1]).unwrap();
        config.init(&LossContext::new(&classes, 4, &Geometry::poincare(), 0, &Device::flex()))
    }

    /// The error of these settings for four fine classes in two coarse ones.
    pub(super) fn refusal<S: BuildLoss>(settings: &S) -> Error {
        let classes = Labels::new(2, vec![0, 0, 0, 1, 1, 2, 1, 3]).unwrap();
        let device = Device::flex();
        settings
            .init(&LossContext::new(&classes, 8, &Geometry::Cosine, 0, &device))
            .expect_err("these settings should be refused")
    }
}
