//! Ctrl-C: the first one asks a training to stop and save, the second one ends the program at once.
//!
//! `main` installs the handler and alone ends the program. A training says with [`CatchCtrlC`] while it
//! can stop by itself, and asks [`stop_requested`] after each step.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a training can stop by itself at present.
static CAN_STOP: AtomicBool = AtomicBool::new(false);

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

/// Records a Ctrl-C. Returns whether a training will stop by itself because of it; if not, the program
/// has to end now.
pub fn request_stop() -> bool {
    CAN_STOP.load(Ordering::SeqCst) && !STOP_REQUESTED.swap(true, Ordering::SeqCst)
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
        assert!(!request_stop(), "no training can stop");
        let training = CatchCtrlC::start();
        assert!(!stop_requested());
        assert!(request_stop() && stop_requested());
        assert!(!request_stop(), "the second one ends the program");
        drop(training);
        assert!(!request_stop());
    }
}
