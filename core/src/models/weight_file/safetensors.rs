//! The safetensors format: a JSON header with the type, shape and place of each tensor, then the numbers.

use std::collections::BTreeMap;

use ::safetensors::{Dtype, SafeTensors};

use super::{Flaw, NumberType, StoredTensor};

/// The tensors of the bytes of a file.
pub(super) fn tensors(bytes: &[u8]) -> Result<BTreeMap<String, StoredTensor>, Flaw> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| Flaw {
        what: format!("they are neither a .pth file nor safetensors ({error})"),
        advice: "give a .safetensors or .pth file; if it is one, it is cut short: get it again",
    })?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        let numbers = match view.dtype() {
            Dtype::F64 => NumberType::F64,
            Dtype::F32 => NumberType::F32,
            Dtype::F16 => NumberType::F16,
            Dtype::BF16 => NumberType::Bf16,
            Dtype::I64 => NumberType::I64,
            Dtype::I32 => NumberType::I32,
            Dtype::I16 => NumberType::I16,
            Dtype::I8 => NumberType::I8,
            Dtype::U8 => NumberType::U8,
            Dtype::BOOL => NumberType::Bool,
            other => {
                return Err(Flaw {
                    what: format!("{name} has numbers of the type {other:?}"),
                    advice: "save the weights as f32, f16 or bf16",
                });
            }
        };
        let start = view.data().as_ptr() as usize - bytes.as_ptr() as usize;
        let shape = view.shape().to_vec();
        let strides = StoredTensor::contiguous(&shape);
        let tensor = StoredTensor::new(numbers, start..start + view.data().len(), 0, shape, strides)
            .ok_or_else(|| Flaw::damaged(format!("{name} does not lie inside the file")))?;
        tensors.insert(name.to_owned(), tensor);
    }
    Ok(tensors)
}
