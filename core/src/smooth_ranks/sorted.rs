//! The ranks of one query along the sorted scores: O(N log N).

use std::ops::Range;

use super::Sums;
use super::distances::{Behind, behind_by_place};
use super::line::{Line, Window};
use super::sums::{Channels, RunningSums, StepSeries};
use super::values::{ItemValue, ItemValues};
use super::{RankSteps, ScoredPlaces, SmoothRanks};
use crate::Checked;
use crate::steps::LowerStep;

/// Memory that is used again for each query.
#[derive(Default)]
pub(super) struct Sorted {
    order: Vec<(u64, u32)>,
    line: Line,
    mirror: Line,
    window: Window,
    running: RunningSums,
    by_place: Vec<Behind>,
    sources: Vec<f64>,
    weights: Vec<f64>,
    sums: Vec<Sums>,
    above_weights: Vec<f64>,
    rank_weights: Vec<f64>,
    gradient: Vec<f64>,
}

/// Which channel of the running sums an item of each place feeds and reads, and what it makes of them.
///
/// With bounds, the rank of an item of place l counts the items of the places below l by the upper step: one channel for
/// each place of a ranked item. With the sigmoid, all items count: one channel for each place, with the items up to
/// that place, or one channel in all if the value does not depend on the H-rank.
struct Plan {
    forward: Channels,
    /// What an item of each place adds to each channel, [places, channels].
    feeds: Vec<f64>,
    /// The share of each channel in the numerator of an item of each place, [places, channels].
    above_shares: Vec<f64>,
    /// The share in the rank.
    rank_shares: Vec<f64>,
    backward: Channels,
    /// As above: what the numerator of an item of each place passes back to each channel.
    above_returns: Vec<f64>,
    rank_returns: Vec<f64>,
}

impl Plan {
    fn new(sigmoid: bool, counts_above: bool, items: &ScoredPlaces) -> Self {
        let relevances = items.relevances;
        let places = relevances.len();
        let mut present = vec![false; places];
        items.places.iter().for_each(|&place| present[place as usize] = true);
        let lowest = present.iter().position(|&present| present).unwrap_or(0);
        let mut channel_places: Vec<usize> = (0..places)
            .filter(|&place| present[place])
            .filter(|&place| sigmoid || (place > lowest && relevances[place] > 0.0))
            .collect();
        if sigmoid && !counts_above {
            channel_places.drain(..channel_places.len() - 1);
        }
        let count = channel_places.len();
        let table = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            let row = |place| (0..count).map(move |channel| (place, channel));
            (0..places).flat_map(row).map(|(place, channel)| entry(place, channel)).collect()
        };
        let one_if = |condition: bool| f64::from(u8::from(condition));
        let shared = |place: usize, other: usize| relevances[place].min(relevances[other]);
        let channels = |reads: &dyn Fn(usize) -> Range<usize>| Channels {
            count,
            reads: (0..places).map(reads).collect(),
        };
        if sigmoid {
            return Self {
                forward: channels(&|place| if relevances[place] > 0.0 { 0..count } else { 0..0 }),
                feeds: table(&|place, channel| one_if(place <= channel_places[channel])),
                above_shares: table(&|place, channel| {
                    let next = channel_places.get(channel + 1).map_or(0.0, |&next| shared(place, next));
                    shared(place, channel_places[channel]) - next
                }),
                rank_shares: table(&|_, channel| one_if(channel + 1 == count)),
                backward: channels(&|place| {
                    let channel = channel_places.iter().position(|&other| other >= place);
                    channel.map_or(0..0, |channel| channel..channel + 1)
                }),
                above_returns: table(&|place, channel| shared(place, channel_places[channel])),
                rank_returns: table(&|_, _| 1.0),
            };
        }
        Self {
            forward: channels(&|place| {
                let channel = channel_places.iter().position(|&other| other == place);
                channel.map_or(0..0, |channel| channel..channel + 1)
            }),
            feeds: table(&|place, channel| one_if(place < channel_places[channel])),
            above_shares: table(&|_, _| 0.0),
            rank_shares: table(&|_, _| 1.0),
            backward: channels(&|place| {
                let channel = channel_places.iter().position(|&other| other > place);
                channel.map_or(0..0, |channel| channel..channel + 1)
            }),
            above_returns: table(&|_, _| 0.0),
            rank_returns: table(&|place, channel| one_if(place >= channel_places[channel])),
        }
    }
}

