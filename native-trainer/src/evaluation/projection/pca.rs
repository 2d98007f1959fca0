//! Principal component analysis: the plane of the largest variance.

use nalgebra::{DMatrix, SymmetricEigen};

/// A projection to the plane of the largest variance.
pub(super) struct Plane {
    /// [N, 2].
    pub(super) points: Vec<[f32; 2]>,
    /// The share of the variance that lies in the plane, 0 to 1; 1 if all vectors are equal.
    pub(super) share: f64,
}

/// The first two principal components of vectors [N, d]. Each is turned so that its coordinate of the largest size is
/// above 0.
///
/// The components come from the eigenvectors of XᵀX, or of XXᵀ if there are fewer vectors than dimensions, X the
/// centred vectors.
pub(super) fn project(vectors: &DMatrix<f64>) -> Plane {
    let mut centred = vectors.clone();
    let mean = centred.row_mean();
    for mut row in centred.row_iter_mut() {
        row -= &mean;
    }
    let (count, dimension) = centred.shape();
    let wide = count < dimension;
    let eigen =
        SymmetricEigen::new(if wide { &centred * centred.transpose() } else { centred.tr_mul(&centred) });
    let mut order: Vec<usize> = (0..eigen.eigenvalues.len()).collect();
    order.sort_by(|&i, &j| eigen.eigenvalues[j].total_cmp(&eigen.eigenvalues[i]));

    let mut points = vec![[0.0f32; 2]; count];
    let mut variance = 0.0;
    for (axis, &place) in order.iter().take(2).enumerate() {
        let value = eigen.eigenvalues[place].max(0.0);
        let vector = eigen.eigenvectors.column(place);
        let mut component = if wide { vector * value.sqrt() } else { &centred * vector };
        if component[component.iamax()] < 0.0 {
            component.neg_mut();
        }
        variance += value;
        for (point, &x) in points.iter_mut().zip(&component) {
            point[axis] = x as f32;
        }
    }
    let total: f64 = eigen.eigenvalues.iter().map(|value| value.max(0.0)).sum();
    Plane { points, share: if total > 0.0 { variance / total } else { 1.0 } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_of_a_known_ellipsoid_is_found() {
        // Along the orthogonal directions (3, 4, 0)/5, (4, −3, 0)/5 and (0, 0, 1) by ±10, ±5 and ±1.
        let directions = [[0.6, 0.8, 0.0], [0.8, -0.6, 0.0], [0.0, 0.0, 1.0]];
        let lengths = [10.0, 5.0, 1.0];
        let rows: Vec<f64> = (0..6)
            .flat_map(|row| {
                let (axis, sign) = (row / 2, if row % 2 == 0 { 1.0 } else { -1.0 });
                directions[axis].map(|x| 7.0 + sign * lengths[axis] * x)
            })
            .collect();
        let plane = project(&DMatrix::from_row_slice(6, 3, &rows));
        let expected = [[10.0, 0.0], [-10.0, 0.0], [0.0, 5.0], [0.0, -5.0], [0.0, 0.0], [0.0, 0.0]];
        for (point, expected) in plane.points.iter().zip(expected) {
            // The sign of an axis whose largest size occurs twice is that of the first.
            assert!((point[0] - expected[0] as f32).abs() < 1e-5, "{point:?} {expected:?}");
            assert!((point[1] - expected[1] as f32).abs() < 1e-5, "{point:?} {expected:?}");
        }
        assert!((plane.share - 125.0 / 126.0).abs() < 1e-12);
    }

    #[test]
    fn fewer_vectors_than_dimensions_give_the_same_plane() {
        let tall = DMatrix::from_row_slice(3, 2, &[1.0, 2.0, -3.0, 0.5, 2.0, -1.0]);
        let wide = tall.clone().resize_horizontally(9, 0.0);
        for (a, b) in project(&tall).points.iter().flatten().zip(project(&wide).points.iter().flatten()) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn one_dimension_has_a_second_coordinate_of_zero() {
        let plane = project(&DMatrix::from_row_slice(2, 1, &[1.0, 3.0]));
        assert!(plane.points.iter().all(|point| point[1] == 0.0));
        assert_eq!(plane.share, 1.0);
    }
}
