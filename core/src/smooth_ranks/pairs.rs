//! The ranks of one query by comparing every ranked item with every item: O(K·N), and quicker where K is small.
//!
//! One exponential an item is enough: e^{−(s_j − s_k)/τ} is a product of one of j and one of k. The loops have no
//! branches and run in vectors.

use super::exponential::exponentials;
use super::values::{ItemValue, ItemValues};
use super::{RankSteps, ScoredPlaces, Sums};
use crate::steps::Line as Beyond;

const LANES: usize = 8;

/// The largest difference of scores in units of τ: the powers of both ends are far from overflow.
pub(super) const LARGEST_SPREAD: f64 = 600.0;

/// Memory that is used again for each query. Lengths are multiples of [`LANES`].
#[derive(Default)]
pub(super) struct Pairs {
    scores: Vec<f64>,
    places: Vec<f64>,
    relevances: Vec<f64>,
    /// e^{(m − s_j)/τ}, with the middle m of the scores.
    powers: Vec<f64>,
    middle: f64,
    above: Vec<f64>,
    rank: Vec<f64>,
    above_slopes: Vec<f64>,
    rank_slopes: Vec<f64>,
    gradient: Vec<f64>,
}

impl Pairs {
    /// As [`super::sorted::Sorted::query`].
    #[inline(always)]
    pub(super) fn query(
        &mut self,
        steps: &RankSteps,
        temperature: f64,
        items: &ScoredPlaces,
        values: &ItemValues,
        descent: &mut [f64],
    ) -> f64 {
        self.set(temperature, items);
        let mut total = 0.0;
        for (item, &place) in items.places.iter().enumerate() {
            let relevance = items.relevances[place as usize];
            if relevance <= 0.0 {
                continue;
            }
            // With this power the sigmoid of the item itself is the 1 of its rank, without a slope.
            let power = std::mem::replace(&mut self.powers[item], 0.0);
            let sums = self.compare(steps, temperature, items.scores[item], f64::from(place), relevance);
            self.powers[item] = power;
            let ItemValue { value, above_slope, rank_slope } = values.at(&sums, relevance);
            total += value;
            let slopes = self.above_slopes.iter().zip(&self.rank_slopes);
            for (gradient, (above, rank)) in self.gradient.iter_mut().zip(slopes) {
                *gradient -= above_slope * above + rank_slope * rank;
            }
            self.gradient[item] += above_slope * sums.above_slope + rank_slope * sums.rank_slope;
        }
        descent.iter_mut().zip(&self.gradient).for_each(|(descent, slope)| *descent += slope);
        total
    }

    /// Fills the buffers. Those behind the last item hold a stranger below all others, which adds nothing.
    #[inline(always)]
    fn set(&mut self, temperature: f64, items: &ScoredPlaces) {
        let size = items.scores.len().next_multiple_of(LANES);
        let [low, high] = items.range();
        self.middle = low + (high - low) / 2.0;
        let fill = |buffer: &mut Vec<f64>, values: &mut dyn Iterator<Item = f64>, rest: f64| {
            buffer.clear();
            buffer.extend(values);
            buffer.resize(size, rest);
        };
        let exponent = |score: &f64| (self.middle - score) / temperature;
        fill(&mut self.scores, &mut items.scores.iter().copied(), low.next_down());
        fill(&mut self.powers, &mut items.scores.iter().map(exponent), 0.0);
        exponentials(&mut self.powers);
        self.powers[items.scores.len()..].fill(f64::INFINITY);
        fill(&mut self.places, &mut items.places.iter().map(|&place| f64::from(place)), f64::MAX);
        let relevance = |&place: &u32| items.relevances[place as usize];
        fill(&mut self.relevances, &mut items.places.iter().map(relevance), 0.0);
        let Self { above, rank, above_slopes, rank_slopes, gradient, .. } = self;
        for buffer in [above, rank, above_slopes, rank_slopes, gradient] {
            fill(buffer, &mut std::iter::empty(), 0.0);
        }
    }

