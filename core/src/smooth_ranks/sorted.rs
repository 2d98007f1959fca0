//! The ranks of one query along the sorted scores: O(N log N).

use macerator::Simd;

use super::distances::{Behind, behind_by_place};
use super::line::{Direction, Item, Line};
use super::sums::{Exchange, Reader, RunningSums, Side, StepSeries, Sweep};
use super::values::{ItemValue, ItemValues};
use super::{RankSteps, ScoredPlaces, SmoothRanks, Sums};
use crate::Checked;
use crate::steps::LowerStep;

/// Memory that is used again for each query.
#[derive(Default)]
pub(super) struct Sorted {
    /// The items by increasing score, each in the lower half of a key.
    order: Vec<u64>,
    spare: Vec<u64>,
    line: Line,
    plan: Plan,
    running: RunningSums,
    by_place: Vec<Behind>,
    ties: Vec<[f64; 2]>,
    sums: Vec<Sums>,
    above_weights: Vec<f64>,
    rank_weights: Vec<f64>,
    gradient: Vec<f64>,
}

/// Which items an item of each place counts by which step. With bounds, an item of place p counts the items of the places
/// below p by the upper step, and the others by the true step, or by the lower step in the H-rank. With the sigmoid, it
/// counts all items by it. The gradient of what it counts runs along the same channels.
#[derive(Default)]
struct Plan {
    sigmoid: bool,
    /// Whether the H-rank counts. If it does not, the sigmoid needs one channel. In all other cases there is one channel
    /// for the items of each place.
    counts_above: bool,
    /// Whether items of higher places count in the H-rank by the lower step.
    smooth_above: bool,
    /// The relevance of each place.
    relevances: Vec<f64>,
    /// min(rel_k, rel_j) of the places of k and of j, [places, places].
    shared: Vec<f64>,
}

impl Plan {
    #[inline(always)]
    fn set(&mut self, ranks: &SmoothRanks, relevances: &[f64]) {
        self.sigmoid = matches!(ranks.steps, RankSteps::Sigmoid { .. });
        self.smooth_above = matches!(ranks.steps, RankSteps::Bounds { lower: Some(_), .. });
        self.counts_above = ranks.value.counts_above();
        self.relevances.clear();
        self.relevances.extend(relevances);
        self.shared.clear();
        for relevance in relevances {
            self.shared.extend(relevances.iter().map(|other| other.min(*relevance)));
        }
    }

    /// The number of channels.
    #[inline(always)]
    fn channels(&self) -> usize {
        if self.one_channel() { 1 } else { self.relevances.len() }
    }

    #[inline(always)]
    fn one_channel(&self) -> bool {
        self.sigmoid && !self.counts_above
    }

    /// Whether the sigmoid counts in the numerator too.
    #[inline(always)]
    fn sigmoid_above(&self) -> bool {
        self.sigmoid && self.counts_above
    }

    /// The channel in which this item is counted.
    #[inline(always)]
    fn channel(&self, item: &Item) -> usize {
        if self.one_channel() { 0 } else { item.place }
    }

    /// The number of channels that this item counts, the first ones, if it is ranked.
    #[inline(always)]
    fn counts(&self, item: &Item) -> usize {
        if self.sigmoid { self.channels() } else { item.place }
    }

    /// min(rel_k, rel_j) for this item k and all places of j.
    #[inline(always)]
    fn shared(&self, item: &Item) -> &[f64] {
        let places = self.relevances.len();
        &self.shared[item.place * places..][..places]
    }

    /// Adds these numbers of items of each place by the true step to the ranks of an item.
    #[inline(always)]
    fn count_true_step(&self, item: &Item, sum: &mut Sums, counts: impl Iterator<Item = f64>) {
        for (other, (count, shared)) in counts.zip(self.shared(item)).enumerate() {
            if other >= item.place {
                sum.rank += count;
            }
            if other <= item.place || !self.smooth_above {
                sum.above += shared * count;
            }
        }
    }

