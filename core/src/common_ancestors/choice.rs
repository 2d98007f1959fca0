//! Ancestors by eq. 7, without noise for every proxy: samples in proportion to e^π.

#![allow(clippy::extra_unused_type_parameters, reason = "the instruction set is chosen by its type")]

use std::ops::Range;

use macerator::{Simd, with_simd};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::rows::{LANES, Rows, smaller};
use super::{Distances, Triplets, for_each_anchor};

/// ρ_ij and ρ_ijk of each triplet.
pub(super) fn draw(
    distances: Distances,
    triplets: &Triplets,
    equal_ancestors: bool,
    draws: &ChaCha8Rng,
) -> Vec<[u32; 2]> {
    // e^π for π = e^{−d}: at least 1. What is not a proxy has 0 and is never drawn.
    let weights = Rows::new(distances, 0.0, |distance| (-distance).exp().exp());
    let runs = triplets.runs();
    let mut ancestors = vec![Vec::new(); runs.len()];
    for_each_anchor(&runs, &mut ancestors, |memory: &mut Memory, number, run, ancestors| {
        let mut rng = draws.clone();
        rng.set_stream(number as u64);
        ancestors.resize(run.len(), [0; 2]);
        draw_run(&weights, triplets, run, equal_ancestors, &mut rng, memory, ancestors);
    });
    ancestors.concat()
}

/// ρ_ij and ρ_ijk of each triplet, for given Gumbel draws. The first of equal proxies is taken.
pub(super) fn largest(
    distances: Distances,
    triplets: &Triplets,
    equal_ancestors: bool,
    gumbel: [&[f32]; 2],
) -> Vec<[u32; 2]> {
    let proxies = distances.proxies;
    let ancestors = |(t, [i, j, k]): (usize, [usize; 3])| {
        let [pair_noise, all_noise] = gumbel.map(|gumbel| &gumbel[t * proxies..][..proxies]);
        let of = |items: &[usize], noise: &[f32], left_out: Option<usize>| {
            let largest = |proxy: usize| {
                items.iter().map(|&item| distances.row(item)[proxy]).fold(f32::NEG_INFINITY, f32::max)
            };
            let others = (0..proxies).filter(|&proxy| left_out != Some(proxy));
            let logits = others.map(|proxy| (proxy, (-largest(proxy)).exp() + noise[proxy]));
            logits
                .reduce(|best, next| if next.1 > best.1 { next } else { best })
                .map_or(0, |(proxy, _)| proxy)
        };
        let low = of(&[i, j], pair_noise, None);
        let high = of(&[i, j, k], all_noise, (!equal_ancestors).then_some(low));
        [low as u32, high as u32]
    };
    triplets.iter().enumerate().map(ancestors).collect()
}

/// Memory that is used again for each anchor.
#[derive(Default)]
struct Memory {
    order: Vec<u32>,
    pair: Vec<[f32; LANES]>,
    all: Vec<[f32; LANES]>,
}

/// The ancestors of the triplets of one anchor. Triplets with the same j share the weights of their pair.
#[with_simd]
fn draw_run<S: Simd>(
    weights: &Rows,
    triplets: &Triplets,
    run: Range<usize>,
    equal_ancestors: bool,
    rng: &mut ChaCha8Rng,
    memory: &mut Memory,
    ancestors: &mut [[u32; 2]],
) {
    let Memory { order, pair, all } = memory;
    order.clear();
    order.extend(0..run.len() as u32);
    order.sort_by_key(|&t| triplets.related[run.start + t as usize]);
    let mut last = None;
    let mut totals = [0.0; LANES];
    for &t in &*order {
        let [i, j, k] = triplets.get(run.start + t as usize);
        if last != Some(j) {
            totals = minimum(weights.row(i), weights.row(j), pair);
            last = Some(j);
        }
        let low = pick(pair, &totals, None, rng.random());
        let all_totals = minimum(pair, weights.row(k), all);
        let high = pick(all, &all_totals, (!equal_ancestors).then_some(low), rng.random());
        ancestors[t as usize] = [low as u32, high as u32];
    }
}

/// Writes the smaller of both weights of each proxy, and returns the sum of each lane.
#[inline(always)]
fn minimum(a: &[[f32; LANES]], b: &[[f32; LANES]], out: &mut Vec<[f32; LANES]>) -> [f32; LANES] {
    out.resize(a.len(), [0.0; LANES]);
    let mut totals = [0.0; LANES];
    for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
        for lane in 0..LANES {
            out[lane] = smaller(a[lane], b[lane]);
            totals[lane] += out[lane];
        }
    }
    totals
}

