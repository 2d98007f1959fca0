//! Runs, checkpoints, bundles and data sets of earlier versions are read: see `fixtures/README.md`.

mod workplace;

use std::fs;
use std::path::Path;

use akin_core::bundle::{INDEX, Index, MANIFEST, Manifest};
use workplace::Workplace;

/// A copy of the files of a version, whose runs name this copy of the data.
fn copy_of(version: &str) -> Workplace {
    let at = Workplace::empty();
    add_copy(&at, version);
    at
}

/// Copies the files of a version over those that are there.
fn add_copy(at: &Workplace, version: &str) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version);
    for entry in walkdir::WalkDir::new(&fixtures).min_depth(1) {
        let entry = entry.unwrap();
        let target = at.path(entry.path().strip_prefix(&fixtures).unwrap().to_str().unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(target).unwrap();
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
}

impl Workplace {
    /// Checks that a run of six steps is sound as far as it is done: three steps.
    fn unfinished(&self, run: &str) {
        let answer = self.akin(&["verify", run]).expect_code(1).expect_stdout("after step 3");
        let answer = answer.expect_stderr(&format!("continue it with `akin resume {run}`"));
        assert!(!answer.stdout.contains("FAULTY"), "{}", answer.stdout);
    }
}

/// The numbers of the embeddings of all pictures.
fn embeddings(at: &Workplace, run: &str) -> Vec<f32> {
    let file = format!("{run}.npy");
    at.akin(&["embed", run, "data/images", "--out", &file, "--overwrite"]).expect_code(0);
    let bytes = at.bytes(&file);
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers = bytes[10 + header..].chunks_exact(4);
    numbers.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn h_ap(at: &Workplace, run: &str) -> f64 {
    at.json(&format!("{run}/report.json"))["overall"]["h_ap"].as_f64().unwrap()
}

#[test]
fn numbers_of_2026_11_are_kept() {
    let at = copy_of("2026-11");
    let evaluated: serde_json::Value =
        serde_json::from_str(&at.akin(&["eval", "run", "--json"]).expect_code(0).stdout).unwrap();
    assert!((h_ap(&at, "run") - 2.0 / 3.0).abs() < 1e-9);
    assert!((evaluated["overall"]["h_ap"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    // `stopped` is the same training, stopped after its third step.
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert!((h_ap(&at, "stopped") - 2.0 / 3.0).abs() < 1e-9);
    let (whole, resumed) = (embeddings(&at, "run"), embeddings(&at, "stopped"));
    assert_eq!((whole.len(), resumed.len()), (12 * 4, 12 * 4));
    // The machine that made the fixture may round otherwise.
    let far = whole.iter().zip(&resumed).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
    assert!(far < 1e-3, "the weights have gone another way: embeddings differ by {far}");

    fs::remove_dir_all(at.path("stopped")).unwrap();
    add_copy(&at, "2026-11-22");
    at.akin(&["resume", "stopped"]).expect_code(0);
    assert!((h_ap(&at, "stopped") - 17.0 / 24.0).abs() < 1e-9, "{}", h_ap(&at, "stopped"));
}

#[test]
fn files_of_2026_11_are_read() {
    let at = copy_of("2026-11");
    for directory in ["data", "run", "bundle"] {
        let answer = at.akin(&["verify", directory]);
        assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
    }
    at.unfinished("stopped");
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

#[test]
fn a_checkpoint_of_2026_11_22_is_continued() {
    let at = copy_of("2026-11");
    add_copy(&at, "2026-11-22");
    at.unfinished("stopped");
    at.akin(&["resume", "stopped"]).expect_code(0).expect_stderr("after step 3 of 6");
    at.akin(&["verify", "stopped"]).expect_code(0).expect_stdout("after step 6");
}

#[test]
fn a_site_is_the_page_with_whole_bundles_and_their_index() {
    let at = copy_of("2026-11");
    fs::create_dir_all(at.path("page/build")).unwrap();
    fs::create_dir_all(at.path("page/.stage")).unwrap();
    at.write("page/index.html", "<!doctype html>");
    at.write("page/build/page.js", "export {};");
    at.write("page/.stage/notes.txt", "of the build");
    let export = ["export", "run", "--out", "new", "--no-maps", "--page", "page", "--site", "site"];
    at.akin(&[&export[..], &["--with", "bundle"]].concat()).expect_code(0).expect_stderr("the site site");

    for path in ["index.html", "build/page.js"] {
        assert_eq!(at.read(&format!("site/{path}")), at.read(&format!("page/{path}")));
    }
    assert!(!at.path("site/.stage").exists());
    let index = Index::parse(&fs::read(at.path(&format!("site/{INDEX}"))).unwrap()).unwrap();
    assert_eq!(index.bundles.len(), 2);
    for (entry, source) in index.bundles.iter().zip(["new", "bundle"]) {
        let read = |path: &str| fs::read(at.path(&format!("site/{}/{path}", entry.path))).unwrap();
        let manifest = Manifest::parse(&read(MANIFEST)).unwrap();
        assert_eq!(manifest.title, entry.title);
        for file in manifest.files() {
            manifest.verify(&file.path, &read(&file.path)).unwrap();
            assert_eq!(read(&file.path), fs::read(at.path(&format!("{source}/{}", file.path))).unwrap());
        }
    }

    // It is replaced only when asked, and only where it is a site.
    let again = [&export[..], &["--overwrite"]].concat();
    at.akin(&export).expect_code(1);
    at.akin(&again).expect_code(0);
    assert!(!at.path("site/bundles").exists());
    at.write("site/notes.txt", "mine");
    at.akin(&again).expect_code(1).expect_stderr("notes.txt");
    assert_eq!(at.read("site/notes.txt"), "mine");
}