    /// The items of higher places, which an item counts by the lower step: min(rel_k, rel_j) and the sums of each place.
    #[inline(always)]
    fn higher<'a>(&'a self, item: &Item, behind: &'a [Behind]) -> impl Iterator<Item = (f64, &'a Behind)> {
        let ranked = self.relevances[item.place] > 0.0;
        let first = if ranked { item.place + 1 } else { behind.len() };
        self.shared(item).iter().copied().zip(behind).skip(first)
    }

    /// The items of lower places, which count an item by the lower step: as [`higher`](Self::higher).
    #[inline(always)]
    fn lower<'a>(&'a self, item: &Item, behind: &'a [Behind]) -> impl Iterator<Item = (f64, &'a Behind)> {
        self.shared(item).iter().copied().zip(behind).take(item.place)
    }
}

impl Sorted {
    /// The sum of the values of the items with a relevance. The gradient of its negative is added to `descent`.
    #[inline(always)]
    pub(super) fn query<S: Simd>(
        &mut self,
        step: &StepSeries,
        ranks: &SmoothRanks,
        items: &ScoredPlaces,
        values: &ItemValues,
        descent: &mut [f64],
    ) -> f64 {
        self.plan.set(ranks, items.relevances);
        self.sort(items, step.temperature);
        self.count_upper_step::<S>(step);
        let mut lower = None;
        if let RankSteps::Bounds { upper, lower: smooth } = &ranks.steps {
            self.count_ties(step.start, upper.start_at_zero);
            lower = smooth.as_ref().map(|smooth| (smooth, LowerSums::new(smooth)));
        }
        if let Some((lower, sums)) = &lower {
            self.count_lower_step(lower, sums);
        }
        let total = self.values(values);
        self.pass_back_upper_step::<S>(step);
        if let Some((lower, sums)) = &lower {
            self.pass_back_lower_step(lower, sums);
        }
        for (&order, slope) in self.order.iter().zip(&self.gradient) {
            descent[order as u32 as usize] += *slope;
        }
        total
    }

    /// The items by increasing score, as a line.
    #[inline(always)]
    fn sort(&mut self, items: &ScoredPlaces, temperature: f64) {
        self.order.clear();
        self.order.extend(
            items
                .scores
                .iter()
                .zip(0_u64..)
                .map(|(&score, item)| u64::from(ordered_bits(score as f32)) << 32 | item),
        );
        sort(&mut self.order, &mut self.spare);
        let score = |order: &u64| items.scores[*order as u32 as usize];
        for same in self.order.chunk_by_mut(|a, b| a >> 32 == b >> 32) {
            if same.len() > 1 {
                same.sort_by(|a, b| score(a).total_cmp(&score(b)));
            }
        }
        let sorted = self.order.iter().map(|&order| order as u32 as usize);
        let items = sorted.map(|item| (items.scores[item], items.places[item]));
        self.line.set(items, &self.plan.relevances, temperature);
    }

    /// The upper step, from the items below and from those above, and with bounds the true step for the items that it
    /// does not count.
    #[inline(always)]
    fn count_upper_step<S: Simd>(&mut self, step: &StepSeries) {
        let (line, plan) = (&self.line, &self.plan);
        // Each item beside itself.
        let own = |item: &Item| Sums { above: plan.relevances[item.place], rank: 1.0, ..Sums::default() };
        self.sums.clear();
        self.sums.extend(line.items.iter().map(own));
        let mut counting = Counting { plan, true_step: false, sums: &mut self.sums };
        let (channels, adding, reading) = (plan.channels(), &line.all, &line.ranked);
        for (direction, side) in [(Direction::Up, Side::Below), (Direction::Down, Side::Above)] {
            counting.true_step = !plan.sigmoid && side == Side::Above;
            let sweep = Sweep { line, direction, side, channels, adding, reading };
            self.running.sweep::<S>(step, sweep, &mut counting);
        }
    }

    /// Corrects the counts of items of equal score. The upper step has counted those further up as if they had t > 0, and
    /// the true step has counted only those.
    #[inline(always)]
    fn count_ties(&mut self, start: f64, start_at_zero: bool) {
        let plan = &self.plan;
        let mut first = 0;
        for group in self.line.items.chunk_by(|item, next| item.score == next.score) {
            let sums = &mut self.sums[first..first + group.len()];
            first += group.len();
            if group.len() == 1 {
                continue;
            }
            // The items of each place further down and further up.
            self.ties.clear();
            self.ties.resize(plan.relevances.len(), [0.0; 2]);
            group.iter().for_each(|item| self.ties[item.place][1] += 1.0);
            for (item, sum) in group.iter().zip(sums) {
                self.ties[item.place][1] -= 1.0;
                for [below, above] in &self.ties[..item.place] {
                    sum.rank += if start_at_zero { start * below } else { -start * above };
                }
                plan.count_true_step(item, sum, self.ties.iter().map(|[below, _]| *below));
                self.ties[item.place][0] += 1.0;
            }
        }
    }

