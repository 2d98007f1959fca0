//! Runs, checkpoints, bundles and data sets of earlier versions are read: see `fixtures/README.md`.

mod workplace;

use std::fs;
use std::path::Path;

use workplace::Workplace;

/// A copy of the files of a version, whose runs name this copy of the data.
fn copy_of(version: &str) -> Workplace {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    let at = Workplace::empty();
    for entry in walkdir::WalkDir::new(&fixtures).min_depth(1) {
        let entry = entry.unwrap();
        let target = at.path(entry.path().strip_prefix(&fixtures).unwrap().to_str().unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir(target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
    let data = toml::Value::from(at.path("data/labels.csv").to_str().unwrap()).to_string();
    for run in ["run", "stopped"] {
        let config = format!("{run}/config.toml");
        let moved = at.read(&config).replace("\"/tmp/akin-fixture/data/labels.csv\"", &data);
        at.write(&config, moved);
    }
    at
}

#[test]
fn files_of_2026_11_are_read() {
    let at = copy_of("2026-11");
    for directory in ["data", "run", "stopped", "bundle"] {
        let answer = at.akin(&["verify", directory]);
        assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    }
    at.akin(&["verify", "run"]).expect_stdout("those of the training, in ");
    for which in ["last", "best"] {
        at.akin(&["eval", "run", "--which", which]).expect_code(0);
    }
    at.akin(&["resume", "stopped"]).expect_code(0).expect_stderr("after step 3 of 6");
    at.akin(&["verify", "stopped"]).expect_code(0).expect_stdout("after step 6");
    at.akin(&["export", "run", "stopped", "--out", "bundle", "--overwrite"]).expect_code(0);
    // The mark tells that these may be replaced, and what may not.
    at.write("run/notes.txt", "mine");
    at.akin(&["train", "tiny.toml", "--out", "run", "--overwrite"]).expect_code(1).expect_stderr("notes.txt");
}
