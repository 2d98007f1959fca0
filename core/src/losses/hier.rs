//! HIER: learns a hierarchy that the labels do not give, through learned ancestors of triplets (Kim et al., *HIER: Metric
//! Learning Beyond Class Labels via Hierarchical Regularization*, CVPR 2023). A regulariser, alone or beside any loss.
//!
//! P *proxies* stand for ancestors. In a triplet, items i and j are related and item k is not. The lowest common
//! ancestor ρ_ij of the pair and ρ_ijk of all three are drawn among the proxies; the pair should be nearer to ρ_ij
//! than to ρ_ijk, and k the other way round (eq. 6 to 8, with the draw of the public code):
//!
//! ```text
//! M_ij(ρ) = max(d(i,ρ), d(j,ρ))                       M_ijk(ρ) = max(d(i,ρ), d(j,ρ), d(k,ρ))
//! ρ_ij    = argmax_ρ −M_ij(ρ)/τ + g_ρ                 ρ_ijk    = argmax_ρ −M_ijk(ρ)/τ + g′_ρ
//! L(ijk)  = [d(i,ρ_ij) − d(i,ρ_ijk) + δ]₊ + [d(j,ρ_ij) − d(j,ρ_ijk) + δ]₊ + [d(k,ρ_ijk) − d(k,ρ_ij) + δ]₊
//! ```
//!
//! g and g′ are draws from Gumbel(0, 1). A triplet with ρ_ij = ρ_ijk counts as 0. The loss is the mean of L over triplets
//! of the batch plus the mean of L over triplets of the proxies themselves, where a proxy may be its own ancestor. Eq. 9
//! sums over these two sets and does not say what the loss of a set is; the mean is what the public code takes.
//!
//! d is the distance of the ball. On the sphere, the paper's ablation, it is the public code's 2 − 2 x·y. Proxies are
//! features, [P, d], mapped into the space as a head maps its features.
//!
//! # Triplets
//!
//! j must be a mutual neighbour of i: each is among the K nearest items of the other (eq. 5). k must not be one. The
//! paper does not say how many triplets are drawn; as in the public code, every anchor i gets 50, with replacement. An
//! anchor with fewer than two mutual neighbours, or with mutual neighbours alone, gets none; without any triplet the loss
//! is 0. Among the neighbours of an item of the batch those of its own class come first. A reference set is not used.
//!
//! # Text and code
//!
//! The defaults are the public code; the preset `hier_text` is the paper's text:
//!
//! | setting | code | text |
//! |---|---|---|
//! | `draw` | argmax −M / τ + g with τ = 0.1; gradient straight through that softmax | argmax π + g with π = exp(−M) (eq. 7); the choice has no gradient |
//! | `count_self` | an item is its own nearest neighbour, so K − 1 are others | the K nearest neighbours are K other items |
//! | `fewest_neighbours` | an anchor needs two mutual neighbours | one is enough for a triplet |
//! | `labels` | items of the anchor's class come first among its neighbours | not used |
//! | `anchor_as_unrelated` | k may be the anchor itself | three items in a triplet |
//! | `equal_ancestors` | ρ_ijk may be ρ_ij; that triplet counts as 0 in the mean | ρ_ijk is another proxy than ρ_ij |
//!
//! Beside another loss the code's scripts weigh HIER by 0.5, as `hier_multi_similarity` and `hier_proxy_anchor` do; the
//! paper weighs it by 1, as `hier_multi_similarity_text` and `hier_proxy_anchor_text` do. Beside Multi-Similarity the paper
//! gives no settings; these presets have those of the code (α = 2, β = 50, base 0.5).
//!
//! Eq. 7 adds the noise to π, not to its logarithm. Since π lies in 0 … 1, a proxy at distance 0 is drawn at most e
//! times as often as one infinitely far away: with many proxies the ancestors of eq. 7 are close to random. Alone on drawn
//! creatures (recipe `biomorphs`) `hier_text` has an AP of species of 4.2, less than the 7.4 of the untrained encoder, and
//! `hier` has 19.9. The sentence before eq. 7 asks for a sample of the distribution π instead; that is the softmax with
//! τ = 1.
//!
//! # Gradient
//!
//! With eq. 7 the chosen proxies are constants, and the gradient is that of the distances to them. With the softmax
//! the gradient goes straight through: forward the chosen proxy, backward the softmax that it was drawn from. With h
//! the one-hot choice and p that softmax, it is the gradient of the loss with h + p − detach(p) for h; a softmax that
//! leaves ρ_ij out does so as a constant. This is not the derivative of the value, which jumps. It has a closed form
//! in the distances, computed beside the value. On the CPU in f32, [`common_ancestors`](crate::common_ancestors) computes
//! both in one pass over triplets and proxies. Elsewhere they are tensor operations, a block of triplets at a time. Memory
//! is O((B + P)·P) in either case. The two draw from other streams of the same distribution, so one step of them differs.
//!
//! The map into the ball makes the gradient of the proxies Riemannian, as it does for a head (see
//! [`Geometry::Poincare`]).

