//! Max-pooling: the largest number that a window meets.

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
            for (map, (output, places)) in
                maps.zip(output.chunks_exact_mut(to).zip(places.chunks_exact_mut(to)))
            {
                self.map(map, output, places);
            }
        });
        (output, places)
    }

    fn map(&self, x: &[f32], output: &mut [f32], places: &mut [u32]) {
        let [_, width] = self.output();
        output.fill(f32::NEG_INFINITY);
        for (v, (output, places)) in
            output.chunks_exact_mut(width).zip(places.chunks_exact_mut(width)).enumerate()
        {
            let rows = self.met(0, v);
            // The first number counts if all are −∞.
            for (u, place) in places.iter_mut().enumerate() {
                *place = (rows.start * self.input[1] + self.met(1, u).start) as u32;
            }
            for y in rows {
                let row = &x[y * self.input[1]..][..self.input[1]];
                for j in 0..self.size[1] {
                    // The positions whose window has its column j inside the map.
                    let first = self.padding[1].saturating_sub(j).div_ceil(self.stride[1]);
                    let column = first * self.stride[1] + j - self.padding[1];
                    let numbers = row.get(column..).unwrap_or_default();
                    let numbers = numbers.iter().step_by(self.stride[1]);
                    let place = (y * self.input[1] + column) as u32;
                    let targets = output.iter_mut().zip(&mut *places).skip(first);
                    for (i, (&number, (largest, at))) in (0..).zip(numbers.zip(targets)) {
                        let larger = number > *largest || number.is_nan();
                        *largest = if larger { number } else { *largest };
                        *at = if larger { place + i * self.stride[1] as u32 } else { *at };
                    }
                }
            }
        }
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
