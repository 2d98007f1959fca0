//! Files of `tests/peers/onnx_models.py`: what ONNX Runtime computes of them, and why others are refused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use akin_base::problem::parts;
use akin_onnx::{Choice, Element, Form, Layout, Network, OnnxFile, inspect};
use anyhow::Result;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn open_at(path: &Path, choice: &Choice, side: Option<u32>) -> Result<Network> {
    Network::open(OnnxFile::read(path)?, choice, side)
}

fn open(name: &str, output: Option<&str>) -> Result<Network> {
    let choice = Choice { output: output.map(str::to_owned), ..Choice::default() };
    open_at(&folder().join(format!("{name}.onnx")), &choice, Some(32))
}

/// Why a file is refused, and what to do about it.
fn refusal(name: &str) -> String {
    let Err(error) = open(name, None) else { panic!("{name} is not refused") };
    let (message, hint) = parts(&error);
    format!("{message}; {}", hint.expect("every refusal has a hint"))
}

/// The script's numbers: from −1 to 0.98, or bytes.
fn pattern(count: usize, element: Element) -> Vec<f32> {
    let steps = (0..count).map(|at| (at * 37 % 199) as f32);
    match element {
        Element::Byte => steps.collect(),
        Element::Float | Element::Half | Element::Double => steps.map(|step| step / 100.0 - 1.0).collect(),
    }
}

fn floats(file: &str) -> Vec<f32> {
    let bytes = fs::read(folder().join(file)).unwrap();
    bytes.as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect()
}

/// The largest difference of two vectors of the same length.
fn difference(one: &[f32], other: &[f32]) -> f32 {
    assert_eq!(one.len(), other.len());
    one.iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max)
}

#[test]
fn networks_compute_what_onnx_runtime_computes() {
    for (name, output, form) in [
        ("vector", "embedding", Form::Vector),
        ("maps", "maps", Form::Maps),
        ("tokens", "last_hidden_state", Form::Tokens { prefix: 3 }),
        ("tokens", "pooler_output", Form::Vector),
        ("external", "embedding", Form::Vector),
        ("old-softmax", "y", Form::Vector),
    ] {
        let network = open(name, Some(output)).unwrap();
        assert_eq!(network.form(), form, "{name}");
        let result = network.run(&pattern(3 * 3 * 32 * 32, Element::Float), 3, 32).unwrap();
        let expected = floats(&format!("{name}.{output}.f32"));
        assert_eq!(result.shape[0], 3);
        assert!(difference(&result.values, &expected) < 1e-5, "{name}");
    }
}

#[test]
fn a_graph_that_takes_bytes_pixel_by_pixel_gets_them() {
    let network = open("pixels", None).unwrap();
    assert_eq!((network.input().layout, network.input().element), (Layout::Pixels, Element::Byte));
    let pixels = pattern(3 * 32 * 32 * 3, Element::Byte);
    // Planes, as akin has pictures.
    let planes: Vec<f32> = (pixels.chunks_exact(32 * 32 * 3))
        .flat_map(|image| (0..3).flat_map(move |plane| image[plane..].iter().step_by(3).copied()))
        .collect();
    let result = network.run(&planes, 3, 32).unwrap();
    assert!(difference(&result.values, &floats("pixels.embedding.f32")) < 1e-5);
}

#[test]
fn half_precision_and_one_picture_at_a_time_give_the_same_embeddings() {
    let images = pattern(3 * 3 * 32 * 32, Element::Float);
    let single = open("vector", None).unwrap().run(&images, 3, 32).unwrap();
    let one_by_one = open("one-by-one", None).unwrap();
    assert!(one_by_one.input().one_by_one);
    assert_eq!(one_by_one.run(&images, 3, 32).unwrap().shape, [3, 10]);
    assert!(difference(&one_by_one.run(&images, 3, 32).unwrap().values, &single.values) < 1e-5);
    let half = open("half", None).unwrap().run(&images, 3, 32).unwrap();
    assert!(difference(&half.values, &single.values) < 2e-3);
}

#[test]
fn external_data_are_taken_into_the_file_and_weights_into_8_bits() {
    let images = pattern(3 * 3 * 32 * 32, Element::Float);
    let run = |bytes: Vec<u8>| {
        let file = OnnxFile::of_bytes(Path::new("whole.onnx"), bytes).unwrap();
        // Of the two outputs of `tokens` this one is the tokens.
        let choice = Choice { pooled: true, ..Choice::default() };
        Network::open(file, &choice, Some(32)).unwrap().run(&images, 3, 32).unwrap().values
    };
    let external = OnnxFile::read(&folder().join("external.onnx")).unwrap();
    assert!(OnnxFile::of_bytes(&external.path, external.bytes.clone()).is_err());
    assert!(difference(&run(external.whole().unwrap()), &floats("external.embedding.f32")) < 1e-5);
    let tokens = OnnxFile::read(&folder().join("tokens.onnx")).unwrap();
    let small = tokens.in_int8().unwrap();
    assert!(small.len() < tokens.bytes.len() * 2 / 3, "{} of {}", small.len(), tokens.bytes.len());
    let loss = difference(&run(small), &floats("tokens.last_hidden_state.f32"));
    assert!(loss > 0.0 && loss < 0.1, "{loss}");
}

