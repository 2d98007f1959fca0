//! Relevance: how much an item matters to a query, computed from the level that the two share.
//!
//! Where labels are unknown, that level may be an interval. Such a pair is left out, and |Ω(l)| is the weight of the decided
//! items of level l, see [`CheckedRelevance::by_mass`] and [`crate::unknown`].

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::taxonomy::Labels;
use crate::{Error, Kind, Result};

/// How relevance is computed from the shared level l (1 … L) and the sizes |Ω(l)|, as a config names it. A stranger's
/// relevance is always 0.
///
/// This is the config form; [`checked`](Self::checked) turns it into the form that metrics and losses compute with.
///
/// With [`HierarchicalAp`](Self::HierarchicalAp) an item of a rare coarse level can be more relevant than one of a
/// finer level. The ideal order, by decreasing relevance, is then not the order by level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Relevance {
    /// rel = (l/L)^α / |Ω(l)|: HAPPIER, eq. 4. Each level as a whole weighs (l/L)^α, however many items it has.
    HierarchicalAp {
        /// α ≥ 0: how strongly finer levels are preferred. Default 1.
        #[serde(default = "linear")]
        alpha: f64,
    },
    /// rel = Σ_{p ≤ l} w_p / |Ω(p) ∪ … ∪ Ω(L)|: HAPPIER, property 1. H-AP is then Σ_p w_p AP^(p). The weights of levels
    /// without positives are left out and the others rescaled to sum to 1.
    WeightedAp {
        /// w_1 … w_L, coarse → fine, each ≥ 0, not all 0.
        weights: Vec<f64>,
    },
    /// rel = (l/L)^α, whatever the class sizes: the relevance of HAPPIER's worked figures.
    Plain {
        /// α ≥ 0: how strongly finer levels are preferred. Default 1.
        #[serde(default = "linear")]
        alpha: f64,
    },
}

fn linear() -> f64 {
    1.0
}

impl Default for Relevance {
    fn default() -> Self {
        Self::HierarchicalAp { alpha: linear() }
    }
}

/// Reads `hierarchical_ap`, `plain`, each with an exponent if it is not 1 (`plain:2`), and `weighted_ap:0.2,0.3,0.5`.
impl FromStr for Relevance {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (kind, numbers) = text.split_once(':').unwrap_or((text, ""));
        let numbers = numbers.split(',').filter(|number| !number.is_empty());
        let numbers: Option<Vec<f64>> = numbers.map(|number| number.trim().parse().ok()).collect();
        match (kind, numbers.as_deref()) {
            ("hierarchical_ap", Some([])) => Ok(Self::HierarchicalAp { alpha: linear() }),
            ("hierarchical_ap", Some(&[alpha])) => Ok(Self::HierarchicalAp { alpha }),
            ("plain", Some([])) => Ok(Self::Plain { alpha: linear() }),
            ("plain", Some(&[alpha])) => Ok(Self::Plain { alpha }),
            ("weighted_ap", Some(weights @ [_, ..])) => Ok(Self::WeightedAp { weights: weights.to_vec() }),
            _ => Err(Error::new(
                Kind::Config,
                format!("there is no relevance `{text}`"),
                "write hierarchical_ap, hierarchical_ap:ALPHA, plain, plain:ALPHA or weighted_ap:W1,…,WL",
            )),
        }
    }
}

impl Relevance {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when α or a weight is negative or not finite, when the weights sum to 0 or to more than single
    /// precision holds, or when there is not one weight per level.
    pub fn checked(&self, depth: usize) -> Result<CheckedRelevance> {
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        // Losses compute in single precision, and a sum of relevances must not overflow.
        let is_in_range = |sum: f64| (sum as f32).is_normal();
        match self {
            Self::HierarchicalAp { alpha } | Self::Plain { alpha } if !usable(*alpha) => Err(Error::new(
                Kind::Config,
                format!("the exponent alpha of the relevance is {alpha}"),
                "choose a finite number of at least 0; the papers use 1",
            )),
            Self::WeightedAp { weights } if weights.len() != depth => Err(Error::new(
                Kind::Config,
                format!("the relevance has {} weights for {depth} levels", weights.len()),
                "give one weight per level, coarse to fine",
            )),
            Self::WeightedAp { weights }
                if !weights.iter().all(|&w| usable(w)) || !is_in_range(weights.iter().sum()) =>
            {
                Err(Error::new(
                    Kind::Config,
                    format!("the relevance has the weights {weights:?}"),
                    "choose finite numbers of at least 0, not all 0; only their ratios count, so let them sum to 1",
                ))
            }
            _ => {
                let heights = (1..=depth).map(|level| level as f64 / depth as f64).collect();
                Ok(CheckedRelevance { relevance: self.clone(), heights })
            }
        }
    }

    /// As [`checked`](Self::checked), for labels that may have a matrix of relevance: its values then take the place of l/L,
    /// see [`Labels::heights`].
    ///
    /// # Errors
    ///
    /// As [`checked`](Self::checked).
    pub fn checked_for(&self, labels: &Labels) -> Result<CheckedRelevance> {
        Ok(CheckedRelevance { heights: labels.heights(), ..self.checked(labels.levels())? })
    }
}

/// A [`Relevance`] whose settings fit a taxonomy of L levels.
///
/// Only [`Relevance::checked`] makes one, so that no wrong exponent or number of weights reaches a computation.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedRelevance {
    relevance: Relevance,
    /// How much each level 1 … L means: l/L in a tree.
    heights: Vec<f64>,
}

