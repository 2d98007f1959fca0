//! Sums of an upper step along a line, by running sums of powers.
//!
//! For the items j behind k at the distances t_kj ≥ 0, e^{−m·t_kj/τ} is a product of a number of j and one of k. So
//!
//! ```text
//! Σ_j w_j e^{−m·t_kj/τ} = x_k^m · Σ_j w_j y_j^m,      x = e^{−(s − anchor)/τ},   y = 1 / x
//! ```
//!
//! and a sum of w·y^m runs along for each m. [`Series`] turns the sums for m = 1 … M into Σ_j w_j f(e^{−t/τ}). All terms
//! have the sign of their weights, so no digit is lost, and where a new segment begins the sums are moved to its anchor.
//! An item beyond the threshold is taken out again; what its addition left in the last digits has become smaller with the
//! sums since then. Sums run in several *channels*, because items of different places count different items.

use std::marker::PhantomData;

use macerator::Simd;

use super::line::{Direction, Item, Line};
use super::series::Series;
use super::terms::{TERMS, Terms};
use crate::Checked;
use crate::steps::{Line as Beyond, UpperStep};

/// Sums below this become 0 where a segment begins. They add nothing that can be seen, and arithmetic with the smallest
/// numbers is slow.
const SMALLEST: f64 = 1e-100;

/// An upper step as sums of powers.
#[derive(Clone, Debug)]
pub(super) struct StepSeries {
    pub(super) temperature: f64,
    per_temperature: f64,
    /// The sigmoid.
    series: Series<TERMS>,
    beyond: Option<Beyond>,
    /// The jump of the step at 0.
    pub(super) start: f64,
}

impl StepSeries {
    pub(super) fn new(step: &Checked<UpperStep>) -> Self {
        let beyond = step.line();
        Self {
            temperature: step.temperature,
            per_temperature: 1.0 / step.temperature,
            series: Series::new(),
            start: if beyond.is_some() { step.start } else { 0.0 },
            beyond,
        }
    }

    /// e^{−t/τ} between two anchors, or 0 if what crosses such a distance is beyond the digits of an f64.
    #[inline(always)]
    fn decay(&self, distance: f64) -> f64 {
        let decay = (-distance * self.per_temperature).exp();
        if decay < 1e-30 { 0.0 } else { decay }
    }
}

/// Sums over items behind.
#[derive(Clone)]
#[repr(align(64))]
struct Channel {
    /// Σ w·y^m of the items within the threshold.
    powers: [f64; TERMS],
    /// Σ w of the items within the threshold.
    within: f64,
    /// Σ w of the items beyond it.
    beyond: f64,
    /// Σ w·t of the items beyond it, with the distance t from the anchor.
    distance: f64,
}

impl Channel {
    const EMPTY: Self = Self { powers: [0.0; TERMS], within: 0.0, beyond: 0.0, distance: 0.0 };

    #[inline(always)]
    fn add<S: Simd>(&mut self, weight: f64, powers: Terms<S>) {
        Terms::load(&self.powers).plus(powers.times(Terms::all(weight))).store(&mut self.powers);
        self.within += weight;
    }
}

/// The running sums of all channels, relative to the anchor of the segment that was reached last.
#[derive(Default)]
pub(super) struct RunningSums {
    channels: Vec<Channel>,
    anchor: f64,
}

impl RunningSums {
    /// Moves the sums to the anchor of this item, if it is another one.
    #[inline(always)]
    fn move_to<S: Simd>(&mut self, item: &Item, direction: Direction, step: &StepSeries) {
        if item.anchor == self.anchor {
            return;
        }
        let distance = direction.distance(item.anchor, self.anchor);
        let powers = Terms::<S>::powers(step.decay(distance));
        for channel in &mut self.channels {
            Terms::load(&channel.powers).times(powers).store(&mut channel.powers);
            for sum in &mut channel.powers {
                if sum.abs() < SMALLEST {
                    *sum = 0.0;
                }
            }
            channel.distance -= channel.beyond * distance;
        }
        self.anchor = item.anchor;
    }
}

/// Which part of the step a sweep adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The items behind have t ≤ 0.
    Below,
    /// The items behind have t ≥ 0.
    Above,
}

/// A way along a line.
#[derive(Clone, Copy)]
pub(super) struct Sweep<'a> {
    pub line: &'a Line,
    pub direction: Direction,
    pub side: Side,
    /// The number of channels.
    pub channels: usize,
    /// The items that are added, by increasing score.
    pub adding: &'a [u32],
    /// The items that read the sums, by increasing score.
    pub reading: &'a [u32],
}

/// What items add to the channels, and what others do with the sums of those behind them.
///
/// A trait and not closures: a closure that is not inlined is compiled without the vectors of the function around it.
pub(super) trait Exchange {
    /// The channels that an item adds to, each with its weight.
    fn adds(&self, number: usize, item: &Item) -> impl Iterator<Item = (usize, f64)>;
    /// Reads the sums of the items behind an item.
    fn read<S: Simd>(&mut self, number: usize, item: &Item, behind: &Reader<S>);
}

