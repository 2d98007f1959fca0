//! Embeddings in `.safetensors` files: the length of a header, the header as JSON, and the numbers of each tensor.

use std::io::{Read, Seek, SeekFrom};

use akin_base::problem::{Advise, problem};
use akin_core::embeddings::Rows;
use anyhow::Result;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::embedding_file::{Choice, OFFSET, SCALE, choose};
use crate::matrix::{Array, Layout, Matrix, NumberType, Scale};
use crate::npy::read_array;
use crate::source::Source;

/// The most bytes of a header. A tensor takes about 80.
const LONGEST_HEADER: u64 = 16 << 20;

/// Opens the tensor of embeddings of a file.
///
/// # Errors
///
/// A file that is damaged, or that has no tensor of embeddings or several.
pub(crate) fn open(source: &Source, choice: &Choice) -> Result<Box<dyn Rows + Send>> {
    let mut file = source.again()?;
    let damaged = |why: &str| {
        problem(
            format!("this is not a .safetensors file, or it is damaged: {why}"),
            "copy it again, or save it again",
        )
    };
    let all = file.length()?;
    let mut length = [0; 8];
    let first = file.first(8)?;
    if first.len() < 8 {
        return Err(damaged("it ends in the length of its header"));
    }
    length.copy_from_slice(&first);
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER || length > all - 8 {
        return Err(damaged("its header is longer than it can be"));
    }
    let mut header = Vec::new();
    let cannot = || "the file cannot be read".to_owned();
    file.seek(SeekFrom::Start(8)).advise(cannot, "try again")?;
    (&mut file).take(length).read_to_end(&mut header).advise(cannot, "try again")?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| damaged(&error.to_string()))?;
    let tensors = metadata.tensors();
    let mut matrices: Vec<&str> = tensors
        .iter()
        .filter(|(_, tensor)| tensor.shape.len() == 2 && numbers(tensor.dtype, true).is_ok())
        .map(|(name, _)| name.as_str())
        .collect();
    matrices.sort_unstable();
    let name = choose("tensor", &matrices, choice)?;
    let Some(tensor) = tensors.get(&name) else {
        return Err(problem(format!("there is no tensor `{name}`"), "correct the name"));
    };
    let [rows, columns] = tensor.shape[..] else {
        return Err(problem(
            format!("the tensor `{name}` has shape {:?}, but (items, dimension) is needed", tensor.shape),
            "save a tensor with one row per item",
        ));
    };
    if columns == 0 {
        return Err(problem(
            format!("the {rows} items of the tensor `{name}` have no numbers"),
            "save it again",
        ));
    }
    let start = |tensor: &TensorInfo| (8 + length).saturating_add(tensor.data_offsets.0 as u64);
    // Reversed places, or some behind the end of the file, belong to no tensor.
    let there = |tensor: &TensorInfo| {
        let (from, to) = (tensor.data_offsets.0 as u64, tensor.data_offsets.1 as u64);
        (to <= all - 8 - length).then(|| to.checked_sub(from)).flatten().unwrap_or(0)
    };
    let numbers_of = numbers(tensor.dtype, choice.packed)?;
    let layout = Layout {
        start: start(tensor),
        numbers: numbers_of,
        big_endian: false,
        by_column: false,
        rows,
        columns,
    };
    if layout.bytes() != Some(there(tensor)) {
        return Err(damaged(&format!("the bytes of the tensor `{name}` do not fill its shape")));
    }
    let array = |name: &str| -> Result<Option<Array>> {
        let Some(tensor) = tensors.get(name) else { return Ok(None) };
        let numbers = numbers(tensor.dtype, false)?;
        let count = tensor.shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
        let bytes = count.and_then(|count| count.checked_mul(numbers.width()));
        let (Some(count), Some(bytes)) = (count, bytes) else {
            return Err(damaged(&format!("the shape of the tensor `{name}` is too large")));
        };
        let mut file = source.again()?;
        let shape = (tensor.shape.clone(), count);
        read_array(&mut file, start(tensor), (bytes, there(tensor)), (numbers, false), shape).map(Some)
    };
    let scale = match (numbers_of == NumberType::Int8).then(|| array(SCALE)).transpose()?.flatten() {
        Some(scale) => Some(Scale::new(&scale, array(OFFSET)?.as_ref(), rows, columns)?),
        None => None,
    };
    Ok(Box::new(Matrix::at(&source.name(), file, layout).scaled(scale)))
}

fn numbers(dtype: Dtype, packed: bool) -> Result<NumberType> {
    Ok(match dtype {
        Dtype::F16 => NumberType::Float16,
        Dtype::BF16 => NumberType::BFloat16,
        Dtype::F32 => NumberType::Float32,
        Dtype::F64 => NumberType::Float64,
        Dtype::I8 => NumberType::Int8,
        Dtype::BOOL => NumberType::Bool,
        Dtype::U8 if packed => NumberType::Bits,
        Dtype::U8 => {
            return Err(problem(
                "the numbers are bytes without a sign (U8), which are bits of a code, eight in a byte",
                "add `--similarity hamming` for packed bits; save other numbers as float32 or int8",
            ));
        }
        other => {
            return Err(problem(
                format!("the numbers have type {other:?}, but floats, int8, bool or packed bits are needed"),
                "save them as float32",
            ));
        }
    })
}
