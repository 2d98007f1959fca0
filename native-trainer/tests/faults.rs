//! Faults of the disk and kills at every operation on files, through the `akin` binary: the earlier state always loads,
//! and the same command, or `akin resume`, then gives what it would have given without the fault.
//!
//! `AKIN_FAULT="KIND N"` makes the N-th operation of the process fail (see `src/faults.rs`). A sweep counts N up until
//! the command no longer reaches it. The short sweeps take some of the operations, the long ones all of them, with every
//! kind of fault; `tests/full` runs these.
#![cfg(all(unix, debug_assertions))]

mod workplace;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use akin_gallery::Gallery;
use serde_json::Value;
use workplace::{Answer, Workplace, copy, tiny};

/// The kinds of faults, see `src/faults.rs`. After the first two a command has to succeed.
const KINDS: [&str; 7] = ["interrupted", "short", "full", "io", "denied", "terminated", "killed"];

/// A command under faults.
struct Scenario<'a> {
    name: &'a str,
    command: &'a [&'a str],
    /// Checks the state that the command left, and then completes its work.
    survives: &'a dyn Fn(&Workplace, &Faulted),
}

/// How a command with a fault ended.
struct Faulted {
    answer: Answer,
}

impl Faulted {
    fn succeeded(&self) -> bool {
        self.answer.code == Some(0)
    }
}

/// How many operations a sweep takes.
#[derive(Clone, Copy)]
enum Sweep {
    /// One operation in this number, with one kind of fault each.
    Some(usize),
    /// Every operation, with every kind of fault.
    All,
}

impl Scenario<'_> {
    /// Sweeps over the operations of the command. `prepared` holds the state before it.
    fn sweep(&self, prepared: &Workplace, sweep: Sweep) {
        let mut injected = 0;
        match sweep {
            Sweep::Some(stride) => {
                let operations = (1 + self.name.len() % stride..).step_by(stride);
                for (operation, kind) in operations.zip(KINDS.iter().cycle()) {
                    if !self.injects(prepared, operation, kind) {
                        break;
                    }
                    injected += 1;
                }
            }
            Sweep::All => {
                for operation in 1.. {
                    let reached = KINDS.iter().filter(|kind| self.injects(prepared, operation, kind)).count();
                    injected += reached;
                    if reached == 0 {
                        break;
                    }
                }
            }
        }
        assert!(injected >= KINDS.len(), "{}: only {injected} faults were injected", self.name);
        println!("figure: faults in `akin {}`, injected and survived: {injected}", self.name);
    }

    /// Runs the command in a copy of `prepared` with one fault, and checks what is left. Returns whether the command got
    /// as far as the operation.
    fn injects(&self, prepared: &Workplace, operation: usize, kind: &str) -> bool {
        let at = Workplace::empty();
        copy(prepared.folder(), at.folder());
        // Outside of the workplace, so that it is no file of a user.
        let message = tempfile::NamedTempFile::new().unwrap();
        let fault = format!("{kind} {operation} {}", message.path().display());
        let mut command = at.command(self.command);
        command.env("AKIN_FAULT", fault).env("RAYON_NUM_THREADS", "1");
        let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
        let message = fs::read_to_string(message.path()).unwrap();
        if message.is_empty() {
            return false;
        }
        println!("{}, {message}: {:?} {}", self.name, answer.code, answer.stderr.replace('\n', " | "));
        self.check(kind, &answer);
        (self.survives)(&at, &Faulted { answer });
        true
    }

    /// Checks how the command ended.
    fn check(&self, kind: &str, answer: &Answer) {
        let (name, stderr) = (self.name, &answer.stderr);
        assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        match kind {
            "interrupted" | "short" => assert_eq!(answer.code, Some(0), "{name} {kind}: {stderr}"),
            "terminated" => assert!(matches!(answer.code, Some(0 | 130) | None), "{name}: {stderr}"),
            "killed" => {}
            _ => assert!(matches!(answer.code, Some(0 | 1)), "{name} {kind}: {stderr}"),
        }
        if answer.code == Some(1) {
            assert!(stderr.contains("error: ") && stderr.contains("hint: "), "{name}: {stderr}");
        }
    }
}