    /// The sums of an item, and the slopes of each addend.
    #[inline(always)]
    fn compare(
        &mut self,
        steps: &RankSteps,
        temperature: f64,
        score: f64,
        place: f64,
        relevance: f64,
    ) -> Sums {
        let power = ((score - self.middle) / temperature).exp();
        let per_temperature = 1.0 / temperature;
        match steps {
            RankSteps::Sigmoid { .. } => self.add_up(score, power, |pair| {
                let sigma = 1.0 / (1.0 + pair.power);
                let slope = sigma * (1.0 - sigma) * per_temperature;
                let shared = pair.relevance.min(relevance);
                Sums { above: shared * sigma, above_slope: shared * slope, rank: sigma, rank_slope: slope }
            }),
            RankSteps::Bounds { upper, lower } => {
                let line = upper.line();
                let start = if line.is_some() { upper.start } else { 0.0 };
                let start_at_zero = if upper.start_at_zero { start } else { 0.0 };
                let Beyond { slope: rho, threshold, offset } =
                    line.unwrap_or(Beyond { slope: 0.0, threshold: f64::MAX, offset: 0.0 });
                let upper_step = |pair: &Pair| {
                    let sigma = 1.0 / (1.0 + pair.power);
                    let jump = if pair.t > 0.0 { start } else { 0.0 };
                    let jump = if pair.t == 0.0 { start_at_zero } else { jump };
                    let beyond = pair.t > threshold;
                    let slope = sigma * (1.0 - sigma) * per_temperature;
                    let value = if beyond { (pair.t - threshold) * rho + offset } else { sigma + jump };
                    (value, if beyond { rho } else { slope })
                };
                let Some(lower) = lower else {
                    return self.add_up(score, power, |pair| {
                        let (value, slope) = upper_step(&pair);
                        let hard = if pair.t >= 0.0 { 1.0 } else { 0.0 };
                        let below = pair.place < place;
                        Sums {
                            above: pair.relevance.min(relevance) * hard,
                            above_slope: 0.0,
                            rank: if below { value } else { hard },
                            rank_slope: if below { slope } else { 0.0 },
                        }
                    });
                };
                let tie = lower.at(0.0);
                self.add_up(score, power, |pair| {
                    let (value, slope) = upper_step(&pair);
                    let hard = if pair.t >= 0.0 { 1.0 } else { 0.0 };
                    let (below, finer) = (pair.place < place, pair.place > place);
                    let shared = pair.relevance.min(relevance);
                    let rising = pair.t * lower.slope + lower.start;
                    let full = rising > 1.0;
                    let step = if full { 1.0 } else { rising };
                    let step_slope = if full { 0.0 } else { lower.slope };
                    let step = if pair.t > 0.0 { step } else { pair.t * lower.leak };
                    let step_slope = if pair.t > 0.0 { step_slope } else { lower.leak };
                    let step = if pair.t == 0.0 { tie.value } else { step };
                    let step_slope = if pair.t == 0.0 { tie.derivative } else { step_slope };
                    Sums {
                        above: shared * if finer { step } else { hard },
                        above_slope: shared * if finer { step_slope } else { 0.0 },
                        rank: if below { value } else { hard },
                        rank_slope: if below { slope } else { 0.0 },
                    }
                })
            }
        }
    }

    /// The sums of an item. What each other item adds is left in the buffers.
    #[inline(always)]
    fn add_up(&mut self, score: f64, power: f64, addends: impl Fn(Pair) -> Sums) -> Sums {
        let size = self.scores.len();
        let (scores, powers) = (&self.scores[..size], &self.powers[..size]);
        let (places, relevances) = (&self.places[..size], &self.relevances[..size]);
        let (above, rank) = (&mut self.above[..size], &mut self.rank[..size]);
        let above_slopes = &mut self.above_slopes[..size];
        let rank_slopes = &mut self.rank_slopes[..size];
        for item in 0..size {
            let addend = addends(Pair {
                t: scores[item] - score,
                power: powers[item] * power,
                place: places[item],
                relevance: relevances[item],
            });
            above[item] = addend.above;
            rank[item] = addend.rank;
            above_slopes[item] = addend.above_slope;
            rank_slopes[item] = addend.rank_slope;
        }
        Sums {
            above: sum(above),
            rank: sum(rank),
            above_slope: sum(above_slopes),
            rank_slope: sum(rank_slopes),
        }
    }
}

/// The sum of the values, in the same order for every width of vectors.
#[inline(always)]
fn sum(values: &[f64]) -> f64 {
    let mut partial = [0.0; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            partial[lane] += values[lane];
        }
    }
    partial.iter().sum()
}

/// Another item, as a ranked item sees it.
struct Pair {
    t: f64,
    /// e^{−t/τ}.
    power: f64,
    place: f64,
    relevance: f64,
}
