//! HPL: one loss of proxies on several levels at once; the coarser proxies are means of the finer ones.
//!
//! ```text
//! L = Σ_l w_l · L_proxy(X, P_l)
//! ```
//!
//! L_proxy is [`proxy_anchor`](super::proxy_anchor) or [`proxy_nca`](super::proxy_nca), with the same settings on
//! every level (Yang et al., WACV 2022). The finest level has one learned proxy a fine class. On a coarser level an
//! item's positive is the proxy of the group that the proxy of its class is in, and the proxy of a group is its mean
//! direction: with G_k the classes of group k, and p̂ of unit length,
//!
//! ```text
//! ĝ_k = Σ_{c ∈ G_k} p̂_c / ‖Σ_{c ∈ G_k} p̂_c‖
//! ```
//!
//! The groups are either clusters of the fine proxies, which one coarser level is made of, or, in the paper's variant
//! GT (ground truth), the classes of the taxonomy, at each of its coarser levels. Every T steps they are brought up to
//! date with the fine proxies, before the step:
//!
//! - the means are taken anew;
//! - clusters go on from where they were, as online clustering does: each fine proxy joins the group whose ĝ is nearest
//!   to it by cosine (the first of equally near ones), a group left empty takes the proxy that fits its own group of
//!   several worst, the means are taken, and this again until nothing changes, at most ten times.
//!
//! The first clusters grow in the same way around fine proxies drawn without repetition from the seed.
//!
//! # What is the paper's, and what is read into it
//!
//! There is no public code, and this was built from the paper's abstract and the settings of its supplement, without
//! its equations at hand. From there are: proxies on several levels, clusters found online every T steps (10 to 80 were
//! tried, with little difference; 50 is the default here), 12 to 500 clusters, embeddings and proxies of unit length,
//! the same settings on every level, the variant GT. Choices made here: k-means by cosine, as everything is
//! compared by cosine; that it goes on from the last groups; that the coarse proxies have no gradient, so that they
//! stay where they are between two updates; equal weights; a tenth of the classes as the number of clusters;
//! ProxyNCA++ in the presets `hpl_proxy_nca` and `hpl_proxy_nca_gt`. With learned coarse proxies GT is the same loss
//! on every level of the taxonomy: that is `levels`, with the presets `sum_proxy_anchor` and `sum_proxy_nca`.
//!
//! Embeddings are [B, d], fine proxies [C, d], those of a coarser level [K, d]. Groups and their proxies are parameters
//! without gradient, so that a checkpoint has them. What happens without positives and at ties is said of the two
//! losses.

use burn::module::{Module, Param};
use burn::tensor::{Int, Tensor, TensorData};
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use super::levels::level_weights;
use super::{
    Batch, BuildLoss, Draws, Family, LossContext, LossEntry, Objective, ProxyAnchorConfig, ProxyNcaConfig,
    buffer, membership, one_hot, read_values, replace_buffer,
};
use crate::geometry::Space;
use crate::geometry::normalise;
use crate::{Error, Kind, Result};

/// How often clusters are assigned anew in one update, unless they come to rest before.
const ROUNDS: usize = 10;

/// Settings of [`HierarchicalProxy`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct HierarchicalProxyConfig {
    /// The loss of each level. Default: Proxy-Anchor.
    pub loss: ProxyLoss,
    /// What the coarser levels are. Default: clusters.
    pub coarse: Coarse,
    /// How the coarse proxies move. Default: only in updates.
    pub coarse_proxies: CoarseProxies,
    /// T ≥ 1, in steps. Default 50.
    pub every: u64,
    /// The weight of each level, coarse → fine, each ≥ 0, not all 0. Default: 1 each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
}

/// A loss between embeddings and proxies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProxyLoss {
    /// [Proxy-Anchor](super::proxy_anchor).
    ProxyAnchor(ProxyAnchorConfig),
    /// [Proxy-NCA](super::proxy_nca).
    ProxyNca(ProxyNcaConfig),
}

/// What the coarser levels are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Coarse {
    /// One level of clusters of the fine proxies.
    Clusters {
        /// K, 1 … C. Default: a tenth of the fine classes, from 2 to 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<usize>,
    },
    /// The coarser levels of the taxonomy.
    Taxonomy,
}

/// How the coarse proxies move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CoarseProxies {
    /// Only in updates, which set them to the mean directions; constants in between.
    #[default]
    Fixed,
    /// They are learned like the fine proxies. An update of clusters sets them to the mean directions again; those of
    /// a taxonomy begin there and are learned alone.
    Learned,
    /// They are the mean directions of the fine proxies in every step, and the gradient reaches the fine proxies.
    Means,
}

impl Default for HierarchicalProxyConfig {
    fn default() -> Self {
        Self {
            loss: ProxyLoss::ProxyAnchor(ProxyAnchorConfig::default()),
            coarse: Coarse::Clusters { count: None },
            coarse_proxies: CoarseProxies::Fixed,
            every: 50,
            weights: None,
        }
    }
}

