//! Ctrl-C: the first one asks a training to stop and save, the second one ends the program at once.
//!
//! `main` installs the handler, which asks [`answer`] what to do; only `main` ends the program. A training holds a
//! [`CatchCtrlC`] while it can stop by itself, and asks [`stop_requested`] after each step.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a training can stop by itself at present.
static CAN_STOP: AtomicBool = AtomicBool::new(false);

/// Whether a server runs, which ends at Ctrl-C by itself.
static SERVER_RUNS: AtomicBool = AtomicBool::new(false);

/// Whether a training was asked to stop.
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

/// While this value lives, the first Ctrl-C is a request to stop instead of the end of the program.
pub struct CatchCtrlC(());

impl CatchCtrlC {
    /// Starts catching.
    pub fn start() -> Self {
        CAN_STOP.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for CatchCtrlC {
    fn drop(&mut self) {
        CAN_STOP.store(false, Ordering::SeqCst);
    }
}

/// What the handler of Ctrl-C has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing but a message: a training will save and stop.
    Wait,
    /// End the program now.
    Exit,
    /// Nothing: the server ends by itself.
    Ignore,
}

/// Records a Ctrl-C. Returns what the handler has to do.
pub fn answer() -> Answer {
    if SERVER_RUNS.load(Ordering::SeqCst) {
        Answer::Ignore
    } else if CAN_STOP.load(Ordering::SeqCst) && !STOP_REQUESTED.swap(true, Ordering::SeqCst) {
        Answer::Wait
    } else {
        Answer::Exit
    }
}

/// From now on a server runs, which ends at Ctrl-C by itself.
pub fn leave_to_server() {
    SERVER_RUNS.store(true, Ordering::SeqCst);
}

/// Whether a training was asked to stop.
pub fn stop_requested() -> bool {
    STOP_REQUESTED.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_ctrl_c_of_a_training_is_caught() {
        assert_eq!(answer(), Answer::Exit, "no training can stop");
        let training = CatchCtrlC::start();
        assert!(!stop_requested());
        assert_eq!(answer(), Answer::Wait);
        assert!(stop_requested());
        assert_eq!(answer(), Answer::Exit, "the second one ends the program");
        drop(training);
        assert_eq!(answer(), Answer::Exit);
        leave_to_server();
        assert_eq!(answer(), Answer::Ignore);
    }
}
