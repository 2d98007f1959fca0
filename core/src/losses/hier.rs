//! HIER: learn a hierarchy that no label gives, by learned ancestors of triplets (Kim et al., *HIER: Metric Learning
//! Beyond Class Labels via Hierarchical Regularization*, CVPR 2023). A regulariser, alone or beside any loss.
//!
//! P *proxies* stand for ancestors. Of a triplet, two kin i, j and a stranger k, the lowest common ancestor is a proxy
//! close to all of them; that of the kin should be lower, which is closer to them, than that of all three:
//!
//! ```text
//! ρ_ij   = argmax_ρ −max(d(i,ρ), d(j,ρ)) / τ + g_ρ             g: Gumbel draws, so that this is a sample of the
//! ρ_ijk  = argmax_ρ −max(d(i,ρ), d(j,ρ), d(k,ρ)) / τ + g′_ρ    softmax; ρ_ijk is another proxy than ρ_ij
//! L(ijk) = [d(i,ρ_ij) − d(i,ρ_ijk) + δ]₊ + [d(j,ρ_ij) − d(j,ρ_ijk) + δ]₊ + [d(k,ρ_ijk) − d(k,ρ_ij) + δ]₊
//! ```
//!
//! The loss is the mean over triplets of the batch plus the mean over triplets of the proxies themselves. d is the
//! distance of the ball; on the sphere, the paper's ablation, it is 2 − 2 x·y. Proxies are features, [P, d], mapped
//! into the space as a head does.
//!
//! # Triplets
//!
//! Of each anchor i, 50 with replacement: j among its mutual neighbours, those that are among each other's K nearest,
//! and k among all others. An item is its own nearest and counts among its K. An anchor with fewer than two mutual
//! neighbours has none; without any triplet the loss is 0. Neither labels nor a reference set are used.
//!
//! # What the public code does
//!
//! Three settings, all on in the preset `hier_published`: items of one class come first among the neighbours
//! (`labels`), k may be the anchor itself (`anchor_as_stranger`), and ρ_ijk may be ρ_ij, for which the triplet counts
//! as 0 (`equal_ancestors`).
//!
//! # Gradient
//!
//! Straight through: forward the chosen proxy, backward the softmax that it was drawn from. With h the one-hot choice
//! and p that softmax, the gradient is that of the loss with h + p − detach(p) for h; a softmax that leaves ρ_ij out
//! does so as a constant. It is not the derivative of the value, which jumps. It has a closed form in the distances,
//! which is computed beside the value, a block of triplets at a time: memory is O((B + P)·P).

use std::ops::Range;

use burn::module::{Module, Param};
use burn::tensor::activation::softmax;
use burn::tensor::{Bool, IndexingUpdateOp, Int, Tensor, TensorData};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{
    Batch, BuildLoss, Family, LossContext, LossEntry, Objective, above_zero, active, not_negative, numbers,
    ones, with_gradient, within,
};
use crate::Result;
use crate::geometry::{Geometry, Space};
use crate::random::uniform;

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
    /// K, the neighbours of an item, itself included, 2 … 2¹⁴. Default 20.
    pub neighbours: usize,
    /// The triplets of each anchor, 1 … 2¹⁴. Default 50.
    pub triplets: usize,
    /// τ > 0. Default 0.1.
    pub temperature: f64,
    /// δ ≥ 0. Default 0.1.
    pub margin: f64,
    /// Whether items of one class are nearer to each other than to any other. Default false.
    pub labels: bool,
    /// Whether the stranger of a triplet may be its anchor. Default false.
    pub anchor_as_stranger: bool,
    /// Whether both ancestors may be the same proxy. Default false.
    pub equal_ancestors: bool,
}

impl Default for HierConfig {
    fn default() -> Self {
        Self {
            proxies: 512,
            neighbours: 20,
            triplets: 50,
            temperature: 0.1,
            margin: 0.1,
            labels: false,
            anchor_as_stranger: false,
            equal_ancestors: false,
        }
    }
}

