//! Sums of an upper step along a line, by running sums of powers.
//!
//! For the items j behind k at the distances t_kj > 0, A_m(k) = Σ_j w_j e^{−m·t_kj/τ} obeys
//!
//! ```text
//! A_m(next) = (A_m + w) · e^{−m·gap/τ}
//! ```
//!
//! and [`Series`] turns A_1 … A_M into Σ_j w_j f(e^{−t/τ}). All factors are in 0 … 1 and nothing overflows. Weights come
//! in several *channels*, one running sum each, because items of different places count different items.

use super::line::{Line, Window};
use super::series::{Series, powers};
use crate::Checked;
use crate::steps::{Line as Beyond, UpperStep};

/// Added to every weight, so that sums over nothing do not decay into denormal numbers, which are slow.
const FLOOR: f64 = 1e-50;

/// An upper step as sums of M powers, and of `FAR` powers beyond its threshold.
#[derive(Clone, Debug)]
pub(super) struct StepSeries<const M: usize, const FAR: usize> {
    pub(super) temperature: f64,
    near: Series<M>,
    far: Option<Series<FAR>>,
    beyond: Option<Beyond>,
    start: f64,
    at_tie: f64,
}

impl<const M: usize, const FAR: usize> StepSeries<M, FAR> {
    pub(super) fn new(step: &Checked<UpperStep>) -> Self {
        let beyond = step.line();
        let start = if beyond.is_some() { step.start } else { 0.0 };
        let largest = beyond.as_ref().map_or(0.0, |line| (-line.threshold / step.temperature).exp());
        Self {
            temperature: step.temperature,
            near: Series::new(1.0),
            // Smaller powers have no digit in common with the count of the items.
            far: (largest > 1e-18).then(|| Series::new(largest)),
            beyond,
            start,
            at_tie: if step.start_at_zero { 0.5 + start } else { 0.5 },
        }
    }

    /// Whether `FAR` powers are as exact as M.
    pub(super) fn far_is_exact(step: &Checked<UpperStep>) -> bool {
        Self::new(step).far.is_none_or(|far| far.slope_error <= Series::<M>::new(1.0).slope_error)
    }

    /// Sets the window of the step on a line.
    #[inline(always)]
    pub(super) fn set_window(&self, window: &mut Window, line: &Line) {
        let threshold = self.beyond.as_ref().map_or(f64::INFINITY, |line| line.threshold);
        window.set(line, self.far.as_ref().map(|_| self.temperature), |t| t > threshold);
    }
}

/// What the items of each place give and take, by channel.
#[derive(Default)]
pub(super) struct Channels {
    /// The number of channels.
    pub count: usize,
    /// The channels that an item of each place reads.
    pub reads: Vec<std::ops::Range<usize>>,
}

/// The running sums, and what the window needs of those at earlier groups.
#[derive(Default)]
pub(super) struct RunningSums {
    /// A_1 … A_M of each channel.
    states: Vec<f64>,
    /// Weight and Σ w·t behind, of each channel.
    totals: Vec<[f64; 2]>,
    far_states: Vec<f64>,
    far_totals: Vec<[f64; 2]>,
}

impl RunningSums {
    /// Σ_j w_j h(t) and Σ_j w_j h′(t) over the items *behind* each item, where items behind have t ≤ 0, and over those
    /// in its own group. `sources` holds the weights of each group by channel; `emit` gets item, channel, value and
    /// slope.
    #[inline(always)]
    pub(super) fn below<const M: usize, const FAR: usize>(
        &mut self,
        step: &StepSeries<M, FAR>,
        line: &Line,
        channels: &Channels,
        sources: &[f64],
        mut emit: impl FnMut(usize, usize, f64, f64),
    ) {
        let count = channels.count;
        let per_temperature = 1.0 / step.temperature;
        self.states.clear();
        self.states.resize(count * M, 0.0);
        let states = self.states.as_chunks_mut::<M>().0;
        for group in 0..line.scores.len() {
            if group > 0 {
                let powers = powers::<M>(line.decays[group]);
                let weights = &sources[(group - 1) * count..group * count];
                for (state, weight) in states.iter_mut().zip(weights) {
                    advance(state, *weight, &powers);
                }
            }
            for item in line.items(group) {
                for channel in channels.reads[line.places[item] as usize].clone() {
                    let [value, slope] = near_sums(&step.near, &states[channel]);
                    let tie = sources[group * count + channel];
                    emit(item, channel, value + tie * step.at_tie, (slope + 0.25 * tie) * per_temperature);
                }
            }
        }
    }

