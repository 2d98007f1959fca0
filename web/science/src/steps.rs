//! The smooth steps, and the ranking losses of one query with their gradients.

use akin_bridge::{Result, from_js, thrown, to_js};
use akin_core::Result as CoreResult;
use akin_core::query_losses::{
    HapSurrogateConfig, QueryLoss, Quotient, RoadmapConfig, ScoredItems, SmoothApConfig, SupApConfig,
    hap_surrogate, roadmap, smooth_ap, sup_ap,
};
use akin_core::steps::{LowerStep, Smooth, UpperStep, heaviside};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum StepSetting {
    /// H.
    Heaviside {},
    /// σ of Smooth-AP.
    Sigmoid(SmoothApConfig),
    /// H⁻.
    Upper(UpperStep),
    /// H⁺.
    Lower(LowerStep),
}

#[derive(Serialize)]
struct StepCurve {
    values: Vec<f64>,
    derivatives: Vec<f64>,
}

#[derive(Serialize, Default)]
struct StepDefaults {
    upper: UpperStep,
    lower: LowerStep,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum QueryLossSetting {
    SmoothAp(SmoothApConfig),
    SupAp(SupApConfig),
    Roadmap(RoadmapConfig),
    HapSurrogate(HapSurrogateConfig),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemsInput {
    depth: usize,
    scores: Vec<f64>,
    levels: Vec<usize>,
}

#[derive(Serialize)]
struct LossOutput {
    value: f64,
    gradient: Vec<f64>,
    quotients: Vec<QuotientOutput>,
}

#[derive(Serialize)]
struct QuotientOutput {
    item: usize,
    above: f64,
    rank: f64,
    weight: f64,
}

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
    let ItemsInput { depth, scores, levels } = from_js("items", items)?;
    let setting: QueryLossSetting = from_js("loss", loss)?;
    let loss = ScoredItems::new(depth, scores, levels).and_then(|items| setting.compute(&items));
    Ok(to_js(&LossOutput::from(loss.map_err(thrown)?)))
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
    fn compute(&self, items: &ScoredItems) -> CoreResult<QueryLoss> {
        Ok(match self {
            Self::SmoothAp(config) => smooth_ap(items, &config.checked()?),
            Self::SupAp(config) => sup_ap(items, &config.checked()?),
            Self::Roadmap(config) => roadmap(items, &config.checked()?),
            Self::HapSurrogate(config) => hap_surrogate(items, &config.checked(items.depth())?),
        })
    }
}

impl From<QueryLoss> for LossOutput {
    fn from(loss: QueryLoss) -> Self {
        let quotient = |quotient: &Quotient| QuotientOutput {
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
