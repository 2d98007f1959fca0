//! Smooth approximations of the Heaviside step function H(t), each with its derivative.
//!
//! A rank counts the items above one item: rank(k) = 1 + Σ_j H(s_j − s_k). The step has no useful gradient, so ranking
//! losses replace it where they need one:
//!
//! - [`UpperStep`], H⁻ of ROADMAP (eq. 4) and H^< of HAPPIER (eq. 44), for items that must not be above k. With its
//!   defaults it is never below H, except at t = 0, so that its rank is an upper bound. Without its line it is the
//!   sigmoid of Smooth-AP;
//! - [`LowerStep`], H⁺ here and H^> in HAPPIER (eq. 43), for items that should be above k and raise its H-rank. It is
//!   never above H, so that its H-rank is a lower bound.
//!
//! At exactly t = 0 the papers and their code differ; `start_at_zero` chooses.
//!
//! Both are configs; their [`Checked`] forms compute [`Smooth`], the value and the derivative: `at` of a number, and,
//! with the feature `tensor`, `apply` of a tensor.

#[cfg(feature = "tensor")]
pub mod tensors;

use serde::{Deserialize, Serialize};

use crate::range::{above_zero, not_negative};
use crate::{Checked, Error, Kind, Result};

/// The value of a smooth step and its derivative: two numbers, or two tensors with the shape of the argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Smooth<T> {
    /// h(t).
    pub value: T,
    /// h′(t). At a corner or a jump it is the slope of the piece that t belongs to.
    pub derivative: T,
}

/// H(t) with H(0) = 1: the step itself. Its derivative is 0 wherever it has one.
pub fn heaviside(t: f64) -> f64 {
    if t >= 0.0 { 1.0 } else { 0.0 }
}

/// H⁻(t), an upper bound of the step (ROADMAP, eq. 4; HAPPIER, eq. 44, for the rank of negatives):
///
/// ```text
/// σ(t/τ)                  t ≤ 0
/// σ(t/τ) + start          0 < t ≤ δ
/// ρ·(t − δ) + offset      t > δ
/// ```
///
/// Without an `offset` it is continuous at δ, as in the papers: offset = σ(δ/τ) + start. The published code uses 1.44,
/// which leaves a small jump. Without a `threshold` the line starts at 0. Without a `slope` there is no line, only the
/// sigmoid of Smooth-AP.
///
/// It is an upper bound if it has a slope, a `start` of at least ½ and an `offset` of at least 1, with one exception.
/// Both papers put t = 0 into the first line and into the second. Here it is in the first, as in the published code:
/// the value is ½, while H(0) is 1. With `start_at_zero` it is in the second, and the bound holds at exact ties too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct UpperStep {
    /// τ > 0, the width of the sigmoid. Default 0.01.
    pub temperature: f64,
    /// ρ ≥ 0, the slope beyond the threshold. Default 100.
    pub slope: Option<f64>,
    /// δ ≥ 0, where the line takes over. Default 0.05.
    pub threshold: Option<f64>,
    /// The value at δ, at least 0. Default none, which makes the step continuous.
    pub offset: Option<f64>,
    /// Added to the sigmoid above 0, at least 0. Default 0.5, which makes the value at least 1 there.
    pub start: f64,
    /// Whether `start` is also added at exactly t = 0. Default false.
    pub start_at_zero: bool,
}

impl Default for UpperStep {
    fn default() -> Self {
        Self {
            temperature: 0.01,
            slope: Some(100.0),
            threshold: Some(0.05),
            offset: None,
            start: 0.5,
            start_at_zero: false,
        }
    }
}

impl UpperStep {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A temperature that is not above 0; any other number that is not finite or is below 0, which could make a rank
    /// negative.
    pub fn checked(&self) -> Result<Checked<Self>> {
        let Self { temperature, slope, threshold, offset, start, .. } = *self;
        above_zero("the upper step", "temperature", temperature, 0.01)?;
        not_negative("the upper step", "threshold", threshold.unwrap_or_default(), 0.05)?;
        not_negative("the upper step", "slope", slope.unwrap_or_default(), 100.0)?;
        not_negative("the upper step", "offset", offset.unwrap_or_default(), 1.44)?;
        not_negative("the upper step", "start", start, 0.5)?;
        Ok(Checked::new(self.clone()))
    }

