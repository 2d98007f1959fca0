//! Files for a bundle: all weights inside one file, and if it is large, in 8 bits.

use std::collections::HashMap;

use akin_base::problem::problem;
use anyhow::Result;
use rten_onnx::onnx::{
    AttributeProto, AttributeType, DataLocation, DataType, GraphProto, ModelProto, NodeProto, TensorProto,
};

use crate::file::{OnnxFile, location};

/// Tensors with fewer numbers stay in single precision.
const SMALLEST: usize = 1024;
/// The first operator set in which a scale may belong to a channel.
const CHANNEL_SCALES: i64 = 13;

impl OnnxFile {
    /// The bytes of a file with all weights inside.
    ///
    /// # Errors
    ///
    /// External data that are shorter than the file says, or more than one file holds.
    pub fn whole(&self) -> Result<Vec<u8>> {
        if self.data.is_empty() {
            return Ok(self.bytes.clone());
        }
        let mut model = self.model()?;
        let mut result = Ok(());
        if let Some(graph) = &mut model.graph {
            for_each_tensor(graph, &mut |tensor| {
                if let (Some(name), Ok(())) = (location(tensor), &result) {
                    result = self.take_in(tensor, &name);
                }
            });
        }
        result?;
        self.write(&model)
    }

    /// Replaces the external data of a tensor by its bytes.
    fn take_in(&self, tensor: &mut TensorProto, name: &str) -> Result<()> {
        let number = |key: &str| {
            let entry = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some(key));
            entry.and_then(|entry| entry.value.as_deref()?.parse::<usize>().ok())
        };
        let content = self.data.get(name).map(Vec::as_slice).unwrap_or_default();
        let start = number("offset").unwrap_or(0);
        let end = number("length").map_or(Some(content.len()), |length| start.checked_add(length));
        let Some(bytes) = end.and_then(|end| content.get(start..end)) else {
            return Err(problem(
                format!("{name} ends before the weights {} do", tensor.name.as_deref().unwrap_or_default()),
                "copy the file with the weights again",
            ));
        };
        tensor.raw_data = Some(bytes.to_vec().into());
        tensor.data_location = Some(DataLocation::DEFAULT);
        tensor.external_data.clear();
        Ok(())
    }

    /// The bytes of a file with all weights inside, those of convolutions and linear layers as 8-bit numbers with a scale
    /// for each output channel.
    ///
    /// # Errors
    ///
    /// As [`Self::whole`]; a file of an operator set that has no such scales.
    pub fn in_int8(&self) -> Result<Vec<u8>> {
        let mut model = crate::file::parse(&self.whole()?, &self.path)?;
        let is_onnx = |domain: Option<&str>| matches!(domain.unwrap_or_default(), "" | "ai.onnx");
        let set = model.opset_import.iter().find(|set| is_onnx(set.domain.as_deref()));
        let version = set.and_then(|set| set.version).unwrap_or(0);
        if version < CHANNEL_SCALES {
            return Err(problem(
                format!(
                    "{} is of ONNX's operator set {version}, in which 8-bit weights have no scale for each channel",
                    self.path.display()
                ),
                "export it with `opset_version` 13 or later",
            ));
        }
        if let Some(graph) = &mut model.graph {
            quantize(graph);
        }
        self.write(&model)
    }

    fn write(&self, model: &ModelProto) -> Result<Vec<u8>> {
        let bytes = model.write_buf().map_err(|error| {
            let hint = "report this as a bug";
            problem(format!("{} cannot be written as one file: {error}", self.path.display()), hint)
        })?;
        if bytes.len() as u64 > crate::MAX_FILE {
            return Err(problem(
                format!("the weights of {} are too large for one file", self.path.display()),
                "use a smaller encoder",
            ));
        }
        Ok(bytes)
    }
}

/// Calls `visit` with every tensor of a graph and of the graphs in it.
fn for_each_tensor(graph: &mut GraphProto, visit: &mut impl FnMut(&mut TensorProto)) {
    graph.initializer.iter_mut().for_each(&mut *visit);
    for attribute in graph.node.iter_mut().flat_map(|node| &mut node.attribute) {
        attribute.t.iter_mut().for_each(&mut *visit);
        attribute.g.iter_mut().for_each(|inner| for_each_tensor(inner, visit));
    }
}

