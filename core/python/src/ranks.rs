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

/// The mean over queries of 1 − the value of their ranking, and its gradient by the scores, [Q, N].
///
/// Scores are float32 or float64, [Q, N]; `places` has the place of each item, [Q, N], and `relevances` the relevance of each
/// place, [Q, P]. A query without a relevant item is left out; the loss is 0 if no query has one.
#[pyfunction]
pub(crate) fn rank_loss<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    places: PyReadonlyArray2<'py, i64>,
    relevances: PyReadonlyArray2<'py, f64>,
    settings: &str,
) -> PyResult<(f64, Bound<'py, PyAny>)> {
    let settings: Result<Settings> = serde_json::from_str(settings)
        .map_err(|error| refused(format!("the settings of the loss are no settings: {error}")));
    let ranks = settings.and_then(Settings::ranks).or_raise(py)?;
    match scores.extract::<PyReadonlyArray2<'py, f32>>() {
        Ok(scores) => mean(py, &scores, &places, &relevances, &ranks),
        Err(_) => mean(py, &scores.extract::<PyReadonlyArray2<'py, f64>>()?, &places, &relevances, &ranks),
    }
}

fn mean<'py, S: Score + Element>(
    py: Python<'py>,
    scores: &PyReadonlyArray2<'py, S>,
    places: &PyReadonlyArray2<'py, i64>,
    relevances: &PyReadonlyArray2<'py, f64>,
    ranks: &SmoothRanks,
) -> PyResult<(f64, Bound<'py, PyAny>)> {
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
    let (value, gradient) = py.detach(|| {
        let fill = |query: usize, row: &mut Places| {
            let own = &places[query * items..][..items];
            // They were checked.
            row.of_items.extend(own.iter().map(|&place| place as u32));
            row.relevances.extend_from_slice(&relevances[query * by_place..][..by_place]);
        };
        let mut gradient = vec![S::from_f64(0.0); scores.len()];
        let loss = ranks.batch(scores, items, &mut gradient, fill);
        let share = 1.0 / loss.queries.max(1) as f64;
        gradient.iter_mut().for_each(|slope| *slope = S::from_f64(slope.to_f64() * share));
        (loss.sum * share, gradient)
    });
    Ok((value, PyArray1::from_vec(py, gradient).reshape([queries, items])?.into_any()))
}

fn refused(what: String) -> Error {
    Error::new(Kind::Config, what, "call the losses of akin.torch, which give it what it needs")
}
