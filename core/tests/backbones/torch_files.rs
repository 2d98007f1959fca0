//! Files that torch 2.5 and safetensors wrote (`fixtures.py`), damaged files, and pickles that would run code.

use akin_core::models::WeightFile;
use akin_core::{Error, Kind};

use super::files::{Stored, pth, zip};

const ZIP: &[u8] = include_bytes!("tensors.pth");
const LEGACY: &[u8] = include_bytes!("tensors_legacy.pth");
const SAFETENSORS: &[u8] = include_bytes!("tensors.safetensors");

/// The numbers of a tensor of floats.
fn values(file: &WeightFile, name: &str) -> Vec<f32> {
    file.values(&file.tensors()[name]).unwrap()
}

fn refusal(bytes: &[u8]) -> Error {
    let error = WeightFile::parse(bytes.to_vec()).unwrap_err();
    assert_eq!(error.kind(), Kind::Weights);
    error
}

#[test]
fn every_form_of_file_holds_the_same_tensors() {
    let matrix: Vec<f32> = (0..12).map(|i| i as f32 / 8.0).collect();
    for bytes in [ZIP, LEGACY, SAFETENSORS] {
        let file = WeightFile::parse(bytes.to_vec()).unwrap();
        assert_eq!(file.tensors().len(), 11);
        for name in ["f32", "f64", "f16", "bf16"] {
            assert_eq!(file.tensors()[name].shape, [3, 4]);
            assert_eq!(values(&file, name), matrix, "{name}");
        }
        assert_eq!(file.tensors()["transposed"].shape, [4, 3]);
        let transposed: Vec<f32> = (0..12).map(|i| matrix[i % 3 * 4 + i / 3]).collect();
        assert_eq!(values(&file, "transposed"), transposed);
        assert_eq!(values(&file, "row"), matrix[4..8]);
        assert_eq!(values(&file, "scalar"), [2.5]);
        assert_eq!(values(&file, "parameter"), [0.125, 0.25, 0.625, 0.75, 1.125, 1.25]);
        assert!(values(&file, "empty").is_empty());
        assert_eq!(file.tensors()["empty"].shape, [0, 4]);
        for (name, numbers) in [("i64", "I64"), ("u8", "U8")] {
            assert_eq!(file.tensors()[name].numbers.to_string(), numbers);
            assert_eq!(file.values(&file.tensors()[name]), None);
        }
    }
}

#[test]
fn the_state_inside_a_checkpoint_is_found() {
    let file = WeightFile::parse(include_bytes!("checkpoint.pth").to_vec()).unwrap();
    assert_eq!(file.tensors().keys().collect::<Vec<_>>(), ["module.bias", "module.weight"]);
    assert_eq!(values(&file, "module.weight"), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(values(&file, "module.bias"), [0.5, 0.5]);
}

#[test]
fn a_pickle_that_would_run_code_is_refused_by_the_name_of_its_opcode() {
    let error = refusal(include_bytes!("runs_code.pth"));
    assert!(
        error.message().contains("would run code: the opcode GLOBAL asks for __builtin__.print"),
        "{error}"
    );
    assert!(error.hint().contains("save model.state_dict() alone"), "{error}");
    let error = refusal(include_bytes!("numpy_scalar.pth"));
    assert!(error.message().contains("the opcode GLOBAL asks for numpy"), "{error}");

    let pickled = |pickle: &[u8]| zip(&[("weights/data.pkl".to_owned(), pickle.to_vec())]);
    for (pickle, opcode) in [
        (&b"\x80\x02(cos\nsystem\nX\x02\0\0\0lsoi."[..], "GLOBAL asks for os.system"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "STACK_GLOBAL asks for os.system"),
        (b"(S'ls'\nios\nsystem\n.", "opcode 0x53"),
        (b"(ios\nsystem\n.", "opcode INST"),
        (b"\x80\x02)\x81.", "opcode NEWOBJ"),
        (b"\x80\x02(o.", "opcode OBJ"),
        (b"\x80\x02\x82\x01.", "opcode EXT"),
        (b"\x80\x02NN}b.", "opcode BUILD"),
        (b"\x80\x02c\x1b[2J\nsystem\n.", "asks for \\u{1b}[2J.system"),
    ] {
        let error = refusal(&pickled(pickle));
        assert!(error.message().contains(opcode), "{error}");
    }
}

#[test]
fn a_file_cut_short_anywhere_is_refused() {
    for whole in [ZIP, LEGACY, SAFETENSORS] {
        for length in 0..whole.len() {
            refusal(&whole[..length]);
        }
    }
}

#[test]
fn a_file_with_any_byte_changed_is_read_or_refused() {
    for whole in [ZIP, LEGACY, SAFETENSORS] {
        for i in 0..whole.len() {
            let mut damaged = whole.to_vec();
            for change in [0x01, 0x80, 0xff] {
                damaged[i] = whole[i] ^ change;
                if let Ok(file) = WeightFile::parse(damaged.clone()) {
                    file.tensors().values().for_each(|tensor| drop(file.values(tensor)));
                }
            }
        }
    }
}

#[test]
fn a_tensor_never_has_more_numbers_than_its_storage() {
    let tensor = Stored::new("huge", &[1 << 20, 1 << 10], vec![1.0; 4]);
    let error = refusal(&pth(&[tensor]));
    assert!(error.message().contains("huge does not lie inside its storage"), "{error}");
}

#[test]
fn deep_and_wide_pickles_are_read_without_deep_recursion() {
    let nested = [&b"\x80\x02"[..], b")", &b"\x85".repeat(1_000_000), b"."].concat();
    refusal(&zip(&[("weights/data.pkl".to_owned(), nested)]));
    // Each tuple holds the one before twice.
    let doubled = [&b"\x80\x02)"[..], &b"q\0h\0\x86".repeat(10_000), b"."].concat();
    refusal(&zip(&[("weights/data.pkl".to_owned(), doubled)]));
}
