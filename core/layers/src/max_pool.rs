//! Max-pooling: the largest number that a window meets.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use std::ops::Range;

use macerator::{Simd, Vector, with_simd};

use crate::threads;
use crate::vectors::{load, store};

/// The shape of a max-pooling of maps [H, W]. No stride and no side of the window is zero, and each padding is smaller
/// than the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxPool {
    /// H and W; not zero, and with the padding not smaller than the window.
    pub input: [usize; 2],
    /// The height and width of the window.
    pub size: [usize; 2],
    /// The rows and columns that the window moves at a time.
    pub stride: [usize; 2],
    /// The rows above and below a map, and the columns before and behind it, that have no numbers.
    pub padding: [usize; 2],
    /// Whether a last window that extends beyond the padding counts, if it begins before it.
    pub ceil: bool,
}

impl MaxPool {
    /// The height and width of the output.
    ///
    /// # Panics
    ///
    /// If the window is larger than a map with its padding.
    pub fn output(&self) -> [usize; 2] {
        [0, 1].map(|i| {
            let room = self.input[i] + 2 * self.padding[i] - self.size[i];
            if !self.ceil {
                return room / self.stride[i] + 1;
            }
            let count = room.div_ceil(self.stride[i]) + 1;
            if (count - 1) * self.stride[i] >= self.input[i] + self.padding[i] { count - 1 } else { count }
        })
    }

    /// The largest numbers of maps [N, H, W], and the place of each in its map. Of equal ones the first counts; what is
    /// not a number counts as the largest.
    pub fn forward(&self, x: &[f32]) -> (Vec<f32>, Vec<u32>) {
        let [height, width] = self.output();
        let (from, to) = (self.input[0] * self.input[1], height * width);
        let count = x.len() / from;
        let (mut output, mut places) = (vec![0.0; count * to], vec![0; count * to]);
        let run = count.div_ceil(4 * threads::count()).max(1);
        let mut chunks: Vec<_> = output.chunks_mut(run * to).zip(places.chunks_mut(run * to)).collect();
        threads::each_chunk(&mut chunks, 1, |i, chunk| {
            let (output, places) = &mut chunk[0];
            let maps = x[i * run * from..].chunks_exact(from);
            let mut columns =
                (vec![0.0; self.input[1] + self.stride[1]], vec![0; self.input[1] + self.stride[1]]);
            for (map, (output, places)) in
                maps.zip(output.chunks_exact_mut(to).zip(places.chunks_exact_mut(to)))
            {
                pool(self, map, output, places, &mut columns);
            }
        });
        (output, places)
    }

    /// The numbers of [`forward`](Self::forward) alone, in less time.
    pub fn largest(&self, x: &[f32]) -> Vec<f32> {
        let [height, width] = self.output();
        let (from, to) = (self.input[0] * self.input[1], height * width);
        let mut output = vec![0.0; x.len() / from * to];
        threads::each_map(&mut output, to, |map, output| largest(self, &x[map * from..][..from], output));
        output
    }

    /// The rows or columns of the map that a window meets.
    fn met(&self, i: usize, position: usize) -> Range<usize> {
        let start = position * self.stride[i];
        start.saturating_sub(self.padding[i])..(start + self.size[i] - self.padding[i]).min(self.input[i])
    }

    /// The gradient of the input, [N, H, W], from that of the output and the places of the largest numbers.
    ///
    /// # Panics
    ///
    /// If there are not as many places as numbers.
    pub fn input_gradient(&self, gradient: &[f32], places: &[u32]) -> Vec<f32> {
        assert_eq!(gradient.len(), places.len(), "a place of each number");
        let to = self.output().iter().product::<usize>();
        let from = self.input[0] * self.input[1];
        let mut result = threads::zeros(gradient.len() / to * from);
        threads::each_map(&mut result, from, |map, result| {
            for (gradient, &place) in gradient[map * to..][..to].iter().zip(&places[map * to..]) {
                result[place as usize] += gradient;
            }
        });
        result
    }
}

