//! Ancestors from the softmax, and the gradient straight through it.

#![allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]

use std::array;

use macerator::{Simd, with_simd};

use super::exponential::{Reciprocals, exp};
use super::rows::{LANES, Rows, larger, smaller};
use super::{AncestorLoss, Distances, Triplets, for_each_anchor};
use crate::threads::each_in_order;

/// Weights that are kept at a time: 4 MB.
const BLOCK_NUMBERS: usize = 1 << 20;
/// The vectors of each row of the gradient that one thread adds up at a time.
const PART: usize = 4;
/// The distance to the proxies that fill up a row: larger than all others, and a sum of three is finite.
const OUTSIDE: f32 = f32::MAX / 4.0;

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
    let rows = Rows::new(distances, OUTSIDE, |distance| distance);
    let runs = triplets.runs();
    // The first vector of every item, then the second of every item, and so on.
    let mut slopes = vec![[0.0; LANES]; items * rows.per_row];
    let mut drawn: Vec<Drawn> = Vec::new();
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
        let runs = &runs[start..end];
        drawn.resize_with(drawn.len().max(runs.len()), Drawn::default);
        for_each_anchor(runs, &mut drawn, |memory: &mut Memory, number, run, drawn| {
            let mut sampler = Sampler {
                loss,
                per_temperature: (1.0 / temperature) as f32,
                distances,
                rows: &rows,
                noise: noise((start + number) as u64),
                memory,
            };
            drawn.weights.resize(2 * rows.per_row * run.len(), [0.0; LANES]);
            let weights = drawn.weights.chunks_exact_mut(2 * rows.per_row);
            drawn.steps.clear();
            drawn
                .steps
                .extend(run.zip(weights).map(|(t, weights)| sampler.step(t, triplets.get(t), weights)));
        });
        let drawn = &drawn[..runs.len()];
        sum += drawn.iter().flat_map(|drawn| &drawn.steps).map(|step| step.value).sum::<f64>();
        let parts = slopes.chunks_mut(PART * items).enumerate().collect();
        each_in_order(parts, |(part, slopes)| {
            for (run, drawn) in runs.iter().zip(drawn) {
                let weights = drawn.weights.chunks_exact(2 * rows.per_row);
                for ((t, step), weights) in run.clone().zip(&drawn.steps).zip(weights) {
                    if step.slopes != [0.0; 3] {
                        add(slopes, part * PART, &rows, triplets.get(t), step, weights);
                    }
                }
            }
        });
        start = end;
    }
    let mut gradient = vec![0.0; distances.values.len()];
    for (item, row) in gradient.chunks_exact_mut(proxies).enumerate() {
        for (vector, row) in row.chunks_mut(LANES).enumerate() {
            row.copy_from_slice(&slopes[vector * items + item][..row.len()]);
        }
    }
    (sum, gradient)
}

/// What the draws of one anchor leave for the gradient.
#[derive(Default)]
struct Drawn {
    steps: Vec<Step>,
    /// For each step the weights for ρ_ij, then those for ρ_ijk: its softmaxes times a factor.
    weights: Vec<[f32; LANES]>,
}

/// The step of a triplet from ρ_ijk to ρ_ij.
struct Step {
    value: f64,
    ancestors: [usize; 2],
    /// ∂L/∂(d(·, ρ_ij) − d(·, ρ_ijk)) of i, j and k.
    slopes: [f32; 3],
    /// The mean of the pull in each softmax.
    means: [f32; 2],
    /// The factor that turns each row of weights into its softmax divided by τ.
    scales: [f32; 2],
}

/// Memory that is used again for each triplet.
#[derive(Default)]
struct Memory {
    noise: Vec<[f32; LANES]>,
    pair: Vec<[f32; LANES]>,
    all: Vec<[f32; LANES]>,
}

/// Draws the ancestors of one anchor's triplets.
struct Sampler<'a, N> {
    loss: &'a AncestorLoss,
    /// 1/τ.
    per_temperature: f32,
    distances: Distances<'a>,
    rows: &'a Rows,
    noise: N,
    memory: &'a mut Memory,
}

