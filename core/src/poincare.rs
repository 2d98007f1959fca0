//! The Poincaré ball: hyperbolic space of curvature −c, c > 0, as the points of norm below 1/√c.
//!
//! Its volume grows exponentially with the radius, as the number of nodes of a tree grows with its depth. Trees
//! therefore fit into few dimensions. The distance of two points is
//!
//! ```text
//! d(x, y) = (2/√c) artanh(√c ‖(−x) ⊕ y‖) = (2/√c) arsinh √(c ‖x − y‖² / ((1 − c‖x‖²)(1 − c‖y‖²)))
//! ```
//!
//! with the Möbius addition ⊕ of Ungar. Both forms are equal; the second is computed here, because it has no
//! cancellation. As c tends to 0 the distance tends to 2‖x − y‖.
//!
//! [`distance`] is exact; rankings use it. [`Hyperbolicity`] says how tree-like the distances of a data set are.
//! [`Ball`] (feature `tensor`) computes on tensors for heads and losses.

#[cfg(feature = "tensor")]
mod ball;
mod hyperbolicity;

#[cfg(feature = "tensor")]
pub use ball::{Ball, clip};
pub use hyperbolicity::Hyperbolicity;
pub(crate) use hyperbolicity::suggested_curvature;

use serde::{Deserialize, Serialize};

use crate::range::above_zero;
use crate::{Error, Kind, Result};

/// c of a ball of curvature −c: a finite number above 0. f32 can hold both it and its inverse.
///
/// A value of this type is always usable: it is checked when it is made or deserialised. In a config it is a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Curvature(f64);

impl Curvature {
    /// c as a number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl Default for Curvature {
    /// c = 0.1, as in HIER.
    fn default() -> Self {
        Self(0.1)
    }
}

impl TryFrom<f64> for Curvature {
    type Error = Error;

    /// # Errors
    ///
    /// [`Kind::Config`] for a number that is not above 0 or not finite.
    fn try_from(c: f64) -> Result<Self> {
        above_zero("the Poincaré ball", "curvature", c, 0.1)?;
        Ok(Self(c))
    }
}

impl From<Curvature> for f64 {
    fn from(curvature: Curvature) -> Self {
        curvature.0
    }
}

/// d(x, y) in the ball of curvature −`curvature`.
///
/// ```
/// use akin_core::poincare::{Curvature, distance};
///
/// // The distance from the origin to tanh(v) along an axis is 2v.
/// let curvature = Curvature::try_from(1.0)?;
/// assert!((distance(&[0.0, 0.0], &[0.0, 0.5f64.tanh()], curvature)? - 1.0).abs() < 1e-12);
/// assert!(distance(&[0.0, 0.0], &[0.0, 1.0], curvature).is_err());
/// # Ok::<(), akin_core::Error>(())
/// ```
///
/// # Errors
///
/// [`Kind::Config`] for a curvature that is not a finite number above 0, [`Kind::Embeddings`] for a point outside
/// the ball.
///
/// # Panics
///
/// For points of different dimensions.
pub fn distance(x: &[f64], y: &[f64], curvature: Curvature) -> Result<f64> {
    assert_eq!(x.len(), y.len(), "two points of one ball have the same dimension");
    let squared = |x: &[f64]| x.iter().map(|x| x * x).sum();
    let slack = |name, x| slack(squared(x), curvature).ok_or_else(|| outside(name, squared(x), curvature));
    let slacks = slack("the first point", x)? * slack("the second point", y)?;
    let between: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
    Ok(distance_from(between, slacks, curvature))
}

/// d(x, y) from ‖x − y‖² and the product of the [`slack`]s of x and y.
pub(crate) fn distance_from(squared: f64, slacks: f64, Curvature(c): Curvature) -> f64 {
    (c * squared / slacks).sqrt().asinh() * 2.0 / c.sqrt()
}

/// 1 − c‖x‖²: above 0 inside the ball; `None` for a point outside.
pub(crate) fn slack(squared_length: f64, Curvature(c): Curvature) -> Option<f64> {
    Some(1.0 - c * squared_length).filter(|&slack| slack > 0.0)
}

/// The error for a point outside the ball, which has no [`slack`].
pub(crate) fn outside(point: &str, squared_length: f64, Curvature(c): Curvature) -> Error {
    Error::new(
        Kind::Embeddings,
        format!(
            "{point} lies outside the Poincaré ball of curvature −{c}: its length is {}, the radius {}",
            squared_length.sqrt(),
            c.sqrt().recip()
        ),
        "give the curvature that the embeddings were trained with; embeddings of a flat space need another similarity",
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RADIUS: f64 = 2.0;
    const CURVATURE: Curvature = Curvature(1.0 / (RADIUS * RADIUS));

    /// A point of the ball of radius 2, anywhere from the origin to close to the rim.
    fn point() -> impl Strategy<Value = Vec<f64>> {
        (prop::collection::vec(-1.0..1.0f64, 3), 0.0..0.999f64).prop_map(|(direction, length)| {
            let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-9);
            direction.iter().map(|x| x / norm * length * RADIUS).collect()
        })
    }

    fn d(x: &[f64], y: &[f64]) -> f64 {
        distance(x, y, CURVATURE).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_distance_is_a_metric(x in point(), y in point(), z in point()) {
            prop_assert_eq!(d(&x, &x), 0.0);
            prop_assert_eq!(d(&x, &y), d(&y, &x));
            prop_assert!(d(&x, &y) >= 0.0);
            prop_assert!(d(&x, &z) <= d(&x, &y) + d(&y, &z) + 1e-9);
        }

        #[test]
        fn the_distance_equals_its_form_with_mobius_addition(x in point(), y in point()) {
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            let (c, xx, yy, xy) = (CURVATURE.value(), dot(&x, &x), dot(&y, &y), -dot(&x, &y));
            let sum = x.iter().zip(&y).map(|(x, y)| -x * (1.0 + 2.0 * c * xy + c * yy) + y * (1.0 - c * xx));
            let length = sum.map(|x| x * x).sum::<f64>().sqrt() / (1.0 + 2.0 * c * xy + c * c * xx * yy);
            let expected = (c.sqrt() * length).atanh() * 2.0 / c.sqrt();
            prop_assert!((d(&x, &y) - expected).abs() < 1e-6 * (1.0 + expected), "{} {expected}", d(&x, &y));
        }

        #[test]
        fn a_flat_ball_has_twice_the_euclidean_distance(x in point(), y in point()) {
            let euclidean = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            prop_assert!((distance(&x, &y, Curvature(1e-9)).unwrap() - 2.0 * euclidean).abs() < 1e-6);
        }
    }

    #[test]
    fn points_outside_the_ball_are_refused() {
        let error = distance(&[0.0, 0.0], &[2.0, 0.0], CURVATURE).unwrap_err();
        assert!(error.message().contains("the second point lies outside"), "{error}");
    }

    #[test]
    fn a_curvature_is_a_finite_number_above_0() {
        for c in [0.0, -1.0, 1e-50, f64::NAN, f64::INFINITY] {
            assert_eq!(Curvature::try_from(c).unwrap_err().kind(), Kind::Config);
        }
        assert_eq!(serde_json::from_str::<Curvature>("0.1").unwrap().value(), 0.1);
        let error = serde_json::from_str::<Curvature>("-0.1").unwrap_err();
        assert!(error.to_string().contains("the curvature of the Poincaré ball is -0.1"), "{error}");
    }
}