impl Plan {
    /// Adds a sum of steps to the two ranks of an item.
    #[inline(always)]
    fn take(&self, sums: &mut Sums, place: u32, channel: usize, value: f64, slope: f64) {
        let entry = place as usize * self.forward.count + channel;
        let (above, rank) = (self.above_shares[entry], self.rank_shares[entry]);
        sums.above += above * value;
        sums.above_slope += above * slope;
        sums.rank += rank * value;
        sums.rank_slope += rank * slope;
    }

    /// The weight of each group as it is counted.
    #[inline(always)]
    fn feed(&self, sources: &mut Vec<f64>, line: &Line) {
        let channels = self.forward.count;
        sources.clear();
        sources.resize(line.scores.len() * channels, 0.0);
        for (group, sources) in sources.chunks_exact_mut(channels).enumerate() {
            for item in line.items(group) {
                let row = &self.feeds[line.places[item] as usize * channels..][..channels];
                sources.iter_mut().zip(row).for_each(|(source, feed)| *source += feed);
            }
        }
    }

    /// The weight of each group as it passes back: w · a + v · r for items of these slopes w and v of the value.
    #[inline(always)]
    fn pass_back(&self, sources: &mut Vec<f64>, line: &Line, of_item: impl Fn(usize) -> (f64, f64)) {
        let channels = self.backward.count;
        sources.clear();
        sources.resize(line.scores.len() * channels, 0.0);
        for (group, sources) in sources.chunks_exact_mut(channels).enumerate() {
            for item in line.items(group) {
                let (above_weight, rank_weight) = of_item(item);
                if above_weight == 0.0 && rank_weight == 0.0 {
                    continue;
                }
                let start = line.places[item] as usize * channels;
                let above = &self.above_returns[start..start + channels];
                let rank = &self.rank_returns[start..start + channels];
                for (source, (above, rank)) in sources.iter_mut().zip(above.iter().zip(rank)) {
                    *source += above_weight * above + rank_weight * rank;
                }
            }
        }
    }
}

impl Sorted {
    /// The sum of the values of the items with a relevance. The gradient of its negative is added to `descent`.
    #[inline(always)]
    pub(super) fn query<const M: usize, const FAR: usize>(
        &mut self,
        step: &StepSeries<M, FAR>,
        ranks: &SmoothRanks,
        items: &ScoredPlaces,
        values: &ItemValues,
        descent: &mut [f64],
    ) -> f64 {
        let relevances = items.relevances;
        let (sigmoid, lower) = match &ranks.steps {
            RankSteps::Sigmoid { .. } => (true, None),
            RankSteps::Bounds { lower, .. } => (false, lower.as_ref()),
        };
        let lower = lower.map(|lower| (lower, LowerSums::new(lower)));
        let plan = Plan::new(sigmoid, ranks.value.counts_above(), items);
        self.sort(items, step.temperature);
        self.count_own(relevances, sigmoid.then_some(step.temperature));
        if plan.forward.count > 0 {
            self.count_upper_step(step, &plan);
        }
        if !sigmoid {
            self.count_true_and_lower_step(relevances, lower.as_ref());
        }
        let total = self.values(relevances, values);
        if plan.forward.count > 0 {
            self.pass_back_upper_step(step, &plan);
            if sigmoid {
                self.pass_back_own(relevances, step.temperature);
            }
        }
        if let Some((lower, sums)) = &lower {
            self.pass_back_lower_step(relevances, lower, sums);
        }
        for (&(_, item), slope) in self.order.iter().zip(&self.gradient) {
            descent[item as usize] += *slope;
        }
        total
    }

    /// The items by increasing score, as a line and its mirror.
    #[inline(always)]
    fn sort(&mut self, items: &ScoredPlaces, temperature: f64) {
        self.order.clear();
        self.order.extend(items.scores.iter().map(|&score| ordered_bits(score)).zip(0..));
        self.order.sort_unstable_by_key(|&(bits, _)| bits);
        let sorted = self.order.iter().map(|&(_, item)| item as usize);
        self.line.set(sorted.map(|item| (items.scores[item], items.places[item])), temperature);
        self.mirror.set_mirror(&self.line);
    }