/// The sums as one item sees them.
pub(super) struct Reader<'a, S: Simd> {
    step: &'a StepSeries,
    side: Side,
    channels: &'a [Channel],
    /// x from the anchor.
    power: f64,
    /// The distance from the anchor.
    distance: f64,
    vectors: PhantomData<S>,
}

impl RunningSums {
    /// Each item reads the sums of those behind it. Items of equal score count as if those behind were at a distance of
    /// 0, on this side.
    #[inline(always)]
    pub(super) fn sweep<S: Simd>(&mut self, step: &StepSeries, sweep: Sweep, items: &mut impl Exchange) {
        let Sweep { line, direction, side, channels, adding, reading } = sweep;
        let threshold = match (side, &step.beyond) {
            (Side::Above, Some(line)) => line.threshold,
            _ => f64::INFINITY,
        };
        let at = |numbers: &[u32], step: usize| numbers[direction.index(step, numbers.len())] as usize;
        self.channels.clear();
        self.channels.resize(channels, Channel::EMPTY);
        self.anchor = line.items[line.number(direction, 0)].anchor;
        // How many items were added, and how many of these are beyond the threshold.
        let (mut added, mut beyond) = (0, 0);
        // e^{−t/τ} from the anchor of the last item that went beyond the threshold, and both anchors.
        let (mut bridge, mut bridged) = (0.0, [f64::NAN; 2]);
        for read in 0..reading.len() {
            let number = at(reading, read);
            let item = &line.items[number];
            while added < adding.len() {
                let other = at(adding, added);
                if !direction.is_behind(other, number) {
                    break;
                }
                let passed = &line.items[other];
                self.move_to::<S>(passed, direction, step);
                let powers = Terms::<S>::powers(passed.powers(direction)[0]);
                for (channel, weight) in items.adds(other, passed) {
                    self.channels[channel].add(weight, powers);
                }
                added += 1;
            }
            self.move_to::<S>(item, direction, step);
            while beyond < added {
                let other = at(adding, beyond);
                let passed = &line.items[other];
                if direction.distance(item.score, passed.score) <= threshold {
                    break;
                }
                if bridged != [passed.anchor, self.anchor] {
                    bridged = [passed.anchor, self.anchor];
                    bridge = step.decay(direction.distance(self.anchor, passed.anchor));
                }
                let powers = Terms::<S>::powers(passed.powers(direction)[0] * bridge);
                let distance = direction.distance(passed.score, self.anchor);
                for (channel, weight) in items.adds(other, passed) {
                    let channel = &mut self.channels[channel];
                    channel.add(-weight, powers);
                    channel.beyond += weight;
                    channel.distance += weight * distance;
                }
                beyond += 1;
            }
            let reader = Reader::<S> {
                step,
                side,
                channels: &self.channels,
                power: item.powers(direction)[1],
                distance: direction.distance(item.score, self.anchor),
                vectors: PhantomData,
            };
            items.read(number, item, &reader);
        }
    }
}

impl<S: Simd> Reader<'_, S> {
    /// Σ_j w_j over the items behind, in each channel.
    #[inline(always)]
    pub(super) fn weights(&self) -> impl Iterator<Item = f64> {
        self.channels.iter().map(|channel| channel.within + channel.beyond)
    }

    /// Σ_j w_j h(t) and Σ_j w_j h′(t) over the items behind, in one channel.
    #[inline(always)]
    pub(super) fn channel(&self, channel: usize) -> [f64; 2] {
        let channel = &self.channels[channel];
        self.sums(Terms::load(&channel.powers), channel.within, channel.beyond, channel.distance)
    }

    /// The same in these shares of the first channels.
    #[inline(always)]
    pub(super) fn shares(&self, shares: impl Iterator<Item = f64>) -> [f64; 2] {
        let mut powers = Terms::<S>::all(0.0);
        let (mut within, mut beyond, mut distance) = (0.0, 0.0, 0.0);
        for (channel, share) in self.channels.iter().zip(shares) {
            powers = powers.plus(Terms::load(&channel.powers).times(Terms::all(share)));
            within += share * channel.within;
            beyond += share * channel.beyond;
            distance += share * channel.distance;
        }
        self.sums(powers, within, beyond, distance)
    }

    #[inline(always)]
    fn sums(&self, powers: Terms<S>, within: f64, beyond: f64, distance: f64) -> [f64; 2] {
        let step = self.step;
        let powers = powers.times(Terms::powers(self.power));
        let value = powers.times(Terms::load(&step.series.value)).sum();
        let slope = powers.times(Terms::load(&step.series.slope)).sum() * step.per_temperature;
        if self.side == Side::Below {
            return [value, slope];
        }
        // For t > 0, the sigmoid is 1 − its value at −t.
        let value = (1.0 + step.start) * within - value;
        let Some(line) = &step.beyond else { return [value, slope] };
        let excess = beyond * (self.distance - line.threshold) - distance;
        [value + line.slope * excess + line.offset * beyond, slope + line.slope * beyond]
    }
}