use std::ops::Range;

use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, DType, IndexingUpdateOp, Int, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, float_mask, mask_above_zero,
    not_negative, read_values, with_gradient, within,
};
use crate::common_ancestors::{AncestorLoss, Distances, TripletRules};
use crate::geometry::{Geometry, Space};
use crate::host::{is_cpu, numbers};
use crate::poincare::Ball;
use crate::random::uniform;
use crate::{Error, Kind, Result};

pub use crate::common_ancestors::{Draw, Triplets, mutual_neighbours};

/// Elements of the largest matrix, [block, P].
const BLOCK_ELEMENTS: usize = 1 << 21;
/// How far the longest proxies are at the start, as a share of the clip radius.
const SPREAD: f64 = 0.9;

/// Settings of [`Hier`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HierConfig {
    /// P, the number of proxies, 2 … 2¹⁴. Default 512.
    pub proxies: usize,
    /// K, how many nearest neighbours an item has, 2 … 2¹⁴. Default 20.
    pub neighbours: usize,
    /// How many triplets each anchor gets, 1 … 2¹⁴. Default 50.
    pub triplets: usize,
    /// δ ≥ 0. Default 0.1.
    pub margin: f64,
    /// How ancestors are drawn. Default: from a softmax with τ = 0.1.
    pub draw: Draw,
    /// Count an item among its own K nearest neighbours. Default true.
    pub count_self: bool,
    /// How many mutual neighbours an anchor needs, 1 … 2¹⁴. Default 2.
    pub fewest_neighbours: usize,
    /// Put items of the same class before all others among the neighbours. Default true.
    pub labels: bool,
    /// Let the unrelated item of a triplet be the anchor itself. Default true.
    pub anchor_as_unrelated: bool,
    /// Let both ancestors of a triplet be the same proxy. Default true.
    pub equal_ancestors: bool,
}

impl Default for HierConfig {
    fn default() -> Self {
        Self {
            proxies: 512,
            neighbours: 20,
            triplets: 50,
            margin: 0.1,
            draw: Draw::Softmax { temperature: 0.1 },
            count_self: true,
            fewest_neighbours: 2,
            labels: true,
            anchor_as_unrelated: true,
            equal_ancestors: true,
        }
    }
}

