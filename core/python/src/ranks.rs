//! The ranking losses of scores, in the sorted form of [`akin_core::smooth_ranks`], for `akin.torch` on the CPU.

use akin_core::smooth_ranks::{Places, RankSteps, RankValue, Score, SmoothRanks};
use akin_core::steps::{LowerStep, UpperStep};
use akin_core::{Error, Kind, Result};
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::OrRaise;

/// The steps of the ranks, and what a ranked item is worth.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Whether both ranks have sigmoids, of the upper step.
    sigmoid: bool,
    upper: UpperStep,
    lower: Option<LowerStep>,
    value: Value,
}

/// See [`RankValue`].
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Value {
    Precision,
    DiscountedGain,
    Recall { cutoffs: Vec<usize>, temperature: f64 },
}

impl Settings {
    fn ranks(self) -> Result<SmoothRanks> {
        let step = self.upper.checked()?;
        let steps = match self.sigmoid {
            true => RankSteps::Sigmoid { step },
            false => {
                RankSteps::Bounds { upper: step, lower: self.lower.map(|step| step.checked()).transpose()? }
            }
        };
        let value = match self.value {
            Value::Precision => RankValue::Precision,
            Value::DiscountedGain => RankValue::DiscountedGain,
            Value::Recall { cutoffs, temperature } => RankValue::Recall { cutoffs, temperature },
        };
        Ok(SmoothRanks::with_value(steps, value))
    }
}

/// The losses, their gradient and the counts.
type Losses<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// 1 − the value of the ranking of each query, [Q], its gradient by the scores, [Q, N], and how often each query counts, [Q].
///
/// Scores are float32 or float64, [Q, N], and so is what it returns; `places` has the place of each item, [Q, N], and
/// `relevances` the relevance of each place, [Q, P]. A query without a relevant item counts 0 times, the others once.
#[pyfunction]
pub(crate) fn rank_losses<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    places: PyReadonlyArray2<'py, i64>,
    relevances: PyReadonlyArray2<'py, f64>,
    settings: &str,
) -> PyResult<Losses<'py>> {
    let settings: Result<Settings> = serde_json::from_str(settings)
        .map_err(|error| refused(format!("the settings of the loss are no settings: {error}")));
    let ranks = settings.and_then(Settings::ranks).or_raise(py)?;
    match scores.extract::<PyReadonlyArray2<'py, f32>>() {
        Ok(scores) => losses(py, &scores, &places, &relevances, &ranks),
        Err(_) => losses(py, &scores.extract::<PyReadonlyArray2<'py, f64>>()?, &places, &relevances, &ranks),
    }
}

fn losses<'py, S: Score + Element>(
    py: Python<'py>,
    scores: &PyReadonlyArray2<'py, S>,
    places: &PyReadonlyArray2<'py, i64>,
    relevances: &PyReadonlyArray2<'py, f64>,
    ranks: &SmoothRanks,
) -> PyResult<Losses<'py>> {
    let [queries, items] = [0, 1].map(|axis| scores.shape()[axis]);
    let by_place = relevances.shape()[1];
    let arrays = || {
        let in_order = |_| refused("an array is not in the order of its rows".into());
        let scores = scores.as_slice().map_err(in_order)?;
        let places = places.as_slice().map_err(in_order)?;
        let relevances = relevances.as_slice().map_err(in_order)?;
        if places.len() != scores.len() || relevances.len() != queries * by_place || items == 0 {
            return Err(refused(format!(
                "there are {} scores, {} places and {} relevances",
                scores.len(),
                places.len(),
                relevances.len()
            )));
        }
        if !places.iter().all(|&place| usize::try_from(place).is_ok_and(|place| place < by_place)) {
            return Err(refused(format!("a place is not below the number of relevances, {by_place}")));
        }
        if !relevances.iter().all(|relevance| relevance.is_finite() && *relevance >= 0.0) {
            return Err(refused("a relevance is not a finite number of at least 0".into()));
        }
        Ok((scores, places, relevances))
    };
    let (scores, places, relevances) = arrays().or_raise(py)?;
    let (losses, gradient) = py.detach(|| {
        let fill = |query: usize, row: &mut Places| {
            let own = &places[query * items..][..items];
            // They were checked.
            row.of_items.extend(own.iter().map(|&place| place as u32));
            row.relevances.extend_from_slice(&relevances[query * by_place..][..by_place]);
        };
        let mut gradient = vec![S::from_f64(0.0); scores.len()];
        let losses = ranks.batch(scores, items, &mut gradient, fill);
        (losses, gradient)
    });
    let vector = |number: fn(&Option<f64>) -> f64| {
        PyArray1::from_iter(py, losses.0.iter().map(|loss| S::from_f64(number(loss)))).into_any()
    };
    Ok((
        vector(|loss| loss.unwrap_or(0.0)),
        PyArray1::from_vec(py, gradient).reshape([queries, items])?.into_any(),
        vector(|loss| f64::from(u8::from(loss.is_some()))),
    ))
}

fn refused(what: String) -> Error {
    Error::new(Kind::Config, what, "call the losses of akin.torch, which give it what it needs")
}
