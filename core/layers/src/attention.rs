//! Attention of tokens to each other, with several heads: softmax(Q · Kᵀ / √D) · V (Vaswani et al., *Attention is all you
//! need*, 2017, equation 1).
//!
//! The weights P of some queries at a time stay in a near cache, and no more of them are kept. On the way back they are
//! computed again. With G the gradient of the output,
//!
//! ∂V = Pᵀ·G,  ∂S = P ∘ (G·Vᵀ − rowsum(P ∘ G·Vᵀ)) / √D,  ∂Q = ∂S·K,  ∂K = ∂Sᵀ·Q.

#![allow(clippy::extra_unused_type_parameters, reason = "`with_simd` asks for the machine's vectors by name")]

use macerator::{Simd, with_simd};

use crate::exponential::exponential;
use crate::matrix::Matrix;
use crate::product::{Columns, LANES, Packed, Rows, add, multiply, write};
use crate::threads;

/// The queries whose weights are computed at a time.
const QUERIES: usize = 128;

/// The shape of attention: projections [B, T, 3, H, D] of queries, keys and values → tokens [B, T, H, D].
///
/// Its functions panic for slices of other lengths, and if a number below is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// T, the tokens of a picture, which attend to each other.
    pub tokens: usize,
    /// H.
    pub heads: usize,
    /// D, the features of a head.
    pub width: usize,
}

/// The queries, keys and values of a head.
#[derive(Clone, Copy)]
struct Head<'a> {
    queries: Matrix<'a>,
    keys: Matrix<'a>,
    values: Matrix<'a>,
}

impl Attention {
    /// The features of a token.
    fn features(&self) -> usize {
        self.heads * self.width
    }

    /// The numbers of a picture's output.
    fn length(&self) -> usize {
        self.tokens * self.features()
    }

    /// 1 / √D.
    fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    /// A head's numbers in one of the `parts` of each token, where a part has H · D numbers.
    fn part<'a>(&self, numbers: &'a [f32], parts: usize, part: usize, head: usize) -> Matrix<'a> {
        let start = part * self.features() + head * self.width;
        let pitch = parts * self.features();
        Matrix { numbers: &numbers[start..], pitch, rows: self.tokens, columns: self.width }
    }

    fn head<'a>(&self, projections: &'a [f32], picture: usize, head: usize) -> Head<'a> {
        let projections = &projections[3 * picture * self.length()..];
        let part = |i| self.part(projections, 3, i, head);
        Head { queries: part(0), keys: part(1), values: part(2) }
    }

    fn pictures(&self, projections: &[f32]) -> usize {
        assert!(
            self.length() > 0 && projections.len().is_multiple_of(3 * self.length()),
            "tokens of the stated shape"
        );
        projections.len() / (3 * self.length())
    }

    /// The output, [B, T, H, D].
    pub fn forward(&self, projections: &[f32]) -> Vec<f32> {
        let mut output = threads::zeros(self.pictures(projections) * self.length());
        let features = self.features();
        // The queries of a picture are divided where pictures are too few for the threads.
        let parts = threads::count().div_ceil(projections.len() / (3 * self.length()));
        let part = self.tokens.div_ceil(parts);
        let mut blocks: Vec<_> = output
            .chunks_mut(self.length())
            .flat_map(|picture| picture.chunks_mut(part * features))
            .collect();
        let parts = self.tokens.div_ceil(part);
        threads::each_chunk(&mut blocks, 1, |i, block| {
            for number in 0..self.heads {
                let head = self.head(projections, i / parts, number);
                let (keys, values) = (Packed::transposed(head.keys), Packed::new(head.values));
                let blocks = block[0].chunks_mut(QUERIES * features).enumerate();
                for (block, output) in blocks {
                    let first = i % parts * part + block * QUERIES;
                    let weights = self.weights(head.queries.band(first, output.len() / features), &keys);
                    let weights = Rows::Of(Matrix::new(&weights, self.tokens));
                    let rows = output.chunks_exact_mut(features);
                    let rows = rows.map(|row| &mut row[number * self.width..][..self.width]);
                    write_product(weights, &values, rows);
                }
            }
        });
        output
    }

    /// The weights of some queries, [queries, T].
    fn weights(&self, queries: Matrix, keys: &Packed) -> Vec<f32> {
        let mut weights = vec![0.0; queries.rows * self.tokens];
        write_product(Rows::Of(queries), keys, weights.chunks_exact_mut(self.tokens));
        softmax(&mut weights, self.tokens, self.scale());
        weights
    }

    /// The gradient of the projections, [B, T, 3, H, D], from the gradient of the output, [B, T, H, D].
    pub fn gradient(&self, projections: &[f32], gradient: &[f32]) -> Vec<f32> {
        let count = self.pictures(projections);
        assert_eq!(gradient.len(), count * self.length(), "a gradient of the stated shape");
        let mut result = threads::zeros(projections.len());
        threads::each_chunk(&mut result, 3 * self.length(), |picture, result| {
            let gradient = &gradient[picture * self.length()..];
            for number in 0..self.heads {
                let head = self.head(projections, picture, number);
                self.head_gradient(head, self.part(gradient, 1, 0, number), number, result);
            }
        });
        result
    }

    /// Writes the gradient of the projections of one picture and head.
    fn head_gradient(&self, head: Head, gradient: Matrix, number: usize, result: &mut [f32]) {
        let (tokens, width, features) = (self.tokens, self.width, self.features());
        let [mut by_keys, mut by_values] = [(); 2].map(|()| vec![0.0; tokens * width]);
        let (keys, values) = (Packed::transposed(head.keys), Packed::transposed(head.values));
        let key_columns = Packed::new(head.keys);
        for first in (0..tokens).step_by(QUERIES) {
            let rows = (tokens - first).min(QUERIES);
            let (queries, gradient) = (head.queries.band(first, rows), gradient.band(first, rows));
            let weights = self.weights(queries, &keys);
            let mut by_scores = vec![0.0; rows * tokens];
            write_product(Rows::Of(gradient), &values, by_scores.chunks_exact_mut(tokens));
            softmax_gradient(&weights, &mut by_scores, tokens, self.scale());
            let [weights, by_scores] = [&weights, &by_scores].map(|numbers| Matrix::new(numbers, tokens));
            let by_queries = result[first * 3 * features..].chunks_exact_mut(3 * features);
            let by_queries = by_queries.map(|row| &mut row[number * width..][..width]);
            write_product(Rows::Of(by_scores), &key_columns, by_queries.take(rows));
            add_product(Rows::Across(by_scores), &Packed::new(queries), &mut by_keys);
            add_product(Rows::Across(weights), &Packed::new(gradient), &mut by_values);
        }
        for (part, sums) in [(1, by_keys), (2, by_values)] {
            let rows = result.chunks_exact_mut(3 * features);
            for (row, sums) in rows.zip(sums.chunks_exact(width)) {
                row[part * features + number * width..][..width].copy_from_slice(sums);
            }
        }
    }
}