    /// The sigmoid alone, without a line, for a temperature above 0.
    pub(crate) fn sigmoid(temperature: f64) -> Checked<Self> {
        Checked::new(Self { temperature, slope: None, ..Default::default() })
    }
}

/// ρ·(t − δ) + offset, the part of an [`UpperStep`] above its threshold δ.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) slope: f64,
    pub(crate) threshold: f64,
    pub(crate) offset: f64,
}

impl Checked<UpperStep> {
    /// h(t) and h′(t) of a number.
    pub fn at(&self, t: f64) -> Smooth<f64> {
        let sigma = sigmoid(t / self.temperature);
        let derivative = sigma * (1.0 - sigma) / self.temperature;
        match self.line() {
            None => Smooth { value: sigma, derivative },
            Some(line) if t > line.threshold => {
                Smooth { value: (t - line.threshold) * line.slope + line.offset, derivative: line.slope }
            }
            Some(_) if is_above(t, self.start_at_zero) => Smooth { value: sigma + self.start, derivative },
            Some(_) => Smooth { value: sigma, derivative },
        }
    }

    /// h(t) for an item that belongs below, and the true step for any other.
    pub(crate) fn below_or_heaviside(&self, below: bool, t: f64) -> Smooth<f64> {
        if below { self.at(t) } else { Smooth { value: heaviside(t), derivative: 0.0 } }
    }

    /// The line, if the step has one.
    pub(crate) fn line(&self) -> Option<Line> {
        let slope = self.slope?;
        let threshold = self.threshold.unwrap_or(0.0);
        let continuous = || sigmoid(threshold / self.temperature) + self.start;
        Some(Line { slope, threshold, offset: self.offset.unwrap_or_else(continuous) })
    }
}

/// H⁺(t), a lower bound of the step (HAPPIER, eq. 43):
///
/// ```text
/// leak·t             t ≤ 0
/// min(β·t + γ, 1)    t > 0
/// ```
///
/// The paper calls the slopes γ and ν and the start μ. Its eq. 43 has max in place of min, which is a misprint: that
/// step would be at least 1 above 0 and grow without limit, while the next sentence of the paper says that it is at
/// most H. Eq. 43 also puts t = 0 into the second line, which gives γ for an exact tie. Here, as in the published code,
/// it is in the first line and gives 0, unless `start_at_zero` is set, as `happier_text` does. Both are lower bounds of
/// H(0) = 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
#[serde(deny_unknown_fields, default)]
pub struct LowerStep {
    /// β ≥ 0, the slope above 0. Default 25.
    pub slope: f64,
    /// γ, the value just above 0, in 0 … 1. Default 0.5.
    pub start: f64,
    /// The slope below 0, at least 0. Default 10.
    pub leak: f64,
    /// Whether the value at exactly t = 0 is `start`, as in eq. 43, instead of 0. Default false.
    pub start_at_zero: bool,
}

impl Default for LowerStep {
    fn default() -> Self {
        Self { slope: 25.0, start: 0.5, leak: 10.0, start_at_zero: false }
    }
}

impl LowerStep {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// A number that is below 0 or not finite, or a start above 1: the step would exceed H.
    pub fn checked(&self) -> Result<Checked<Self>> {
        not_negative("the lower step", "slope", self.slope, 25.0)?;
        not_negative("the lower step", "leak", self.leak, 10.0)?;
        if (0.0..=1.0).contains(&self.start) {
            return Ok(Checked::new(self.clone()));
        }
        Err(Error::new(
            Kind::Config,
            format!("the start of the lower step is {}", self.start),
            "give a number from 0 to 1; 0.5 is usual",
        ))
    }
}

impl Checked<LowerStep> {
    /// Whether the line would exceed 1 at t > 0.
    pub(crate) fn is_full(&self, t: f64) -> bool {
        t * self.slope + self.start > 1.0
    }

    /// h(t) and h′(t) of a number.
    pub fn at(&self, t: f64) -> Smooth<f64> {
        if !is_above(t, self.start_at_zero) {
            return Smooth { value: t * self.leak, derivative: self.leak };
        }
        let line = t * self.slope + self.start;
        Smooth { value: line.min(1.0), derivative: if line > 1.0 { 0.0 } else { self.slope } }
    }
}