/// A proxy drawn in proportion to its weight, by a uniform number in 0 … 1; not the one that is left out.
fn pick(weights: &[[f32; LANES]], totals: &[f32; LANES], left_out: Option<usize>, uniform: f64) -> usize {
    let mut totals = totals.map(f64::from);
    if let Some(left_out) = left_out {
        // Added up again rather than subtracted, so that no rest of rounding is left where it was alone.
        let (block, lane) = (left_out / LANES, left_out % LANES);
        let others = weights.iter().enumerate().filter(|&(number, _)| number != block);
        totals[lane] = others.map(|(_, weights)| f64::from(weights[lane])).sum();
    }
    let mut rest = uniform * totals.iter().sum::<f64>();
    let mut chosen = None;
    for (lane, &total) in totals.iter().enumerate() {
        if rest >= total && lane + 1 < LANES {
            rest -= total;
            continue;
        }
        for (block, weights) in weights.iter().enumerate() {
            let proxy = block * LANES + lane;
            let weight = f64::from(weights[lane]);
            if weight > 0.0 && left_out != Some(proxy) {
                chosen = Some(proxy);
                rest -= weight;
                if rest < 0.0 {
                    return proxy;
                }
            }
        }
        break;
    }
    // The rounding of the sums leads here: the last proxy of the lane, or of all.
    chosen.unwrap_or_else(|| {
        let proxies = (0..weights.len() * LANES).rev();
        let has_weight = |proxy: usize| weights[proxy / LANES][proxy % LANES] > 0.0;
        proxies.filter(|&proxy| left_out != Some(proxy)).find(|&proxy| has_weight(proxy)).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::stream;

    /// Draws many triplets of the same three items, and counts the ancestors.
    fn counts(distances: &[f32], proxies: usize, equal_ancestors: bool, draws: usize) -> Vec<Vec<f64>> {
        let triplets =
            Triplets { anchors: vec![0; draws], related: vec![1; draws], unrelated: vec![2; draws] };
        let ancestors = draw(
            Distances { values: distances, proxies },
            &triplets,
            equal_ancestors,
            &stream(1, "test", &[]),
        );
        let mut counts = vec![vec![0.0; proxies]; proxies];
        ancestors.iter().for_each(|[low, high]| counts[*low as usize][*high as usize] += 1.0);
        counts
    }

    /// The probability of both ancestors by the definition: the softmax of π, and that of the others.
    fn expected(distances: &[f32], proxies: usize, equal_ancestors: bool) -> Vec<Vec<f64>> {
        let weight = |items: usize, proxy: usize| {
            let largest = (0..items).map(|item| distances[item * proxies + proxy]).fold(f32::MIN, f32::max);
            f64::from(-largest).exp().exp()
        };
        let low_total: f64 = (0..proxies).map(|proxy| weight(2, proxy)).sum();
        let row = |low: usize| {
            let weight = |high: usize| if high == low && !equal_ancestors { 0.0 } else { weight(3, high) };
            let total: f64 = (0..proxies).map(weight).sum();
            (0..proxies).map(|high| weight(high) / total).collect::<Vec<f64>>()
        };
        (0..proxies)
            .map(|low| row(low).into_iter().map(|high| high * weight(2, low) / low_total).collect())
            .collect()
    }

    #[test]
    fn ancestors_are_drawn_with_the_probabilities_of_equation_7() {
        let proxies = 5;
        let distances = [0.1, 2.0, 0.5, 9.0, 1.0, 0.2, 0.1, 0.5, 9.0, 3.0, 0.0, 0.3, 4.0, 0.1, 1.0];
        let draws = 40_000;
        for equal_ancestors in [false, true] {
            let counts = counts(&distances, proxies, equal_ancestors, draws);
            let expected = expected(&distances, proxies, equal_ancestors);
            let mut chi_squared = 0.0;
            for (counts, expected) in counts.iter().flatten().zip(expected.iter().flatten()) {
                let expected = expected * draws as f64;
                if expected == 0.0 {
                    assert_eq!(*counts, 0.0);
                } else {
                    chi_squared += (counts - expected).powi(2) / expected;
                }
            }
            // 19 or 24 degrees of freedom: above this in one of a million draws.
            assert!(chi_squared < 75.0, "{chi_squared}");
        }
    }

    #[test]
    fn every_proxy_can_be_drawn_and_no_other() {
        for proxies in [2, 31, 32, 33, 70] {
            let counts = counts(&vec![1.0; 3 * proxies], proxies, false, 200 * proxies);
            assert!(counts.iter().all(|row| row.iter().sum::<f64>() > 100.0), "{proxies}");
            let columns = (0..proxies).map(|high| counts.iter().map(|row| row[high]).sum::<f64>());
            assert!(columns.into_iter().all(|sum| sum > 100.0), "{proxies}");
            assert!((0..proxies).all(|proxy| counts[proxy][proxy] == 0.0));
        }
    }

    #[test]
    fn the_largest_uniform_number_still_draws_a_proxy() {
        let weights = [[1.0; LANES], [0.0; LANES]];
        let totals = [1.0; LANES];
        assert_eq!(pick(&weights, &totals, None, 1.0), LANES - 1);
        assert_eq!(pick(&weights, &totals, Some(LANES - 1), 1.0), LANES - 2);
        assert_eq!(pick(&weights, &totals, None, 0.0), 0);
    }
}
