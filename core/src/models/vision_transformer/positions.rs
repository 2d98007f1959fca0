//! Where a patch is: learned embeddings of a grid, and rotations of queries and keys.

use burn::tensor::{DType, Device, Tensor, TensorData};

/// How the learned embeddings of a grid become those of another grid. Both are bicubic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Resampling {
    /// With the wider window of a smaller grid, as timm does: torch's `interpolate` with `antialias=True`.
    Antialiased,
    /// As DINOv2's published code does without registers: torch's `interpolate` by the scale factor (to + 0.1) / from.
    Offset,
}

/// Embeddings of the cells of a square grid, [1, side², F], for another grid: [1, height · width, F].
pub(super) fn resampled(
    cells: Tensor<3>,
    side: usize,
    [height, width]: [usize; 2],
    resampling: Resampling,
) -> Tensor<3> {
    if [height, width] == [side; 2] {
        return cells;
    }
    let [_, _, features] = cells.dims();
    let numbers = (&cells.device(), cells.dtype());
    let matrix =
        |to: usize| Tensor::<2>::from_data(TensorData::new(resampling.matrix(side, to), [to, side]), numbers);
    let rows = matrix(height).matmul(cells.reshape([side, side * features]));
    let rows = rows.reshape([height, side, features]);
    let cells = matrix(width).unsqueeze::<3>().expand([height, width, side]).matmul(rows);
    cells.reshape([1, height * width, features])
}

/// The positions of DINOv2 without registers, [1, 1 + 37², F], for square images of a side, as its published code resamples
/// them. timm's network resamples them otherwise, and takes these as they are.
pub fn dinov2_positions(all: Tensor<3>, side: usize) -> Tensor<3> {
    const GRID: usize = 37;
    const PATCH: usize = 14;
    let cells = all.clone().narrow(1, 1, GRID * GRID);
    let cells = resampled(cells, GRID, [side / PATCH; 2], Resampling::Offset);
    Tensor::cat(vec![all.narrow(1, 0, 1), cells], 1)
}

impl Resampling {
    /// The matrix [to, from] that resamples `from` values at `to` places.
    pub(super) fn matrix(self, from: usize, to: usize) -> Vec<f32> {
        let mut matrix = vec![0.0; to * from];
        for (i, row) in matrix.chunks_exact_mut(from).enumerate() {
            match self {
                Self::Antialiased => {
                    let scale = from as f64 / to as f64;
                    let centre = scale * (i as f64 + 0.5);
                    let weight = |j: usize| cubic((j as f64 + 0.5 - centre) / scale.max(1.0), -0.5);
                    let sum: f64 = (0..from).map(weight).sum();
                    row.iter_mut().enumerate().for_each(|(j, value)| *value = (weight(j) / sum) as f32);
                }
                Self::Offset => {
                    let place = from as f64 / (to as f64 + 0.1) * (i as f64 + 0.5) - 0.5;
                    for step in -1..=2 {
                        let at = place.floor() + f64::from(step);
                        // The cells at the border stand for those outside.
                        row[at.clamp(0.0, from as f64 - 1.0) as usize] += cubic(place - at, -0.75) as f32;
                    }
                }
            }
        }
        matrix
    }
}

/// The matrix [to, from] of [`Resampling::Antialiased`].
pub(in crate::models) fn antialiased(from: usize, to: usize) -> Vec<f32> {
    Resampling::Antialiased.matrix(from, to)
}

/// Keys' cubic (*Cubic convolution interpolation for digital image processing*, 1981).
fn cubic(x: f64, a: f64) -> f64 {
    let x = x.abs();
    match x {
        _ if x < 1.0 => ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0,
        _ if x < 2.0 => ((x - 5.0) * x + 8.0) * x * a - 4.0 * a,
        _ => 0.0,
    }
}

/// The cosines and sines of the angles by which each token is turned, [1, T, 1, D/2] for heads with D features.
pub(super) struct Rotation {
    cosines: Tensor<4>,
    sines: Tensor<4>,
}

/// The rotation of DINOv3 (Siméoni et al., *DINOv3*, 2025): with (y, x) from −1 to 1 the centre of a patch, its angles are
/// 2π · y · 100^(−4j/D) and then 2π · x · 100^(−4j/D) for 0 ≤ j < D/4. The tokens before the patches are not turned.
pub(super) fn rotation(
    others: usize,
    [height, width]: [usize; 2],
    features: usize,
    numbers: (&Device, DType),
) -> Rotation {
    let place = |i: usize, count: usize| 2.0 * (i as f64 + 0.5) / count as f64 - 1.0;
    let mut angles = vec![0.0; others * features / 2];
    for cell in 0..height * width {
        for place in [place(cell / width, height), place(cell % width, width)] {
            let frequencies = (0..features / 4).map(|j| 100_f64.powf(-4.0 * j as f64 / features as f64));
            angles.extend(frequencies.map(|frequency| std::f64::consts::TAU * place * frequency));
        }
    }
    let tensor = |function: fn(f64) -> f64| {
        let values: Vec<f32> = angles.iter().map(|&angle| function(angle) as f32).collect();
        Tensor::from_data(TensorData::new(values, [1, others + height * width, 1, features / 2]), numbers)
    };
    Rotation { cosines: tensor(f64::cos), sines: tensor(f64::sin) }
}

/// Turns the queries and keys of projections [B, T, 3 · F]. Number i of the first half of a head's features and number i of
/// the second half are the coordinates of a point.
pub(super) fn rotate(projections: Tensor<3>, heads: usize, rotation: &Rotation) -> Tensor<3> {
    let [batch, tokens, all] = projections.dims();
    let (features, half) = (all / 3, all / 6 / heads);
    let values = projections.clone().narrow(2, 2 * features, features);
    let points = projections.narrow(2, 0, 2 * features).reshape([batch, tokens, 2 * heads, 2 * half]);
    let (x, y) = (points.clone().narrow(3, 0, half), points.narrow(3, half, half));
    let (cosines, sines) = (&rotation.cosines, &rotation.sines);
    let turned_x = x.clone() * cosines.clone() - y.clone() * sines.clone();
    let turned_y = y * cosines.clone() + x * sines.clone();
    let turned = Tensor::cat(vec![turned_x, turned_y], 3).reshape([batch, tokens, 2 * features]);
    Tensor::cat(vec![turned, values], 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resampling_keeps_constants_and_one_of_the_same_size_keeps_everything() {
        for (from, to) in [(14, 6), (14, 20), (37, 16), (14, 1)] {
            for resampling in [Resampling::Antialiased, Resampling::Offset] {
                for row in resampling.matrix(from, to).chunks_exact(from) {
                    assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{from} to {to}: {row:?}");
                }
            }
        }
        let same = Resampling::Antialiased.matrix(5, 5);
        assert!((0..25).all(|i| (same[i] - f32::from(i % 6 == 0)).abs() < 1e-6), "{same:?}");
    }
}
