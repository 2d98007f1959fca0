//! Ancestors from the softmax, and the gradient straight through it.

#![allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]

use std::array;
use std::ops::Range;

use macerator::{Simd, with_simd};

use super::exponential::{Reciprocals, exp};
use super::{AncestorLoss, Distances, LANES, Triplets, for_each_anchor};

/// Numbers of the softmaxes that are kept at a time: 4 MB.
const BLOCK_NUMBERS: usize = 1 << 20;
/// The columns of the gradient that one thread adds up at a time.
const COLUMNS: usize = 128;

/// Σ L over the triplets, and its gradient. `noise` gives the source of an anchor's draws.
pub(super) fn sum<N: Reciprocals>(
    loss: &AncestorLoss,
    temperature: f64,
    distances: Distances,
    triplets: &Triplets,
    noise: impl Fn(u64) -> N + Sync + Send,
) -> (f64, Vec<f32>) {
    let proxies = distances.proxies;
    let items = distances.values.len() / proxies;
    let mut parts: Vec<Part> = (0..proxies)
        .step_by(COLUMNS)
        .map(|first| Part::new(first..(first + COLUMNS).min(proxies), items))
        .collect();
    let runs = triplets.runs();
    let mut sum = 0.0;
    let mut start = 0;
    while start < runs.len() {
        // At least one anchor, and as many as fit.
        let mut end = start;
        let mut numbers = 0;
        while end < runs.len() && (end == start || numbers + 2 * proxies * runs[end].len() <= BLOCK_NUMBERS) {
            numbers += 2 * proxies * runs[end].len();
            end += 1;
        }
        let drawn = for_each_anchor(&runs[start..end], |memory: &mut Vec<f32>, number, run| {
            let mut reciprocals = noise((start + number) as u64);
            run.map(|t| draw(loss, temperature, distances, triplets.get(t), t, &mut reciprocals, memory))
                .collect::<Vec<Drawn>>()
        });
        sum += drawn.iter().flatten().map(|drawn| drawn.value).sum::<f64>();
        for_each_part(&mut parts, |part| {
            for (run, drawn) in runs[start..end].iter().zip(&drawn) {
                add_run(part, temperature as f32, distances, triplets, run.clone(), drawn);
            }
        });
        start = end;
    }
    let mut gradient = vec![0.0; distances.values.len()];
    for part in &parts {
        for (row, slopes) in
            gradient.chunks_exact_mut(proxies).zip(part.slopes.chunks_exact(part.columns.len()))
        {
            row[part.columns.clone()].copy_from_slice(slopes);
        }
    }
    (sum, gradient)
}

/// What the draw of a triplet leaves for its gradient; nothing if it has none.
struct Drawn {
    value: f64,
    ancestors: [usize; 2],
    /// ∂L/∂(d(·, ρ_ij) − d(·, ρ_ijk)) of i, j and k.
    slopes: [f32; 3],
    /// Both softmaxes, and the mean of the pull in each.
    softmaxes: [Vec<f32>; 2],
    means: [f32; 2],
}

/// Some columns of the gradient, [n, columns].
struct Part {
    columns: Range<usize>,
    slopes: Vec<f32>,
}

impl Part {
    fn new(columns: Range<usize>, items: usize) -> Self {
        Self { slopes: vec![0.0; items * columns.len()], columns }
    }
}

