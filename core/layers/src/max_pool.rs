//! Max-pooling: the largest number that a window meets.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use macerator::{Simd, with_simd};

use crate::threads;

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
            let mut columns = vec![Largest::default(); self.input[1]];
            for (map, (output, places)) in
                maps.zip(output.chunks_exact_mut(to).zip(places.chunks_exact_mut(to)))
            {
                pool(self, map, output, places, &mut columns);
            }
        });
        (output, places)
    }

    /// The rows or columns of the map that a window meets.
    fn met(&self, i: usize, position: usize) -> std::ops::Range<usize> {
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
        let count = gradient.len() / to;
        let mut result = vec![0.0; count * from];
        let run = count.div_ceil(4 * threads::count()).max(1);
        threads::each_chunk(&mut result, run * from, |i, maps| {
            for (j, map) in maps.chunks_exact_mut(from).enumerate() {
                let start = (i * run + j) * to;
                for (gradient, &place) in gradient[start..][..to].iter().zip(&places[start..]) {
                    map[place as usize] += gradient;
                }
            }
        });
        result
    }
}

/// The largest number so far, and its place in the map.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    number: f32,
    place: u32,
}

/// The largest numbers of a map: first of the rows that a window meets, for each column, then of its columns.
#[with_simd]
fn pool<'a, S: Simd>(
    shape: &'a MaxPool,
    x: &'a [f32],
    output: &'a mut [f32],
    places: &'a mut [u32],
    columns: &'a mut [Largest],
) {
    let side = shape.input[1];
    let [_, width] = shape.output();
    for (v, (output, places)) in
        output.chunks_exact_mut(width).zip(places.chunks_exact_mut(width)).enumerate()
    {
        let rows = shape.met(0, v);
        for y in rows.clone() {
            let row = (0_u32..).zip(&x[y * side..][..side]);
            let start = (y * side) as u32;
            for (column, (i, &number)) in columns.iter_mut().zip(row) {
                let larger = y == rows.start || number > column.number || number.is_nan();
                column.number = if larger { number } else { column.number };
                column.place = if larger { start + i } else { column.place };
            }
        }
        for (u, (number, place)) in output.iter_mut().zip(places).enumerate() {
            let met = &columns[shape.met(1, u)];
            let mut best = met[0];
            for column in &met[1..] {
                // In the order of the window's numbers, the first of equal ones counts, and the last that is none.
                let before = column.place < best.place;
                let larger = match column.number.is_nan() {
                    true => !(best.number.is_nan() && before),
                    false => column.number > best.number || column.number == best.number && before,
                };
                best = if larger { *column } else { best };
            }
            (*number, *place) = (best.number, best.place);
        }
    }
}
