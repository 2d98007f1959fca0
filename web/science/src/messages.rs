//! The objects that cross between the module and JavaScript. The page's types are made from them:
//! the test below writes `www/src/messages/science.ts`.
//!
//! A score is `None` where the query has no positive to measure. Levels run coarse to fine.

use akin_core::query_losses::{HapSurrogateConfig, RoadmapConfig, SmoothApConfig, SupApConfig};
use akin_core::ranking::TiePolicy;
use akin_core::relevance::Relevance;
use akin_core::steps::{LowerStep, UpperStep};
use serde::{Deserialize, Serialize};

/// A ranking.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct RankingInput {
    /// L, the number of levels.
    pub depth: usize,
    /// The shared level of each item, 0 … L, best first.
    pub levels: Vec<usize>,
    /// The tie group of each item, which never falls along the ranking; equal groups are tied. Without them there are no
    /// ties.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub ties: Option<Vec<usize>>,
}

/// How a ranking is scored.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct ScoreSettings {
    /// What an item's relevance follows from.
    pub relevance: Relevance,
    /// How ties are ranked.
    pub ties: TiePolicy,
    /// Whether |Ω(L)| counts the query itself.
    pub count_query: bool,
}

/// The scores of a ranking.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Scores {
    /// AP at each level.
    pub ap: Vec<Option<f64>>,
    /// H-AP.
    pub h_ap: Option<f64>,
    /// The weighted mean of AP over the levels.
    pub weighted_ap: Option<f64>,
    /// NDCG.
    pub ndcg: Option<f64>,
    /// ASI.
    pub asi: Option<f64>,
    /// In levels, 0 … L; smaller is better. All other scores are from 0 to 1.
    pub mistake_severity: Option<f64>,
    /// R@1 at each level.
    pub recall_at_1: Vec<Option<f64>>,
    /// Σ rel over the ranked items.
    pub relevance_sum: f64,
    /// In the order of the list.
    pub items: Vec<ItemTerm>,
    /// At the rank of every item with a relevance. The area under its steps is H-AP (under every tie policy but
    /// `strict`).
    pub h_curve: Vec<HCurvePoint>,
    /// Plain precision and recall per level, at the rank of every positive. The area under the steps is the level's AP.
    pub curves: Vec<Vec<CurvePoint>>,
}

/// One item's term of H-AP (HAPPIER, eq. 3).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ItemTerm {
    /// From 1. Under the tie policies it can differ from the place in the list.
    pub rank: usize,
    /// rel.
    pub relevance: f64,
    /// H-rank.
    pub h_rank: f64,
    /// H-rank / rank.
    pub quotient: f64,
    /// The quotient divided by Σ rel; 0 for an item of relevance 0. They add up to H-AP.
    pub contribution: f64,
}

/// A point of the curve whose area is H-AP.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct HCurvePoint {
    /// The rank of an item with a relevance.
    pub rank: usize,
    /// H-recall.
    pub h_recall: f64,
    /// H-precision.
    pub h_precision: f64,
}

/// A point of the curve whose area is the AP of a level.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CurvePoint {
    /// The rank of a positive.
    pub rank: usize,
    /// Recall.
    pub recall: f64,
    /// Precision.
    pub precision: f64,
}

/// The swap of the neighbours at ranks r and r + 1: ΔH-AP = (up − down + S_up − S_down) / (r (r + 1) Σ rel).
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct SwapTerm {
    /// r, the upper rank.
    pub rank: usize,
    /// The item that moves from r + 1 to r.
    pub up: Swapped,
    /// The item that moves from r to r + 1.
    pub down: Swapped,
    /// ΔH-AP.
    pub delta: f64,
}

/// One of the two items of a swap.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Swapped {
    /// Its shared level.
    pub level: usize,
    /// rel.
    pub relevance: f64,
    /// Σ min(rel(x), rel(this item)) over the items x above both.
    pub s: f64,
}

/// What a move changes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Move {
    /// H-AP after the move minus H-AP before it; `None` where H-AP is undefined.
    pub delta: Option<f64>,
    /// The neighbour swaps that the move consists of, in order; they add up to `delta`. `None` where items are tied, or
    /// without H-AP.
    pub swaps: Option<Vec<SwapTerm>>,
    /// The ranking after the move. The moved item joins a tie group when it lands inside one, and is otherwise not tied.
    pub ranking: RankingInput,
    /// The scores before the move.
    pub before: Scores,
    /// The scores after it.
    pub after: Scores,
}

