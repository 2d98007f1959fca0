//! `akin verify` finds every damage, and finds none where there is none.

mod workplace;

use std::fs;

use serde_json::Value;
use workplace::{Workplace, tiny};

impl Workplace {
    fn new() -> Self {
        Self::drawn(&tiny(&[("steps = 2", "epochs = 2\nevaluate_every_epochs = 1")]), "16")
    }
}

/// A run and its bundle.
fn prepared() -> Workplace {
    let at = Workplace::new();
    at.akin(&["train", "tiny.toml", "--out", "run"]).expect_code(0);
    at.akin(&["export", "run", "--out", "bundle", "--maps", "pca"]).expect_code(0);
    at
}

/// What is faulty, in order.
fn faults(at: &Workplace, directory: &str) -> Vec<String> {
    let answer = at.akin(&["verify", directory, "--json"]);
    let found: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|_| panic!("{}", answer.stderr));
    let checks =
        found["directories"].as_array().unwrap().iter().flat_map(|one| one["checks"].as_array().unwrap());
    let faulty = checks.filter(|check| check["state"] == "faulty");
    let names: Vec<String> = faulty.map(|check| check["what"].as_str().unwrap().to_owned()).collect();
    assert_eq!(answer.code, Some(i32::from(!names.is_empty())), "{}", answer.stderr);
    assert_eq!(found["sound"], names.is_empty());
    names
}

#[test]
fn a_change_of_any_file_is_found() {
    let at = prepared();
    for directory in ["data", "run", "bundle"] {
        assert_eq!(faults(&at, directory), [""; 0]);
        let files = walkdir::WalkDir::new(at.path(directory));
        let files = files.into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
        for file in files.map(walkdir::DirEntry::into_path) {
            let name = file.strip_prefix(at.path(directory)).unwrap().to_str().unwrap();
            let before = fs::read(&file).unwrap();
            let mut changed = before.clone();
            let middle = changed.len() / 2;
            changed[middle] ^= 1;
            for damaged in [&changed[..], &before[..middle]] {
                fs::write(&file, damaged).unwrap();
                match name {
                    // Without its mark nothing is known about the directory.
                    ".akin.json" => {
                        at.akin(&["verify", directory]).expect_code(1).expect_stderr(".akin.json is damaged");
                    }
                    // A config may be edited where no result depends on it.
                    "config.toml" => {
                        at.akin(&["verify", directory]).expect_stdout("config.toml");
                    }
                    _ => assert!(faults(&at, directory).contains(&name.to_owned()), "{directory}/{name}"),
                }
            }
            fs::remove_file(&file).unwrap();
            if name != ".akin.json" && !(directory == "run" && name == "config.toml") {
                assert!(faults(&at, directory).contains(&name.to_owned()), "{directory}/{name} is missing");
            }
            fs::write(&file, before).unwrap();
        }
        assert_eq!(faults(&at, directory), [""; 0]);
    }
}

#[test]
fn a_run_is_compared_with_its_checkpoint_and_its_data() {
    let at = prepared();
    let config = at.read("run/config.toml");
    at.write("run/config.toml", config.replace("lr_head = ", "lr_head = 1"));
    assert_eq!(faults(&at, "run"), ["config and checkpoint"]);
    at.akin(&["verify", "run"]).expect_stdout("config.toml has changed: optimizer.lr_head");
    at.write("run/config.toml", &config);

    let table = at.read("data/labels.csv");
    at.write("data/labels.csv", table.lines().take(table.lines().count() - 1).collect::<Vec<_>>().join("\n"));
    assert_eq!(faults(&at, "run"), ["data"]);
    at.akin(&["verify", "run"]).expect_stdout("there are 47 images instead of 48");
    assert_eq!(faults(&at, "data"), ["labels.csv"]);
    at.write("data/labels.csv", table);

    // A photo of the same length.
    let photo = at.read("data/labels.csv").lines().nth(1).unwrap().split(',').next().unwrap().to_owned();
    let photo = format!("data/{photo}");
    let before = at.bytes(&photo);
    let mut other = before.clone();
    *other.last_mut().unwrap() ^= 1;
    at.write(&photo, other);
    assert_eq!(faults(&at, "run"), ["data"]);
    at.akin(&["verify", "run"]).expect_stdout("has changed: images differ");
    at.write(&photo, before);

    // The data may be elsewhere, or nowhere.
    fs::rename(at.path("data"), at.path("moved")).unwrap();
    assert_eq!(faults(&at, "run"), [""; 0]);
    at.akin(&["verify", "run"]).expect_stdout("labels.csv is not there");
    at.write("run/config.toml", config.replace("/data/labels.csv", "/moved/labels.csv"));
    at.akin(&["verify", "run"]).expect_code(0).expect_stdout("those of the training, in ");
    at.write("run/notes.txt", "mine");
    at.akin(&["verify", "run"]).expect_code(0).expect_stdout("akin did not write it");
}

