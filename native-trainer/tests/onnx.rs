//! Encoders in ONNX files, from a file to a bundle. The files are those of `akin-onnx`'s tests.
#![cfg(feature = "onnx")]

mod workplace;

use std::fs;
use std::path::Path;

use serde_json::Value;
#[cfg(feature = "onnxruntime")]
use workplace::Answer;
use workplace::Workplace;

/// Drawn creatures, and the tiny networks of `akin-onnx`.
fn at() -> Workplace {
    let at = Workplace::empty();
    at.akin(&["biomorphs", "data", "--branching", "2,2,3", "--images-per-class", "4", "--side", "48"])
        .expect_code(0);
    for name in ["tokens", "vector", "unknown-operator", "missing-data"] {
        let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("onnx/tests/files");
        fs::copy(files.join(format!("{name}.onnx")), at.path(&format!("{name}.onnx"))).unwrap();
    }
    at
}

/// The scores of `akin eval --json`.
fn scores(at: &Workplace, arguments: &[&str]) -> Value {
    let answer = at.akin(&[&["eval"], arguments, &["--json"]].concat()).expect_code(0);
    serde_json::from_str::<Value>(&answer.stdout).unwrap()["overall"].clone()
}

#[test]
fn an_onnx_file_and_a_folder_become_a_bundle() {
    let at = at();
    at.akin(&["init", "data", "--onnx", "tokens.onnx", "--out", "p.toml", "--yes"])
        .expect_code(0)
        .expect_stderr("nothing beside");
    at.akin(&["train", "p.toml", "--out", "run", "--set", "run.epochs=3"]).expect_code(0);
    assert!(at.path("p.features").is_file());
    // The same features serve another loss.
    let again =
        at.akin(&["train", "p.toml", "--out", "run2", "--set", "run.epochs=1", "--set", "loss.kind=roadmap"]);
    let again = again.expect_code(0);
    assert!(!again.stderr.contains("Computed the features"), "{}", again.stderr);

    let config = at.read("run/config.toml");
    assert!(config.contains("features = 20") && config.contains("output = \"pooler_output\""), "{config}");
    at.akin(&["verify", "run"]).expect_code(0);
    at.akin(&["embed", "run", "data/images", "--out", "e.npy"]).expect_code(0);
    at.akin(&["report", "run", "--out", "report.html"]).expect_code(0);

    at.akin(&["export", "run", "--out", "bundle", "--maps", "pca"])
        .expect_code(1)
        .expect_stderr("its licence is not known");
    // Before the page is built.
    at.akin(&["serve", "run"]).expect_code(1).expect_stderr("its licence is not known");
    at.akin(&["export", "run", "--out", "bundle", "--maps", "pca", "--licence", "MIT"]).expect_code(0);
    assert_eq!(at.bytes("bundle/0-p/model.onnx"), at.bytes("tokens.onnx"));
    let verified = at.akin(&["verify", "bundle"]).expect_code(0);
    let verified = verified.expect_stdout("embeds the parity pictures as the trainer did: cosine 1.0000");
    assert!(!verified.stdout.contains("akin did not write it"), "{}", verified.stdout);
    // The bundle has the whole encoder: neither the run nor the file is needed.
    let first = at.read("e.csv").lines().nth(1).unwrap().to_owned();
    fs::remove_dir_all(at.path("run")).unwrap();
    fs::remove_file(at.path("tokens.onnx")).unwrap();
    at.akin(&["search", "bundle", &first]).expect_code(0);
    at.akin(&["classify", "bundle", &first]).expect_code(0);
}