fn quantize(graph: &mut GraphProto) {
    let channels = output_channels(graph);
    let mut nodes = Vec::new();
    let mut tensors = Vec::new();
    for tensor in std::mem::take(&mut graph.initializer) {
        let name = tensor.name.clone().unwrap_or_default();
        let quantized = channels.get(&name).and_then(|axis| Quantized::new(&tensor, (*axis)?));
        let Some(Quantized { axis, numbers, scales }) = quantized else {
            tensors.push(tensor);
            continue;
        };
        let part = |suffix: &str| format!("{name}.{suffix}");
        let scale_bytes: Vec<u8> = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let make = |suffix: &str, kind: DataType, dims: Vec<i64>, bytes: Vec<u8>| TensorProto {
            name: Some(part(suffix)),
            data_type: Some(kind),
            dims,
            raw_data: Some(bytes.into()),
            ..TensorProto::default()
        };
        tensors.push(make("int8", DataType::INT8, tensor.dims.clone(), numbers));
        tensors.push(make("scale", DataType::FLOAT, vec![scales.len() as i64], scale_bytes));
        nodes.push(NodeProto {
            name: Some(part("dequantize")),
            op_type: Some("DequantizeLinear".into()),
            input: vec![part("int8"), part("scale")],
            output: vec![name.clone()],
            attribute: vec![AttributeProto {
                name: Some("axis".into()),
                i: Some(axis as i64),
                r#type: Some(AttributeType::INT),
                ..AttributeProto::default()
            }],
            ..NodeProto::default()
        });
        // Older files list the weights among the inputs.
        graph.input.retain(|input| input.name.as_deref() != Some(&name));
    }
    graph.initializer = tensors;
    nodes.append(&mut graph.node);
    graph.node = nodes;
}

/// The axis of the output channels of each weight of a convolution or a linear layer; none for a weight that is used in
/// two ways.
fn output_channels(graph: &GraphProto) -> HashMap<String, Option<usize>> {
    let mut axes: HashMap<String, Option<usize>> = HashMap::new();
    for node in &graph.node {
        let flag = |name: &str| {
            let found = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name));
            found.and_then(|attribute| attribute.i).unwrap_or(0) != 0
        };
        let axis = match node.op_type.as_deref() {
            Some("Conv") => Some(0),
            Some("Gemm") if flag("transB") => Some(0),
            Some("Gemm" | "MatMul") => Some(1),
            _ => None,
        };
        for (place, input) in node.input.iter().enumerate() {
            let used = axis.filter(|_| place == 1);
            let entry = axes.entry(input.clone()).or_insert(used);
            if *entry != used {
                *entry = None;
            }
        }
    }
    axes
}

/// A tensor as numbers from −127 to 127 and a scale for each channel.
struct Quantized {
    axis: usize,
    numbers: Vec<u8>,
    scales: Vec<f32>,
}

impl Quantized {
    /// None for a tensor that is small, is not in single precision, or has no such axis.
    fn new(tensor: &TensorProto, axis: usize) -> Option<Self> {
        let dims: Vec<usize> =
            tensor.dims.iter().map(|&dim| usize::try_from(dim).ok()).collect::<Option<_>>()?;
        let is_weight = tensor.data_type == Some(DataType::FLOAT) && dims.len() >= 2;
        let values: Vec<f32> = match &tensor.raw_data {
            Some(raw) => raw.borrow().as_chunks().0.iter().map(|&four| f32::from_le_bytes(four)).collect(),
            None => tensor.float_data.clone(),
        };
        let count = dims.iter().try_fold(1, |product: usize, &dim| product.checked_mul(dim))?;
        if !is_weight || values.len() != count || count < SMALLEST {
            return None;
        }
        let (channels, inner) = (*dims.get(axis)?, dims[axis + 1..].iter().product::<usize>());
        let channel = |place: usize| place / inner % channels;
        let mut scales = vec![0_f32; channels];
        for (place, value) in values.iter().enumerate() {
            scales[channel(place)] = scales[channel(place)].max(value.abs());
        }
        for scale in &mut scales {
            *scale = if *scale > 0.0 { *scale / 127.0 } else { 1.0 };
        }
        let numbers = (values.iter().enumerate())
            .map(|(place, value)| ((value / scales[channel(place)]).round() as i8).cast_unsigned())
            .collect();
        Some(Self { axis, numbers, scales })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_a_scale_of_its_own() {
        let values: Vec<f32> =
            (0..2048).map(|at| if at % 2 == 0 { 127.0 } else { (at % 7) as f32 * 1e-3 }).collect();
        let tensor = TensorProto {
            data_type: Some(DataType::FLOAT),
            dims: vec![1024, 2],
            float_data: values.clone(),
            ..TensorProto::default()
        };
        let Quantized { numbers, scales, .. } = Quantized::new(&tensor, 1).unwrap();
        assert_eq!(scales[0], 1.0);
        for (place, (&number, value)) in numbers.iter().zip(values).enumerate() {
            let scale = scales[place % 2];
            assert!((f32::from(number.cast_signed()) * scale - value).abs() <= scale / 2.0 + 1e-9);
        }
        assert!(Quantized::new(&TensorProto { dims: vec![2048], ..tensor }, 0).is_none());
    }
}
