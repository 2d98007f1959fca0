//! The losses of a training as a curve of bounded size, so that drawing it takes as long after a million steps as after
//! a thousand.

use crate::runs::run_log::mean_points;

/// The most parts of a curve. A terminal shows fewer points.
const MOST_PARTS: usize = 1_024;

/// Consecutive losses.
#[derive(Clone, Copy, Default)]
struct Part {
    losses: usize,
    sum_of_steps: f64,
    sum_of_losses: f64,
}

/// See the [module](self). Each part stands for equally many losses; the last one may still grow.
#[derive(Default)]
pub(super) struct LossCurve {
    parts: Vec<Part>,
    /// How often the parts were joined in pairs: each takes 2^`joined` losses.
    joined: u32,
    first_step: Option<u64>,
    last: Option<(u64, f64)>,
}

impl LossCurve {
    /// Adds the loss of a step. Steps have to come in their order.
    pub(super) fn add(&mut self, step: u64, loss: f64) {
        self.first_step.get_or_insert(step);
        self.last = Some((step, loss));
        let full = 1 << self.joined;
        if self.parts.last().is_none_or(|part| part.losses == full) {
            if self.parts.len() == MOST_PARTS {
                self.parts = self.parts.chunks(2).map(join).collect();
                self.joined += 1;
            }
            self.parts.push(Part::default());
        }
        if let Some(part) = self.parts.last_mut() {
            *part = join(&[*part, Part { losses: 1, sum_of_steps: step as f64, sum_of_losses: loss }]);
        }
    }

    /// The first step; none without losses.
    pub(super) fn first_step(&self) -> Option<u64> {
        self.first_step
    }

    /// The last step and its loss; none without losses.
    pub(super) fn last(&self) -> Option<(u64, f64)> {
        self.last
    }

    /// At most `most` points (step, loss) of the curve: means of consecutive losses.
    pub(super) fn points(&self, most: usize) -> Vec<[f64; 2]> {
        let mean = |part: &Part| [part.sum_of_steps, part.sum_of_losses].map(|sum| sum / part.losses as f64);
        mean_points(&self.parts.iter().map(mean).collect::<Vec<_>>(), most)
    }
}

fn join(parts: &[Part]) -> Part {
    parts.iter().fold(Part::default(), |sum, part| Part {
        losses: sum.losses + part.losses,
        sum_of_steps: sum.sum_of_steps + part.sum_of_steps,
        sum_of_losses: sum.sum_of_losses + part.sum_of_losses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_training_has_a_short_curve() {
        let mut curve = LossCurve::default();
        assert!(curve.points(100).is_empty() && curve.last().is_none());
        for step in 1..=100_000 {
            curve.add(step, 3.0 * step as f64);
            assert!(curve.parts.len() <= MOST_PARTS);
        }
        assert_eq!((curve.first_step(), curve.last()), (Some(1), Some((100_000, 300_000.0))));
        let points = curve.points(120);
        assert!((60..=120).contains(&points.len()), "{}", points.len());
        assert!(points.is_sorted_by(|a, b| a[0] < b[0]));
        for [step, loss] in points {
            assert!((loss - 3.0 * step).abs() < 1e-6, "{loss} at step {step}");
        }
    }

    #[test]
    fn a_short_training_has_all_of_its_losses() {
        let mut curve = LossCurve::default();
        (5..=9).for_each(|step| curve.add(step, step as f64 / 2.0));
        assert_eq!(curve.points(10), [[5.0, 2.5], [6.0, 3.0], [7.0, 3.5], [8.0, 4.0], [9.0, 4.5]]);
    }
}
