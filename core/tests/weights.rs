//! Published weights: loaded by torchvision's names, and refused with a list of all wrong keys.

use akin_core::models::{Backbone, BackboneConfig};
use akin_core::{Error, Kind};
use burn::tensor::Device;

/// A tensor of a safetensors file: its name, type and shape. All of its bytes are zero.
type TensorEntry = (String, &'static str, Vec<usize>);

/// The names and shapes of torchvision's squeezenet1_1, with its classifier.
fn torchvision() -> Vec<TensorEntry> {
    let fires: [(usize, [usize; 3]); 8] = [
        (3, [64, 16, 64]),
        (4, [128, 16, 64]),
        (6, [128, 32, 128]),
        (7, [256, 32, 128]),
        (9, [256, 48, 192]),
        (10, [384, 48, 192]),
        (11, [384, 64, 256]),
        (12, [512, 64, 256]),
    ];
    let mut layers =
        vec![("features.0".to_owned(), [64, 3, 3, 3]), ("classifier.1".to_owned(), [1000, 512, 1, 1])];
    for (number, [input, squeezed, expanded]) in fires {
        layers.push((format!("features.{number}.squeeze"), [squeezed, input, 1, 1]));
        layers.push((format!("features.{number}.expand1x1"), [expanded, squeezed, 1, 1]));
        layers.push((format!("features.{number}.expand3x3"), [expanded, squeezed, 3, 3]));
    }
    layers
        .into_iter()
        .flat_map(|(layer, shape)| {
            let bias = (format!("{layer}.bias"), "F32", vec![shape[0]]);
            [(format!("{layer}.weight"), "F32", shape.to_vec()), bias]
        })
        .collect()
}

/// The bytes of a safetensors file: the length of its header, the header in JSON, the numbers.
fn safetensors(entries: &[TensorEntry]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut end = 0;
    for (name, dtype, shape) in entries {
        let start = end;
        end += shape.iter().product::<usize>() * if *dtype == "F16" { 2 } else { 4 };
        header.insert(
            name.clone(),
            serde_json::json!({ "dtype": dtype, "shape": shape, "data_offsets": [start, end] }),
        );
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, &vec![0; end]].concat()
}

fn network() -> Backbone {
    BackboneConfig::named("squeezenet").unwrap().absent(&Device::flex()).unwrap()
}

fn refusal(bytes: Vec<u8>) -> Error {
    let error = network().load_pretrained(bytes).unwrap_err();
    assert_eq!(error.kind(), Kind::Weights);
    assert!(error.hint().contains("torchvision"), "{error}");
    error
}

#[test]
fn weights_with_the_names_of_torchvision_are_loaded_from_any_float_type() {
    for dtype in ["F32", "F16"] {
        let entries: Vec<TensorEntry> =
            torchvision().into_iter().map(|(name, _, shape)| (name, dtype, shape)).collect();
        network().load_pretrained(safetensors(&entries)).unwrap();
    }
    assert_eq!(network().parameters(), 722_496);
}

#[test]
fn the_classifier_is_optional() {
    let entries: Vec<TensorEntry> =
        torchvision().into_iter().filter(|(name, ..)| !name.starts_with("classifier.")).collect();
    network().load_pretrained(safetensors(&entries)).unwrap();
}

#[test]
fn missing_and_unknown_tensors_are_named_three_of_each_and_counted() {
    let missing = ["features.0.weight", "features.12.expand3x3.weight", "features.3.squeeze.bias"];
    let unknown =
        ["features.13.weight", "features.3.extra.weight", "features.4.extra.weight", "fancy.weight"];
    let mut entries = torchvision();
    entries.retain(|(name, ..)| !missing.contains(&name.as_str()));
    entries.extend(unknown.map(|name| (name.to_owned(), "F32", vec![2])));
    let message = refusal(safetensors(&entries)).message().to_owned();
    let (before, after) = message.split_once("4 unknown: ").expect("both lists are there");
    assert!(before.contains("3 missing: ") && missing.iter().all(|name| before.contains(name)), "{message}");
    assert_eq!(after, "fancy.weight, features.13.weight, features.3.extra.weight and 1 more)");

    let others: Vec<TensorEntry> =
        torchvision().into_iter().map(|(name, dtype, shape)| (format!("net{name}"), dtype, shape)).collect();
    let message = refusal(safetensors(&others)).message().to_owned();
    assert!(message.contains("50 missing: ") && message.contains("and 47 more"), "{message}");
    assert!(message.len() < 300, "{message}");
}

#[test]
fn names_may_have_a_prefix_and_what_stands_behind_the_backbone_is_said() {
    for prefix in ["_orig_mod.", "module.", "model.backbone.", ""] {
        let mut entries: Vec<TensorEntry> = torchvision()
            .into_iter()
            .map(|(name, dtype, shape)| (format!("{prefix}{name}"), dtype, shape))
            .collect();
        entries.push(("model.head.weight".to_owned(), "F32", vec![128, 512]));
        entries.push(("model.head.bias".to_owned(), "F32", vec![128]));
        let loaded = network().load_pretrained(safetensors(&entries));
        match prefix {
            // Without a prefix, nothing that a backbone has is called `model`.
            "" => assert!(loaded.unwrap_err().message().contains("2 unknown: model.head.bias"), "{prefix}"),
            _ => assert_eq!(loaded.unwrap(), ["model.head.bias", "model.head.weight"], "{prefix}"),
        }
    }
}

#[test]
fn weights_of_another_shape_or_type_are_listed() {
    let mut entries = torchvision();
    for (name, dtype, shape) in &mut entries {
        match name.as_str() {
            "features.0.weight" => *shape = vec![96, 3, 7, 7],
            "features.4.squeeze.bias" => *dtype = "I32",
            _ => {}
        }
    }
    let message = refusal(safetensors(&entries)).message().to_owned();
    assert!(message.contains("features.0.weight is [96, 3, 7, 7] instead of [64, 3, 3, 3]"), "{message}");
    assert!(message.contains("features.4.squeeze.bias is I32"), "{message}");
    assert!(!message.contains("stem") && !message.contains("fires"), "{message}");
}

#[test]
fn weights_that_are_not_finite_are_refused_by_name() {
    let bytes = safetensors(&torchvision());
    let end = bytes.len();
    for (number, from_end) in [(f32::NAN, 4), (f32::INFINITY, 8)] {
        let mut damaged = bytes.clone();
        damaged[end - from_end..][..4].copy_from_slice(&number.to_le_bytes());
        let error = network().load_pretrained(damaged).unwrap_err();
        assert_eq!(error.message(), "the weights of features.12.expand3x3 are not all finite numbers");
        assert!(error.hint().contains("damaged"), "{error}");
    }
}

#[test]
fn a_file_that_is_cut_short_or_not_safetensors_is_refused() {
    let whole = safetensors(&torchvision());
    for bytes in [vec![], b"no weights".to_vec(), whole[..100].to_vec(), whole[..whole.len() - 1].to_vec()] {
        let error = network().load_pretrained(bytes).unwrap_err();
        assert_eq!(error.kind(), Kind::Weights);
        assert!(error.message().contains("cannot be read"), "{error}");
        assert!(error.hint().contains(".safetensors or .pth"), "{error}");
    }
}
