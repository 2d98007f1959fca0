//! `kill -9` at random moments: what was there still loads, `akin resume` continues, and nothing is lost.
//!
//! The moments are drawn from a seed, which a failure prints. The short tests kill each command five times, the long one
//! a hundred times; `tests/full` runs it.
#![cfg(all(unix, debug_assertions))]

mod workplace;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use akin_gallery::Gallery;
use serde_json::Value;
use workplace::{Answer, Workplace, copy, tiny};

/// How often each command is killed.
const FEW: u64 = 5;
const MANY: u64 = 100;

/// Kills `command` `times` times, each time in a copy of `prepared`, and lets `survives` check what is left.
fn kill(name: &str, times: u64, prepared: &Workplace, command: &[&str], survives: impl Fn(&Workplace)) {
    // A test without a kill tells how long the command takes.
    let whole = copy_of(prepared);
    let started = Instant::now();
    whole.akin(command).expect_code(0);
    let duration = started.elapsed();
    let mut killed = 0;
    for number in 0..times {
        let at = copy_of(prepared);
        let moment = duration.mul_f64(share(name, number));
        println!("{name}, kill {number}: after {moment:?} of {duration:?}");
        let mut process = at.command(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        sleep(moment);
        process.kill().unwrap();
        killed += u64::from(!process.wait().unwrap().success());
        survives(&at);
    }
    println!(
        "figure: `kill -9` of `akin {name}`, survived: {times} of {times}, {killed} of them before its end"
    );
}

/// A number from 0 to 1: a function of the name and the number.
fn share(name: &str, number: u64) -> f64 {
    let mut hasher = DefaultHasher::new();
    (name, number).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

fn copy_of(prepared: &Workplace) -> Workplace {
    let at = Workplace::empty();
    copy(prepared.folder(), at.folder());
    at
}

/// Twenty-four pictures, and the config of a training that takes some tenths of a second.
fn prepared() -> Workplace {
    let config = tiny(&[
        ("steps = 2", "steps = 20\ncheckpoint_every_steps = 2"),
        ("[\"order\", \"family\", \"species\"]", "[\"family\", \"species\"]"),
    ]);
    Workplace::with_classes(&config, "2,3", "4", "16")
}

impl Workplace {
    fn encoder(&self) -> Vec<u8> {
        self.bytes("run/encoder.bpk")
    }

    /// Continues a training, which may have been finished before the kill.
    fn resume(&self) {
        let answer: Answer = self.akin(&["resume", "run"]);
        if answer.code != Some(0) {
            answer.expect_stderr("nothing to resume");
        }
    }
}

const TRAIN: [&str; 4] = ["train", "tiny.toml", "--out", "run"];

fn train(times: u64) {
    let at = prepared();
    let straight = copy_of(&at);
    straight.akin(&TRAIN).expect_code(0);
    kill("train", times, &at, &TRAIN, |at| {
        if at.path("run/checkpoint.akin").exists() {
            at.undamaged("run");
            at.resume();
        } else {
            at.akin(&[&TRAIN[..], &["--overwrite"]].concat()).expect_code(0);
        }
        at.sound("run");
        assert!(at.encoder() == straight.encoder(), "other weights after a kill");
    });
}

/// Settings whose states a checkpoint keeps: the average of the weights, the evaluations that make the rates fall, and
/// the moments of RMSprop.
const STATES: [&[&str]; 2] = [
    &["optimizer.ema_decay=0.9", "run.checkpoint_every_steps=4"],
    &[
        "schedule.curve={kind='plateau',patience=0,gamma=0.5}",
        "run.evaluate_every_epochs=1",
        "run.patience=100",
        "optimizer={rule={kind='rmsprop',momentum=0.5},ema_decay=0.5}",
    ],
];

/// The log without times, and without the entries about sessions.
fn history(at: &Workplace) -> Vec<Value> {
    let log = at.read("run/log.jsonl");
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let kept = entries.filter(|entry| entry["event"] != "resumed");
    kept.map(|mut entry| {
        entry.as_object_mut().unwrap().remove("seconds");
        entry
    })
    .collect()
}

/// A training that is killed `times` times at random moments, and continued each time.
fn every_state(times: u64) {
    for settings in STATES {
        let sets = settings.iter().flat_map(|set| ["--set", set]);
        let train: Vec<&str> = TRAIN.into_iter().chain(sets).collect();
        let at = prepared();
        let started = Instant::now();
        at.akin(&train).expect_code(0);
        let duration = started.elapsed();
        let (log, checkpoint) = (history(&at), at.bytes("run/checkpoint.akin"));
        assert!(log.len() > 5, "{log:?}");
        fs::remove_dir_all(at.path("run")).unwrap();

        let (mut killed, mut number) = (0, 0);
        while killed < times {
            let begun = at.path("run/checkpoint.akin").exists();
            if !begun && at.path("run").exists() {
                fs::remove_dir_all(at.path("run")).unwrap();
            }
            let command: &[&str] = if begun { &["resume", "run"] } else { &train };
            let moment = duration.mul_f64(share(settings[0], number));
            println!("{settings:?}, kill {number}: after {moment:?} of {duration:?}");
            let mut process =
                at.command(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            sleep(moment);
            process.kill().unwrap();
            if process.wait().unwrap().code().is_none() {
                killed += 1;
            } else {
                // It was faster, and the next training begins anew.
                assert_eq!(history(&at), log, "another log after {killed} kills with {settings:?}");
                assert!(
                    at.bytes("run/checkpoint.akin") == checkpoint,
                    "another checkpoint with {settings:?}"
                );
                fs::remove_dir_all(at.path("run")).unwrap();
            }
            number += 1;
        }
        if at.path("run/checkpoint.akin").exists() {
            at.resume();
        } else {
            at.akin(&[&train[..], &["--overwrite"]].concat()).expect_code(0);
        }
        assert_eq!(history(&at), log, "another log after {killed} kills with {settings:?}");
        assert!(at.bytes("run/checkpoint.akin") == checkpoint, "another checkpoint with {settings:?}");
        at.sound("run");
    }
    println!(
        "figure: `kill -9` of a training with every state, continued to the same log and checkpoint: {0} of {0}",
        STATES.len() as u64 * times
    );
}

fn resume(times: u64) {
    let at = prepared();
    let straight = copy_of(&at);
    straight.akin(&TRAIN).expect_code(0);
    // A training that ended at an operation on files after its first checkpoint, see `src/faults.rs`.
    let killed = (20..)
        .map(|operation| {
            let killed = copy_of(&at);
            let mut command = killed.command(&TRAIN);
            command.env("AKIN_FAULT", format!("killed {operation}")).output().unwrap();
            killed
        })
        .find(|killed| killed.path("run/checkpoint.akin").exists())
        .unwrap();
    kill("resume", times, &killed, &["resume", "run"], |at| {
        at.undamaged("run");
        at.resume();
        at.sound("run");
        assert!(at.encoder() == straight.encoder(), "other weights after a kill");
    });
}

fn export(times: u64) {
    let at = prepared();
    at.akin(&TRAIN).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--title", "old"]).expect_code(0);
    let old = at.bytes("bundle/bundle.json");
    let command = ["export", "run", "--out", "bundle", "--title", "new", "--overwrite"];
    let straight = copy_of(&at);
    straight.akin(&command).expect_code(0);
    let new = straight.bytes("bundle/bundle.json");
    assert!(old != new);
    kill("export", times, &at, &command, |at| {
        at.sound("bundle");
        let now = at.bytes("bundle/bundle.json");
        assert!(now == old || now == new, "neither the old bundle nor the new");
        at.akin(&command).expect_code(0);
        at.sound("bundle");
        assert!(at.bytes("bundle/bundle.json") == new);
        assert!(!at.path("bundle.new").exists() && !at.path("bundle.akin-old").exists());
    });
}

fn compare(times: u64) {
    let at = prepared();
    let command =
        ["compare", "tiny.toml", "--losses", "happier,norm_softmax", "--seeds", "0", "--out", "both"];
    let scores = |at: &Workplace| -> Value {
        let table = at.json("both/table.json");
        table["lines"].as_array().unwrap().iter().map(|line| line["scores"].clone()).collect()
    };
    let straight = copy_of(&at);
    straight.akin(&command).expect_code(0);
    let expected = scores(&straight);
    kill("compare", times, &at, &command, |at| {
        // The training that it had started goes on, and holds the lock of its run for a moment.
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut answer = at.akin(&command);
        while answer.code != Some(0) && Instant::now() < deadline {
            assert!(answer.stderr.contains("is writing to"), "{}", answer.stderr);
            sleep(Duration::from_millis(20));
            answer = at.akin(&command);
        }
        answer.expect_code(0);
        at.sound("both");
        assert_eq!(scores(at), expected);
    });
}

const INDEX: [&str; 5] = ["index", "run", "data/images", "--out", "g"];
const ADD: [&str; 4] = ["index", "g", "--add", "data/images"];

/// A gallery that is begun is made by the same command, and one that is there is as it was or complete.
fn index(times: u64) {
    let at = prepared();
    at.akin(&[&TRAIN[..], &["--set", "run.steps=1"]].concat()).expect_code(0);
    let rows = |at: &Workplace| Gallery::open(&at.path("g")).unwrap().rows().len();
    kill("index", times, &at, &INDEX, |at| {
        let answer = at.akin(&INDEX);
        if answer.code != Some(0) {
            answer.expect_code(1).expect_stderr("already has a gallery");
        }
        at.sound("g");
        assert_eq!(rows(at), 24);
    });
    // Other files, of one family.
    let family = fs::read_dir(at.path("data/images")).unwrap().next().unwrap().unwrap();
    let first = at.path("first").join(family.file_name());
    fs::create_dir_all(&first).unwrap();
    copy(&family.path(), &first);
    at.akin(&["index", "run", "first", "--out", "g"]).expect_code(0);
    let before = rows(&at);
    kill("index --add", times, &at, &ADD, |at| {
        at.sound("g");
        assert!([before, before + 24].contains(&rows(at)), "{} rows", rows(at));
        at.akin(&ADD).expect_code(0);
        assert_eq!(rows(at), before + 24);
        at.sound("g");
    });
}

#[test]
fn a_gallery_survives_kills() {
    index(FEW);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_gallery_survives_a_hundred_kills() {
    index(MANY);
}

#[test]
fn a_training_survives_kills() {
    train(FEW);
}

#[test]
fn a_resumed_training_survives_kills() {
    resume(FEW);
}

#[test]
fn a_killed_training_leaves_the_log_and_the_checkpoint_of_one_that_was_not() {
    every_state(3);
}

#[test]
fn an_old_bundle_survives_kills_of_the_export() {
    export(FEW);
}

#[test]
fn a_comparison_survives_kills() {
    compare(FEW);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_training_survives_a_hundred_kills() {
    train(MANY);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_resumed_training_survives_a_hundred_kills() {
    resume(MANY);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_training_killed_ten_times_leaves_the_log_and_the_checkpoint_of_one_that_was_not() {
    every_state(10);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn an_old_bundle_survives_a_hundred_kills_of_the_export() {
    export(MANY);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_comparison_survives_a_hundred_kills() {
    compare(MANY);
}