    /// The lower step, from the items above and from those below.
    #[inline(always)]
    fn count_lower_step(&mut self, lower: &Checked<LowerStep>, steps: &LowerSums) {
        let (line, sums, plan) = (&self.line, &mut self.sums, &self.plan);
        let (by_place, places) = (&mut self.by_place, plan.relevances.len());
        let is_full = |t| lower.is_full(t);
        let mut add = |number: usize, value: f64, slope: f64| {
            sums[number].above += value;
            sums[number].above_slope += slope;
        };
        behind_by_place(
            line,
            Direction::Down,
            is_full,
            |_| 1.0,
            by_place,
            places,
            |number, item, above| {
                for (shared, behind) in plan.higher(item, above) {
                    add(number, shared * steps.value_above(behind), shared * steps.slope_above(behind));
                }
            },
        );
        behind_by_place(
            line,
            Direction::Up,
            |_| false,
            |_| 1.0,
            by_place,
            places,
            |number, item, below| {
                for (shared, behind) in plan.higher(item, below) {
                    let slope = shared * steps.leak;
                    add(number, -slope * behind.distance, slope * behind.within);
                }
            },
        );
    }

    /// The sum of the values. Keeps what each item passes back: ∂f/∂above · above′ + ∂f/∂rank · rank′.
    #[inline(always)]
    fn values(&mut self, values: &ItemValues) -> f64 {
        let mut total = 0.0;
        for buffer in [&mut self.gradient, &mut self.above_weights, &mut self.rank_weights] {
            buffer.clear();
            buffer.resize(self.sums.len(), 0.0);
        }
        for number in self.line.ranked.iter().map(|&number| number as usize) {
            let sum = &self.sums[number];
            let relevance = self.plan.relevances[self.line.items[number].place];
            let ItemValue { value, above_slope, rank_slope } = values.at(sum, relevance);
            total += value;
            self.above_weights[number] = above_slope;
            self.rank_weights[number] = rank_slope;
            self.gradient[number] += above_slope * sum.above_slope + rank_slope * sum.rank_slope;
        }
        total
    }

    /// What the other items of the upper step pass back to each.
    #[inline(always)]
    fn pass_back_upper_step<S: Simd>(&mut self, step: &StepSeries) {
        let (line, plan) = (&self.line, &self.plan);
        let weights = [&self.above_weights[..], &self.rank_weights];
        let mut passing = PassingBack { plan, weights, gradient: &mut self.gradient };
        let (channels, adding, reading) = (plan.channels(), &line.ranked, &line.all);
        // Seen from an item j, the items k above it have t = s_j − s_k < 0.
        for (direction, side) in [(Direction::Down, Side::Below), (Direction::Up, Side::Above)] {
            let sweep = Sweep { line, direction, side, channels, adding, reading };
            self.running.sweep::<S>(step, sweep, &mut passing);
        }
    }

    /// What the other items of the lower step pass back to each.
    #[inline(always)]
    fn pass_back_lower_step(&mut self, lower: &Checked<LowerStep>, steps: &LowerSums) {
        let (line, gradient, plan) = (&self.line, &mut self.gradient, &self.plan);
        let (by_place, places) = (&mut self.by_place, plan.relevances.len());
        let weight = |number: usize| self.above_weights[number];
        let is_full = |t| lower.is_full(t);
        behind_by_place(line, Direction::Up, is_full, weight, by_place, places, |number, item, below| {
            for (shared, behind) in plan.lower(item, below) {
                gradient[number] -= shared * steps.slope_above(behind);
            }
        });
        behind_by_place(
            line,
            Direction::Down,
            |_| false,
            weight,
            by_place,
            places,
            |number, item, above| {
                for (shared, behind) in plan.lower(item, above) {
                    gradient[number] -= shared * steps.leak * behind.within;
                }
            },
        );
    }
}

/// Every item counts as one, and ranked items take the sums of those that they count.
struct Counting<'a> {
    plan: &'a Plan,
    /// Whether the items behind count by the true step where they do not by the upper step.
    true_step: bool,
    sums: &'a mut [Sums],
}