impl BuildLoss for HierConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hier",
        title: "HIER",
        family: Family::Hyperbolic,
        summary: "a latent hierarchy, from learned common ancestors of triplets",
        optimises: "ap",
        spaces: &[Space::Poincare, Space::Cosine],
        sources: &["kim2023"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "hier_multi_similarity",
            title: "Multi-Similarity + HIER",
            summary: "Multi-Similarity of directions, with the settings of HIER's code, and a latent hierarchy",
            sources: &["kim2023", "wang2019"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "multi_similarity", "beta": 50.0, "base": 0.5 } },
                    { "weight": 0.5, "loss": { "kind": "hier" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_multi_similarity_text",
            title: "Multi-Similarity + HIER (text)",
            summary: "Multi-Similarity of directions, and a latent hierarchy of weight 1 as in the paper's text",
            sources: &["kim2023", "wang2019"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "multi_similarity", "beta": 50.0, "base": 0.5 } },
                    { "weight": 1.0, "loss": { "kind": "hier_text" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_proxy_anchor",
            title: "Proxy-Anchor + HIER",
            summary: "Proxy-Anchor of directions, with a latent hierarchy",
            sources: &["kim2020", "kim2023"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "proxy_anchor" } },
                    { "weight": 0.5, "loss": { "kind": "hier" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_proxy_anchor_text",
            title: "Proxy-Anchor + HIER (text)",
            summary: "Proxy-Anchor of directions, and a latent hierarchy of weight 1 as in the paper's text",
            sources: &["kim2020", "kim2023"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "proxy_anchor" } },
                    { "weight": 1.0, "loss": { "kind": "hier_text" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_text",
            title: "HIER (text)",
            summary: "HIER as in the paper's text: ancestors by eq. 7, neighbours without labels",
            preset: Some(
                r#"{ "kind": "hier", "draw": { "kind": "probability" }, "count_self": false,
                     "fewest_neighbours": 1, "labels": false, "anchor_as_unrelated": false,
                     "equal_ancestors": false }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = Hier;

    /// Proxies come from N(0, (0.9 r)²/d), r the clip radius of the ball.
    fn init(&self, context: &LossContext) -> Result<Hier> {
        within(Self::ENTRY.name, "proxies", self.proxies, 2..=1 << 14, 512)?;
        within(Self::ENTRY.name, "neighbours", self.neighbours, 2..=1 << 14, 20)?;
        within(Self::ENTRY.name, "triplets", self.triplets, 1..=1 << 14, 50)?;
        within(Self::ENTRY.name, "fewest_neighbours", self.fewest_neighbours, 1..=1 << 14, 2)?;
        if let Draw::Softmax { temperature } = self.draw {
            above_zero(Self::ENTRY.name, "temperature", temperature, 0.1)?;
        }
        not_negative(Self::ENTRY.name, "margin", self.margin, 0.1)?;
        let radius = match context.geometry {
            Geometry::Poincare { clip_radius, .. } => *clip_radius,
            _ => 1.0,
        };
        let deviation = SPREAD * radius / (context.dimension as f64).sqrt();
        let proxies = context.normal_proxies(self.proxies, deviation);
        Ok(Hier { proxies, config: self.clone(), geometry: context.geometry.clone() })
    }
}

impl HierConfig {
    fn triplet_rules(&self) -> TripletRules {
        let HierConfig { triplets: count, fewest_neighbours, anchor_as_unrelated, .. } = *self;
        TripletRules { count, fewest_neighbours, anchor_as_unrelated }
    }

    fn ancestor_loss(&self) -> AncestorLoss {
        let HierConfig { draw, margin, equal_ancestors, .. } = *self;
        AncestorLoss { draw, margin, equal_ancestors }
    }

    /// The loss with these proxies, [P, d], in this geometry.
    pub fn with_proxies(&self, proxies: Tensor<2>, geometry: Geometry) -> Hier {
        Hier { proxies: Param::from_tensor(proxies), config: self.clone(), geometry }
    }
}

/// The learned ancestors and the loss of triplets below them.
#[derive(Module, Debug)]
pub struct Hier {
    /// [P, d], features, mapped into the space before use.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: HierConfig,
    #[module(skip)]
    geometry: Geometry,
}

impl Objective for Hier {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let embeddings = &batch.embeddings;
        if embeddings.dtype() != DType::F32 || !is_cpu(&embeddings.device()) {
            return self.with_noise(batch);
        }
        let Terms { to_ancestors, triplets } = self.terms(batch);
        let names = ["hier ancestors of the batch", "hier ancestors of the proxies"];
        let loss = self.config.ancestor_loss();
        let mean = |((distances, triplets), name): ((Tensor<2>, Triplets), &str)| {
            let (device, shape @ [_, proxies]) = (distances.device().without_autodiff(), distances.dims());
            let values = numbers(&distances);
            let values = Distances { values: &values, proxies };
            let (value, gradient) = loss.mean(values, &triplets, &batch.draws.stream(name));
            let gradient = Tensor::from_data(TensorData::new(gradient, shape), &device);
            with_gradient(distances, Tensor::from_data([value as f32], &device), gradient)
        };
        let [of_batch, of_proxies] = to_ancestors;
        let [batch_triplets, proxy_triplets] = triplets;
        mean(((of_batch, batch_triplets), names[0])) + mean(((of_proxies, proxy_triplets), names[1]))
    }

    fn on_tensors(&self, batch: &Batch) -> Option<Tensor<1>> {
        Some(self.with_noise(batch))
    }

    fn hierarchy(&self) -> Option<&Hier> {
        Some(self)
    }
}

/// The items of both sets, the batch and the proxies: their distances to the proxies, [n, P], and their triplets.
struct Terms {
    to_ancestors: [Tensor<2>; 2],
    triplets: [Triplets; 2],
}

impl Hier {
    fn terms(&self, batch: &Batch) -> Terms {
        let (points, proxies) = (batch.embeddings.clone(), self.geometry.embed(self.proxies.val()));
        let plain = points.clone().without_autodiff();
        let between_points = self.distances(plain.clone(), plain);
        let between_proxies = self.distances(proxies.clone(), proxies.clone());
        let classes = self.config.labels.then(|| batch.labels.column(batch.labels.levels()));
        let mut rng = batch.draws.stream("hier triplets");
        let batch_triplets = self.draw_triplets(&between_points, classes.as_deref(), &mut rng);
        let proxy_triplets = self.draw_triplets(&between_proxies, None, &mut rng);
        Terms {
            to_ancestors: [self.distances(points, proxies), between_proxies],
            triplets: [batch_triplets, proxy_triplets],
        }
    }

    /// In tensor operations, with a Gumbel draw for every triplet and proxy.
    fn with_noise(&self, batch: &Batch) -> Tensor<1> {
        let Terms { to_ancestors: [of_batch, of_proxies], triplets } = self.terms(batch);
        let mut rng = batch.draws.stream("hier ancestors");
        let mut noise = |rows: Range<usize>, like: &Tensor<2>| {
            let count = rows.len();
            [gumbel(&mut rng, count, like), gumbel(&mut rng, count, like)]
        };
        let batch_loss = self.mean_loss(of_batch, &triplets[0], &mut noise);
        batch_loss + self.mean_loss(of_proxies, &triplets[1], noise)
    }

    /// The proxies as points of their space, [P, d], row-major.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn points(&self) -> Result<Vec<f32>> {
        let points = self.geometry.embed(self.proxies.val().without_autodiff()).try_into_data();
        let points = points.map_err(|error| error.to_string());
        points.and_then(|points| points.try_to_vec().map_err(|error| format!("{error:?}"))).map_err(|error| {
            Error::new(
                Kind::Device,
                format!("the proxies could not be read from the device: {error}"),
                "try again, or use the CPU",
            )
        })
    }

    /// The space of the proxies.
    pub fn space(&self) -> Space {
        self.geometry.space()
    }

    /// The term of the batch and the term of the proxies, for given triplets and given Gumbel draws for ρ_ij and
    /// ρ_ijk, [triplets, P] each.
    pub fn forward_drawn(
        &self,
        embeddings: Tensor<2>,
        triplets: [&Triplets; 2],
        draws: [[Tensor<2>; 2]; 2],
    ) -> [Tensor<1>; 2] {
        let proxies = self.geometry.embed(self.proxies.val());
        let [batch_noise, proxy_noise] = draws.map(|draws| {
            move |rows: Range<usize>, _: &Tensor<2>| {
                draws.clone().map(|draws| draws.without_autodiff().slice(rows.clone()))
            }
        });
        [
            self.mean_loss(self.distances(embeddings, proxies.clone()), triplets[0], batch_noise),
            self.mean_loss(self.distances(proxies.clone(), proxies), triplets[1], proxy_noise),
        ]
    }

    /// d, or on the sphere 2 − 2 x·y, of every row of x and y.
    pub fn distances(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        match self.geometry {
            Geometry::Poincare { curvature, .. } => Ball { curvature }.distances(x, y),
            Geometry::Cosine | Geometry::Binary => x.matmul(y.transpose()) * -2.0 + 2.0,
        }
    }

    /// Draws the triplets of all anchors, from the distances between all items.
    fn draw_triplets(
        &self,
        distances: &Tensor<2>,
        classes: Option<&[u32]>,
        rng: &mut ChaCha8Rng,
    ) -> Triplets {
        let HierConfig { neighbours, count_self, .. } = self.config;
        let distances = read_values(distances.clone());
        let mutual = mutual_neighbours(&distances, neighbours, count_self, classes);
        Triplets::draw(&mutual, self.config.triplet_rules(), rng)
    }

    /// The mean of L over triplets of rows of `distances`, [n, P]: row i holds the distances of item i to every proxy.
    /// `noise` returns the Gumbel draws for a range of triplets, on the device of the given matrix.
    fn mean_loss(
        &self,
        distances: Tensor<2>,
        triplets: &Triplets,
        mut noise: impl FnMut(Range<usize>, &Tensor<2>) -> [Tensor<2>; 2],
    ) -> Tensor<1> {
        let plain = distances.clone().without_autodiff();
        let [_, proxies] = plain.dims();
        let count = triplets.anchors.len();
        let block = (BLOCK_ELEMENTS / proxies).max(1);
        let mut value = Tensor::zeros([1], (&plain.device(), plain.dtype()));
        let mut gradient = plain.zeros_like();
        for start in (0..count).step_by(block) {
            let rows = start..(start + block).min(count);
            let items = [&triplets.anchors, &triplets.related, &triplets.unrelated].map(|items| {
                let items: Vec<i64> = items[rows.clone()].iter().map(|&item| item as i64).collect();
                Tensor::<1, Int>::from_data(TensorData::new(items, [rows.len()]), &plain.device())
            });
            let selected = items.clone().map(|items| plain.clone().select(0, items));
            let noise = noise(rows, &selected[0]);
            let (loss, slopes) = self.block_loss(selected, noise);
            value = value + loss;
            for (items, slope) in items.into_iter().zip(slopes) {
                gradient = gradient.select_assign(0, items, slope, IndexingUpdateOp::Add);
            }
        }
        let share = 1.0 / count.max(1) as f64;
        with_gradient(distances, value * share, gradient * share)
    }

    /// The sum of L over a block of T triplets, given the distances of i, j and k to every proxy, [T, P] each, and
    /// its slopes with respect to those distances.
    fn block_loss(
        &self,
        [i, j, k]: [Tensor<2>; 3],
        [pair_noise, triplet_noise]: [Tensor<2>; 2],
    ) -> (Tensor<1>, [Tensor<2>; 3]) {
        let pair = i.clone().max_pair(j.clone());
        let all = pair.clone().max_pair(k.clone());
        let (low, low_softmax) = self.choose(pair.clone(), pair_noise, None);
        let excluded = (!self.config.equal_ancestors).then(|| low.clone().greater_scalar(0.0));
        let (high, high_softmax) = self.choose(all, triplet_noise, excluded);

        // d(·, ρ_ij) − d(·, ρ_ijk) is the product of the distances with this.
        let step = low - high;
        let equal = step.clone().abs().sum_dim(1).equal_scalar(0.0);
        let hinge = |distances: &Tensor<2>, sign: f64| {
            let hinge = (distances.clone() * step.clone()).sum_dim(1) * sign + self.config.margin;
            let value = hinge.clamp_min(0.0).mask_fill(equal.clone(), 0.0);
            let slope = mask_above_zero(&value) * sign;
            (value, slope)
        };
        let [(i_value, i_slope), (j_value, j_slope), (k_value, k_slope)] =
            [hinge(&i, 1.0), hinge(&j, 1.0), hinge(&k, -1.0)];
        let value = (i_value + j_value + k_value).sum();

        // The slope of the step, carried through each softmax to the distance that it ranks by.
        let pull = i.clone() * i_slope.clone() + j.clone() * j_slope.clone() + k.clone() * k_slope.clone();
        let mut slopes = [step.clone() * i_slope, step.clone() * j_slope, step * k_slope];
        let (Some(low_softmax), Some(high_softmax)) = (low_softmax, high_softmax) else {
            return (value, slopes);
        };
        let through = |(softmax, temperature): (Tensor<2>, f64), sign: f64| {
            let mean = (softmax.clone() * pull.clone()).sum_dim(1);
            softmax * (pull.clone() - mean) * (-sign / temperature)
        };
        let (to_pair, to_all) = (through(low_softmax, 1.0), through(high_softmax, -1.0));
        // A maximum passes its slope to the larger side, and half of it to each when they are equal.
        let share = |a: &Tensor<2>, b: &Tensor<2>| (a.clone() - b.clone()).sign() * 0.5 + 0.5;
        let to_k = to_all.clone() * share(&k, &pair);
        let to_pair = to_pair + to_all - to_k.clone();
        let to_i = to_pair.clone() * share(&i, &j);
        let to_j = to_pair - to_i.clone();
        for (slope, more) in slopes.iter_mut().zip([to_i, to_j, to_k]) {
            *slope = slope.clone() + more;
        }
        (value, slopes)
    }

    /// The chosen proxy of each row as a one-hot row and, where the gradient goes through it, the softmax that it was
    /// drawn from with its temperature. `largest` is M of every proxy.
    fn choose(
        &self,
        largest: Tensor<2>,
        noise: Tensor<2>,
        excluded: Option<Tensor<2, Bool>>,
    ) -> (Tensor<2>, Option<(Tensor<2>, f64)>) {
        let likelihood = match self.config.draw {
            Draw::Probability => (-largest).exp(),
            Draw::Softmax { temperature } => largest * (-1.0 / temperature),
        };
        let logits = likelihood + noise;
        let logits = match excluded {
            None => logits,
            Some(excluded) => logits.mask_fill(excluded, -1e30),
        };
        let [rows, proxies] = logits.dims();
        let places = Tensor::<1, Int>::arange(0..proxies as i64, &logits.device()).unsqueeze::<2>();
        let chosen = logits.clone().argmax(1).expand([rows, proxies]).equal(places.expand([rows, proxies]));
        let chosen = float_mask(chosen, &logits);
        match self.config.draw {
            Draw::Probability => (chosen, None),
            Draw::Softmax { temperature } => (chosen, Some((softmax(logits, 1), temperature))),
        }
    }
}

/// Draws [rows, P] of the Gumbel distribution: −log(−log u), u uniform.
fn gumbel(rng: &mut ChaCha8Rng, rows: usize, like: &Tensor<2>) -> Tensor<2> {
    let [_, proxies] = like.dims();
    let values = TensorData::new(uniform(rng, rows * proxies, 0.0, 1.0), [rows, proxies]);
    let uniform = Tensor::from_data(values, (&like.device(), like.dtype())).clamp(1e-7, 1.0 - 1e-7);
    -(-uniform.log()).log()
}

#[cfg(test)]
mod tests {
    use super::super::testing::in_the_ball;
    use super::*;
    use crate::Kind;
    use crate::random::stream;
    use burn::tensor::{DType, Device};

    #[test]
    fn settings_out_of_range_are_refused() {
        assert!(in_the_ball(r#"{ "kind": "hier", "margin": 0.0 }"#).is_ok());
        for setting in [
            r#""proxies": 1"#,
            r#""neighbours": 1"#,
            r#""triplets": 0"#,
            r#""fewest_neighbours": 0"#,
            r#""draw": { "kind": "softmax", "temperature": 0.0 }"#,
        ] {
            let error = in_the_ball(&format!(r#"{{ "kind": "hier", {setting} }}"#)).unwrap_err();
            assert_eq!(error.kind(), Kind::Config, "{setting}");
        }
        let error = in_the_ball(r#"{ "kind": "hier", "margin": -0.1 }"#).unwrap_err();
        assert!(error.message().contains("the margin of hier is -0.1"), "{error}");
    }

    /// Points on a line, two groups of three.
    fn line() -> Vec<f64> {
        let places = [0.0, 1.0, 2.1, 10.0, 11.0, 12.2f64];
        places.iter().flat_map(|x| places.iter().map(move |y| (x - y).abs())).collect()
    }

    #[test]
    fn neighbours_are_mutual_and_classes_come_first_if_given() {
        let mutual = |neighbours, classes| mutual_neighbours(&line(), neighbours, true, classes);
        assert_eq!(mutual(3, None)[0], [1, 2]);
        assert_eq!(mutual(2, None), [vec![1], vec![0], vec![], vec![4], vec![3], vec![]]);
        assert_eq!(mutual(2, Some(&[0, 1, 2, 0, 1, 2]))[0], [3]);
        assert_eq!(mutual(99, None)[0], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn an_item_that_counts_among_its_own_neighbours_has_one_other_fewer() {
        for neighbours in 2..=6 {
            let with_self = mutual_neighbours(&line(), neighbours, true, None);
            assert_eq!(with_self, mutual_neighbours(&line(), neighbours - 1, false, None));
        }
    }

    #[test]
    fn triplets_have_a_mutual_neighbour_and_an_item_that_is_not_one() {
        let device = Device::flex();
        let mutual = mutual_neighbours(&line(), 2, false, None);
        let distances = Tensor::from_data(TensorData::new(line(), [6, 6]), (&device, DType::F64));
        for anchor_as_unrelated in [false, true] {
            let config = HierConfig {
                anchor_as_unrelated,
                neighbours: 2,
                count_self: false,
                fewest_neighbours: 1,
                triplets: 30,
                ..HierConfig::default()
            };
            let hier = config.with_proxies(Tensor::zeros([2, 4], &device), Geometry::Cosine);
            let Triplets { anchors, related, unrelated } =
                hier.draw_triplets(&distances, None, &mut stream(0, "test", &[]));
            assert_eq!(anchors.len(), 6 * 30);
            for ((i, j), k) in anchors.iter().zip(&related).zip(&unrelated) {
                assert!(mutual[*i].contains(j) && !mutual[*i].contains(k));
            }
            assert_eq!(anchors.iter().zip(&unrelated).any(|(i, k)| i == k), anchor_as_unrelated);
        }
    }

    /// Random distances, some of them equal, and Gumbel draws.
    fn drawn(items: usize, proxies: usize, count: usize, step: u64) -> (Vec<f32>, [Vec<f32>; 2]) {
        let mut rng = stream(7, "test", &[step]);
        let mut distances = uniform(&mut rng, items * proxies, 0.0, 4.0);
        distances.iter_mut().step_by(3).for_each(|distance| *distance = distance.round());
        let mut gumbel = || {
            let uniform = uniform(&mut rng, count * proxies, 1e-6, 1.0 - 1e-6);
            uniform.into_iter().map(|u| -(-u.ln()).ln()).collect::<Vec<f32>>()
        };
        let gumbel = [gumbel(), gumbel()];
        (distances, gumbel)
    }

    #[test]
    fn the_pass_over_slices_agrees_with_the_tensors_for_equal_draws() {
        let device = Device::flex().autodiff();
        let (items, count) = (9, 60);
        for (step, proxies) in [2, 5, 33, 150].into_iter().enumerate() {
            let (distances, gumbel) = drawn(items, proxies, count, step as u64);
            let item = |t: usize| [t % items, (t * 5 + 1) % items, (t * 7 + 3) % items];
            let triplets = Triplets {
                anchors: (0..count).map(|t| item(t)[0]).collect(),
                related: (0..count).map(|t| item(t)[1]).collect(),
                unrelated: (0..count).map(|t| item(t)[2]).collect(),
            };
            let draws = [0.1, 0.7, 1e-12, 1e12].map(|temperature| Draw::Softmax { temperature });
            for draw in [Draw::Probability].into_iter().chain(draws) {
                for equal_ancestors in [true, false] {
                    let config = HierConfig { draw, equal_ancestors, margin: 0.2, ..HierConfig::default() };
                    let hier = config.with_proxies(Tensor::zeros([proxies, 4], &device), Geometry::Cosine);
                    let matrix = |values: &[f32], rows: usize, device: &Device| {
                        let values = values.iter().map(|&value| f64::from(value)).collect::<Vec<f64>>();
                        Tensor::<2>::from_data(TensorData::new(values, [rows, proxies]), (device, DType::F64))
                    };
                    let inputs = matrix(&distances, items, &device).require_grad();
                    let plain = Device::flex();
                    let noise = |_: Range<usize>, _: &Tensor<2>| {
                        [0, 1].map(|side| matrix(&gumbel[side], count, &plain))
                    };
                    let value = hier.mean_loss(inputs.clone(), &triplets, noise);
                    let expected = read_values(inputs.grad(&value.backward()).unwrap());
                    let on_slices = Distances { values: &distances, proxies };
                    let (got, gradient) =
                        config.ancestor_loss().mean_drawn(on_slices, &triplets, [&gumbel[0], &gumbel[1]]);
                    let name = format!("{proxies} proxies, {config:?}");
                    assert!((got - value.into_scalar::<f64>()).abs() < 1e-6, "{name}");
                    let largest = expected.iter().fold(1.0_f64, |largest, slope| largest.max(slope.abs()));
                    let per_temperature = match draw {
                        Draw::Probability => 0.0,
                        Draw::Softmax { temperature } => 1.0 / temperature,
                    };
                    // Numbers of f32 round to 10⁻⁷ of 1/τ before they cancel.
                    let tolerance = 2e-5 * largest + 2e-6 * per_temperature;
                    for (got, expected) in gradient.iter().zip(expected) {
                        let difference = (f64::from(*got) - expected).abs();
                        assert!(difference < tolerance, "{name}: {got} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn both_ways_have_the_same_mean_over_many_draws() {
        let device = Device::flex().autodiff();
        let labels = crate::taxonomy::Labels::new(1, (0..24).map(|item| item / 3).collect()).unwrap();
        let rows = uniform(&mut stream(3, "test", &[]), 24 * 4, -1.0, 1.0);
        let rows = Tensor::<2>::from_data(TensorData::new(rows, [24, 4]), &device);
        for draw in [Draw::Probability, Draw::Softmax { temperature: 0.3 }] {
            let config =
                HierConfig { proxies: 16, neighbours: 6, triplets: 20, draw, ..HierConfig::default() };
            let proxies = uniform(&mut stream(4, "test", &[]), 16 * 4, -1.0, 1.0);
            let proxies = Tensor::from_data(TensorData::new(proxies, [16, 4]), &device);
            let hier = config.with_proxies(proxies, Geometry::poincare());
            let embeddings = Geometry::poincare().embed(rows.clone());
            let mut means = [0.0_f64; 2];
            for step in 0..60 {
                let batch =
                    Batch::new(embeddings.clone(), &labels).with_draws(super::super::Draws { seed: 5, step });
                means[0] += f64::from(hier.forward(&batch).into_scalar::<f32>()) / 60.0;
                means[1] += f64::from(hier.with_noise(&batch).into_scalar::<f32>()) / 60.0;
            }
            assert_ne!(means[0], means[1], "the pass over slices is not taken");
            assert!((means[0] / means[1] - 1.0).abs() < 0.03, "{draw:?}: {means:?}");
        }
    }

    #[test]
    fn an_anchor_with_too_few_mutual_neighbours_has_no_triplet() {
        let device = Device::flex();
        let distances = Tensor::from_data(TensorData::new(line(), [6, 6]), (&device, DType::F64));
        // With one other neighbour each, rows 0, 1, 3 and 4 have one mutual neighbour and rows 2 and 5 none.
        for (fewest_neighbours, anchors) in [(1, 4), (2, 0)] {
            let config = HierConfig {
                fewest_neighbours,
                neighbours: 1,
                count_self: false,
                triplets: 1,
                ..HierConfig::default()
            };
            let hier = config.with_proxies(Tensor::zeros([2, 4], &device), Geometry::Cosine);
            let triplets = hier.draw_triplets(&distances, None, &mut stream(0, "test", &[]));
            assert_eq!(triplets.anchors.len(), anchors);
        }
    }
}
