//! The smooth steps, the ranking losses of one query with their gradients, and what batches say about the whole set.

use akin_bridge::{Result, from_js, thrown, to_js};
use akin_core::Result as CoreResult;
use akin_core::evaluate::{self, BatchCounts, calibrated_gap_bound};
use akin_core::query_losses::{self, hap_surrogate, roadmap, smooth_ap, sup_ap};
use akin_core::steps::{Smooth, heaviside};
use wasm_bindgen::prelude::*;

use crate::messages::{
    BatchItems, GapBounds, QueryLoss, QueryLossSetting, Quotient, ScoredItems, StepCurve, StepDefaults,
    StepSetting,
};

/// The values and slopes of a step at some points.
///
/// # Errors
///
/// A setting is out of range.
#[wasm_bindgen(js_name = stepCurve)]
pub fn step_curve(step: JsValue, points: Vec<f64>) -> Result<JsValue> {
    let step = from_js::<StepSetting>("step", step)?.function().map_err(thrown)?;
    let (values, derivatives) = points
        .into_iter()
        .map(|t| {
            let Smooth { value, derivative } = step(t);
            (value, derivative)
        })
        .unzip();
    Ok(to_js(&StepCurve { values, derivatives }))
}

/// The default settings of the two steps.
#[wasm_bindgen(js_name = stepDefaults)]
pub fn step_defaults() -> JsValue {
    to_js(&StepDefaults::default())
}

/// A loss of one query, ∂L/∂s of each item, and the smooth ranks.
///
/// # Errors
///
/// The items do not fit together, or a setting is out of range.
#[wasm_bindgen(js_name = queryLoss)]
pub fn query_loss(items: JsValue, loss: JsValue) -> Result<JsValue> {
    let ScoredItems { depth, scores, levels } = from_js("items", items)?;
    let setting: QueryLossSetting = from_js("loss", loss)?;
    let loss =
        query_losses::ScoredItems::new(depth, scores, levels).and_then(|items| setting.compute(&items));
    Ok(to_js(&QueryLoss::from(loss.map_err(thrown)?)))
}

/// Bounds of the decomposability gap of a query whose AP is 1 in each of these batches.
///
/// # Errors
///
/// The batches are wrong.
#[wasm_bindgen(js_name = gapBounds)]
pub fn gap_bounds(batches: JsValue) -> Result<JsValue> {
    let batches: Vec<BatchItems> = from_js("batches", batches)?;
    let batches: Vec<BatchCounts> = batches.into_iter().map(BatchCounts::from).collect();
    let (any_scores, calibrated) = (evaluate::gap_bound(&batches), calibrated_gap_bound(&batches));
    Ok(to_js(&GapBounds { any_scores, calibrated }))
}

impl From<BatchItems> for BatchCounts {
    fn from(items: BatchItems) -> Self {
        let BatchItems { good_positives, bad_positives, good_negatives, bad_negatives } = items;
        Self { good_positives, bad_positives, good_negatives, bad_negatives }
    }
}

impl StepSetting {
    fn function(self) -> CoreResult<Box<dyn Fn(f64) -> Smooth<f64>>> {
        Ok(match self {
            Self::Heaviside {} => Box::new(|t| Smooth { value: heaviside(t), derivative: 0.0 }),
            Self::Sigmoid(config) => {
                let step = config.checked()?.step();
                Box::new(move |t| step.at(t))
            }
            Self::Upper(config) => {
                let step = config.checked()?;
                Box::new(move |t| step.at(t))
            }
            Self::Lower(config) => {
                let step = config.checked()?;
                Box::new(move |t| step.at(t))
            }
        })
    }
}

impl QueryLossSetting {
    fn compute(&self, items: &query_losses::ScoredItems) -> CoreResult<query_losses::QueryLoss> {
        Ok(match self {
            Self::SmoothAp(config) => smooth_ap(items, &config.checked()?),
            Self::SupAp(config) => sup_ap(items, &config.checked()?),
            Self::Roadmap(config) => roadmap(items, &config.checked()?),
            Self::HapSurrogate(config) => hap_surrogate(items, &config.checked(items.depth())?),
        })
    }
}

impl From<query_losses::QueryLoss> for QueryLoss {
    fn from(loss: query_losses::QueryLoss) -> Self {
        let quotient = |quotient: &query_losses::Quotient| Quotient {
            item: quotient.item,
            above: quotient.above,
            rank: quotient.rank,
            weight: quotient.weight,
        };
        Self {
            value: loss.value,
            quotients: loss.quotients.iter().map(quotient).collect(),
            gradient: loss.gradient,
        }
    }
}