impl Exchange for Counting<'_> {
    #[inline(always)]
    fn adds(&self, _: usize, item: &Item) -> impl Iterator<Item = (usize, f64)> {
        std::iter::once((self.plan.channel(item), 1.0))
    }

    #[inline(always)]
    fn read<S: Simd>(&mut self, number: usize, item: &Item, behind: &Reader<S>) {
        let (plan, sum) = (self.plan, &mut self.sums[number]);
        let [value, slope] = behind.shares(std::iter::repeat_n(1.0, plan.counts(item)));
        sum.rank += value;
        sum.rank_slope += slope;
        if plan.sigmoid_above() {
            let [value, slope] = behind.shares(plan.shared(item).iter().copied());
            sum.above += value;
            sum.above_slope += slope;
        }
        if self.true_step {
            plan.count_true_step(item, sum, behind.weights());
        }
    }
}

/// Ranked items pass back to the items that they count.
struct PassingBack<'a> {
    plan: &'a Plan,
    /// The slopes of the value of each item along its numerator and its rank.
    weights: [&'a [f64]; 2],
    gradient: &'a mut [f64],
}

impl Exchange for PassingBack<'_> {
    #[inline(always)]
    fn adds(&self, number: usize, item: &Item) -> impl Iterator<Item = (usize, f64)> {
        let plan = self.plan;
        let [above, rank] = [self.weights[0][number], self.weights[1][number]];
        let above = if plan.sigmoid_above() { above } else { 0.0 };
        plan.shared(item).iter().take(plan.counts(item)).map(move |shared| above * shared + rank).enumerate()
    }

    #[inline(always)]
    fn read<S: Simd>(&mut self, number: usize, item: &Item, behind: &Reader<S>) {
        self.gradient[number] -= behind.channel(self.plan.channel(item))[1];
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
fn ordered_bits(number: f32) -> u32 {
    let bits = (number + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

/// Sorts by the upper halves, eleven bits after eleven, from the lowest on; keys of equal upper halves keep their order.
fn sort(keys: &mut Vec<u64>, spare: &mut Vec<u64>) {
    const DIGITS: usize = 3;
    const BITS: u32 = 11;
    const FEWEST: usize = 1024;
    if keys.len() < FEWEST {
        return keys.sort_unstable();
    }
    let digit = |key: u64, place: usize| (key >> (32 + BITS * place as u32)) as usize & ((1 << BITS) - 1);
    let mut starts = [[0_u32; 1 << BITS]; DIGITS];
    for &key in keys.iter() {
        for (place, starts) in starts.iter_mut().enumerate() {
            starts[digit(key, place)] += 1;
        }
    }
    spare.clear();
    spare.resize(keys.len(), 0);
    for (place, starts) in starts.iter_mut().enumerate() {
        let mut sum = 0;
        for start in starts.iter_mut() {
            sum += std::mem::replace(start, sum);
        }
        for &key in keys.iter() {
            let start = &mut starts[digit(key, place)];
            spare[*start as usize] = key;
            *start += 1;
        }
        std::mem::swap(keys, spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, uniform};

    #[test]
    fn keys_are_sorted_by_their_upper_halves_and_equal_ones_stay_in_order() {
        for count in [0, 1, 1023, 1024, 5000] {
            for range in [1.0, 1e-6, 1e30] {
                let scores = uniform(&mut stream(0, "keys", &[count as u64]), count, -range, range);
                // Every third score twice.
                let scores = scores.iter().enumerate().map(|(i, _)| scores[i - usize::from(i % 3 == 1)]);
                let mut keys: Vec<u64> = scores
                    .zip(0..)
                    .map(|(score, item)| u64::from(ordered_bits(score)) << 32 | item)
                    .collect();
                let mut expected = keys.clone();
                expected.sort();
                sort(&mut keys, &mut Vec::new());
                assert!(keys == expected, "{count} keys of ±{range}");
            }
        }
        let ordered = [f32::MIN, -1.0, -f32::MIN_POSITIVE, 0.0, f32::MIN_POSITIVE, 1.0, f32::MAX];
        assert!(ordered.is_sorted_by_key(|&score| ordered_bits(score)));
        assert_eq!(ordered_bits(-0.0), ordered_bits(0.0));
    }
}