/// The largest numbers of a map: first of the rows that a window meets, for each column, then of its columns.
#[with_simd]
fn pool<'a, S: Simd>(
    shape: &'a MaxPool,
    x: &'a [f32],
    output: &'a mut [f32],
    places: &'a mut [u32],
    columns: &'a mut (Vec<f32>, Vec<u32>),
) {
    let side = shape.input[1];
    let [_, width] = shape.output();
    for (v, (output, places)) in
        output.chunks_exact_mut(width).zip(places.chunks_exact_mut(width)).enumerate()
    {
        let rows = shape.met(0, v);
        // Behind the last column there is room for whole strides.
        let (numbers, from) = (&mut columns.0, &mut columns.1);
        numbers[..side].copy_from_slice(&x[rows.start * side..][..side]);
        from.iter_mut().zip((rows.start * side) as u32..).for_each(|(place, start)| *place = start);
        for y in rows.skip(1) {
            let row = &x[y * side..][..side];
            let (numbers, from) = (&mut numbers[..side], &mut from[..side]);
            for i in 0..side {
                let larger = row[i] > numbers[i] || row[i].is_nan();
                numbers[i] = if larger { row[i] } else { numbers[i] };
                from[i] = if larger { (y * side + i) as u32 } else { from[i] };
            }
        }
        output.fill(f32::NEG_INFINITY);
        places.fill(u32::MAX);
        for j in 0..shape.size[1] {
            // The positions whose window has its column j inside the map.
            let first = shape.padding[1].saturating_sub(j).div_ceil(shape.stride[1]);
            let start = first * shape.stride[1] + j - shape.padding[1];
            let count = side.saturating_sub(start).div_ceil(shape.stride[1]).min(width.saturating_sub(first));
            if count == 0 {
                continue;
            }
            let met = (&numbers[start..], &from[start..]);
            let targets = (&mut output[first..first + count], &mut places[first..first + count]);
            // The compiler makes vectors of numbers whose distance it knows.
            match shape.stride[1] {
                1 => take_larger(met, 1, targets),
                2 => take_larger(met, 2, targets),
                stride => take_larger(met, stride, targets),
            }
        }
    }
}

/// [`pool`] without the places.
#[with_simd]
fn largest<'a, S: Simd>(shape: &'a MaxPool, x: &'a [f32], output: &'a mut [f32]) {
    let lanes = S::lanes32();
    let (side, before) = (shape.input[1], shape.padding[1]);
    let ([_, width], stride) = (shape.output(), shape.stride[1]);
    // The columns of the map between columns without numbers, as many as any window meets.
    let mut columns = vec![0.0; before + side + width * stride + shape.size[1] + lanes];
    for (v, output) in output.chunks_exact_mut(width).enumerate() {
        let rows = shape.met(0, v);
        let below = &x[rows.start * side..rows.end * side];
        columns.fill(f32::NEG_INFINITY);
        // The last vectors of a row begin earlier, so that they end with it.
        for start in (0..side).step_by(lanes).map(|start| start.min(side.saturating_sub(lanes))) {
            let target = &mut columns[before + start..];
            if side < lanes {
                for row in below.chunks_exact(side) {
                    for (largest, x) in target.iter_mut().zip(row) {
                        *largest = if (*x > *largest) | x.is_nan() { *x } else { *largest };
                    }
                }
            } else {
                let mut largest = load::<S>(&below[start..][..lanes]);
                for row in below.chunks_exact(side).skip(1) {
                    largest = larger(largest, load(&row[start..][..lanes]));
                }
                store(largest, &mut target[..lanes]);
            }
        }
        for start in (0..width * stride).step_by(lanes) {
            // What stands behind the first number of a window is still as it was.
            let mut window = load::<S>(&columns[start..][..lanes]);
            for j in 1..shape.size[1] {
                window = larger(window, load(&columns[start + j..][..lanes]));
            }
            store(window, &mut columns[start..][..lanes]);
        }
        for (output, window) in output.iter_mut().zip(columns.chunks_exact(stride)) {
            *output = window[0];
        }
    }
}

/// The larger number of each lane; of equal ones the first, and what is not a number before all others.
#[inline(always)]
fn larger<S: Simd>(first: Vector<S, f32>, second: Vector<S, f32>) -> Vector<S, f32> {
    (second.gt(first) | second.ne(second)).select(second, first)
}

/// Takes each number with some stride, and its place, where it is larger than a target.
///
/// Of equal numbers the first of the window counts, and of several that are not numbers the last.
#[inline(always)]
fn take_larger(
    (numbers, from): (&[f32], &[u32]),
    stride: usize,
    (targets, places): (&mut [f32], &mut [u32]),
) {
    let met = numbers.chunks_exact(stride).zip(from.chunks_exact(stride));
    for ((number, place), (target, at)) in met.zip(targets.iter_mut().zip(places)) {
        let (number, place, largest) = (number[0], place[0], *target);
        let before = place < *at;
        let greater = (number > largest) | ((number == largest) & before);
        let larger = greater | (number.is_nan() & !(largest.is_nan() & before));
        *target = if larger { number } else { largest };
        *at = if larger { place } else { *at };
    }
}
