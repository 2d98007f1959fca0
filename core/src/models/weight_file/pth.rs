//! The files of `torch.save`: since torch 1.6 a zip with a pickle and one file for each storage, before that pickles and
//! storages one after another.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Flaw, NumberType, StoredTensor};
use crate::pickle::{self, Pickle, Storage, Value};

/// Whether bytes begin as a zip does.
pub(super) fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Whether bytes begin as the older form does: a pickle of torch's magic number.
pub(super) fn is_legacy(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.")
}

/// The tensors of a zip.
pub(super) fn zip(bytes: &[u8]) -> Result<BTreeMap<String, StoredTensor>, Flaw> {
    let files = files_of_zip(bytes)?;
    let Some((folder, main)) =
        files.iter().find_map(|(name, range)| Some((name.strip_suffix("data.pkl")?, range.clone())))
    else {
        return Err(Flaw {
            what: "they are a zip without a data.pkl, which torch writes".into(),
            advice: "give a .pth file of torch.save, or a .safetensors file",
        });
    };
    if files
        .get(format!("{folder}byteorder").as_str())
        .is_some_and(|range| &bytes[range.clone()] != b"little")
    {
        return Err(big_endian());
    }
    let (pickle, value, _) = pickle::read(&bytes[main])?;
    let storage = |key: &str| files.get(format!("{folder}data/{key}").as_str()).cloned();
    named_tensors(&pickle, value, storage)
}

/// The tensors of the older form: the magic number, the protocol, facts about the machine, the state, the keys of the
/// storages, and for each of these its count and its numbers.
pub(super) fn legacy(bytes: &[u8]) -> Result<BTreeMap<String, StoredTensor>, Flaw> {
    let (_, _, rest) = pickle::read(bytes)?;
    let (_, _, rest) = pickle::read(rest)?;
    let (machine, facts, rest) = pickle::read(rest)?;
    if machine.get(facts, "little_endian") == Some(Value::Bool(false)) {
        return Err(big_endian());
    }
    let (pickle, value, rest) = pickle::read(rest)?;
    let (list, keys, mut rest) = pickle::read(rest)?;
    let keys = list.items(keys).ok_or_else(|| Flaw::damaged("their storages have no names"))?;
    let sizes = pickle.storages.iter().map(|storage| Ok((storage.key, number_type(storage)?.bytes())));
    let sizes: BTreeMap<&str, usize> = sizes.collect::<Result<_, Flaw>>()?;
    let mut storages = BTreeMap::new();
    for key in keys {
        let size = key.text().and_then(|key| Some((key, *sizes.get(key)?)));
        let (key, size) = size.ok_or_else(|| Flaw::damaged("they have a storage that no tensor uses"))?;
        let (count, numbers) = rest.split_first_chunk().ok_or_else(cut_short)?;
        let length =
            usize::try_from(u64::from_le_bytes(*count)).ok().and_then(|count| count.checked_mul(size));
        let start = bytes.len() - numbers.len();
        let (_, after) = length.and_then(|length| numbers.split_at_checked(length)).ok_or_else(cut_short)?;
        storages.insert(key, start..bytes.len() - after.len());
        rest = after;
    }
    named_tensors(&pickle, value, |key| storages.get(key).cloned())
}

fn number_type(storage: &Storage<'_>) -> Result<NumberType, Flaw> {
    Ok(match storage.class {
        "DoubleStorage" => NumberType::F64,
        "FloatStorage" => NumberType::F32,
        "HalfStorage" => NumberType::F16,
        "BFloat16Storage" => NumberType::Bf16,
        "LongStorage" => NumberType::I64,
        "IntStorage" => NumberType::I32,
        "ShortStorage" => NumberType::I16,
        "CharStorage" => NumberType::I8,
        "ByteStorage" => NumberType::U8,
        "BoolStorage" => NumberType::Bool,
        class => {
            return Err(Flaw {
                what: format!("they hold numbers of the type torch.{}", class.escape_debug()),
                advice: "save the model with 32-bit floating-point numbers",
            });
        }
    })
}

fn big_endian() -> Flaw {
    Flaw {
        what: "they were written on a big-endian machine".into(),
        advice: "load them there, and save them as safetensors",
    }
}