impl<N: Reciprocals> Sampler<'_, N> {
    fn step(&mut self, triplet: usize, items: [usize; 3], weights: &mut [[f32; LANES]]) -> Step {
        let Self { loss, distances, rows, noise, memory: Memory { noise: numbers, pair, all }, .. } = self;
        let per_temperature = self.per_temperature;
        for vectors in [&mut *numbers, &mut *pair, &mut *all] {
            vectors.resize(rows.per_row, [0.0; LANES]);
        }
        let [i, j, k] = items.map(|item| rows.row(item));
        let (pair_weights, all_weights) = weights.split_at_mut(rows.per_row);

        fill(noise, triplet, 0, distances.proxies, numbers);
        let smallest = maximum(i, j, pair);
        let (low, low_sum) = weigh(pair, smallest, numbers, per_temperature, pair_weights);

        fill(noise, triplet, 1, distances.proxies, numbers);
        if !loss.equal_ancestors {
            pair.as_flattened_mut()[low] = OUTSIDE;
            numbers.as_flattened_mut()[low] = 0.0;
        }
        let smallest = maximum(k, pair, all);
        let (high, high_sum) = weigh(all, smallest, numbers, per_temperature, all_weights);

        let ancestors = [low, high];
        let (value, slopes) = loss.hinge(items.map(|item| distances.row(item)), ancestors);
        let mut step = Step { value, ancestors, slopes, means: [0.0; 2], scales: [0.0; 2] };
        if slopes != [0.0; 3] {
            let sums = [low_sum, high_sum];
            step.means = mean_pulls(weights, sums, [i, j, k], slopes, ancestors);
            step.scales = sums.map(|sum| per_temperature / sum);
        }
        step
    }
}

/// Fills the noise of one ancestor: 0 for what is not a proxy.
#[with_simd]
fn fill<S: Simd, N: Reciprocals>(
    noise: &mut N,
    triplet: usize,
    ancestor: usize,
    proxies: usize,
    numbers: &mut [[f32; LANES]],
) {
    noise.fill(triplet, ancestor, numbers);
    numbers.as_flattened_mut()[proxies..].fill(0.0);
}

/// Writes the larger of both distances, and returns the smallest of these.
#[with_simd]
fn maximum<S: Simd>(a: &[[f32; LANES]], b: &[[f32; LANES]], out: &mut [[f32; LANES]]) -> f32 {
    let mut smallest = [f32::INFINITY; LANES];
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        *out = array::from_fn(|lane| larger(a[lane], b[lane]));
        // The whole array is assigned: a number that is assigned under a condition becomes a masked store, which is slow
        // with AVX2.
        smallest = array::from_fn(|lane| smaller(out[lane], smallest[lane]));
    }
    smallest.into_iter().fold(f32::INFINITY, f32::min)
}

/// Writes e^{(smallest − M)/τ + g}. Returns the place of the largest, the first of equals, and the sum.
#[with_simd]
fn weigh<S: Simd>(
    largest: &[[f32; LANES]],
    smallest: f32,
    reciprocals: &[[f32; LANES]],
    per_temperature: f32,
    weights: &mut [[f32; LANES]],
) -> (usize, f32) {
    // The smallest distance has the exponential 1, so the largest weight is never 0.
    let mut sums = [0.0; LANES];
    let mut heaviest = [0.0; LANES];
    for ((weights, largest), reciprocals) in weights.iter_mut().zip(largest).zip(reciprocals) {
        *weights =
            array::from_fn(|lane| exp((smallest - largest[lane]) * per_temperature) * reciprocals[lane]);
        sums = array::from_fn(|lane| sums[lane] + weights[lane]);
        heaviest = array::from_fn(|lane| larger(weights[lane], heaviest[lane]));
    }
    let heaviest = heaviest.into_iter().fold(0.0, f32::max);
    let has_heaviest =
        |weights: &[f32; LANES]| weights.iter().fold(false, |any, weight| any | (*weight == heaviest));
    let vector = weights.iter().position(has_heaviest).unwrap_or(0);
    let lane = weights[vector].iter().position(|weight| *weight == heaviest).unwrap_or(0);
    (vector * LANES + lane, sums.into_iter().sum())
}