    /// Each item beside itself. At j = k the sigmoid, here with its temperature, gives ½ where the rank has 1, and a slope
    /// where there is none. A true step gives the 1.
    #[inline(always)]
    fn count_own(&mut self, relevances: &[f64], sigmoid: Option<f64>) {
        let [own, own_slope] = sigmoid.map_or([0.0; 2], |temperature| [0.5, 0.25 * (1.0 / temperature)]);
        let own = |&place: &u32| Sums {
            above: own * relevances[place as usize],
            rank: own,
            above_slope: -own_slope * relevances[place as usize],
            rank_slope: -own_slope,
        };
        self.sums.clear();
        self.sums.extend(self.line.places.iter().map(own));
    }

    /// The upper step, from the items below and from those above.
    #[inline(always)]
    fn count_upper_step<const M: usize, const FAR: usize>(&mut self, step: &StepSeries<M, FAR>, plan: &Plan) {
        let (line, mirror, sums) = (&self.line, &self.mirror, &mut self.sums);
        let last = sums.len() - 1;
        plan.feed(&mut self.sources, line);
        self.running.below(step, line, &plan.forward, &self.sources, |item, channel, value, slope| {
            plan.take(&mut sums[item], line.places[item], channel, value, slope);
        });
        plan.feed(&mut self.sources, mirror);
        step.set_window(&mut self.window, mirror);
        let (forward, sources) = (&plan.forward, &self.sources);
        self.running.above(step, mirror, &self.window, forward, sources, |item, channel, value, slope| {
            plan.take(&mut sums[last - item], mirror.places[item], channel, value, slope);
        });
    }

    /// The true step, and the lower step if there is one.
    #[inline(always)]
    fn count_true_and_lower_step(
        &mut self,
        relevances: &[f64],
        lower: Option<&(&Checked<LowerStep>, LowerSums)>,
    ) {
        let (line, mirror, sums) = (&self.line, &self.mirror, &mut self.sums);
        let (size, places) = (sums.len(), relevances.len());
        self.weights.clear();
        self.weights.resize(size, 1.0);
        let window = lower.map(|(lower, _)| {
            self.window.set(mirror, None, |t| lower.is_full(t));
            &self.window
        });
        behind_by_place(mirror, window, &self.weights, &mut self.by_place, places, |item, above| {
            let place = mirror.places[item] as usize;
            if relevances[place] <= 0.0 {
                return;
            }
            let sum = &mut sums[size - 1 - item];
            for (other, behind) in above.iter().enumerate() {
                let shared = relevances[other].min(relevances[place]);
                let hard = behind.within + behind.beyond + behind.tied;
                if other >= place {
                    sum.rank += hard;
                }
                match lower {
                    Some((_, lower)) if other > place => {
                        sum.above += shared * lower.value_above(behind);
                        sum.above_slope += shared * lower.slope_above(behind);
                    }
                    _ => sum.above += shared * hard,
                }
            }
        });
        let Some((_, lower)) = lower else { return };
        behind_by_place(line, None, &self.weights, &mut self.by_place, places, |item, below| {
            let place = line.places[item] as usize;
            let sum = &mut sums[item];
            for (other, behind) in below.iter().enumerate().skip(place + 1) {
                let shared = relevances[other].min(relevances[place]);
                sum.above -= shared * lower.leak * behind.distance;
                sum.above_slope += shared * lower.leak * behind.within;
            }
        });
    }

    /// The sum of the values. Keeps what each item passes back: ∂f/∂above · above′ + ∂f/∂rank · rank′.
    #[inline(always)]
    fn values(&mut self, relevances: &[f64], values: &ItemValues) -> f64 {
        let mut total = 0.0;
        for buffer in [&mut self.gradient, &mut self.above_weights, &mut self.rank_weights] {
            buffer.clear();
            buffer.resize(self.sums.len(), 0.0);
        }
        for (item, sum) in self.sums.iter().enumerate() {
            let relevance = relevances[self.line.places[item] as usize];
            if relevance <= 0.0 {
                continue;
            }
            let ItemValue { value, above_slope, rank_slope } = values.at(sum, relevance);
            total += value;
            self.above_weights[item] = above_slope;
            self.rank_weights[item] = rank_slope;
            self.gradient[item] += above_slope * sum.above_slope + rank_slope * sum.rank_slope;
        }
        total
    }