/// Learned fine proxies, and those of the coarser levels.
#[derive(Module, Debug)]
pub struct HierarchicalProxy {
    /// [C, d], of any length.
    pub proxies: Param<Tensor<2>>,
    /// The coarser levels, coarse → fine.
    pub groups: Vec<Groups>,
    #[module(skip)]
    weights: Vec<f64>,
    #[module(skip)]
    config: HierarchicalProxyConfig,
}

/// The groups of one coarser level.
#[derive(Module, Debug)]
pub struct Groups {
    /// [C, K]: 1 at the group of each fine class.
    pub members: Param<Tensor<2>>,
    /// [K, d], of unit length: their mean directions.
    pub proxies: Param<Tensor<2>>,
}

impl BuildLoss for HierarchicalProxyConfig {
    const ENTRY: LossEntry = LossEntry {
        name: "hierarchical_proxy",
        title: "HPL",
        family: Family::Hierarchical,
        summary: "a loss of proxies, and the same between items and clusters of the proxies",
        optimises: "ap",
        spaces: &[Space::Cosine],
        sources: &["yang2022"],
        complete: true,
        preset: None,
    };
    const PRESETS: &'static [LossEntry] = &[
        LossEntry {
            name: "hpl_proxy_anchor",
            title: "HPL-PA",
            summary: "HPL over Proxy-Anchor: fine proxies, and clusters of them",
            preset: Some(r#"{ "kind": "hierarchical_proxy", "loss": { "kind": "proxy_anchor" } }"#),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hpl_proxy_anchor_gt",
            title: "HPL-PA-GT",
            summary: "HPL over Proxy-Anchor: fine proxies, and their means over each coarser class",
            optimises: "h_ap",
            preset: Some(
                r#"{ "kind": "hierarchical_proxy", "loss": { "kind": "proxy_anchor" }, "coarse": { "kind": "taxonomy" } }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hpl_proxy_nca",
            title: "HPL-NCA",
            summary: "HPL over ProxyNCA++: fine proxies, and clusters of them",
            preset: Some(
                r#"{ "kind": "hierarchical_proxy",
                     "loss": { "kind": "proxy_nca", "scale": 9.0, "denominator": "all", "proxy_deviation": 0.125 } }"#,
            ),
            ..Self::ENTRY
        },
        LossEntry {
            name: "hpl_proxy_nca_gt",
            title: "HPL-NCA-GT",
            summary: "HPL over ProxyNCA++: fine proxies, and their means over each coarser class",
            optimises: "h_ap",
            preset: Some(
                r#"{ "kind": "hierarchical_proxy", "coarse": { "kind": "taxonomy" },
                     "loss": { "kind": "proxy_nca", "scale": 9.0, "denominator": "all", "proxy_deviation": 0.125 } }"#,
            ),
            ..Self::ENTRY
        },
    ];
    type Loss = HierarchicalProxy;

    fn init(&self, context: &LossContext) -> Result<HierarchicalProxy> {
        if self.every == 0 {
            return Err(Error::new(
                Kind::Config,
                "the coarse proxies of hierarchical_proxy are to follow every 0 steps",
                "give at least 1; 50 is usual",
            ));
        }
        let classes = context.fine_classes();
        let proxies = match &self.loss {
            ProxyLoss::ProxyAnchor(loss) => loss.proxies(context, classes)?,
            ProxyLoss::ProxyNca(loss) => loss.proxies(context, classes)?,
        };
        let directions = normalise(proxies.val().detach());
        let learned = self.coarse_proxies == CoarseProxies::Learned;
        let groups = match self.coarse {
            Coarse::Clusters { count } => {
                let count = count.unwrap_or_else(|| (classes / 10).clamp(2, 500).min(classes));
                if !(1..=classes).contains(&count) {
                    return Err(Error::new(
                        Kind::Config,
                        format!("hierarchical_proxy is to have {count} clusters of {classes} fine classes"),
                        format!("give from 1 to {classes}, or leave the number out"),
                    ));
                }
                let mut first = sample(&mut context.stream("clusters"), classes, count).into_vec();
                first.sort_unstable();
                vec![Groups::clustered(&directions, &first, learned)]
            }
            Coarse::Taxonomy => (1..context.levels())
                .map(|level| {
                    let of_classes = context.classes.column(level);
                    Groups::new(&directions, &of_classes, context.class_count(level), learned)
                })
                .collect(),
        };
        let weights = level_weights(self.weights.as_deref(), groups.len() + 1)?;
        Ok(HierarchicalProxy { proxies, groups, weights, config: self.clone() })
    }
}

impl HierarchicalProxy {
    /// Brings the coarser levels up to date with the fine proxies.
    pub fn update(&mut self) {
        let directions = normalise(self.proxies.val().detach());
        for groups in &mut self.groups {
            match (self.config.coarse, self.config.coarse_proxies) {
                (Coarse::Clusters { .. }, _) => groups.cluster(&directions),
                (Coarse::Taxonomy, CoarseProxies::Learned) => {}
                (Coarse::Taxonomy, _) => groups.average(&directions),
            }
        }
    }
}

