//! Files of weights: named tensors, from the bytes of a safetensors file or of a `.pth` file.
//!
//! Files are read as data: nothing in them is executed. Memory is bounded by the length of the file. A tensor is copied
//! when its numbers are asked for.

mod pth;
mod safetensors;
mod transformer_names;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use half::{bf16, f16};

use crate::pickle::Fault;
use crate::{Error, Kind, Result};

/// The type of a tensor's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum NumberType {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
}

impl NumberType {
    /// The bytes of one number.
    fn bytes(self) -> usize {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// Whether the numbers are floating-point.
    fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16)
    }
}

impl fmt::Display for NumberType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

/// Where a tensor lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTensor {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// The type of its numbers.
    pub numbers: NumberType,
    /// The place of its first number, in bytes from the start of the file.
    start: usize,
    /// The step of each dimension, in numbers.
    strides: Vec<usize>,
}

impl StoredTensor {
    /// A tensor in `storage`, a range of the file, whose first number is number `offset` of the storage; none if it does
    /// not lie inside, or has more numbers than the storage.
    fn new(
        numbers: NumberType,
        storage: Range<usize>,
        offset: usize,
        shape: Vec<usize>,
        strides: Vec<usize>,
    ) -> Option<Self> {
        let capacity = storage.len() / numbers.bytes();
        let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
        if shape.len() != strides.len() || count > capacity {
            return None;
        }
        if count > 0 {
            let last = shape.iter().zip(&strides).try_fold(offset, |last, (&size, &stride)| {
                last.checked_add((size - 1).checked_mul(stride)?)
            })?;
            if last >= capacity {
                return None;
            }
        }
        let start = storage.start.checked_add(offset.checked_mul(numbers.bytes())?)?;
        Some(Self { shape, numbers, start, strides })
    }

    /// The steps of a tensor whose numbers lie one after another.
    fn contiguous(shape: &[usize]) -> Vec<usize> {
        let mut strides = vec![1_usize; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i].saturating_mul(shape[i]);
        }
        strides
    }
}

/// A file of weights.
#[derive(Clone, Debug)]
pub struct WeightFile {
    bytes: Vec<u8>,
    tensors: BTreeMap<String, StoredTensor>,
}

impl WeightFile {
    /// Reads the bytes of a file: `.pth` (the zip of torch 1.6 and later, or the older form) or safetensors.
    ///
    /// # Errors
    ///
    /// [`Kind::Weights`] for a file of another kind, a damaged one, and one whose pickle would run code.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        let tensors = if pth::is_zip(&bytes) {
            pth::zip(&bytes)
        } else if pth::is_legacy(&bytes) {
            pth::legacy(&bytes)
        } else {
            safetensors::tensors(&bytes)
        };
        match tensors {
            Ok(tensors) => Ok(Self { tensors, bytes }),
            Err(Flaw { what, advice }) => {
                Err(Error::new(Kind::Weights, format!("the weights cannot be read: {what}"), advice))
            }
        }
    }

    /// This file without the parts that all names begin with, such as `model.`.
    pub fn without_common_prefix(mut self) -> Self {
        loop {
            let first = self.tensors.keys().next().and_then(|name| name.split_once('.'));
            let Some(prefix) = first.map(|(part, _)| format!("{part}.")) else { return self };
            if self.tensors.len() < 2 || !self.tensors.keys().all(|name| name.starts_with(&prefix)) {
                return self;
            }
            let tensors = std::mem::take(&mut self.tensors).into_iter();
            self.tensors = tensors.map(|(name, tensor)| (name[prefix.len()..].to_owned(), tensor)).collect();
        }
    }

    /// Every tensor by its name.
    pub fn tensors(&self) -> &BTreeMap<String, StoredTensor> {
        &self.tensors
    }

    /// The numbers of a tensor of this file, row-major; none if they are integers.
    pub fn values(&self, tensor: &StoredTensor) -> Option<Vec<f32>> {
        if !tensor.numbers.is_float() {
            return None;
        }
        let count = tensor.shape.iter().product();
        let size = tensor.numbers.bytes();
        // A tensor without numbers may start behind the end of the file.
        if count > 0 && tensor.strides == StoredTensor::contiguous(&tensor.shape) {
            let numbers = self.bytes[tensor.start..][..count * size].chunks_exact(size);
            return Some(numbers.map(|number| read_float(tensor.numbers, number)).collect());
        }
        let mut values = Vec::with_capacity(count);
        let mut index = vec![0; tensor.shape.len()];
        while values.len() < count {
            let offset: usize = index.iter().zip(&tensor.strides).map(|(i, stride)| i * stride).sum();
            let number = &self.bytes[tensor.start + offset * size..][..size];
            values.push(read_float(tensor.numbers, number));
            for (i, &size) in index.iter_mut().zip(&tensor.shape).rev() {
                *i += 1;
                if *i < size {
                    break;
                }
                *i = 0;
            }
        }
        Some(values)
    }
}

/// A little-endian number of a float type.
fn read_float(numbers: NumberType, bytes: &[u8]) -> f32 {
    match (numbers, bytes) {
        (NumberType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
        (NumberType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
        (NumberType::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f32(),
        (_, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]) as f32,
        _ => unreachable!("`values` reads as many bytes as a number of this float type has"),
    }
}

/// What is wrong with a file, and what to do.
#[derive(Debug)]
struct Flaw {
    what: String,
    advice: &'static str,
}

impl Flaw {
    /// A file that ends too early, or whose parts contradict each other.
    fn damaged(what: impl Into<String>) -> Self {
        Self { what: what.into(), advice: "the file is damaged; get it again" }
    }
}

impl From<Fault> for Flaw {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Damaged(why) => Self::damaged(format!("their pickle {why}")),
            Fault::Code(why) => Self {
                what: format!("their pickle {why}, and only the weights themselves are read"),
                advice: "load the file with Python where you trust it, and save model.state_dict() alone, or save it \
                         as safetensors",
            },
        }
    }
}