impl BuildLoss for HierConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hier",
        title: "HIER",
        family: Family::Hyperbolic,
        summary: "a latent hierarchy, by learned common ancestors of triplets",
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
            summary: "Multi-Similarity of directions, regularised by a latent hierarchy",
            sources: &["kim2023", "wang2019"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "multi_similarity" } },
                    { "weight": 1.0, "loss": { "kind": "hier" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_proxy_anchor",
            title: "Proxy-Anchor + HIER",
            summary: "Proxy-Anchor of directions, regularised by a latent hierarchy",
            sources: &["kim2020", "kim2023"],
            preset: Some(
                r#"{ "kind": "sum", "terms": [
                    { "weight": 1.0, "loss": { "kind": "proxy_anchor" } },
                    { "weight": 1.0, "loss": { "kind": "hier" } }
                ] }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hier_published",
            title: "HIER (code)",
            summary: "HIER as its public code runs: neighbours by label first, any stranger, ancestors that may be equal",
            preset: Some(
                r#"{ "kind": "hier", "labels": true, "anchor_as_stranger": true, "equal_ancestors": true }"#,
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
        above_zero(Self::ENTRY.name, "temperature", self.temperature, 0.1)?;
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
    /// The loss with these proxies, [P, d], in this geometry.
    pub fn with_proxies(&self, proxies: Tensor<2>, geometry: Geometry) -> Hier {
        Hier { proxies: Param::from_tensor(proxies), config: self.clone(), geometry }
    }
}

/// The ancestors and what is asked of them.
#[derive(Module, Debug)]
pub struct Hier {
    /// [P, d], features that are mapped into the space.
    pub proxies: Param<Tensor<2>>,
    #[module(skip)]
    config: HierConfig,
    #[module(skip)]
    geometry: Geometry,
}

/// Triplets of rows: number t is `anchors[t]`, `kin[t]`, `strangers[t]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triplets {
    /// i.
    pub anchors: Vec<usize>,
    /// j, close to i.
    pub kin: Vec<usize>,
    /// k, far from i.
    pub strangers: Vec<usize>,
}

impl Objective for Hier {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let (points, proxies) = (batch.embeddings.clone(), self.geometry.embed(self.proxies.val()));
        let within_batch = self.distances(points.clone().detach(), points.clone().detach());
        let within_proxies = self.distances(proxies.clone(), proxies.clone());
        let classes = self.config.labels.then(|| batch.labels.column(batch.labels.levels()));
        let mut rng = batch.draws.stream("hier triplets");
        let of_batch = self.draw(&within_batch, classes.as_deref(), &mut rng);
        let of_proxies = self.draw(&within_proxies, None, &mut rng);

        let mut rng = batch.draws.stream("hier ancestors");
        let mut noise = |rows: Range<usize>, like: &Tensor<2>| {
            let count = rows.len();
            [gumbel(&mut rng, count, like), gumbel(&mut rng, count, like)]
        };
        let term = self.term(self.distances(points, proxies), &of_batch, &mut noise);
        term + self.term(within_proxies, &of_proxies, noise)
    }
}

impl Hier {
    /// The term of the batch and that of the proxies, with these triplets and these Gumbel draws for ρ_ij and ρ_ijk,
    /// [triplets, P] each.
    pub fn forward_drawn(
        &self,
        embeddings: Tensor<2>,
        triplets: [&Triplets; 2],
        draws: [[Tensor<2>; 2]; 2],
    ) -> [Tensor<1>; 2] {
        let proxies = self.geometry.embed(self.proxies.val());
        let [of_batch, of_proxies] = draws.map(|draws| {
            move |rows: Range<usize>, _: &Tensor<2>| {
                draws.clone().map(|draws| draws.without_autodiff().slice(rows.clone()))
            }
        });
        [
            self.term(self.distances(embeddings, proxies.clone()), triplets[0], of_batch),
            self.term(self.distances(proxies.clone(), proxies), triplets[1], of_proxies),
        ]
    }

    /// d, or on the sphere 2 − 2 x·y, of every row of x and y.
    pub fn distances(&self, x: Tensor<2>, y: Tensor<2>) -> Tensor<2> {
        let scores = self.geometry.scores(x, y);
        if self.geometry.space() == Space::Poincare { -scores } else { scores * -2.0 + 2.0 }
    }

