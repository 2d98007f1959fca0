//! Limits of the system: `akin` says which it has met, and does not panic.
#![cfg(target_os = "linux")]

mod workplace;

use std::process::Command;

use workplace::{Answer, Workplace};

impl Workplace {
    /// Runs `akin` under a limit of the shell, such as `-n 4`.
    fn akin_under(&self, limit: &str, arguments: &[&str]) -> Answer {
        Answer::of(self.command_under(limit, arguments).output().unwrap())
    }

    fn command_under(&self, limit: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit {limit} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_akin")]);
        command.args(arguments).current_dir(self.folder());
        command
    }

    /// Runs `akin` where the memory is enough for this number of threads, because each takes a large part of it.
    fn akin_on_threads(&self, threads: u64, arguments: &[&str]) -> Answer {
        const GIB: u64 = 1 << 30;
        let mut command = self.command_under(&format!("-v {}", 32 * (GIB >> 10)), arguments);
        command.env("RUST_MIN_STACK", (30 * GIB / (threads + 1) + GIB).to_string());
        command.env("RAYON_NUM_THREADS", "40");
        Answer::of(command.output().unwrap())
    }
}

#[test]
fn fewer_threads_compute_where_the_system_starts_few() {
    let at = Workplace::tiny();
    at.akin_on_threads(9, &["train", "tiny.toml", "--out", "run"])
        .expect_code(0)
        .expect_stderr("of 40 compute; raise the limit of processes");
    let [few, many] =
        [1, 40].map(|threads| at.akin_on_threads(threads, &["eval", "run"]).expect_code(0).stdout);
    assert_eq!(few, many);
    for command in [&["eval", "run"][..], &["resume", "run"], &["serve", "run"]] {
        at.akin_on_threads(0, command)
            .expect_code(1)
            .expect_stderr("error: the system starts no more threads")
            .expect_stderr("hint: raise the limit of processes (`ulimit -u`)");
    }
}

#[test]
fn too_few_open_files_are_not_taken_for_a_full_disk() {
    let at = Workplace::tiny();
    at.akin_under("-n 4", &["biomorphs", "more"]).expect_code(1).expect_stderr("(`ulimit -n`)");
}