/// Σ_ρ p(ρ) · pull(ρ) of both softmaxes, with pull(ρ) = Σ over the items of slope · d(item, ρ).
#[with_simd]
fn mean_pulls<S: Simd>(
    weights: &[[f32; LANES]],
    sums: [f32; 2],
    rows: [&[[f32; LANES]]; 3],
    slopes: [f32; 3],
    ancestors: [usize; 2],
) -> [f32; 2] {
    // Pulls are taken as differences to the pull of the ancestor. Where a softmax has one proxy, the mean is exactly its
    // pull, and the gradient is exactly 0, however small τ is.
    let at_ancestor = ancestors.map(|proxy| pull(slopes, rows.map(|row| row[proxy / LANES][proxy % LANES])));
    let mut partial = [[0.0; LANES]; 2];
    let [i, j, k] = rows;
    let (low, high) = weights.split_at(i.len());
    for ((((i, j), k), low), high) in i.iter().zip(j).zip(k).zip(low).zip(high) {
        for lane in 0..LANES {
            let pull = pull(slopes, [i[lane], j[lane], k[lane]]);
            partial[0][lane] += low[lane] * (pull - at_ancestor[0]);
            partial[1][lane] += high[lane] * (pull - at_ancestor[1]);
        }
    }
    array::from_fn(|n| at_ancestor[n] + partial[n].iter().sum::<f32>() / sums[n])
}

#[inline(always)]
fn pull(slopes: [f32; 3], distances: [f32; 3]) -> f32 {
    slopes[0] * distances[0] + slopes[1] * distances[1] + slopes[2] * distances[2]
}

/// Adds the slopes of a triplet to the part of the gradient that starts with this vector.
#[with_simd]
fn add<S: Simd>(
    part: &mut [[f32; LANES]],
    first: usize,
    rows: &Rows,
    items: [usize; 3],
    step: &Step,
    weights: &[[f32; LANES]],
) {
    let vectors = first..(first + PART).min(rows.per_row);
    let in_part = part.len() / vectors.len();
    let [i, j, k] = items.map(|item| &rows.row(item)[vectors.clone()]);
    let (low, high) = weights.split_at(rows.per_row);
    let (low, high) = (&low[vectors.clone()], &high[vectors.clone()]);
    for vector in 0..vectors.len() {
        let mut slopes = [[0.0; LANES]; 3];
        for lane in 0..LANES {
            let (i, j, k) = (i[vector][lane], j[vector][lane], k[vector][lane]);
            let pull = pull(step.slopes, [i, j, k]);
            // M falls by −1/τ in the softmax; ρ_ijk is subtracted in the step.
            let to_pair = low[vector][lane] * (step.means[0] - pull) * step.scales[0];
            let to_all = high[vector][lane] * (pull - step.means[1]) * step.scales[1];
            // A maximum passes its slope to the larger side, and half of it to each when they are equal.
            let pair = larger(i, j);
            let to_k = to_all * share(k, pair);
            let to_pair = to_pair + to_all - to_k;
            let to_i = to_pair * share(i, j);
            slopes[0][lane] = to_i;
            slopes[1][lane] = to_pair - to_i;
            slopes[2][lane] = to_k;
        }
        for (item, slopes) in items.into_iter().zip(slopes) {
            let sums = &mut part[vector * in_part + item];
            for lane in 0..LANES {
                sums[lane] += slopes[lane];
            }
        }
    }
    for (item, slope) in items.into_iter().zip(step.slopes) {
        for (proxy, sign) in step.ancestors.into_iter().zip([1.0, -1.0]) {
            if vectors.contains(&(proxy / LANES)) {
                part[(proxy / LANES - first) * in_part + item][proxy % LANES] += sign * slope;
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