impl CheckedRelevance {
    /// rel of each shared level 0 … L for one query, from `counts[l]` = |Ω(l)|, l = 0 … L.
    ///
    /// rel\[0\] is 0, and so is the relevance of a level without items. O(L²) at most.
    ///
    /// # Panics
    ///
    /// When `counts` has another number of levels than the relevance was checked for.
    pub fn by_level(&self, counts: &[usize]) -> Vec<f64> {
        self.by_mass(&counts.iter().map(|&count| count as f64).collect::<Vec<f64>>())
    }

    /// As [`by_level`](Self::by_level), from the weights of all items of each shared level, see [`crate::unknown`].
    ///
    /// # Panics
    ///
    /// As [`by_level`](Self::by_level).
    pub fn by_mass(&self, masses: &[f64]) -> Vec<f64> {
        let depth = self.heights.len();
        assert_eq!(masses.len(), depth + 1, "the relevance was checked for {depth} levels");
        let power = |level: usize, alpha: f64| self.heights[level - 1].powf(alpha);
        let mut rel = vec![0.0; masses.len()];
        for level in (1..=depth).filter(|&level| masses[level] > 0.0) {
            rel[level] = match &self.relevance {
                Relevance::HierarchicalAp { alpha } => power(level, *alpha) / masses[level],
                Relevance::Plain { alpha } => power(level, *alpha),
                Relevance::WeightedAp { weights } => {
                    (1..=level).zip(weights).map(|(p, weight)| weight / masses[p..].iter().sum::<f64>()).sum()
                }
            };
        }
        rel
    }

    /// Whether relevance never falls as the level rises, whatever the class sizes are.
    pub fn rises(&self) -> bool {
        !matches!(self.relevance, Relevance::HierarchicalAp { .. })
    }

    /// w_1 … w_L of a [`Relevance::WeightedAp`], and 1 for every level with any other relevance.
    pub fn level_weights(&self) -> Vec<f64> {
        match &self.relevance {
            Relevance::WeightedAp { weights } => weights.clone(),
            _ => vec![1.0; self.heights.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_level(relevance: Relevance, counts: &[usize]) -> Vec<f64> {
        relevance.checked(counts.len() - 1).unwrap().by_level(counts)
    }

    #[test]
    fn the_items_of_a_level_share_its_weight() {
        let rel = by_level(Relevance::HierarchicalAp { alpha: 1.0 }, &[9, 3, 1, 2]);
        assert_eq!(rel, [0.0, 1.0 / 3.0 / 3.0, 2.0 / 3.0, 0.5]);
        assert_eq!(by_level(Relevance::Plain { alpha: 2.0 }, &[9, 3, 1]), [0.0, 0.25, 1.0]);
        let rel = by_level(Relevance::WeightedAp { weights: vec![0.5, 0.5] }, &[9, 3, 1]);
        assert_eq!(rel, [0.0, 0.125, 0.625]);
    }

    #[test]
    fn a_stranger_is_irrelevant_whatever_the_exponent() {
        for relevance in [Relevance::HierarchicalAp { alpha: 0.0 }, Relevance::Plain { alpha: 0.0 }] {
            assert_eq!(by_level(relevance, &[4, 1, 1]), [0.0, 1.0, 1.0]);
        }
    }

    #[test]
    fn an_empty_level_has_no_relevance() {
        assert_eq!(by_level(Relevance::HierarchicalAp { alpha: 1.0 }, &[4, 2, 0]), [0.0, 0.25, 0.0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for alpha in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Relevance::Plain { alpha }.checked(2).is_err());
        }
        for weights in [vec![0.0, 0.0], vec![1.0, -0.5], vec![f64::NAN, 1.0], vec![1e308; 2], vec![1e-300; 2]]
        {
            assert!(Relevance::WeightedAp { weights }.checked(2).is_err());
        }
        for weights in [vec![0.0, 1.0], vec![1e30; 2], vec![1e-30; 2]] {
            assert!(Relevance::WeightedAp { weights }.checked(2).is_ok());
        }
        assert!(Relevance::default().checked(2).is_ok());
    }

    #[test]
    fn too_few_or_too_many_weights_are_refused() {
        for weights in [vec![], vec![1.0], vec![1.0; 3]] {
            let count = weights.len();
            let error = Relevance::WeightedAp { weights }.checked(2).unwrap_err();
            assert_eq!(error.message(), format!("the relevance has {count} weights for 2 levels"));
        }
    }

    #[test]
    #[should_panic(expected = "the relevance was checked for 2 levels")]
    fn a_relevance_is_not_used_at_another_depth() {
        Relevance::WeightedAp { weights: vec![0.5, 0.5] }.checked(2).unwrap().by_level(&[9, 3, 1, 2]);
    }

    #[test]
    fn unknown_settings_are_refused() {
        let read = |json| serde_json::from_str::<Relevance>(json);
        assert_eq!(read(r#"{"kind": "hierarchical_ap"}"#).unwrap(), Relevance::default());
        assert_eq!(read(r#"{"kind": "plain", "alpha": 3.0}"#).unwrap(), Relevance::Plain { alpha: 3.0 });
        assert!(read(r#"{"kind": "plain", "aplha": 3.0}"#).is_err());
        assert!(read(r#"{"kind": "fancy"}"#).is_err());
    }
}
