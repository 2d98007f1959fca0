//! A convolution whose output channels each see one input channel of their own.
//!
//! It has few terms for each number, so it is a sum of rows, each shifted and multiplied by a weight, and no product of
//! matrices.

use macerator::{Scalar, Simd, with_simd};

use crate::Convolution;
use crate::epilogue::Epilogue;
use crate::planes::Planes;
use crate::product::{LANES, Lanes};
use crate::threads;
use crate::vectors::{load, store};

/// The sums of 32 positions of a row, or fewer. What is not a position has no meaning.
#[inline(always)]
fn sums<S: Simd>(plane: &[f32], places: &[usize], weights: &[f32], start: usize, count: usize) -> Lanes {
    let lanes = S::lanes32();
    let mut sums = [0.0; LANES];
    for first in (0..count).step_by(lanes) {
        let mut sum = 0.0_f32.splat::<S>();
        for (place, weight) in places.iter().zip(weights) {
            sum += weight.splat() * load(&plane[start + first + place..][..lanes]);
        }
        store(sum, &mut sums[first..first + lanes]);
    }
    sums
}

pub(crate) fn forward(
    layer: &Convolution,
    planes: &Planes,
    x: &[f32],
    weight: &[f32],
    output: &mut [f32],
    epilogue: Epilogue,
) {
    let [height, width] = layer.output();
    let places = layer.offsets(planes, 1);
    let channels = layer.outputs;
    threads::each_map(output, height * width, |map, output| {
        let channel = map % channels;
        let weights = &weight[channel * places.len()..][..places.len()];
        // Vectors at the end of the last row read beyond it.
        let mut plane = vec![0.0; planes.len() + LANES];
        planes.fill(&x[map * planes.map()..][..planes.map()], &mut plane[..planes.len()]);
        write(&plane, planes.pitch(), &places, weights, epilogue, channel, output, width);
    });
}

/// Writes a map of the output, whose rows are `width` numbers, from the laid out map that it sees.
#[with_simd]
#[allow(clippy::too_many_arguments)]
fn write<'a, S: Simd>(
    plane: &'a [f32],
    pitch: usize,
    places: &'a [usize],
    weights: &'a [f32],
    epilogue: Epilogue<'a>,
    channel: usize,
    output: &'a mut [f32],
    width: usize,
) {
    for (y, row) in output.chunks_exact_mut(width).enumerate() {
        for (i, part) in row.chunks_mut(LANES).enumerate() {
            let mut sums = sums::<S>(plane, places, weights, y * pitch + i * LANES, part.len());
            epilogue.apply::<S>(channel, &mut sums, None);
            part.copy_from_slice(&sums[..part.len()]);
        }
    }
}

pub(crate) fn input_gradient(layer: &Convolution, gradient: &[f32], weight: &[f32], result: &mut [f32]) {
    let [height, width] = layer.output();
    let [channels, input_height, input_width] = layer.input;
    let planes = layer.input_planes();
    let places = layer.offsets(&planes, 1);
    threads::each_map(result, input_height * input_width, |map, result| {
        let weights = &weight[map % channels * places.len()..][..places.len()];
        let gradient = &gradient[map * height * width..][..height * width];
        let mut plane = vec![0.0; planes.len()];
        for (place, weight) in places.iter().zip(weights) {
            for (y, row) in gradient.chunks_exact(width).enumerate() {
                let plane = &mut plane[place + y * planes.pitch()..][..width];
                plane.iter_mut().zip(row).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        planes.take(&plane, result);
    });
}

pub(crate) fn weight_gradient(
    layer: &Convolution,
    planes: &Planes,
    x: &[f32],
    gradient: &[f32],
    result: &mut [f32],
) {
    let [height, width] = layer.output();
    let places = layer.offsets(planes, 1);
    let channels = layer.outputs;
    let count = gradient.len() / (channels * height * width);
    threads::each_map(result, places.len(), |channel, result| {
        let mut plane = vec![0.0; planes.len()];
        for map in (0..count).map(|b| b * channels + channel) {
            planes.fill(&x[map * planes.map()..][..planes.map()], &mut plane);
            let gradient = &gradient[map * height * width..][..height * width];
            for (place, result) in places.iter().zip(&mut *result) {
                let mut sums = [0.0; LANES];
                for (y, row) in gradient.chunks_exact(width).enumerate() {
                    let numbers = &plane[place + y * planes.pitch()..][..width];
                    for (x, numbers) in row.chunks(LANES).zip(numbers.chunks(LANES)) {
                        for ((sum, x), number) in sums.iter_mut().zip(x).zip(numbers) {
                            *sum += x * number;
                        }
                    }
                }
                *result += sums.iter().sum::<f32>();
            }
        }
    });
}
