//! Ctrl-C: the first one asks a training to stop and save, the second one ends the program at once. The signals SIGTERM
//! and SIGHUP count as Ctrl-C, but a SIGHUP that `nohup` ignores stays ignored.
//!
//! `main` calls [`handle`] with what to do; only `main` ends the program. A training holds a [`CatchCtrlC`] while it can
//! stop by itself, and asks [`stop_requested`] after each step. A comparison, whose trainings are processes of their own,
//! runs each with [`status_of`], which passes every Ctrl-C on.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whether a training can stop by itself at present.
static CAN_STOP: AtomicBool = AtomicBool::new(false);

/// Whether a server runs, which ends at Ctrl-C by itself.
static SERVER_RUNS: AtomicBool = AtomicBool::new(false);

/// Whether a training was asked to stop.
static STOP_REQUESTED: AtomicBool = AtomicBool::new(false);

/// The process that trains for this one; 0 for none.
static TRAINING: AtomicU32 = AtomicU32::new(0);

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

/// Calls `handler` at each Ctrl-C.
///
/// # Errors
///
/// The system refuses it.
#[cfg(unix)]
pub fn handle(handler: impl Fn(Answer) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let caught =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| signal != SIGHUP || !is_ignored(SIGHUP));
    let mut signals = Signals::new(caught)?;
    let listen = move || signals.forever().for_each(|_| handler(answer()));
    std::thread::Builder::new().name("signals".into()).spawn(listen)?;
    Ok(())
}

/// Calls `handler` at each Ctrl-C.
///
/// # Errors
///
/// The system refuses it.
#[cfg(not(unix))]
pub fn handle(handler: impl Fn(Answer) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || handler(answer())).map_err(io::Error::other)
}

/// Whether this process was started with a signal ignored. Known only on Linux.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    ignored >> (signal - 1) & 1 == 1
}

/// Runs a process that trains, and waits for its end. Each Ctrl-C of this process becomes one of that process, which a
/// terminal does not reach by itself.
///
/// # Errors
///
/// The process cannot be started.
pub fn status_of(command: &mut Command) -> io::Result<ExitStatus> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut process = command.spawn()?;
    TRAINING.store(process.id(), Ordering::SeqCst);
    if stop_requested() {
        pass_on();
    }
    let status = process.wait();
    TRAINING.store(0, Ordering::SeqCst);
    status
}

/// Passes a Ctrl-C on to the process that trains. Where there are no signals, the terminal does so.
fn pass_on() {
    #[cfg(unix)]
    if let Some(process) = rustix::process::Pid::from_raw(TRAINING.load(Ordering::SeqCst).cast_signed()) {
        // The process may have ended meanwhile.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
}

/// Records a Ctrl-C. Returns what the handler has to do.
fn answer() -> Answer {
    pass_on();
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