    /// What the other items of the upper step pass back to each.
    #[inline(always)]
    fn pass_back_upper_step<const M: usize, const FAR: usize>(
        &mut self,
        step: &StepSeries<M, FAR>,
        plan: &Plan,
    ) {
        let (line, mirror, gradient) = (&self.line, &self.mirror, &mut self.gradient);
        let (above_weights, rank_weights) = (&self.above_weights, &self.rank_weights);
        let last = gradient.len() - 1;
        // Seen from an item j, the items k above it have t = s_j − s_k < 0.
        plan.pass_back(&mut self.sources, mirror, |item| {
            (above_weights[last - item], rank_weights[last - item])
        });
        self.running.below(step, mirror, &plan.backward, &self.sources, |item, _, _, slope| {
            gradient[last - item] -= slope;
        });
        plan.pass_back(&mut self.sources, line, |item| (above_weights[item], rank_weights[item]));
        step.set_window(&mut self.window, line);
        let (backward, sources) = (&plan.backward, &self.sources);
        self.running.above(step, line, &self.window, backward, sources, |item, _, _, slope| {
            gradient[item] -= slope;
        });
    }

    /// What each item passes back to itself by the sigmoid.
    #[inline(always)]
    fn pass_back_own(&mut self, relevances: &[f64], temperature: f64) {
        for (item, slope) in self.gradient.iter_mut().enumerate() {
            let relevance = relevances[self.line.places[item] as usize];
            let returned = self.above_weights[item] * relevance + self.rank_weights[item];
            *slope += 0.25 * returned * (1.0 / temperature);
        }
    }

    /// What the other items of the lower step pass back to each.
    #[inline(always)]
    fn pass_back_lower_step(&mut self, relevances: &[f64], lower: &Checked<LowerStep>, sums: &LowerSums) {
        let (line, mirror, gradient) = (&self.line, &self.mirror, &mut self.gradient);
        let (last, places) = (gradient.len() - 1, relevances.len());
        let shared = |place: usize, other: usize| relevances[other].min(relevances[place]);
        self.window.set(line, None, |t| lower.is_full(t));
        let (window, weights) = (Some(&self.window), &self.above_weights);
        behind_by_place(line, window, weights, &mut self.by_place, places, |item, below| {
            let place = line.places[item] as usize;
            for (other, behind) in below.iter().enumerate().take(place) {
                gradient[item] -= shared(place, other) * sums.slope_above(behind);
            }
        });
        let reversed: Vec<f64> = weights.iter().rev().copied().collect();
        behind_by_place(mirror, None, &reversed, &mut self.by_place, places, |item, above| {
            let place = mirror.places[item] as usize;
            for (other, behind) in above.iter().enumerate().take(place) {
                gradient[last - item] -= shared(place, other) * sums.leak * behind.within;
            }
        });
    }
}

/// The lower step as sums of counts and distances.
struct LowerSums {
    slope: f64,
    start: f64,
    leak: f64,
    tie_value: f64,
    tie_slope: f64,
}

impl LowerSums {
    fn new(step: &Checked<LowerStep>) -> Self {
        let tie = step.at(0.0);
        Self {
            slope: step.slope,
            start: step.start,
            leak: step.leak,
            tie_value: tie.value,
            tie_slope: tie.derivative,
        }
    }

    /// Of the items with t ≥ 0.
    fn value_above(&self, behind: &Behind) -> f64 {
        self.slope * behind.distance
            + self.start * behind.within
            + behind.beyond
            + self.tie_value * behind.tied
    }

    fn slope_above(&self, behind: &Behind) -> f64 {
        self.slope * behind.within + self.tie_slope * behind.tied
    }
}

/// Bits that are ordered like the finite numbers they stand for. −0 and 0 are equal.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}
