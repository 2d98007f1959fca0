//! The Poincaré ball: hyperbolic space of curvature −c, c > 0, as the points y of norm below 1/√c.
//!
//! Volume grows exponentially with the radius there, as the number of nodes of a tree does with its depth, so trees
//! fit into few dimensions. The distance of two points is
//!
//! ```text
//! d(x, y) = (2/√c) artanh(√c ‖(−x) ⊕ y‖) = (2/√c) arsinh √(c ‖x − y‖² / ((1 − c‖x‖²)(1 − c‖y‖²)))
//! ```
//!
//! with the Möbius addition ⊕ of Ungar; both are the same number, and the second has no cancellation. When c tends to
//! 0 it tends to 2‖x − y‖.
//!
//! Here are the distance on slices, exact, by which rankings go, and the [`Hyperbolicity`] of a data set, which says
//! how much there is to gain. [`Ball`] (feature `tensor`) is the space that heads and losses compute in.

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
/// // From the origin to tanh(v) along an axis it is 2v.
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
    assert_eq!(x.len(), y.len(), "points of one ball have one dimension");
    check_curvature(curvature)?;
    let squared = |x: &[f64]| x.iter().map(|x| x * x).sum();
    let room = |name, x| room(squared(x), curvature).ok_or_else(|| outside(name, squared(x), curvature));
    let rooms = room("the first point", x)? * room("the second point", y)?;
    let between: f64 = x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum();
    Ok(distance_of(between, rooms, curvature))
}

/// d(x, y) from ‖x − y‖² and the product of the rooms of x and y.
pub(crate) fn distance_of(squared: f64, rooms: f64, curvature: f64) -> f64 {
    (curvature * squared / rooms).sqrt().asinh() * 2.0 / curvature.sqrt()
}

/// 1 − c‖x‖²: how much of the ball lies beyond a point; none if the point is not inside.
pub(crate) fn room(squared_length: f64, curvature: f64) -> Option<f64> {
    Some(1.0 - curvature * squared_length).filter(|&room| room > 0.0)
}

/// The fault of a point that has no [`room`].
pub(crate) fn outside(point: &str, squared_length: f64, curvature: f64) -> Error {
    Error::new(
        Kind::Embeddings,
        format!(
            "{point} lies outside the Poincaré ball of curvature −{curvature}: its length is {}, the radius {}",
            squared_length.sqrt(),
            curvature.sqrt().recip()
        ),
        "give the curvature that the embeddings were trained with; embeddings of a flat space have none",
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
        fn it_is_a_metric(x in point(), y in point(), z in point()) {
            prop_assert_eq!(d(&x, &x), 0.0);
            prop_assert_eq!(d(&x, &y), d(&y, &x));
            prop_assert!(d(&x, &y) >= 0.0);
            prop_assert!(d(&x, &z) <= d(&x, &y) + d(&y, &z) + 1e-9);
        }

        #[test]
        fn it_is_what_the_mobius_addition_says(x in point(), y in point()) {
            let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
            let (c, xx, yy, xy) = (CURVATURE, dot(&x, &x), dot(&y, &y), -dot(&x, &y));
            let sum = x.iter().zip(&y).map(|(x, y)| -x * (1.0 + 2.0 * c * xy + c * yy) + y * (1.0 - c * xx));
            let length = sum.map(|x| x * x).sum::<f64>().sqrt() / (1.0 + 2.0 * c * xy + c * c * xx * yy);
            let expected = (c.sqrt() * length).atanh() * 2.0 / c.sqrt();
            prop_assert!((d(&x, &y) - expected).abs() < 1e-6 * (1.0 + expected), "{} {expected}", d(&x, &y));
        }

        #[test]
        fn a_flat_ball_is_euclidean_twice_over(x in point(), y in point()) {
            let euclidean = x.iter().zip(&y).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            prop_assert!((distance(&x, &y, 1e-9).unwrap() - 2.0 * euclidean).abs() < 1e-6);
        }
    }

    #[test]
    fn points_outside_and_odd_curvatures_are_refused() {
        let error = distance(&[0.0, 0.0], &[2.0, 0.0], CURVATURE).unwrap_err();
        assert!(error.message().contains("the second point lies outside"), "{error}");
        for curvature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(distance(&[0.0], &[0.0], curvature).unwrap_err().kind(), Kind::Config);
        }
    }
}
