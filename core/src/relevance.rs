//! How much an item matters to a query: a number from the level they share.

use serde::{Deserialize, Serialize};

use crate::{Error, Kind, Result};

/// How relevance follows from the shared level l (1 … L) and the sizes |Ω(l)|. A stranger's is always 0.
///
/// With [`HierarchicalAp`](Self::HierarchicalAp) a rare coarse level can outweigh a finer one, so that the ideal
/// order, by decreasing relevance, is not always the order by level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Relevance {
    /// rel = (l/L)^α / |Ω(l)|: HAPPIER, eq. 4. Each level as a whole weighs (l/L)^α, however many items it has.
    HierarchicalAp {
        /// α ≥ 0: how strongly finer levels are preferred.
        #[serde(default = "linear")]
        alpha: f64,
    },
    /// rel = Σ_{p ≤ l} w_p / |Ω(p) ∪ … ∪ Ω(L)|: HAPPIER, property 1. H-AP is then Σ_p w_p AP^(p), where the
    /// weights of levels without positives are left out and the others rescaled to sum to 1.
    WeightedAp {
        /// w_1 … w_L, coarse → fine, each ≥ 0.
        weights: Vec<f64>,
    },
    /// rel = (l/L)^α, whatever the class sizes: the relevance of HAPPIER's worked figures.
    Plain {
        /// α ≥ 0: how strongly finer levels are preferred.
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

impl Relevance {
    /// Checks the settings for a taxonomy of `depth` levels.
    ///
    /// # Errors
    ///
    /// [`Kind::Config`] when α or a weight is negative or not finite, all weights are 0, or their number is not L.
    pub fn validate(&self, depth: usize) -> Result<()> {
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        match self {
            Self::HierarchicalAp { alpha } | Self::Plain { alpha } if !usable(*alpha) => Err(Error::new(
                Kind::Config,
                format!("the relevance exponent alpha is {alpha}"),
                "choose a finite number of at least 0; the papers use 1",
            )),
            Self::WeightedAp { weights } if weights.len() != depth => Err(Error::new(
                Kind::Config,
                format!("{} relevance weights were given for {depth} levels", weights.len()),
                "give one weight per level, coarse to fine",
            )),
            Self::WeightedAp { weights }
                if !weights.iter().all(|&w| usable(w)) || !usable(1.0 / weights.iter().sum::<f64>()) =>
            {
                Err(Error::new(
                    Kind::Config,
                    format!("the relevance weights {weights:?} cannot be used"),
                    "choose finite numbers of at least 0, not all 0",
                ))
            }
            _ => Ok(()),
        }
    }

    /// rel for each shared level 0 … L of one query, from `counts[l]` = |Ω(l)|, l = 0 … L.
    ///
    /// rel\[0\] is 0, and so is that of a level without items. O(L²) at most, L being small.
    pub fn by_level(&self, counts: &[usize]) -> Vec<f64> {
        let depth = counts.len() - 1;
        let power = |level: usize, alpha: f64| (level as f64 / depth as f64).powf(alpha);
        let mut table = vec![0.0; counts.len()];
        for level in (1..=depth).filter(|&level| counts[level] > 0) {
            table[level] = match self {
                Self::HierarchicalAp { alpha } => power(level, *alpha) / counts[level] as f64,
                Self::Plain { alpha } => power(level, *alpha),
                Self::WeightedAp { weights } => (1..=level)
                    .zip(weights)
                    .map(|(p, weight)| weight / counts[p..].iter().sum::<usize>() as f64)
                    .sum(),
            };
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_weighs_alike_however_many_items_it_has() {
        let table = Relevance::HierarchicalAp { alpha: 1.0 }.by_level(&[9, 3, 1, 2]);
        assert_eq!(table, [0.0, 1.0 / 3.0 / 3.0, 2.0 / 3.0, 0.5]);
        let table = Relevance::Plain { alpha: 2.0 }.by_level(&[9, 3, 1]);
        assert_eq!(table, [0.0, 0.25, 1.0]);
        let table = Relevance::WeightedAp { weights: vec![0.5, 0.5] }.by_level(&[9, 3, 1]);
        assert_eq!(table, [0.0, 0.125, 0.625]);
    }

    #[test]
    fn a_stranger_is_irrelevant_whatever_the_exponent() {
        for relevance in [Relevance::HierarchicalAp { alpha: 0.0 }, Relevance::Plain { alpha: 0.0 }] {
            assert_eq!(relevance.by_level(&[4, 1, 1]), [0.0, 1.0, 1.0]);
        }
    }

    #[test]
    fn an_empty_level_has_no_relevance() {
        let table = Relevance::HierarchicalAp { alpha: 1.0 }.by_level(&[4, 2, 0]);
        assert_eq!(table, [0.0, 0.25, 0.0]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for alpha in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Relevance::Plain { alpha }.validate(2).is_err());
        }
        for weights in [vec![], vec![1.0], vec![0.0, 0.0], vec![1.0, -0.5], vec![f64::NAN, 1.0]] {
            assert!(Relevance::WeightedAp { weights }.validate(2).is_err());
        }
        assert!(Relevance::WeightedAp { weights: vec![0.0, 1.0] }.validate(2).is_ok());
        assert!(Relevance::default().validate(2).is_ok());
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
