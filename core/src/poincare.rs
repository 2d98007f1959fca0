//! The Poincaré ball: hyperbolic space of curvature −c, c > 0, as the points of norm below 1/√c.
//!
//! Its volume grows exponentially with the radius, as the number of nodes of a tree grows with its depth. Trees therefore
//! fit into few dimensions. The distance of two points is
//!
//! ```text
//! d(x, y) = (2/√c) artanh(√c ‖(−x) ⊕ y‖) = (2/√c) arsinh √(c ‖x − y‖² / ((1 − c‖x‖²)(1 − c‖y‖²)))
//! ```
//!
//! with the Möbius addition ⊕ of Ungar. Both forms are equal; the second is computed here, because it has no
//! cancellation. As c tends to 0 the distance tends to 2‖x − y‖.
//!
//! [`distance`] is exact; rankings use it. [`Hyperbolicity`] says how tree-like the distances of a data set are. [`Ball`]
//! (feature `tensor`) computes on tensors for heads and losses.

#[cfg(feature = "tensor")]
mod ball;
mod hyperbolicity;

#[cfg(feature = "tensor")]
pub use ball::{Ball, clip};
pub use hyperbolicity::Hyperbolicity;

use crate::range::above_zero;
use crate::{Error, Kind, Result};

/// d(x, y) in the ball of curvature −`curvature`.
///
/// ```
/// use akin_core::poincare::distance;
///
/// // The distance from the origin to tanh(v) along an axis is 2v.
/// assert!((distance(&[0.0, 0.0], &[0.0, 0.5f64.tanh()], 1.0)? - 1.0).abs() < 1e-12);
/// assert!(distance(&[0.0, 0.0], &[0.0, 1.0], 1.0).is_err());
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
pub fn distance(x: &[f64], y: &[f64], curvature: f64) -> Result<f64> {
    assert_eq!(x.len(), y.len(), "two points of one ball have the same dimension");
    check_curvature(curvature)?;
    let squared = |x: &[f64]| x.iter().map(|x| x * x).sum();
    let slack = |name, x| slack(squared(x), curvature).ok_or_else(|| outside(name, squared(x), curvature));
    let slacks = slack("the first point", x)? * slack("the second point", y)?;
    let between: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
    Ok(distance_from(between, slacks, curvature))
}

/// d(x, y) from ‖x − y‖² and the product of the [`slack`]s of x and y.
pub(crate) fn distance_from(squared: f64, slacks: f64, curvature: f64) -> f64 {
    (curvature * squared / slacks).sqrt().asinh() * 2.0 / curvature.sqrt()
}

/// 1 − c‖x‖²: above 0 inside the ball; `None` for a point outside.
pub(crate) fn slack(squared_length: f64, curvature: f64) -> Option<f64> {
    Some(1.0 - curvature * squared_length).filter(|&slack| slack > 0.0)
}

/// The error for a point outside the ball, which has no [`slack`].
pub(crate) fn outside(point: &str, squared_length: f64, curvature: f64) -> Error {
    Error::new(
        Kind::Embeddings,
        format!(
            "{point} lies outside the Poincaré ball of curvature −{curvature}: its length is {}, the radius {}",
            squared_length.sqrt(),
            curvature.sqrt().recip()
        ),
        "give the curvature that the embeddings were trained with; embeddings of a flat space need another similarity",
    )
}

pub(crate) fn check_curvature(curvature: f64) -> Result<()> {
    above_zero("the Poincaré ball", "curvature", curvature, 0.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RADIUS: f64 = 2.0;
    const CURVATURE: f64 = 1.0 / (RADIUS * RADIUS);

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
            let (c, xx, yy, xy) = (CURVATURE, dot(&x, &x), dot(&y, &y), -dot(&x, &y));
            let sum = x.iter().zip(&y).map(|(x, y)| -x * (1.0 + 2.0 * c * xy + c * yy) + y * (1.0 - c * xx));
            let length = sum.map(|x| x * x).sum::<f64>().sqrt() / (1.0 + 2.0 * c * xy + c * c * xx * yy);
            let expected = (c.sqrt() * length).atanh() * 2.0 / c.sqrt();
            prop_assert!((d(&x, &y) - expected).abs() < 1e-6 * (1.0 + expected), "{} {expected}", d(&x, &y));
        }

        #[test]
        fn a_flat_ball_has_twice_the_euclidean_distance(x in point(), y in point()) {
            let euclidean = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            prop_assert!((distance(&x, &y, 1e-9).unwrap() - 2.0 * euclidean).abs() < 1e-6);
        }
    }

    #[test]
    fn points_outside_and_wrong_curvatures_are_refused() {
        let error = distance(&[0.0, 0.0], &[2.0, 0.0], CURVATURE).unwrap_err();
        assert!(error.message().contains("the second point lies outside"), "{error}");
        for curvature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(distance(&[0.0], &[0.0], curvature).unwrap_err().kind(), Kind::Config);
        }
    }
}