    /// The same over the items behind each item, where items behind have t > 0.
    #[inline(always)]
    pub(super) fn above<const M: usize, const FAR: usize>(
        &mut self,
        step: &StepSeries<M, FAR>,
        line: &Line,
        window: &Window,
        channels: &Channels,
        sources: &[f64],
        mut emit: impl FnMut(usize, usize, f64, f64),
    ) {
        let count = channels.count;
        let per_temperature = 1.0 / step.temperature;
        let Beyond { slope: rho, threshold, offset } =
            step.beyond.clone().unwrap_or(Beyond { slope: 0.0, threshold: 0.0, offset: 0.0 });
        self.states.clear();
        self.states.resize(count * M, 0.0);
        let states = self.states.as_chunks_mut::<M>().0;
        self.totals.clear();
        self.totals.resize(count, [0.0; 2]);
        self.far_states.clear();
        self.far_totals.clear();
        for group in 0..line.scores.len() {
            if group > 0 {
                let powers = powers::<M>(line.decays[group]);
                let gap = line.scores[group] - line.scores[group - 1];
                let weights = &sources[(group - 1) * count..group * count];
                for (channel, &weight) in weights.iter().enumerate() {
                    advance(&mut states[channel], weight, &powers);
                    let [total, distance] = &mut self.totals[channel];
                    *total += weight;
                    *distance += *total * gap;
                }
            }
            let beyond = window.beyond[group] as usize;
            let far_powers = match &step.far {
                Some(far) => {
                    let powers = powers::<FAR>(window.reach[group]);
                    [weighted(&far.value, &powers), weighted(&far.slope, &powers)]
                }
                None => [[0.0; FAR]; 2],
            };
            for item in line.items(group) {
                for channel in channels.reads[line.places[item] as usize].clone() {
                    let [mut value, mut slope] = near_sums(&step.near, &states[channel]);
                    let mut within = self.totals[channel][0];
                    let mut line_value = 0.0;
                    let mut line_slope = 0.0;
                    if beyond > 0 {
                        let at = (beyond - 1) * count + channel;
                        let [total, distance] = self.far_totals[at];
                        let [far_value, far_slope] =
                            sums(&far_powers, &self.far_states.as_chunks::<FAR>().0[at]);
                        value -= far_value;
                        slope -= far_slope;
                        within -= total;
                        let excess = line.scores[group] - line.scores[beyond - 1] - threshold;
                        line_value = rho * (distance + total * excess) + offset * total;
                        line_slope = rho * total;
                    }
                    let value = (1.0 + step.start) * within - value + line_value;
                    emit(item, channel, value, slope * per_temperature + line_slope);
                }
            }
            if step.beyond.is_some() {
                for (channel, weight) in sources[group * count..][..count].iter().enumerate() {
                    let state = &states[channel];
                    let [total, distance] = self.totals[channel];
                    let at_group: [f64; FAR] = std::array::from_fn(|power| state[power] + weight);
                    self.far_states.extend_from_slice(&at_group);
                    self.far_totals.push([total + weight, distance]);
                }
            }
        }
    }
}

/// A_m ← (A_m + w) · x^m.
#[inline(always)]
fn advance<const M: usize>(state: &mut [f64; M], weight: f64, powers: &[f64; M]) {
    let weight = weight + FLOOR;
    for (sum, power) in state.iter_mut().zip(powers) {
        *sum = (*sum + weight) * power;
    }
}

#[inline(always)]
fn weighted<const M: usize>(terms: &[f64; M], powers: &[f64; M]) -> [f64; M] {
    std::array::from_fn(|power| terms[power] * powers[power])
}

#[inline(always)]
fn near_sums<const M: usize>(series: &Series<M>, state: &[f64; M]) -> [f64; 2] {
    [dot(&series.value, state), dot(&series.slope, state)]
}

#[inline(always)]
fn sums<const M: usize>(terms: &[[f64; M]; 2], state: &[f64; M]) -> [f64; 2] {
    [dot(&terms[0], state), dot(&terms[1], state)]
}

/// Σ_m a_m b_m in four partial sums. M is a multiple of 4.
#[inline(always)]
fn dot<const M: usize>(a: &[f64; M], b: &[f64; M]) -> f64 {
    let mut partial = [0.0; 4];
    for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        for lane in 0..4 {
            partial[lane] += a[lane] * b[lane];
        }
    }
    (partial[0] + partial[1]) + (partial[2] + partial[3])
}