/// Whether t > 0, or t ≥ 0 if `at` is set.
fn is_above(t: f64, at: bool) -> bool {
    t > 0.0 || (at && t == 0.0)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let upper = UpperStep::default();
        for (setting, step) in [
            ("temperature", UpperStep { temperature: 0.0, ..upper.clone() }),
            ("slope", UpperStep { slope: Some(-1.0), ..upper.clone() }),
            ("threshold", UpperStep { threshold: Some(-0.1), ..upper.clone() }),
            ("offset", UpperStep { offset: Some(-0.5), ..upper.clone() }),
            ("start", UpperStep { start: -0.5, ..upper.clone() }),
        ] {
            let error = step.checked().unwrap_err();
            assert!(error.message().starts_with(&format!("the {setting} of the upper step is ")), "{error}");
        }
        let lower = LowerStep::default();
        for (setting, step) in [
            ("slope", LowerStep { slope: -1.0, ..lower.clone() }),
            ("start", LowerStep { start: 5.0, ..lower.clone() }),
            ("start", LowerStep { start: f64::NAN, ..lower.clone() }),
            ("leak", LowerStep { leak: -10.0, ..lower.clone() }),
        ] {
            let error = step.checked().unwrap_err();
            assert!(error.message().starts_with(&format!("the {setting} of the lower step is ")), "{error}");
        }
        assert!(upper.checked().is_ok() && lower.checked().is_ok());
        // The settings of the published code on iNaturalist.
        assert!(UpperStep { offset: Some(1.0), start: 0.0, ..upper.clone() }.checked().is_ok());
    }

    #[test]
    fn the_value_at_an_exact_tie_is_a_setting() {
        let points = [-0.1, 0.0, 1e-6, 0.02, 0.1];
        let assert_near = |step: &dyn Fn(f64) -> Smooth<f64>, expected: [f64; 5]| {
            for (t, expected) in points.into_iter().zip(expected) {
                let value = step(t).value;
                assert!((value - expected).abs() < 1e-3, "{value} {expected}");
            }
        };
        for (start_at_zero, lower_at_zero, upper_at_zero) in [(false, 0.0, 0.5), (true, 0.5, 1.0)] {
            let lower = LowerStep { start_at_zero, ..Default::default() }.checked().unwrap();
            assert_near(&|t| lower.at(t), [-1.0, lower_at_zero, 0.5, 1.0, 1.0]);
            let upper = UpperStep { start_at_zero, ..Default::default() }.checked().unwrap();
            assert_near(&|t| upper.at(t), [0.0, upper_at_zero, 1.0, 1.381, 6.493]);
        }
    }

    #[test]
    fn the_defaults_bound_the_step() {
        let upper = UpperStep { start_at_zero: true, ..Default::default() }.checked().unwrap();
        let lower = LowerStep::default().checked().unwrap();
        for t in (-1000..=1000).map(|t| f64::from(t) / 1000.0) {
            assert!(upper.at(t).value >= heaviside(t) && lower.at(t).value <= heaviside(t), "{t}");
        }
    }

    #[test]
    fn the_derivative_is_the_slope_of_the_value() {
        let upper = UpperStep::default();
        let uppers =
            [upper.clone(), UpperStep { slope: None, ..upper.clone() }].map(|step| step.checked().unwrap());
        let lower = LowerStep::default().checked().unwrap();
        let assert_slope = |step: &dyn Fn(f64) -> Smooth<f64>, t: f64| {
            let difference = (step(t + 1e-7).value - step(t - 1e-7).value) / 2e-7;
            assert!((step(t).derivative - difference).abs() <= 1e-4 * (1.0 + difference.abs()), "{t}");
        };
        // No point is at a corner or a jump: 0, 0.02 and 0.05.
        for t in [-1.0, -0.03, -0.005, 0.005, 0.03, 0.06, 1.0] {
            assert_slope(&|t| lower.at(t), t);
            uppers.iter().for_each(|upper| assert_slope(&|t| upper.at(t), t));
        }
    }
}