#[test]
fn the_light_models_of_the_package_onnx_run() {
    for name in ["light_squeezenet", "light_resnet50", "light_shufflenet"] {
        let path = folder().join(format!("{name}.onnx"));
        let network = open_at(&path, &Choice::default(), None).unwrap();
        assert_eq!((network.input().side, network.features()), (Some(224), 1000), "{name}");
        let result = network.run(&pattern(3 * 224 * 224, Element::Float), 1, 224).unwrap();
        // Their numbers reach 10²¹.
        let expected = floats(&format!("{name}.f32"));
        let relative = difference(&result.values, &expected) / expected[0];
        assert!(relative < 1e-5, "{name}: {relative}");
    }
}

#[test]
fn a_refusal_names_what_is_wrong() {
    for (name, words) in [
        ("unknown-operator", &["operator Sharpen", "node block/sharpen"][..]),
        ("nameless-operator", &["operator Sharpen", "whose output is s"]),
        ("two-inputs", &["2 inputs (x, ids)", "image encoder alone"]),
        ("fixed-batch", &["takes 4 pictures at a time", "dynamic batch"]),
        ("batch-inside", &["one picture, but not two at once", "dynamic batch"]),
        ("scalar-output", &["[2] for 2 pictures", "no vector"]),
        ("integer-output", &["has no floats"]),
        ("two-outputs", &["2 outputs: a, b", "`output`"]),
        ("missing-data", &["weights.bin cannot be read", "beside the ONNX file"]),
        ("data-outside", &["\"../weights.bin\", which leads out of its folder"]),
        ("absent", &["absent.onnx cannot be read"]),
    ] {
        let refusal = refusal(name);
        for word in words {
            assert!(refusal.contains(word), "{name}: {refusal}");
        }
    }
}

#[test]
fn a_choice_that_does_not_fit_the_file_is_refused() {
    let tokens = folder().join("tokens.onnx");
    let choose = |output: &str, prefix_tokens| Choice {
        output: Some(output.into()),
        prefix_tokens,
        ..Choice::default()
    };
    let refused = |choice: &Choice, side| open_at(&tokens, choice, side).err().unwrap().to_string();
    assert!(refused(&choose("logits", None), None).contains("no output logits"));
    assert!(refused(&choose("last_hidden_state", Some(19)), None).contains("19 tokens"));
    assert!(refused(&choose("pooler_output", Some(1)), None).contains("has no tokens"));
    assert!(refused(&Choice::default(), Some(224)).contains("pictures of 32×32 pixels"));
    let four = open_at(&tokens, &choose("last_hidden_state", Some(4)), None).unwrap();
    assert_eq!(four.form(), Form::Tokens { prefix: 4 });
}

#[test]
fn a_file_of_ten_gigabytes_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.onnx");
    File::create(&path).unwrap().set_len(10_000_000_000).unwrap();
    let message = OnnxFile::read(&path).err().unwrap().to_string();
    assert!(message.contains("10.0 GB") && message.contains("at most 2.15 GB"), "{message}");
    // So are data beside it.
    fs::copy(fixture("missing-data"), folder.path().join("model.onnx")).unwrap();
    File::create(folder.path().join("weights.bin")).unwrap().set_len(10_000_000_000).unwrap();
    let message = OnnxFile::read(&folder.path().join("model.onnx")).err().unwrap().to_string();
    assert!(message.contains("weights.bin has 10.0 GB together"), "{message}");
}

fn fixture(name: &str) -> PathBuf {
    folder().join(format!("{name}.onnx"))
}

#[test]
fn a_cut_or_damaged_file_is_an_error_and_no_panic() {
    let bytes = fs::read(folder().join("vector.onnx")).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        let message = inspect(&bytes[..length]).unwrap_err().to_string();
        assert!(message.contains("cut off") || message.contains("not an ONNX file"), "{length}: {message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.onnx");
    fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
    assert!(OnnxFile::read(&path).err().unwrap().to_string().contains("cut off"));
    // A flipped bit somewhere: whatever the engine says, it says it as an error.
    let mut survivors = 0;
    for at in (0..bytes.len()).step_by(61) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&path, &damaged).unwrap();
        let opened = open_at(&path, &Choice::default(), None);
        survivors += usize::from(opened.is_ok());
    }
    assert!(survivors > 0, "most bytes are weights");
}