fn cut_short() -> Flaw {
    Flaw::damaged("the file is cut short")
}

/// The names under which training codes put the state of a model, beside that of an optimiser for example.
const STATES: [&str; 3] = ["state_dict", "model", "model_state_dict"];

/// The tensors of a dictionary of names, or of the dictionary inside it that holds the state of the model.
fn named_tensors(
    pickle: &Pickle,
    value: Value,
    storage: impl Fn(&str) -> Option<Range<usize>>,
) -> Result<BTreeMap<String, StoredTensor>, Flaw> {
    let no_state = || Flaw {
        what: "they hold no dictionary of named tensors".into(),
        advice: "save model.state_dict() alone with torch.save, or save it as safetensors",
    };
    let outer = pickle.pairs(value).ok_or_else(no_state)?;
    let inner = STATES.iter().find_map(|state| pickle.pairs(pickle.get(value, state)?));
    let mut tensors = BTreeMap::new();
    for &(key, value) in inner.unwrap_or(outer) {
        // Numbers and texts beside the tensors, such as the epoch, are no weights.
        let (Value::Text(name), Value::Tensor(tensor)) = (key, value) else { continue };
        let tensor = &pickle.tensors[tensor];
        let stored = &pickle.storages[tensor.storage];
        let numbers = number_type(stored)?;
        let place =
            storage(stored.key).ok_or_else(|| Flaw::damaged(format!("the numbers of {name} are missing")))?;
        if stored.count.checked_mul(numbers.bytes()) != Some(place.len()) {
            return Err(Flaw::damaged(format!("the numbers of {name} are cut short")));
        }
        let stored =
            StoredTensor::new(numbers, place, tensor.offset, tensor.shape.clone(), tensor.strides.clone());
        let stored =
            stored.ok_or_else(|| Flaw::damaged(format!("{name} does not lie inside its storage")))?;
        tensors.insert(name.to_owned(), stored);
    }
    if tensors.is_empty() { Err(no_state()) } else { Ok(tensors) }
}

/// The files of a zip by their names. Torch stores them without compression.
fn files_of_zip(bytes: &[u8]) -> Result<BTreeMap<&str, Range<usize>>, Flaw> {
    let number = |at: usize, size: usize| -> Result<usize, Flaw> {
        let field = at.checked_add(size).and_then(|end| bytes.get(at..end)).ok_or_else(cut_short)?;
        Ok(field.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    };
    // The end record is 22 bytes and a comment of at most 65,535.
    let first = bytes.len().saturating_sub(22 + 65_535);
    let end = bytes[first..].windows(4).rposition(|window| window == b"PK\x05\x06").ok_or_else(cut_short)?;
    let end = first + end;
    let (count, mut at) = (number(end + 10, 2)?, number(end + 16, 4)?);
    if end + 22 + number(end + 20, 2)? != bytes.len() {
        return Err(cut_short());
    }
    let mut files = BTreeMap::new();
    for _ in 0..count {
        if number(at, 4)? != 0x0201_4b50 {
            return Err(Flaw::damaged("the contents of their zip are not where they should be"));
        }
        let (method, stored, size) = (number(at + 10, 2)?, number(at + 20, 4)?, number(at + 24, 4)?);
        let (name, extra, comment) = (number(at + 28, 2)?, number(at + 30, 2)?, number(at + 32, 2)?);
        let local = number(at + 42, 4)?;
        let name_end = at + 46 + name;
        let name = bytes.get(at + 46..name_end).ok_or_else(cut_short)?;
        at = name_end + extra + comment;
        if method != 0 || stored != size || size == 0xffff_ffff {
            return Err(Flaw {
                what: "their zip is compressed, or holds more than 4 GB".into(),
                advice: "save model.state_dict() alone with torch.save, or save it as safetensors",
            });
        }
        let start = local + 30 + number(local + 26, 2)? + number(local + 28, 2)?;
        if start + size > bytes.len() {
            return Err(cut_short());
        }
        if let Ok(name) = std::str::from_utf8(name) {
            files.insert(name, start..start + size);
        }
    }
    Ok(files)
}
