//! One ranking: its scores, what a move changes, and the orders that reach a goal.

use akin_bridge::{Result, from_js, thrown, to_js};
use akin_core::explanation::{self, Goal, RankedList, Scoring, level_curve, swaps, terms};
use akin_core::metrics::{
    Gain, asi, average_precision, hierarchical_ap, mistake_severity, ndcg, precision_recall_curve, recall,
    weighted_ap,
};
use wasm_bindgen::prelude::*;

use crate::messages::{
    CurvePoint, HCurvePoint, ItemTerm, Move, Pair, PairRequest, RankingInput, ScoreSettings, Scores,
    SwapTerm, Swapped,
};

/// The scores of a ranking.
///
/// # Errors
///
/// The ranking or the settings are wrong or do not fit each other.
#[wasm_bindgen]
pub fn score(ranking: JsValue, settings: JsValue) -> Result<JsValue> {
    let (list, scoring) = read(ranking, settings)?;
    Ok(to_js(&Scores::new(&list, &scoring)))
}

/// The scores before and after the item in place `from` moves to place `to`, and the neighbour swaps between.
///
/// # Errors
///
/// As [`score`], or the ranking has no such place.
#[wasm_bindgen(js_name = move)]
pub fn moved(ranking: JsValue, settings: JsValue, from: usize, to: usize) -> Result<JsValue> {
    let (list, scoring) = read(ranking, settings)?;
    let moved = list.moved(from, to).map_err(thrown)?;
    let swaps = swaps(&list, &scoring, from, to).map_err(thrown)?;
    let (before, after) = (Scores::new(&list, &scoring), Scores::new(&moved, &scoring));
    Ok(to_js(&Move {
        delta: before.h_ap.zip(after.h_ap).map(|(before, after)| after - before),
        swaps: swaps.map(|swaps| swaps.into_iter().map(SwapTerm::from).collect()),
        ranking: RankingInput {
            depth: moved.depth(),
            levels: moved.levels().to_vec(),
            ties: moved.has_ties().then(|| moved.tie_groups().to_vec()),
        },
        before,
        after,
    }))
}

/// The order that reaches a goal: for each place, the place of its item in the given ranking.
///
/// # Errors
///
/// As [`score`], or there is no such goal.
#[wasm_bindgen]
pub fn order(ranking: JsValue, settings: JsValue, goal: JsValue) -> Result<JsValue> {
    let (list, scoring) = read(ranking, settings)?;
    let goal: Goal = from_js("goal", goal)?;
    Ok(to_js(&explanation::order(&list, &scoring, goal)))
}

/// Two rankings of the same items with the same AP, and the H-AP of the request.
///
/// # Errors
///
/// The request is out of range.
#[wasm_bindgen]
pub fn pair(request: JsValue) -> Result<JsValue> {
    let PairRequest { depth, size, ap, h_ap, relevance } = from_js("request", request)?;
    let relevance = relevance.checked(depth).map_err(thrown)?;
    let request = explanation::PairRequest { depth, size, average_precision: ap, h_ap, relevance };
    let [first, second] = explanation::pair(&request).map_err(thrown)?;
    Ok(to_js(&Pair { first, second }))
}

fn read(ranking: JsValue, settings: JsValue) -> Result<(RankedList, Scoring)> {
    let ranking: RankingInput = from_js("ranking", ranking)?;
    let settings: ScoreSettings = from_js("score settings", settings)?;
    let list = RankedList::new(ranking.depth, ranking.levels, ranking.ties).map_err(thrown)?;
    let relevance = settings.relevance.checked(list.depth()).map_err(thrown)?;
    Ok((list, Scoring { relevance, ties: settings.ties, count_query: settings.count_query }))
}

impl Scores {
    fn new(list: &RankedList, scoring: &Scoring) -> Self {
        let ranking = list.ranking(scoring);
        let relevance = &scoring.relevance;
        let levels = 1..=list.depth();
        let terms = terms(list, scoring);
        let h_curve = precision_recall_curve(&ranking, relevance);
        let curves = levels.clone().map(|level| level_curve(list, scoring, level));
        Self {
            ap: levels.clone().map(|level| average_precision(&ranking, level)).collect(),
            h_ap: hierarchical_ap(&ranking, relevance),
            weighted_ap: weighted_ap(&ranking, relevance),
            ndcg: ndcg(&ranking, Gain::Exponential, None),
            asi: asi(&ranking),
            mistake_severity: mistake_severity(&ranking),
            recall_at_1: levels.map(|level| recall(&ranking, level, 1)).collect(),
            relevance_sum: terms.iter().map(|term| term.relevance).sum(),
            items: terms.into_iter().map(ItemTerm::from).collect(),
            h_curve: h_curve
                .into_iter()
                .map(|point| HCurvePoint {
                    rank: point.rank,
                    h_recall: point.recall,
                    h_precision: point.precision,
                })
                .collect(),
            curves: curves.map(|curve| curve.into_iter().map(CurvePoint::from).collect()).collect(),
        }
    }
}

impl From<explanation::ItemTerm> for ItemTerm {
    fn from(term: explanation::ItemTerm) -> Self {
        Self {
            rank: term.rank,
            relevance: term.relevance,
            h_rank: term.h_rank,
            quotient: term.quotient(),
            contribution: term.contribution,
        }
    }
}

impl From<akin_core::metrics::CurvePoint> for CurvePoint {
    fn from(point: akin_core::metrics::CurvePoint) -> Self {
        Self { rank: point.rank, recall: point.recall, precision: point.precision }
    }
}

impl From<explanation::Swap> for SwapTerm {
    fn from(swap: explanation::Swap) -> Self {
        let swapped = |item: explanation::Swapped| Swapped {
            level: item.level,
            relevance: item.relevance,
            s: item.shared,
        };
        Self { rank: swap.rank, up: swapped(swap.up), down: swapped(swap.down), delta: swap.delta }
    }
}