    /// The triplets of all anchors, from the distances of all items to each other.
    fn draw(&self, distances: &Tensor<2>, classes: Option<&[u32]>, rng: &mut ChaCha8Rng) -> Triplets {
        let mutual = mutual_neighbours(&numbers(distances.clone()), self.config.neighbours, classes);
        let mut triplets = Triplets::default();
        for (anchor, kin) in mutual.iter().enumerate() {
            let far = |k: &usize| !kin.contains(k) && (*k != anchor || self.config.anchor_as_stranger);
            let strangers: Vec<usize> = (0..mutual.len()).filter(far).collect();
            if kin.len() < 2 || strangers.is_empty() {
                continue;
            }
            let mut one_of = |items: &[usize]| items[rng.random_range(0..items.len())];
            for _ in 0..self.config.triplets {
                triplets.anchors.push(anchor);
                triplets.kin.push(one_of(kin));
                triplets.strangers.push(one_of(&strangers));
            }
        }
        triplets
    }

    /// The mean over triplets of rows of `distances`, which lead to the proxies: [n, P]. `noise` gives the Gumbel
    /// draws of some triplets, like a matrix of their shape.
    fn term(
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
            let of_triplets = [&triplets.anchors, &triplets.kin, &triplets.strangers].map(|items| {
                let items: Vec<i64> = items[rows.clone()].iter().map(|&item| item as i64).collect();
                Tensor::<1, Int>::from_data(TensorData::new(items, [rows.len()]), &plain.device())
            });
            let of_items = of_triplets.clone().map(|items| plain.clone().select(0, items));
            let noise = noise(rows, &of_items[0]);
            let (loss, slopes) = self.block(of_items, noise);
            value = value + loss;
            for (items, slope) in of_triplets.into_iter().zip(slopes) {
                gradient = gradient.select_assign(0, items, slope, IndexingUpdateOp::Add);
            }
        }
        let share = 1.0 / count.max(1) as f64;
        with_gradient(distances, value * share, gradient * share)
    }

    /// The sum over some triplets, from the distances of i, j and k to every proxy, [T, P] each, and its slopes with
    /// respect to them.
    fn block(
        &self,
        [i, j, k]: [Tensor<2>; 3],
        [of_pair, of_all]: [Tensor<2>; 2],
    ) -> (Tensor<1>, [Tensor<2>; 3]) {
        let pair = i.clone().max_pair(j.clone());
        let all = pair.clone().max_pair(k.clone());
        let (low, low_chance) = self.choose(pair.clone(), of_pair, None);
        let barred = (!self.config.equal_ancestors).then(|| low.clone().greater_scalar(0.0));
        let (high, high_chance) = self.choose(all, of_all, barred);

        // d(·, ρ_ij) − d(·, ρ_ijk) is the product with this.
        let step = low - high;
        let equal = step.clone().abs().sum_dim(1).equal_scalar(0.0);
        let hinge = |distances: &Tensor<2>, sign: f64| {
            let hinge = (distances.clone() * step.clone()).sum_dim(1) * sign + self.config.margin;
            let value = hinge.clamp_min(0.0).mask_fill(equal.clone(), 0.0);
            let slope = active(&value) * sign;
            (value, slope)
        };
        let [(of_i, slope_i), (of_j, slope_j), (of_k, slope_k)] =
            [hinge(&i, 1.0), hinge(&j, 1.0), hinge(&k, -1.0)];

        // The slope of the step, and through either softmax that of the distance it goes by.
        let pull = i.clone() * slope_i.clone() + j.clone() * slope_j.clone() + k.clone() * slope_k.clone();
        let through = |chance: Tensor<2>, sign: f64| {
            let mean = (chance.clone() * pull.clone()).sum_dim(1);
            chance * (pull.clone() - mean) * (-sign / self.config.temperature)
        };
        let (to_pair, to_all) = (through(low_chance, 1.0), through(high_chance, -1.0));
        // A maximum passes its slope to the larger side, half of it to either when they are equal.
        let share = |a: &Tensor<2>, b: &Tensor<2>| (a.clone() - b.clone()).sign() * 0.5 + 0.5;
        let to_k = to_all.clone() * share(&k, &pair);
        let to_pair = to_pair + to_all - to_k.clone();
        let to_i = to_pair.clone() * share(&i, &j);
        let to_j = to_pair - to_i.clone();

        let slopes = [step.clone() * slope_i + to_i, step.clone() * slope_j + to_j, step * slope_k + to_k];
        ((of_i + of_j + of_k).sum(), slopes)
    }

    /// The choice of a proxy as a one-hot row, and the softmax that it was drawn from.
    fn choose(
        &self,
        far: Tensor<2>,
        noise: Tensor<2>,
        barred: Option<Tensor<2, Bool>>,
    ) -> (Tensor<2>, Tensor<2>) {
        let logits = far * (-1.0 / self.config.temperature) + noise;
        let logits = match barred {
            None => logits,
            Some(barred) => logits.mask_fill(barred, -1e30),
        };
        let [rows, proxies] = logits.dims();
        let numbers = Tensor::<1, Int>::arange(0..proxies as i64, &logits.device()).unsqueeze::<2>();
        let chosen = logits.clone().argmax(1).expand([rows, proxies]).equal(numbers.expand([rows, proxies]));
        (ones(chosen, &logits), softmax(logits, 1))
    }
}