/// Writes a product of some rows with some columns.
fn write_product<'a>(rows: Rows, columns: &Packed, result: impl Iterator<Item = &'a mut [f32]>) {
    let mut result: Vec<_> = result.collect();
    multiply(rows, columns, |panel, mut block| {
        for (row, result) in result.iter_mut().enumerate() {
            for (first, sums) in (panel * LANES..).step_by(LANES).zip(block.row(row)) {
                write(sums, &mut result[first..]);
            }
        }
    });
}

/// Adds a product to a matrix without gaps.
fn add_product(rows: Rows, columns: &Packed, result: &mut [f32]) {
    multiply(rows, columns, |panel, mut block| {
        for (row, result) in result.chunks_exact_mut(columns.count()).enumerate() {
            for (first, sums) in (panel * LANES..).step_by(LANES).zip(block.row(row)) {
                add(sums, &mut result[first..]);
            }
        }
    });
}

/// softmax(scale · s) of each row.
#[with_simd]
fn softmax<S: Simd>(scores: &mut [f32], columns: usize, scale: f32) {
    for row in scores.chunks_exact_mut(columns) {
        let mut largest = [f32::NEG_INFINITY; LANES];
        let larger = |largest: &mut f32, x: f32| *largest = if x > *largest { x } else { *largest };
        let (whole, rest) = row.as_chunks::<LANES>();
        whole.iter().for_each(|row| largest.iter_mut().zip(row).for_each(|(largest, &x)| larger(largest, x)));
        largest.iter_mut().zip(rest).for_each(|(largest, &x)| larger(largest, x));
        let largest = largest.into_iter().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0; LANES];
        let add = |sum: &mut f32, x: &mut f32| {
            *x = exponential((*x - largest) * scale);
            *sum += *x;
        };
        let (whole, rest) = row.as_chunks_mut::<LANES>();
        whole.iter_mut().for_each(|row| sums.iter_mut().zip(row).for_each(|(sum, x)| add(sum, x)));
        sums.iter_mut().zip(rest).for_each(|(sum, x)| add(sum, x));
        let factor = 1.0 / sums.iter().sum::<f32>();
        row.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Turns the gradient of a softmax into the gradient of its scores, row by row.
#[with_simd]
fn softmax_gradient<'a, S: Simd>(weights: &'a [f32], gradient: &'a mut [f32], columns: usize, scale: f32) {
    for (weights, gradient) in weights.chunks_exact(columns).zip(gradient.chunks_exact_mut(columns)) {
        let mut sums = [0.0; LANES];
        for (weights, gradient) in weights.chunks(LANES).zip(gradient.chunks(LANES)) {
            for ((sum, weight), gradient) in sums.iter_mut().zip(weights).zip(gradient) {
                *sum += weight * gradient;
            }
        }
        let mean = sums.iter().sum::<f32>();
        for (gradient, weight) in gradient.iter_mut().zip(weights) {
            *gradient = weight * (*gradient - mean) * scale;
        }
    }
}
