//! What is due after each step of a training.

use std::time::Duration;

use crate::config::RunConfig;

/// Steps between two lines of the log.
const LOG_EVERY: u64 = 10;

/// When the steps of a training are logged, saved and evaluated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    /// Steps of the whole training.
    pub(super) steps: u64,
    /// Steps of one epoch.
    pub(super) steps_per_epoch: u64,
    checkpoint_every_epochs: u64,
    checkpoint_every_steps: u64,
    checkpoint_every_minutes: u64,
    evaluate_every_epochs: u64,
    /// Whether evaluations can end the training, so that each needs a checkpoint.
    ends_early: bool,
}

/// What is due after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// A line of the log.
    pub(super) log: bool,
    /// A line on stderr, if that is no terminal.
    pub(super) progress_line: bool,
    /// A checkpoint.
    pub(super) checkpoint: bool,
    /// An evaluation before the last step.
    pub(super) evaluation: bool,
    /// The end of this session before the last step.
    pub(super) stop: bool,
}

impl Timetable {
    pub(super) fn new(config: &RunConfig, steps_per_epoch: usize) -> Self {
        Self {
            steps: config.total_steps(steps_per_epoch),
            steps_per_epoch: steps_per_epoch as u64,
            checkpoint_every_epochs: config.checkpoint_every_epochs,
            checkpoint_every_steps: config.checkpoint_every_steps,
            checkpoint_every_minutes: config.checkpoint_every_minutes,
            evaluate_every_epochs: config.evaluate_every_epochs,
            ends_early: config.patience.is_some(),
        }
    }

    /// A timetable without checkpoints and evaluations before the last step.
    #[cfg(test)]
    pub(super) fn without_evaluations(steps: u64, steps_per_epoch: u64) -> Self {
        Self {
            steps,
            steps_per_epoch,
            checkpoint_every_epochs: 0,
            checkpoint_every_steps: 0,
            checkpoint_every_minutes: 0,
            evaluate_every_epochs: 0,
            ends_early: false,
        }
    }

    /// Whether the training is evaluated after `step` steps, before the last one.
    pub(super) fn evaluates(&self, step: u64) -> bool {
        step != self.steps && self.epoch_ends(step, self.evaluate_every_epochs)
    }

    /// The next step after `step` that an evaluation follows, before the last one.
    pub(super) fn next_evaluation(&self, step: u64) -> Option<u64> {
        let between = self.evaluate_every_epochs.checked_mul(self.steps_per_epoch)?;
        let next = (step + 1).checked_next_multiple_of(between)?;
        (next < self.steps).then_some(next)
    }

    /// Whether an epoch ends after `step` steps whose number, counted from 1, is a multiple of `epochs`.
    fn epoch_ends(&self, step: u64, epochs: u64) -> bool {
        epochs > 0
            && step.is_multiple_of(self.steps_per_epoch)
            && (step / self.steps_per_epoch).is_multiple_of(epochs)
    }

    /// What is due after `step` steps, 1 … `steps`, when the last checkpoint is `unsaved` old.
    pub(super) fn due(&self, step: u64, unsaved: Duration, stop_requested: bool) -> Due {
        let last = step == self.steps;
        let stop = stop_requested && !last;
        let evaluation = self.evaluates(step) && !stop;
        let steps_passed =
            self.checkpoint_every_steps > 0 && step.is_multiple_of(self.checkpoint_every_steps);
        let minutes_passed =
            self.checkpoint_every_minutes > 0 && unsaved.as_secs() / 60 >= self.checkpoint_every_minutes;
        let checkpoint = last
            || stop
            || self.epoch_ends(step, self.checkpoint_every_epochs)
            || steps_passed
            || minutes_passed
            || (evaluation && self.ends_early);
        let line_every = (self.steps / 20).next_multiple_of(LOG_EVERY).max(LOG_EVERY);
        Due {
            log: step.is_multiple_of(LOG_EVERY) || checkpoint,
            progress_line: last || step.is_multiple_of(line_every),
            checkpoint,
            evaluation,
            stop,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMETABLE: Timetable = Timetable {
        steps: 36,
        steps_per_epoch: 6,
        checkpoint_every_epochs: 2,
        checkpoint_every_steps: 0,
        checkpoint_every_minutes: 30,
        evaluate_every_epochs: 3,
        ends_early: false,
    };
    const JUST_SAVED: Duration = Duration::ZERO;

    fn steps_with(is_due: impl Fn(Due) -> bool) -> Vec<u64> {
        (1..=TIMETABLE.steps).filter(|&step| is_due(TIMETABLE.due(step, JUST_SAVED, false))).collect()
    }

    #[test]
    fn checkpoints_and_evaluations_follow_their_epochs() {
        assert_eq!(steps_with(|due| due.checkpoint), [12, 24, 36]);
        assert_eq!(steps_with(|due| due.evaluation), [18], "the one after the last step is apart");
    }

    #[test]
    fn the_next_evaluation_is_that_of_a_later_step() {
        assert_eq!(
            [0, 17, 18, 35].map(|step| TIMETABLE.next_evaluation(step)),
            [Some(18), Some(18), None, None]
        );
        let never = Timetable { evaluate_every_epochs: 0, ..TIMETABLE };
        assert_eq!(never.next_evaluation(0), None);
        let after_its_end = Timetable { evaluate_every_epochs: i64::MAX as u64, ..TIMETABLE };
        assert_eq!(after_its_end.next_evaluation(1), None);
    }

    #[test]
    fn an_evaluation_that_can_end_the_training_comes_after_a_checkpoint() {
        let timetable = Timetable { ends_early: true, ..TIMETABLE };
        let saved: Vec<u64> =
            (1..=36).filter(|&step| timetable.due(step, JUST_SAVED, false).checkpoint).collect();
        assert_eq!(saved, [12, 18, 24, 36]);
    }

    #[test]
    fn checkpoints_follow_steps_and_minutes_too() {
        let timetable = Timetable { checkpoint_every_epochs: 100, checkpoint_every_steps: 10, ..TIMETABLE };
        let saved =
            |step, minutes: u64| timetable.due(step, Duration::from_secs(60 * minutes), false).checkpoint;
        assert!(saved(10, 0) && saved(20, 0) && !saved(11, 0));
        assert!(saved(11, 30) && !saved(11, 29));
    }

    #[test]
    fn every_tenth_step_is_logged_and_every_checkpoint() {
        assert_eq!(steps_with(|due| due.log), [10, 12, 20, 24, 30, 36]);
        assert_eq!(steps_with(|due| due.progress_line), [10, 20, 30, 36]);
    }

    #[test]
    fn a_stop_is_saved_and_logged_but_not_evaluated() {
        let due = TIMETABLE.due(18, JUST_SAVED, true);
        assert!(due.stop && due.checkpoint && due.log && !due.evaluation);
        assert!(!TIMETABLE.due(36, JUST_SAVED, true).stop, "the last step ends the training anyway");
    }

    #[test]
    fn nothing_is_evaluated_on_the_way_unless_asked_for() {
        let timetable = Timetable { evaluate_every_epochs: 0, ..TIMETABLE };
        assert!((1..=36).all(|step| !timetable.due(step, JUST_SAVED, false).evaluation));
    }
}