/// For each item the others that are among its K nearest and it among theirs, from the distances of all, [n, n]. With
/// classes, items of one class are nearer to each other than to any other. Equal distances go by the order of items.
pub fn mutual_neighbours(distances: &[f64], neighbours: usize, classes: Option<&[u32]>) -> Vec<Vec<usize>> {
    let count = distances.len().isqrt();
    let mut near = vec![false; count * count];
    for i in 0..count {
        let of_i = &distances[i * count..][..count];
        let other = |j: usize| classes.is_some_and(|classes| classes[i] != classes[j]);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| other(a).cmp(&other(b)).then(of_i[a].total_cmp(&of_i[b])));
        order.into_iter().take(neighbours).for_each(|j| near[i * count + j] = true);
    }
    let mutual = |i: usize, j: usize| i != j && near[i * count + j] && near[j * count + i];
    (0..count).map(|i| (0..count).filter(|&j| mutual(i, j)).collect()).collect()
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
        for setting in ["\"proxies\": 1", "\"neighbours\": 1", "\"triplets\": 0", "\"temperature\": 0.0"] {
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
    fn neighbours_are_mutual_and_classes_come_first_if_asked() {
        assert_eq!(mutual_neighbours(&line(), 3, None)[0], [1, 2]);
        assert_eq!(mutual_neighbours(&line(), 2, None), [vec![1], vec![0], vec![], vec![4], vec![3], vec![]]);
        let classes = [0, 1, 2, 0, 1, 2];
        assert_eq!(mutual_neighbours(&line(), 2, Some(&classes))[0], [3]);
        assert_eq!(mutual_neighbours(&line(), 99, None)[0], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn triplets_are_kin_and_strangers_of_their_anchor() {
        let device = Device::flex();
        let mutual = mutual_neighbours(&line(), 3, None);
        let distances = Tensor::from_data(TensorData::new(line(), [6, 6]), (&device, DType::F64));
        for anchor_as_stranger in [false, true] {
            let config =
                HierConfig { anchor_as_stranger, neighbours: 3, triplets: 30, ..HierConfig::default() };
            let hier = config.with_proxies(Tensor::zeros([2, 4], &device), Geometry::Cosine);
            let Triplets { anchors, kin, strangers } =
                hier.draw(&distances, None, &mut stream(0, "test", &[]));
            assert_eq!(anchors.len(), 6 * 30);
            for ((i, j), k) in anchors.iter().zip(&kin).zip(&strangers) {
                assert!(mutual[*i].contains(j) && !mutual[*i].contains(k));
            }
            assert_eq!(anchors.iter().zip(&strangers).any(|(i, k)| i == k), anchor_as_stranger);
        }
    }
}
