//! What a ranked item is worth: a function of its ranks, with its slopes.

use super::{ScoredPlaces, Sums};

/// The value of a ranking: a sum over its ranked items that is 1 for the best order.
#[derive(Clone, Debug, PartialEq)]
pub enum RankValue {
    /// Σ_k above_k / rank_k ÷ Σ_k rel_k: AP and H-AP.
    Precision,
    /// Σ_k rel_k / log2(1 + rank_k) ÷ the same sum in the order of relevance: NDCG.
    DiscountedGain,
    /// The mean over the cut-offs K of Σ_k σ((K − rank_k) / T) ÷ min(K, number of ranked items): recall.
    Recall {
        /// The cut-offs K, at least one, each at least 1.
        cutoffs: Vec<usize>,
        /// T > 0, the width of the sigmoid, in ranks.
        temperature: f64,
    },
}

impl RankValue {
    /// Whether the value depends on the H-rank too.
    pub(super) fn counts_above(&self) -> bool {
        *self == Self::Precision
    }

    /// The values of the items of one query; none if no item has a relevance.
    pub(crate) fn item_values(&self, items: &ScoredPlaces) -> Option<ItemValues> {
        let mut counts = vec![0_usize; items.relevances.len()];
        items.places.iter().for_each(|&place| counts[place as usize] += 1);
        let groups = || items.relevances.iter().copied().zip(counts.iter().copied());
        let total: f64 = groups().map(|(relevance, count)| relevance * count as f64).sum();
        if total <= 0.0 {
            return None;
        }
        Some(match self {
            Self::Precision => ItemValues::Quotient { weight: 1.0 / total },
            Self::DiscountedGain => {
                let mut groups: Vec<(f64, usize)> = groups().collect();
                groups.sort_by(|a, b| b.0.total_cmp(&a.0));
                let gains = groups.into_iter().flat_map(|(gain, count)| std::iter::repeat_n(gain, count));
                let gains = gains.take_while(|&gain| gain > 0.0).zip(1_u32..);
                let ideal: f64 = gains.map(|(gain, rank)| gain / f64::from(1 + rank).log2()).sum();
                ItemValues::Discount { weight: 1.0 / ideal }
            }
            Self::Recall { cutoffs, temperature } => {
                let ranked: usize =
                    groups().filter(|(relevance, _)| *relevance > 0.0).map(|(_, count)| count).sum();
                let share = |&cutoff: &usize| {
                    (cutoff as f64, 1.0 / (cutoffs.len() as f64 * cutoff.min(ranked) as f64))
                };
                ItemValues::Hits {
                    cutoffs: cutoffs.iter().map(share).collect(),
                    per_temperature: 1.0 / temperature,
                }
            }
        })
    }
}

/// The values of the ranked items of one query.
pub(crate) enum ItemValues {
    /// w · above / rank.
    Quotient { weight: f64 },
    /// w · rel / log2(1 + rank).
    Discount { weight: f64 },
    /// Σ w_K · σ((K − rank) / T), with K and w_K of each cut-off.
    Hits { cutoffs: Vec<(f64, f64)>, per_temperature: f64 },
}

/// The value of an item and its slopes along both ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ItemValue {
    pub value: f64,
    pub above_slope: f64,
    pub rank_slope: f64,
}

impl ItemValues {
    /// The value of an item with these ranks.
    #[inline(always)]
    pub(super) fn at(&self, sums: &Sums, relevance: f64) -> ItemValue {
        match self {
            Self::Quotient { weight } => {
                let quotient = sums.above / sums.rank;
                let above_slope = weight / sums.rank;
                ItemValue { value: weight * quotient, above_slope, rank_slope: -above_slope * quotient }
            }
            Self::Discount { weight } => {
                let gain = weight * relevance;
                let logarithm = sums.rank.ln_1p() * std::f64::consts::LOG2_E;
                let value = gain / logarithm;
                let rank_slope = -value / logarithm * std::f64::consts::LOG2_E / (1.0 + sums.rank);
                ItemValue { value, above_slope: 0.0, rank_slope }
            }
            Self::Hits { cutoffs, per_temperature } => {
                let mut item = ItemValue::default();
                for (cutoff, weight) in cutoffs {
                    let hit = 1.0 / (1.0 + ((sums.rank - cutoff) * per_temperature).exp());
                    item.value += weight * hit;
                    item.rank_slope -= weight * hit * (1.0 - hit) * per_temperature;
                }
                item
            }
        }
    }
}
