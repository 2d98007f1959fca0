//! What another program made is taken in: weights become runs, which are evaluated, embedded, exported and trained
//! further, and embeddings become a gallery of the page.

mod workplace;

use workplace::{Workplace, tiny, weights};

const SQUEEZENET: &str = include_str!("../../core/tests/backbones/squeezenet.json");
const HEAD: [(&str, &[usize]); 4] =
    [("head.0.weight", &[512]), ("head.0.bias", &[512]), ("head.1.weight", &[8, 512]), ("head.1.bias", &[8])];

/// Creatures of 32 pixels, a config for them, and weights of SqueezeNet with a head and a prefix.
fn workplace() -> Workplace {
    let sides = ("resize = 16, crop = 16", "resize = 32, crop = 32");
    let workplace = Workplace::drawn(&tiny(&[sides]), "32");
    workplace.write("w.safetensors", weights(SQUEEZENET, "_orig_mod.model.", &HEAD));
    workplace
}

#[test]
fn weights_with_a_head_become_a_run_that_can_do_what_a_trained_one_can() {
    let workplace = workplace();
    let answer = workplace.akin(&["import", "w.safetensors", "tiny.toml", "--out", "run"]).expect_code(0);
    answer
        .expect_stderr("Recognised SqueezeNet 1.1")
        .expect_stderr("`_orig_mod.model.head.1`, 512 features → 8 numbers after a layer normalisation")
        .expect_stdout("species");
    assert_eq!(workplace.json("run/run.json")["steps"], 0);
    let scores = workplace.akin(&["eval", "run", "--json"]).expect_code(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(report["overall"]["h_ap"], workplace.json("run/report.json")["overall"]["h_ap"]);
    for rest in [
        &["verify", "run"][..],
        &["report", "run", "--out", "r.html"],
        &["export", "run", "--out", "b", "--no-maps"],
    ] {
        workplace.akin(rest).expect_code(0);
    }
    let further = ["train", "run/config.toml", "--set", "run.steps=1", "--out", "further"];
    workplace.akin(&further).expect_code(0).expect_stderr("Trained 1 step");
    workplace.akin(&["train", "run/config.toml", "--out", "same"]).expect_code(0);
    assert_eq!(workplace.bytes("same/encoder.bpk"), workplace.bytes("run/encoder.bpk"));
    assert_ne!(workplace.bytes("further/encoder.bpk"), workplace.bytes("run/encoder.bpk"));
}

#[test]
fn without_a_config_a_run_has_the_same_encoder_and_embeds() {
    let workplace = workplace();
    let config = workplace.read("tiny.toml");
    let preprocessing = config.lines().find_map(|line| line.strip_prefix("preprocessing = ")).unwrap();
    let set = format!("model.preprocessing={preprocessing}");
    workplace.akin(&["import", "w.safetensors", "--out", "bare", "--set", &set]).expect_code(0);
    workplace.akin(&["import", "w.safetensors", "tiny.toml", "--out", "run"]).expect_code(0);
    for run in ["bare", "run"] {
        workplace.akin(&["embed", run, "data/images", "--out", &format!("{run}.npy")]).expect_code(0);
    }
    assert_eq!(workplace.bytes("bare.npy"), workplace.bytes("run.npy"));
    workplace.akin(&["verify", "bare"]).expect_code(0);
    let none = workplace.akin(&["import", "w.safetensors", "--out", "none", "--head", "none"]);
    none.expect_code(0).expect_stderr("warning: 4 tensors of");
    assert!(!workplace.read("none/config.toml").contains("[model.head]"));
}

#[test]
fn weights_that_akin_cannot_use_are_refused_in_a_few_words() {
    let workplace = workplace();
    let refuse = |arguments: &[&str], message: &str| {
        let answer = workplace.akin(&[&["import"], arguments, &["--out", "new"]].concat()).expect_code(1);
        assert!(answer.stderr.len() < 600, "{}", answer.stderr);
        answer.expect_stderr(message);
        assert!(!workplace.path("new").exists());
    };
    refuse(&["w.safetensors", "--backbone", "resnet50"], "these look like weights of squeezenet");
    refuse(&["w.safetensors", "--backbone", "small_resnet"], "no published weights");
    refuse(&["w.safetensors", "--head", "neck"], "name one of these: `_orig_mod.model.head.1`");
    workplace.write("two.safetensors", weights(SQUEEZENET, "", &[HEAD[2], ("fc.weight", &[4, 512])]));
    refuse(&["two.safetensors"], "several linear layers take the features: `fc`, `head.1`");
    workplace.write("other.safetensors", weights("{\"weights\": {\"a.weight\": [3, 3]}}", "", &[]));
    refuse(&["other.safetensors"], "the weights of no backbone that akin has");
    let whole = workplace.bytes("w.safetensors");
    workplace.write("cut.safetensors", &whole[..whole.len() / 2]);
    refuse(&["cut.safetensors"], "cannot be read");
    refuse(&["nowhere.safetensors"], "cannot be read");
    refuse(&["data"], "cannot be read");
}

/// The images of `data/labels.csv`, in its order.
fn images(workplace: &Workplace) -> Vec<String> {
    let labels = workplace.read("data/labels.csv");
    labels.lines().skip(1).map(|row| format!("data/{}", row.split(',').next().unwrap())).collect()
}

/// Their embeddings are in `e.npy`.
fn embedded() -> Workplace {
    let workplace = workplace();
    workplace.akin(&["import", "w.safetensors", "tiny.toml", "--out", "run"]).expect_code(0);
    let images = images(&workplace);
    let mut embed = vec!["embed", "run", "--out", "e.npy"];
    embed.extend(images.iter().map(String::as_str));
    workplace.akin(&embed).expect_code(0);
    workplace
}

const OF_FILES: [&str; 7] =
    ["export", "--embeddings", "e.npy", "--labels", "data/labels.csv", "--levels", "order,family,species"];

#[test]
fn embeddings_of_another_program_become_a_gallery_with_its_metrics() {
    let workplace = embedded();
    workplace.akin(&[&OF_FILES[..], &["--out", "b", "--maps", "pca"]].concat()).expect_code(0);
    workplace.akin(&["verify", "b"]).expect_code(0).expect_stdout("embeddings of its items alone");
    let manifest = workplace.json("b/bundle.json");
    assert_eq!(manifest["title"], "data");
    let encoder = &manifest["encoders"][0];
    assert_eq!(encoder["name"], "e");
    let report = &encoder["report"]["overall"];
    let files =
        ["--queries", "e.npy", "--query-labels", "data/labels.csv", "--levels", "order,family,species"];
    let scores = workplace.akin(&[&["eval", "--json"], &files[..]].concat()).expect_code(0).stdout;
    let scores: serde_json::Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(report["h_ap"], scores["overall"]["h_ap"]);
    let card = workplace.read("b/README.md");
    assert!(card.contains("Embeddings from e.npy") && card.contains("H-AP"), "{card}");
    // The bundle has the numbers of the file, which follow a header of 128 bytes.
    assert_eq!(workplace.bytes("b/0-e/gallery.f32"), workplace.bytes("e.npy")[128..]);
    workplace
        .akin(&["search", "b", &images(&workplace)[0]])
        .expect_code(1)
        .expect_stderr("no weights that embed a picture");
}

#[test]
fn several_encoders_of_the_same_items_are_compared() {
    let workplace = embedded();
    workplace.write("other/e.npy", workplace.bytes("e.npy"));
    let both = [&OF_FILES[..], &["--embeddings", "other/e.npy", "--out", "b", "--no-maps"]].concat();
    workplace.akin(&both).expect_code(0);
    let manifest = workplace.json("b/bundle.json");
    let names: Vec<&str> = manifest["encoders"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["e", "e 2"]);
    assert_eq!(workplace.bytes("b/0-e/gallery.f32"), workplace.bytes("b/1-e-2/gallery.f32"));
}

#[test]
fn embeddings_without_a_row_of_labels_each_are_refused() {
    let workplace = embedded();
    let labels = workplace.read("data/labels.csv");
    workplace
        .write("data/short.csv", labels.lines().take(4).map(|row| format!("{row}\n")).collect::<String>());
    let mut short = OF_FILES;
    short[4] = "data/short.csv";
    let answer = workplace.akin(&[&short[..], &["--out", "b"]].concat()).expect_code(1);
    answer.expect_stderr("but `--labels` has 3 rows");
    assert!(!workplace.path("b").exists());
}

#[test]
fn low_rank_adapters_train_and_are_merged_into_the_weights_that_leave() {
    let workplace =
        Workplace::drawn(&tiny(&[("kind = \"small_resnet\", width = 2", "kind = \"vit_s16\"")]), "32");
    let train = ["train", "tiny.toml", "--out", "run", "--set", "model.lora.rank=2"];
    workplace.akin(&train).expect_code(0);
    let scores = workplace.akin(&["eval", "run", "--json"]).expect_code(0).stdout;
    let scores: serde_json::Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(scores["overall"]["h_ap"], workplace.json("run/report.json")["overall"]["h_ap"]);
    workplace.akin(&["export", "run", "--to", "safetensors", "--out", "weights"]).expect_code(0);
    let bytes = workplace.bytes("weights/model.safetensors");
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let names = file.names();
    assert!(names.contains(&"blocks.0.attn.qkv.weight"));
    assert!(names.iter().all(|name| !name.contains("adapter")), "{names:?}");
}