#[test]
fn what_is_not_finished_is_not_sound_and_is_looked_into() {
    let at = Workplace::new();
    let compare =
        ["compare", "tiny.toml", "--losses", "contrastive,happier", "--seeds", "0", "--out", "table"];
    at.akin(&[&compare[..], &["--cell", "1"]].concat()).expect_code(0);
    let answer = at.akin(&["verify", "table", "--json"]).expect_code(1);
    answer
        .expect_stderr("the comparison table is not finished")
        .expect_stderr("continue it with `akin compare CONFIG --out table`");
    let answer = at.akin(&["verify", "table"]).expect_code(1).expect_stdout("UNFINISHED");
    let inside: Vec<&str> = answer.stdout.lines().filter_map(|line| line.strip_prefix("run ")).collect();
    let [inside] = inside[..] else { panic!("{}", answer.stdout) };
    // Damage inside is the greater fault.
    let weights = at.bytes(&format!("{inside}/encoder.bpk"));
    at.write(&format!("{inside}/encoder.bpk"), &weights[1..]);
    at.akin(&["verify", "table"])
        .expect_code(1)
        .expect_stdout("FAULTY")
        .expect_stderr(&format!("of {inside} are damaged"));
    at.write(&format!("{inside}/encoder.bpk"), weights);
    at.akin(&compare).expect_code(0);
    assert_eq!(faults(&at, "table"), [""; 0]);
}

#[test]
fn a_command_that_is_given_another_directory_names_the_right_one() {
    let at = prepared();
    let image = "data/labels.csv";
    at.akin(&["search", "run", image])
        .expect_code(1)
        .expect_stderr("run is a run, not a bundle")
        .expect_stderr("`akin export run --out BUNDLE`");
    fs::rename(at.path("bundle"), at.path("run.bundle")).unwrap();
    at.akin(&["search", "run", image]).expect_code(1).expect_stderr("hint: give run.bundle");
    at.akin(&["eval", "run.bundle"])
        .expect_code(1)
        .expect_stderr("run.bundle is a bundle, not a run")
        .expect_stderr("give the run that it was exported from");
    at.akin(&["serve", "data"]).expect_code(1).expect_stderr("data is a data set, not a bundle or run");

    let compare = ["compare", "tiny.toml", "--losses", "happier", "--seeds", "0", "--out", "table"];
    at.akin(&compare).expect_code(0);
    at.akin(&["serve", "table"])
        .expect_code(1)
        .expect_stderr("table is a comparison, not a bundle or run")
        .expect_stderr("hint: give table/happier/seed-0");
    at.akin(&["eval", "table"]).expect_code(1).expect_stderr("hint: give table/happier/seed-0");

    let ranges = "tune.ranges={'loss.lambda'={values=[0.1,0.2]}}";
    let tune = ["tune", "tiny.toml", "--out", "search", "--set", ranges, "--set", "tune.folds=2"];
    let less = ["--set", "tune.trials=1", "--set", "tune.reproductions=0", "--set", "run.epochs=1"];
    at.akin(&[&tune[..], &less].concat()).expect_code(0);
    at.akin(&["report", "search", "--out", "report.html"])
        .expect_code(1)
        .expect_stderr("search is a tuning, not a run")
        .expect_stderr("`akin train search/best.toml`");
}

#[test]
fn a_bundle_without_its_mark_and_an_index_of_bundles_are_checked_too() {
    let at = prepared();
    fs::remove_file(at.path("bundle/.akin.json")).unwrap();
    at.akin(&["verify", "bundle", "run"])
        .expect_code(0)
        .expect_stdout("embeds the parity pictures as the trainer did");
    at.write("bundles.json", r#"{ "format": "akin-bundles", "version": 1, "bundles": [{ "path": "bundle", "title": "", "description": "" }] }"#);
    at.akin(&["verify", "."]).expect_code(0).expect_stdout("bundle ./bundle");
    at.akin(&["verify", "nowhere"]).expect_code(1).expect_stderr("nowhere does not exist");
    at.akin(&["verify", "data/images"])
        .expect_code(1)
        .expect_stderr("has neither .akin.json nor bundle.json");
}

#[cfg(debug_assertions)]
#[test]
fn what_cannot_be_read_is_no_sound_file() {
    let at = prepared();
    let mut faults = 0;
    loop {
        let mut command = at.command(&["verify", "run"]);
        let answer = command.env("AKIN_FAULT", format!("io {}", faults + 1)).output().unwrap();
        let answer = workplace::Answer::of(answer);
        if !answer.stderr.contains("fault: Io") {
            break;
        }
        assert_eq!(answer.code, Some(1), "{}{}", answer.stdout, answer.stderr);
        assert!(
            !answer.stdout.contains("edited") && !answer.stdout.contains("there is none"),
            "{}",
            answer.stdout
        );
        faults += 1;
    }
    assert!(faults > 8, "only {faults} operations were made to fail");
}

#[cfg(unix)]
#[test]
fn data_that_cannot_be_reached_are_not_called_absent() {
    let at = prepared();
    fs::rename(at.path("data"), at.path("moved")).unwrap();
    // A link to itself leads nowhere, whoever follows it.
    std::os::unix::fs::symlink("data", at.path("data")).unwrap();
    assert_eq!(self::faults(&at, "run"), ["data"]);
    // Nor is a directory inside whose mark is damaged called foreign.
    fs::create_dir(at.path("bundle/inner")).unwrap();
    at.write("bundle/inner/.akin.json", "{");
    assert_eq!(self::faults(&at, "bundle"), ["inner"]);
}