/// What a pair of rankings must have.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct PairRequest {
    /// From 2 to 4.
    pub depth: usize,
    /// The number of items, from depth + 1 to 40. With eq. 4 HAPPIER's fig. 1 needs 19; 21 if finer levels shall be more
    /// relevant.
    pub size: usize,
    /// AP at level L of both rankings.
    pub ap: f64,
    /// H-AP of the first and of the second ranking, the greater one first.
    pub h_ap: [f64; 2],
    /// What an item's relevance follows from.
    pub relevance: Relevance,
}

/// Two rankings of the same items, as shared levels.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Pair {
    /// The one with the greater H-AP.
    pub first: Vec<usize>,
    /// The other.
    pub second: Vec<usize>,
}

/// A step.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum StepSetting {
    /// H.
    Heaviside {},
    /// σ of Smooth-AP.
    Sigmoid(SmoothApConfig),
    /// H⁻.
    Upper(UpperStep),
    /// H⁺.
    Lower(LowerStep),
}

/// A step at some points.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StepCurve {
    /// Its values.
    pub values: Vec<f64>,
    /// Its slopes.
    pub derivatives: Vec<f64>,
}

/// The default settings of the two steps.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct StepDefaults {
    /// Those of H⁻.
    pub upper: UpperStep,
    /// Those of H⁺.
    pub lower: LowerStep,
}

/// A ranking loss of one query.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QueryLossSetting {
    /// Smooth-AP.
    SmoothAp(SmoothApConfig),
    /// SupAP.
    SupAp(SupApConfig),
    /// ROADMAP.
    Roadmap(RoadmapConfig),
    /// The surrogate of H-AP in HAPPIER.
    HapSurrogate(HapSurrogateConfig),
}

/// Items of one query, in any order.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct ScoredItems {
    /// L, the number of levels.
    pub depth: usize,
    /// The score of each item.
    pub scores: Vec<f64>,
    /// The shared level of each item, 0 … L.
    pub levels: Vec<usize>,
}

/// A loss with its gradient.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct QueryLoss {
    /// The loss.
    pub value: f64,
    /// ∂L/∂s of each item. A training step moves the score against it.
    pub gradient: Vec<f64>,
    /// Those of the items that count in the average of the loss.
    pub quotients: Vec<Quotient>,
}

/// The smooth ranks of an item that counts in the average of a loss.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Quotient {
    /// The item's place in the list that was given.
    pub item: usize,
    /// The smooth rank among the positives, or the smooth H-rank.
    pub above: f64,
    /// The smooth rank.
    pub rank: f64,
    /// The weight of the quotient in the average.
    pub weight: f64,
}

/// The items of one batch as one query sees them. Calibration asks positives for scores of at least α, and negatives for
/// scores of at most β.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct BatchItems {
    /// The positives with a score of at least α.
    pub good_positives: usize,
    /// The positives with a lower score.
    pub bad_positives: usize,
    /// The negatives with a score of at most β.
    pub good_negatives: usize,
    /// The negatives with a higher score.
    pub bad_negatives: usize,
}

/// How far AP of all items can be below AP of the batches, if that is 1; `None` without a positive.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct GapBounds {
    /// Whatever the scores.
    pub any_scores: Option<f64>,
    /// For scores that keep to calibration as far as the counts say.
    pub calibrated: Option<f64>,
}

#[cfg(test)]
mod tests {
    use akin_bridge::typescript::Declarations;

    use super::*;

    #[test]
    fn the_page_has_the_types_of_the_module() {
        Declarations::default()
            .with::<akin_core::explanation::Goal>()
            .with::<BatchItems>()
            .with::<GapBounds>()
            .with::<Move>()
            .with::<Pair>()
            .with::<PairRequest>()
            .with::<QueryLoss>()
            .with::<QueryLossSetting>()
            .with::<ScoreSettings>()
            .with::<ScoredItems>()
            .with::<StepCurve>()
            .with::<StepDefaults>()
            .with::<StepSetting>()
            .check("science.ts");
    }
}