impl Objective for HierarchicalProxy {
    fn forward(&self, batch: &Batch) -> Tensor<1> {
        let level = |proxies: Tensor<2>, own: Tensor<2>, weight: f64| {
            let embeddings = batch.embeddings.clone();
            weight
                * match &self.config.loss {
                    ProxyLoss::ProxyAnchor(loss) => loss.value(embeddings, proxies, own),
                    ProxyLoss::ProxyNca(loss) => loss.value(embeddings, proxies, own),
                }
        };
        let proxies = self.proxies.val();
        let own = one_hot(batch.labels, proxies.dims()[0], &batch.embeddings);
        let coarse = self.groups.iter().zip(&self.weights).map(|(groups, &weight)| {
            let coarse = match self.config.coarse_proxies {
                CoarseProxies::Means => means(&normalise(proxies.clone()), &groups.members.val()),
                CoarseProxies::Fixed | CoarseProxies::Learned => groups.proxies.val(),
            };
            level(coarse, own.clone().matmul(groups.members.val()), weight)
        });
        let fine = level(proxies.clone(), own.clone(), self.weights[self.groups.len()]);
        coarse.fold(fine, |sum, level| sum + level)
    }

    fn before_step(&mut self, draws: Draws) {
        if draws.step.is_multiple_of(self.config.every) {
            self.update();
        }
    }
}

impl Groups {
    /// Groups of given members around fine proxies of unit length.
    fn new(directions: &Tensor<2>, group_of_class: &[u32], count: usize, learned: bool) -> Self {
        let members = membership(group_of_class, count, directions);
        let proxies = buffer(means(directions, &members)).set_require_grad(learned);
        Self { members: buffer(members), proxies }
    }

    /// Clusters of fine proxies of unit length, grown around some of them.
    fn clustered(directions: &Tensor<2>, first: &[usize], learned: bool) -> Self {
        let rows = TensorData::from(first.iter().map(|&class| class as i64).collect::<Vec<_>>().as_slice());
        let seeds = directions.clone().select(0, Tensor::<1, Int>::from_data(rows, &directions.device()));
        let mut groups = Self::new(directions, &nearest(directions, &seeds), first.len(), learned);
        groups.cluster(directions);
        groups
    }

    /// Assigns classes to groups and takes the means, in turn, until nothing changes.
    fn cluster(&mut self, directions: &Tensor<2>) {
        let mut last = None;
        for _ in 0..ROUNDS {
            let group_of_class = nearest(directions, &self.proxies.val());
            if last.as_ref() == Some(&group_of_class) {
                break;
            }
            let count = self.proxies.dims()[0];
            let members = membership(&group_of_class, count, directions);
            self.members = replace_buffer(&self.members, members);
            self.average(directions);
            last = Some(group_of_class);
        }
    }

    /// Takes the mean directions.
    fn average(&mut self, directions: &Tensor<2>) {
        let learned = self.proxies.is_require_grad();
        let proxies = replace_buffer(&self.proxies, means(directions, &self.members.val()));
        self.proxies = proxies.set_require_grad(learned);
    }
}

/// The group of each class, whose proxy is nearest to its own; no group is left empty. Both sides are of unit length.
fn nearest(directions: &Tensor<2>, groups: &Tensor<2>) -> Vec<u32> {
    let count = groups.dims()[0];
    let groups = normalise(groups.clone().detach()).transpose();
    let (fits, nearest) = directions.clone().matmul(groups).max_dim_with_indices(1);
    let fits = read_values(fits);
    let mut of_classes: Vec<u32> = nearest.into_data().iter().collect();
    let mut sizes = vec![0; count];
    of_classes.iter().for_each(|&group| sizes[group as usize] += 1);
    for empty in 0..count {
        if sizes[empty] > 0 {
            continue;
        }
        let worst = (0..of_classes.len())
            .filter(|&class| sizes[of_classes[class] as usize] > 1)
            .min_by(|&a, &b| fits[a].total_cmp(&fits[b]))
            .expect("there are at least as many classes as groups, so one has two where one has none");
        sizes[of_classes[worst] as usize] -= 1;
        sizes[empty] = 1;
        of_classes[worst] = empty as u32;
    }
    of_classes
}

/// The mean direction of each group, [K, d].
fn means(directions: &Tensor<2>, members: &Tensor<2>) -> Tensor<2> {
    normalise(members.clone().transpose().matmul(directions.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::testing::refusal;
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let clusters = |count| HierarchicalProxyConfig {
            coarse: Coarse::Clusters { count: Some(count) },
            ..Default::default()
        };
        let error = refusal(&clusters(5));
        assert_eq!(error.message(), "hierarchical_proxy is to have 5 clusters of 4 fine classes");
        assert_eq!(error.hint(), "give from 1 to 4, or leave the number out");
        refusal(&clusters(0));
        refusal(&HierarchicalProxyConfig { every: 0, ..Default::default() });
        refusal(&HierarchicalProxyConfig { weights: Some(vec![1.0; 3]), ..Default::default() });
        let loss = ProxyLoss::ProxyNca(ProxyNcaConfig { scale: 0.0, ..Default::default() });
        refusal(&HierarchicalProxyConfig { loss, ..Default::default() });
    }
}