/// Draws both ancestors of a triplet.
fn draw<N: Reciprocals>(
    loss: &AncestorLoss,
    temperature: f64,
    distances: Distances,
    items: [usize; 3],
    triplet: usize,
    reciprocals: &mut N,
    memory: &mut Vec<f32>,
) -> Drawn {
    let proxies = distances.proxies;
    memory.resize(4 * proxies, 0.0);
    let (noise, largest) = memory.split_at_mut(2 * proxies);
    let (pair_largest, all_largest) = largest.split_at_mut(proxies);
    fill(reciprocals, triplet, noise);
    let [i, j, k] = items.map(|item| distances.row(item));
    let (pair_noise, all_noise) = noise.split_at(proxies);
    let (mut low_softmax, mut high_softmax) = (vec![0.0; proxies], vec![0.0; proxies]);
    let per_temperature = (1.0 / temperature) as f32;
    maximum(i, j, pair_largest);
    let low = softmax(pair_largest, pair_noise, per_temperature, None, &mut low_softmax);
    maximum(k, pair_largest, all_largest);
    let left_out = (!loss.equal_ancestors).then_some(low);
    let high = softmax(all_largest, all_noise, per_temperature, left_out, &mut high_softmax);
    let (value, slopes) = loss.hinge([i, j, k], [low, high]);
    if slopes == [0.0; 3] {
        let nothing = [Vec::new(), Vec::new()];
        return Drawn { value, ancestors: [low, high], slopes, softmaxes: nothing, means: [0.0; 2] };
    }
    let means = [&low_softmax, &high_softmax].map(|softmax| mean_pull(softmax, [i, j, k], slopes));
    Drawn { value, ancestors: [low, high], slopes, softmaxes: [low_softmax, high_softmax], means }
}

#[with_simd]
fn fill<S: Simd, N: Reciprocals>(reciprocals: &mut N, triplet: usize, numbers: &mut [f32]) {
    reciprocals.fill(triplet, numbers);
}

#[with_simd]
fn maximum<S: Simd>(a: &[f32], b: &[f32], out: &mut [f32]) {
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = if a > b { *a } else { *b };
    }
}

/// Writes the softmax of −M/τ + g, and returns the place of its largest number, the first of equals. The proxy that is
/// left out has 0.
#[with_simd]
fn softmax<S: Simd>(
    largest: &[f32],
    reciprocals: &[f32],
    per_temperature: f32,
    left_out: Option<usize>,
    softmax: &mut [f32],
) -> usize {
    // The smallest distance that counts has the exponential 1, so the largest weight is never 0.
    let smallest = lanes(largest, f32::INFINITY, |a, b| if a < b { a } else { b }, left_out);
    for (weight, (largest, reciprocal)) in softmax.iter_mut().zip(largest.iter().zip(reciprocals)) {
        *weight = exp((smallest - largest) * per_temperature) * reciprocal;
    }
    if let Some(left_out) = left_out {
        softmax[left_out] = 0.0;
    }
    let sum = lanes(softmax, 0.0, |a, b| a + b, None);
    let highest = lanes(softmax, 0.0, |a, b| if a > b { a } else { b }, None);
    let chosen = softmax.iter().position(|weight| *weight == highest).unwrap_or(0);
    // Not times 1/sum: a softmax of one proxy is exactly 1, and its gradient exactly 0 however small τ is.
    softmax.iter_mut().for_each(|weight| *weight /= sum);
    chosen
}

/// Folds numbers lane by lane, then the lanes.
#[inline(always)]
fn lanes(numbers: &[f32], start: f32, fold: impl Fn(f32, f32) -> f32, left_out: Option<usize>) -> f32 {
    let mut partial = [start; LANES];
    let mut fold_all = |numbers: &[f32]| {
        let (chunks, rest) = numbers.as_chunks::<LANES>();
        for numbers in chunks {
            for lane in 0..LANES {
                partial[lane] = fold(partial[lane], numbers[lane]);
            }
        }
        for (partial, number) in partial.iter_mut().zip(rest) {
            *partial = fold(*partial, *number);
        }
    };
    match left_out {
        None => fold_all(numbers),
        Some(left_out) => {
            fold_all(&numbers[..left_out]);
            fold_all(&numbers[left_out + 1..]);
        }
    }
    partial.into_iter().fold(start, fold)
}