#[test]
fn the_bare_encoder_is_evaluated_and_embeds() {
    let at = at();
    let config = "data = { kind = \"csv\", path = \"data/labels.csv\", levels = [\"order\", \"family\", \"species\"] }\n\
                  split = { test_fraction = 0.5 }\nmodel = { backbone = { kind = \"resnet50\" }, weights = \"absent.pth\" }\n";
    at.write("c.toml", config);
    let tokens = ["c.toml", "--onnx", "tokens.onnx", "--set", "model.backbone.output=last_hidden_state"];
    let class_token = scores(&at, &tokens);
    let mean = scores(&at, &[&tokens[..], &["--set", "model.pooling=average"]].concat());
    assert_ne!(class_token, mean);
    let embed = |pooling: &[&str], out: &str| {
        at.akin(&[&["embed", "--onnx", "tokens.onnx", "data/images", "--out", out], pooling].concat())
            .expect_code(0);
    };
    embed(&[], "vector.npy");
    // With a pooling the tokens are taken instead of the vector.
    embed(&["--set", "model.pooling={gem={exponent=2}}"], "gem.npy");
    assert_ne!(at.bytes("vector.npy").len(), at.bytes("gem.npy").len());
    at.akin(&[
        "embed",
        "--onnx",
        "vector.onnx",
        "data/images",
        "--out",
        "v.npy",
        "--set",
        "model.pooling=average",
    ])
    .expect_stderr("is one vector");
    at.akin(&[
        "embed",
        "--onnx",
        "vector.onnx",
        "data/images",
        "--out",
        "v.npy",
        "--set",
        "loss.kind=happier",
    ])
    .expect_stderr("there is only the model");
    at.akin(&["embed", "--onnx", "vector.onnx", "--out", "v.npy"]).expect_code(2);
}

#[test]
fn files_that_cannot_be_run_are_refused_before_the_work() {
    let at = at();
    for (name, words) in [
        ("unknown-operator", "the operator Sharpen (node block/sharpen)"),
        ("missing-data", "weights.bin cannot be read"),
        ("absent", "absent.onnx"),
    ] {
        let file = format!("{name}.onnx");
        at.akin(&["embed", "--onnx", &file, "data/images", "--out", "e.npy"])
            .expect_code(1)
            .expect_stderr(words);
        assert!(!at.path("e.npy").exists());
        at.akin(&["init", "data", "--onnx", &file, "--out", "p.toml", "--yes"]).expect_code(1);
        assert!(!at.path("p.toml").exists());
    }
}

#[test]
fn a_run_belongs_to_its_file_wherever_that_lies() {
    let at = at();
    at.akin(&["init", "data", "--onnx", "tokens.onnx", "--out", "p.toml", "--yes"]).expect_code(0);
    let trainable = at.akin(&["train", "p.toml", "--out", "run", "--set", "model.freeze_backbone=false"]);
    trainable.expect_stderr("whose weights akin cannot train");
    at.akin(&["train", "p.toml", "--out", "run", "--set", "run.epochs=1"]).expect_code(0);
    let before = scores(&at, &["run"]);
    // The file lies elsewhere now.
    fs::rename(at.path("tokens.onnx"), at.path("moved.onnx")).unwrap();
    at.akin(&["eval", "run"]).expect_stderr("tokens.onnx cannot be read");
    let config = at.read("run/config.toml");
    at.write("run/config.toml", config.replace("tokens.onnx", "moved.onnx"));
    assert_eq!(scores(&at, &["run"]), before);
    // Another file takes its place.
    let mut other = at.bytes("moved.onnx");
    let last = other.len() - 1;
    other[last - 2000] ^= 1;
    at.write("moved.onnx", other);
    at.akin(&["eval", "run"]).expect_stderr("it is another file");
}

#[cfg(feature = "onnxruntime")]
#[test]
fn a_library_that_is_not_onnx_runtime_is_refused_by_the_name_of_its_variable() {
    let at = at();
    for library in ["nowhere/libonnxruntime.so", "tokens.onnx"] {
        let library = at.path(library);
        let with = |arguments: &[&str]| {
            Answer::of(at.command(arguments).env("ORT_DYLIB_PATH", &library).output().unwrap())
        };
        with(&["embed", "--onnx", "tokens.onnx", "data/images", "--out", "e.npy"])
            .expect_code(1)
            .expect_stderr("ORT_DYLIB_PATH names")
            .expect_stderr("or remove the variable");
        assert!(!at.path("e.npy").exists());
        with(&["doctor"]).expect_code(1).expect_stderr("ONNX files");
    }
}