/// The config of a training of three steps, with a checkpoint after each step.
fn config() -> String {
    let config = tiny(&[
        ("steps = 2", "steps = 3\ncheckpoint_every_steps = 1"),
        ("[\"order\", \"family\", \"species\"]", "[\"family\", \"species\"]"),
    ]);
    config + "[eval]\nmetrics = [\"h_ap\"]\n"
}

/// Twelve pictures, and the config.
fn prepared() -> Workplace {
    Workplace::with_classes(&config(), "2,3", "2", "16")
}

impl Workplace {
    fn ok(&self, arguments: &[&str]) -> Answer {
        self.akin(arguments).expect_code(0)
    }

    fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Checks that no draft or old version is left.
    fn is_tidy(&self, name: &str) {
        for rest in [format!("{name}.new"), format!("{name}.akin-old")] {
            assert!(!self.exists(&rest), "{rest} is left");
        }
    }
}

fn train(sweep: Sweep) {
    let at = prepared();
    let command = ["train", "tiny.toml", "--out", "run"];
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let weights = straight.bytes("run/encoder.bpk");
    let survives = |at: &Workplace, faulted: &Faulted| {
        if at.exists("run/checkpoint.akin") {
            at.undamaged("run");
            let resumed = at.akin(&["resume", "run"]);
            if resumed.code != Some(0) {
                resumed.expect_stderr("nothing to resume");
            }
        } else {
            assert!(!faulted.succeeded());
            at.ok(&[&command[..], &["--overwrite"]].concat());
        }
        at.sound("run");
        assert!(at.bytes("run/encoder.bpk") == weights, "other weights after a fault");
    };
    Scenario { name: "train", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn train_again(sweep: Sweep) {
    let at = prepared();
    at.ok(&["train", "tiny.toml", "--out", "run", "--seed", "1"]);
    let old = at.bytes("run/encoder.bpk");
    let command = ["train", "tiny.toml", "--out", "run", "--overwrite"];
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let new = straight.bytes("run/encoder.bpk");
    assert!(old != new);
    let survives = |at: &Workplace, faulted: &Faulted| {
        at.sound("run");
        let now = at.bytes("run/encoder.bpk");
        assert!(now == new || now == old && !faulted.succeeded(), "neither the old weights nor the new");
        let left = at.exists("run.new/.akin.json");
        let again = at.ok(&command);
        assert_eq!(again.stderr.contains("run.new is gone"), left, "{}", again.stderr);
        at.sound("run");
        assert!(at.bytes("run/encoder.bpk") == new);
        at.is_tidy("run");
    };
    Scenario { name: "train --overwrite", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn resume(sweep: Sweep) {
    let at = prepared();
    let train = ["train", "tiny.toml", "--out", "run"];
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&train);
    let weights = straight.bytes("run/encoder.bpk");
    // A training that was killed after its first checkpoint.
    let killed = (20..)
        .map(|operation| {
            let killed = Workplace::empty();
            copy(at.folder(), killed.folder());
            let mut command = killed.command(&train);
            command.env("AKIN_FAULT", format!("killed {operation}")).output().unwrap();
            killed
        })
        .find(|at| at.exists("run/checkpoint.akin"))
        .unwrap();
    let survives = |at: &Workplace, _: &Faulted| {
        at.undamaged("run");
        let resumed = at.akin(&["resume", "run"]);
        if resumed.code != Some(0) {
            resumed.expect_stderr("nothing to resume");
        }
        at.sound("run");
        assert!(at.bytes("run/encoder.bpk") == weights, "other weights after a fault");
    };
    Scenario { name: "resume", command: &["resume", "run"], survives: &survives }.sweep(&killed, sweep);
}

fn export(sweep: Sweep) {
    let at = prepared();
    at.ok(&["train", "tiny.toml", "--out", "one"]);
    at.ok(&["train", "tiny.toml", "--out", "two", "--seed", "1"]);
    fs::create_dir(at.path("page")).unwrap();
    at.write("page/index.html", "<!doctype html>");
    let written = ["--out", "bundle", "--no-maps", "--page", "page", "--site", "site"];
    at.ok(&[&["export", "one"], &written[..]].concat());
    let command = [&["export", "two"], &written[..], &["--overwrite"]].concat();
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    // The site has a copy of the bundle.
    let places = [("bundle", "bundle/bundle.json"), ("site", "site/bundle/bundle.json")];
    let [old, new] = [&at, &straight].map(|at| places.map(|(_, manifest)| at.bytes(manifest)));
    assert!(old != new);
    let survives = |at: &Workplace, faulted: &Faulted| {
        for (index, (directory, manifest)) in places.into_iter().enumerate() {
            at.sound(directory);
            let now = at.bytes(manifest);
            let is_old = now == old[index] && !faulted.succeeded();
            assert!(now == new[index] || is_old, "neither the old {directory} nor the new");
        }
        at.ok(&command);
        for (index, (directory, manifest)) in places.into_iter().enumerate() {
            at.sound(directory);
            assert!(at.bytes(manifest) == new[index]);
            at.is_tidy(directory);
        }
    };
    Scenario { name: "export --site --overwrite", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn compare(sweep: Sweep) {
    let at = prepared();
    let command = ["compare", "tiny.toml", "--losses", "happier", "--seeds", "0", "--out", "both"];
    let scores = |at: &Workplace| -> Value {
        let table = at.json("both/table.json");
        table["lines"].as_array().unwrap().iter().map(|line| line["scores"].clone()).collect()
    };
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let expected = scores(&straight);
    let survives = |at: &Workplace, _: &Faulted| {
        at.ok(&command);
        at.sound("both");
        assert!(scores(at) == expected, "other scores after a fault");
    };
    Scenario { name: "compare", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn cache(sweep: Sweep) {
    let at = prepared();
    let frozen = ["--set", "model.freeze_backbone=true", "--set", "model.feature_cache=features.akin"];
    let command = [&["train", "tiny.toml", "--out", "run", "--overwrite"], &frozen[..]].concat();
    // The cache of another seed, which is outdated.
    at.ok(&[&command[..], &["--seed", "1"]].concat());
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let weights = straight.bytes("run/encoder.bpk");
    let survives = |at: &Workplace, _: &Faulted| {
        at.ok(&command);
        at.sound("run");
        assert!(at.bytes("run/encoder.bpk") == weights, "other weights after a fault");
    };
    Scenario { name: "train (features)", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn data_set(sweep: Sweep) {
    let at = Workplace::empty();
    let draw = |seed| ["biomorphs", "data", "--branching", "2,2", "--images-per-class", "1", "--seed", seed];
    at.ok(&draw("1"));
    let command = [&draw("0")[..], &["--overwrite", "--side", "32"]].concat();
    let survives = |at: &Workplace, _: &Faulted| {
        at.sound("data");
        at.ok(&command);
        at.sound("data");
        at.is_tidy("data");
    };
    Scenario { name: "biomorphs --overwrite", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn embeddings(sweep: Sweep) {
    let at = prepared();
    at.ok(&["train", "tiny.toml", "--out", "run"]);
    at.write("e.npy", "old");
    let command = ["embed", "run", "data/images", "--out", "e.npy", "--overwrite"];
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let new = straight.bytes("e.npy");
    let survives = |at: &Workplace, faulted: &Faulted| {
        let now = at.bytes("e.npy");
        assert!(now == new || now == b"old" && !faulted.succeeded(), "neither the old file nor the new");
        at.ok(&command);
        assert!(at.bytes("e.npy") == new);
    };
    Scenario { name: "embed --overwrite", command: &command, survives: &survives }.sweep(&at, sweep);
}

fn scores(sweep: Sweep) {
    let at = prepared();
    at.ok(&["train", "tiny.toml", "--out", "run"]);
    at.write("scores.csv", "old");
    let command = ["eval", "run", "--per-query", "scores.csv", "--overwrite"];
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let new = straight.bytes("scores.csv");
    let survives = |at: &Workplace, faulted: &Faulted| {
        let now = at.bytes("scores.csv");
        assert!(now == new || now == b"old" && !faulted.succeeded(), "neither the old file nor the new");
        at.ok(&command);
        assert!(at.bytes("scores.csv") == new);
    };
    Scenario { name: "eval --per-query", command: &command, survives: &survives }.sweep(&at, sweep);
}

/// Reading images from Parquet files, which copies them into a temporary file.
fn parquet(sweep: Sweep) {
    let at = Workplace::empty();
    let hub = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/parquet/hub");
    fs::create_dir(at.path("hub")).unwrap();
    copy(&hub, &at.path("hub"));
    at.write(
        "hub.toml",
        "data = { kind = 'parquet', path = 'hub', levels = ['kind', 'variety'], path_column = 'image' }",
    );
    let command = ["data", "check", "hub.toml"];
    let expected = at.ok(&command).stdout;
    let survives = |at: &Workplace, faulted: &Faulted| {
        assert!(!faulted.succeeded() || faulted.answer.stdout == expected, "another answer after a fault");
        assert_eq!(at.ok(&command).stdout, expected);
    };
    Scenario { name: "data check (Parquet)", command: &command, survives: &survives }.sweep(&at, sweep);
}

/// A command that writes one file, which a fault must not change.
fn one_file(name: &str, command: &[&str], file: &str, prepared: &Workplace, sweep: Sweep) {
    let straight = Workplace::empty();
    copy(prepared.folder(), straight.folder());
    straight.ok(command);
    let new = lasting(&straight.bytes(file));
    let survives = |at: &Workplace, faulted: &Faulted| {
        // A process that is killed after the file has its name has written it.
        if !at.exists(file) {
            assert!(!faulted.succeeded(), "{file} was not written");
            at.ok(command);
        }
        assert!(lasting(&at.bytes(file)) == new, "{file} is another after a fault");
    };
    Scenario { name, command, survives: &survives }.sweep(prepared, sweep);
}

/// What a file says, whenever it was written: of a report, which has a date, the table of scores.
fn lasting(bytes: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains("<html") => {
            assert!(text.trim_end().ends_with("</html>"), "the report is cut off");
            let (_, table) = text.split_once("<table").unwrap();
            table.split_once("</table>").unwrap().0.as_bytes().to_vec()
        }
        _ => bytes.to_vec(),
    }
}

fn dry_run(sweep: Sweep) {
    let command = ["train", "tiny.toml", "--dry-run", "--sheet", "sheet.png"];
    one_file("train --dry-run", &command, "sheet.png", &prepared(), sweep);
}

fn init(sweep: Sweep) {
    let command = ["init", "data/labels.csv", "--out", "new.toml", "--yes"];
    one_file("init", &command, "new.toml", &prepared(), sweep);
}

fn report(sweep: Sweep) {
    let at = prepared();
    at.ok(&["train", "tiny.toml", "--out", "run"]);
    let command = ["report", "run", "--bootstrap", "0", "--queries", "1"];
    one_file("report", &command, "report.html", &at, sweep);
}

fn tune(sweep: Sweep) {
    let at = prepared();
    let search = "\n[tune]\nfolds = 2\ntrials = 2\nreproductions = 0\nranges = { \"loss.lambda\" = { values = [0.1, 0.9] } }\n";
    // Each fold has few classes.
    let config = config().replace("steps = 3", "steps = 1");
    at.write("tiny.toml", config.replace("classes_per_batch = 3", "classes_per_batch = 2") + search);
    let command = ["tune", "tiny.toml", "--out", "search"];
    let chosen = |at: &Workplace| {
        let results = at.json("search/results.json");
        [results["best"].clone(), results["trials"].clone()]
    };
    let straight = Workplace::empty();
    copy(at.folder(), straight.folder());
    straight.ok(&command);
    let expected = chosen(&straight);
    let survives = |at: &Workplace, faulted: &Faulted| {
        if faulted.succeeded() {
            assert!(chosen(at) == expected, "other scores after a fault");
        }
        at.ok(&command);
        at.sound("search");
        assert!(chosen(at) == expected, "other scores after a fault");
    };
    Scenario { name: "tune", command: &command, survives: &survives }.sweep(&at, sweep);
}

/// An add to a gallery of other pictures. A fault leaves the gallery as it was, or complete.
fn index(sweep: Sweep) {
    let at = Workplace::with_classes(&config(), "2,3", "2", "16");
    at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
    // Other files, of one family.
    let family = fs::read_dir(at.path("data/images")).unwrap().next().unwrap().unwrap();
    let first = at.path("first").join(family.file_name());
    fs::create_dir_all(&first).unwrap();
    copy(&family.path(), &first);
    at.akin(&["index", "run", "first", "--out", "g"]).expect_code(0);
    let rows = |at: &Workplace| Gallery::open(&at.path("g")).unwrap().rows().len();
    let add = ["index", "g", "--add", "data/images"];
    let (before, all) = (rows(&at), 12);
    let survives = |at: &Workplace, faulted: &Faulted| {
        let now = rows(at);
        // Ctrl-C stops it without an error.
        let completed = faulted.succeeded() && !faulted.answer.stderr.contains("Stopped");
        assert!(now == before + all || !completed && now == before, "{now} rows");
        at.akin(&["verify", "g"]).expect_code(0);
        at.akin(&add).expect_code(0);
        assert_eq!(rows(at), before + all);
        at.akin(&["verify", "g"]).expect_code(0);
    };
    Scenario { name: "index --add", command: &add, survives: &survives }.sweep(&at, sweep);
}

#[test]
fn a_gallery_survives_faults() {
    index(Sweep::Some(7));
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_gallery_survives_every_fault() {
    index(Sweep::All);
}

#[test]
fn a_plan_survives_faults() {
    dry_run(Sweep::Some(3));
}

#[test]
fn a_config_survives_faults_of_init() {
    init(Sweep::Some(3));
}

#[test]
fn a_report_survives_faults() {
    report(Sweep::Some(5));
}

#[test]
fn a_search_survives_faults() {
    tune(Sweep::Some(17));
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_plan_survives_every_fault() {
    dry_run(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_config_survives_every_fault_of_init() {
    init(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_report_survives_every_fault() {
    report(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_search_survives_every_fault() {
    tune(Sweep::All);
}

#[test]
fn the_state_survives_faults_of_train() {
    train(Sweep::Some(13));
}

#[test]
fn the_old_run_survives_faults_of_the_training_that_replaces_it() {
    train_again(Sweep::Some(17));
}

#[test]
fn the_checkpoint_survives_faults_of_resume() {
    resume(Sweep::Some(11));
}

#[test]
fn the_old_bundle_and_site_survive_faults_of_export() {
    export(Sweep::Some(11));
}

#[test]
fn a_comparison_survives_faults() {
    compare(Sweep::Some(17));
}

#[test]
fn a_cache_survives_faults() {
    cache(Sweep::Some(17));
}

#[test]
fn a_data_set_survives_faults() {
    data_set(Sweep::Some(5));
}

#[test]
fn a_file_of_embeddings_survives_faults() {
    embeddings(Sweep::Some(6));
}

#[test]
fn a_file_of_scores_survives_faults() {
    scores(Sweep::Some(4));
}

#[test]
fn parquet_files_survive_faults() {
    parquet(Sweep::Some(19));
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn the_state_survives_every_fault_of_train() {
    train(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn the_old_run_survives_every_fault_of_the_training_that_replaces_it() {
    train_again(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn the_checkpoint_survives_every_fault_of_resume() {
    resume(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn the_old_bundle_and_site_survive_every_fault_of_export() {
    export(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_comparison_survives_every_fault() {
    compare(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_cache_survives_every_fault() {
    cache(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_data_set_survives_every_fault() {
    data_set(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_file_of_embeddings_survives_every_fault() {
    embeddings(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn a_file_of_scores_survives_every_fault() {
    scores(Sweep::All);
}

#[test]
#[ignore = "takes long; tests/full runs it"]
fn parquet_files_survive_every_fault() {
    parquet(Sweep::All);
}