/// Σ_ρ p(ρ) · pull(ρ), with pull(ρ) = Σ over the items of slope · d(item, ρ).
#[with_simd]
fn mean_pull<S: Simd>(softmax: &[f32], rows: [&[f32]; 3], slopes: [f32; 3]) -> f32 {
    let [i, j, k] = rows.map(|row| &row[..softmax.len()]);
    let mut partial = [0.0; LANES];
    for start in (0..softmax.len()).step_by(LANES) {
        let end = (start + LANES).min(softmax.len());
        for (place, partial) in (start..end).zip(&mut partial) {
            let pull = slopes[0] * i[place] + slopes[1] * j[place] + slopes[2] * k[place];
            *partial += softmax[place] * pull;
        }
    }
    partial.iter().sum()
}

/// Adds the slopes of one anchor's triplets to a part of the gradient.
#[with_simd]
fn add_run<'a, S: Simd>(
    part: &mut Part,
    temperature: f32,
    distances: Distances<'a>,
    triplets: &Triplets,
    run: Range<usize>,
    drawn: &[Drawn],
) {
    let width = part.columns.len();
    let first = part.columns.start;
    let mut slopes = [[0.0; COLUMNS]; 3];
    // For the last part, which may have fewer columns.
    let mut copies = [[0.0; COLUMNS]; 5];
    for (t, drawn) in run.zip(drawn) {
        if drawn.slopes == [0.0; 3] {
            continue;
        }
        let items = triplets.get(t);
        let [i, j, k] = items.map(|item| distances.row(item));
        let [low, high] = &drawn.softmaxes;
        let mut rows = [i, j, k, low, high].into_iter().zip(&mut copies);
        let [i, j, k, low, high]: [&[f32; COLUMNS]; 5] = array::from_fn(|_| {
            let (row, copy) = rows.next().expect("five rows");
            row[first..].first_chunk().unwrap_or_else(|| {
                copy[..width].copy_from_slice(&row[first..]);
                copy
            })
        });
        for column in 0..COLUMNS {
            let (i, j, k) = (i[column], j[column], k[column]);
            let pull = drawn.slopes[0] * i + drawn.slopes[1] * j + drawn.slopes[2] * k;
            // M falls by −1/τ in the softmax; ρ_ijk is subtracted in the step.
            let to_pair = low[column] * (drawn.means[0] - pull);
            let to_all = high[column] * (pull - drawn.means[1]);
            // A maximum passes its slope to the larger side, and half of it to each when they are equal.
            let pair = if i > j { i } else { j };
            let to_k = to_all * share(k, pair);
            let to_pair = to_pair + to_all - to_k;
            let to_i = to_pair * share(i, j);
            slopes[0][column] = to_i;
            slopes[1][column] = to_pair - to_i;
            slopes[2][column] = to_k;
        }
        let per_temperature = 1.0 / temperature;
        for ((item, slopes), slope) in items.into_iter().zip(&slopes).zip(drawn.slopes) {
            let row = &mut part.slopes[item * width..][..width];
            for (sum, slope) in row.iter_mut().zip(slopes) {
                *sum += slope * per_temperature;
            }
            for (ancestor, sign) in drawn.ancestors.into_iter().zip([1.0, -1.0]) {
                if part.columns.contains(&ancestor) {
                    row[ancestor - first] += sign * slope;
                }
            }
        }
    }
}

/// 1 if a is larger, ½ if both are equal, else 0.
#[inline(always)]
fn share(a: f32, b: f32) -> f32 {
    let larger = if a > b { 0.5 } else { 0.0 };
    let smaller = if a < b { 0.5 } else { 0.0 };
    0.5 + larger - smaller
}

#[cfg(feature = "parallel")]
fn for_each_part(parts: &mut [Part], add: impl Fn(&mut Part) + Sync + Send) {
    use rayon::prelude::*;
    parts.par_iter_mut().for_each(add);
}

#[cfg(not(feature = "parallel"))]
fn for_each_part(parts: &mut [Part], add: impl Fn(&mut Part)) {
    parts.iter_mut().for_each(add);
}
