//! An encoder as an ONNX file: normalised images in RGB, [N, 3, S, S], → embeddings [N, d], for any N.
//!
//! Burn records the operations of the encoder, and each becomes a node of the graph, so that every backbone, pooling and
//! head is written by the same few rules. A record has a fixed number of images. The encoder is recorded with two numbers
//! of images, and what differs between the records depends on N.

use std::collections::{BTreeMap, HashMap};

use akin_base::problem::problem;
use akin_core::encoder::Encoder;
use akin_core::image::Channels;
use anyhow::Result;
use burn::backend::Capture;
use burn::backend::ir::{
    ActivationOperationIr, BaseOperationIr, FloatOperationIr, ModuleOperationIr, NumericOperationIr,
    OperationIr, ScalarIr, TensorId, TensorIr,
};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{CapturedGraph, DType, Device, Tensor, TensorData};

use super::protobuf::Message;

/// The version of the operators. It is the first with layer normalisation.
const OPSET: i64 = 17;
/// The version of the file format that came with it.
const IR_VERSION: i64 = 8;
/// The numbers of images of the two records.
const IMAGES: [usize; 2] = [2, 3];
/// The largest file: a message has at most this many bytes.
const MAX_BYTES: usize = i32::MAX as usize;
/// The name of the input.
pub const INPUT: &str = "images";
/// The name of the output.
pub const OUTPUT: &str = "embeddings";

/// The lines of Python that run a file.
pub const LINES: &str = "import onnxruntime\n\nsession = onnxruntime.InferenceSession(\"model.onnx\")\n\
                         [embeddings] = session.run(None, {\"images\": images})\n";

/// The types of a tensor's numbers.
const FLOAT: i64 = 1;
const INT64: i64 = 7;

/// The bytes of an ONNX file of an encoder, with entries of metadata.
///
/// # Errors
///
/// An operation that has no ONNX form here, or a network of more than 2 GiB.
pub fn write(encoder: &Encoder, metadata: &[(&str, String)]) -> Result<Vec<u8>> {
    let [first, second] = IMAGES.map(|images| Record::new(encoder, images));
    let graph = Graph::new(first?, &second?, encoder.preprocessing().numbers().channels)?.finish(encoder)?;
    let opset = Message::default().bytes(1, "").number(2, OPSET);
    let mut model = Message::default()
        .number(1, IR_VERSION)
        .bytes(2, "akin")
        .bytes(3, env!("CARGO_PKG_VERSION"))
        .message(7, &graph)
        .message(8, &opset);
    for (key, value) in metadata {
        model = model.message(14, &Message::default().bytes(1, key).bytes(2, value));
    }
    let bytes = model.into_bytes();
    if bytes.len() > MAX_BYTES {
        return Err(problem(
            format!(
                "the encoder has {:.1} GB, but an ONNX file holds at most 2.1 GB",
                bytes.len() as f64 / 1e9
            ),
            "export it with `--to safetensors`",
        ));
    }
    Ok(bytes)
}

/// The operations of an encoder for some images.
struct Record {
    captured: CapturedGraph,
    /// The names of the weights.
    names: HashMap<TensorId, String>,
}

impl Record {
    fn new(encoder: &Encoder, images: usize) -> Result<Self> {
        let device = Device::capture();
        let (mut names, mut fault) = (HashMap::new(), None);
        let captured = device.capture_scope(|scope| {
            let encoder = encoder.clone().to_device(&device);
            let side = encoder.preprocessing().side() as usize;
            let zeros = TensorData::zeros::<f32, _>([images, 3, side, side]);
            let input = Tensor::<4>::from_data(zeros, &device);
            let input_id = id(&input);
            let output = encoder.forward(input).map_err(|error| fault = Some(error)).ok();
            let mut visitor = Names { path: Vec::new(), names: &mut names };
            encoder.visit(&mut visitor);
            scope.complete(input_id, output.as_ref().and_then(id))
        });
        match (fault, captured) {
            (None, Ok(mut captured)) => {
                // Whether a value has an operation of its own depends on where it was before; its value is there in any case.
                let computes = |operation: &OperationIr| !matches!(operation, OperationIr::Init(_));
                captured.graph.operations.retain(computes);
                Ok(Self { captured, names })
            }
            (Some(fault), _) => Err(fault.into()),
            (None, Err(error)) => Err(unknown(&error.to_string())),
        }
    }
}

/// The id of a tensor that is recorded.
fn id<const D: usize>(tensor: &Tensor<D>) -> Option<TensorId> {
    tensor.clone().try_into_primitive::<Capture>().ok().map(|tensor| tensor.id())
}

/// Collects the names of weights.
struct Names<'a> {
    path: Vec<String>,
    names: &'a mut HashMap<TensorId, String>,
}

impl ModuleVisitor for Names<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(id) = id(&param.val()) {
            self.names.insert(id, self.path.join("."));
        }
    }
}

fn unknown(what: &str) -> anyhow::Error {
    problem(
        format!("the encoder cannot be written as ONNX: {what}"),
        "export it with `--to safetensors`, and report this as a bug",
    )
}

/// The length of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Length {
    Fixed(i64),
    /// N times this.
    Images(i64),
}

impl Length {
    /// From the lengths in the two records.
    fn new(first: usize, second: usize) -> Result<Self> {
        match (first, second) {
            (a, b) if a == b => Ok(Self::Fixed(a as i64)),
            (a, b) if a * IMAGES[1] == b * IMAGES[0] => Ok(Self::Images((a / IMAGES[0]) as i64)),
            (a, b) => {
                Err(unknown(&format!("an axis has {a} and {b} for {} and {} images", IMAGES[0], IMAGES[1])))
            }
        }
    }
}

/// The graph, as far as it is written.
struct Graph {
    nodes: Vec<Message>,
    initializers: Vec<Message>,
    /// The values of tensors that are constants, until a node reads them.
    values: BTreeMap<TensorId, TensorData>,
    weights: HashMap<TensorId, String>,
    /// The names of tensors.
    names: HashMap<TensorId, String>,
    /// The names of small constants, by their type, shape and bytes.
    constants: HashMap<(i64, Vec<i64>, Vec<u8>), String>,
    /// The name of the vector of one number, N.
    images: Option<String>,
    output: String,
    count: usize,
}

/// An attribute of a node.
enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
}
use Attribute::{Float, Int, Ints};

impl Graph {
    fn new(first: Record, second: &Record, channels: Channels) -> Result<Self> {
        let Record { captured: CapturedGraph { graph, values }, names: weights } = first;
        let others = &second.captured.graph;
        if graph.operations.len() != others.operations.len() {
            return Err(unknown("its operations depend on the number of images"));
        }
        let mut this = Self {
            nodes: Vec::new(),
            initializers: Vec::new(),
            values,
            weights,
            names: graph.inputs.iter().map(|&input| (input, INPUT.to_owned())).collect(),
            constants: HashMap::new(),
            images: None,
            output: String::new(),
            count: 0,
        };
        // The file takes red, green and blue, in this order.
        if let (Some(&input), Channels::Bgr) = (graph.inputs.first(), channels) {
            let order = this.integers(&[2, 1, 0]);
            let flipped = this.push("Gather", &[INPUT, &order], &[("axis", Int(1))]);
            this.names.insert(input, flipped);
        }
        for (operation, other) in graph.operations.iter().zip(&others.operations) {
            this.add(operation, other)?;
        }
        let output = graph.outputs.first().and_then(|output| this.names.get(output));
        this.output = output.ok_or_else(|| unknown("it has no output"))?.clone();
        Ok(this)
    }

    fn finish(mut self, encoder: &Encoder) -> Result<Message> {
        let output = self.output.clone();
        self.nodes.push(node("Identity", &[&output], OUTPUT, &[]));
        let side = i64::from(encoder.preprocessing().side());
        let input = [Length::Images(1), Length::Fixed(3), Length::Fixed(side), Length::Fixed(side)];
        let output = [Length::Images(1), Length::Fixed(encoder.dimension() as i64)];
        let mut graph = self.nodes.iter().fold(Message::default(), |graph, node| graph.message(1, node));
        graph = graph.bytes(2, "encoder");
        graph = self.initializers.iter().fold(graph, |graph, tensor| graph.message(5, tensor));
        Ok(graph.message(11, &description(INPUT, &input)).message(12, &description(OUTPUT, &output)))
    }

    /// The name of a tensor that a node reads.
    fn read(&mut self, tensor: &TensorIr) -> Result<String> {
        if let Some(name) = self.names.get(&tensor.id) {
            return Ok(name.clone());
        }
        let data = self.values.remove(&tensor.id).ok_or_else(|| unknown("a tensor has no origin"))?;
        let name = match self.weights.get(&tensor.id) {
            Some(name) => name.clone(),
            None => self.fresh(),
        };
        let shape: Vec<i64> = data.shape().iter().map(|&length| length as i64).collect();
        let message = match data.dtype() {
            DType::F32 => {
                let values: Vec<f32> = data.try_to_vec().map_err(|error| unknown(&format!("{error:?}")))?;
                initializer(
                    &name,
                    FLOAT,
                    &shape,
                    &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
                )
            }
            DType::I64 => {
                let values: Vec<i64> = data.try_to_vec().map_err(|error| unknown(&format!("{error:?}")))?;
                initializer(
                    &name,
                    INT64,
                    &shape,
                    &values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>(),
                )
            }
            other => return Err(unknown(&format!("a constant has numbers of the type {other:?}"))),
        };
        self.initializers.push(message);
        self.names.insert(tensor.id, name.clone());
        Ok(name)
    }

    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("x{}", self.count)
    }

    /// The name of a small constant.
    fn constant(&mut self, kind: i64, shape: &[i64], bytes: Vec<u8>) -> String {
        let key = (kind, shape.to_vec(), bytes);
        if let Some(name) = self.constants.get(&key) {
            return name.clone();
        }
        let name = format!("constant_{}", self.constants.len());
        self.initializers.push(initializer(&name, kind, shape, &key.2));
        self.constants.insert(key, name.clone());
        name
    }

    fn scalar(&mut self, value: ScalarIr) -> String {
        self.constant(FLOAT, &[], value.elem::<f32>().to_le_bytes().to_vec())
    }

    fn integers(&mut self, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(INT64, &[values.len() as i64], bytes)
    }

    /// The vector of these lengths.
    fn lengths(&mut self, lengths: &[Length]) -> String {
        if let Some(fixed) = fixed(lengths) {
            return self.integers(&fixed);
        }
        let images = match &self.images {
            Some(name) => name.clone(),
            None => {
                let shape = self.push("Shape", &[INPUT], &[]);
                let first = self.integers(&[0]);
                let name = self.push("Gather", &[&shape, &first], &[("axis", Int(0))]);
                self.images = Some(name.clone());
                name
            }
        };
        let parts: Vec<String> = lengths
            .iter()
            .map(|length| match *length {
                Length::Fixed(length) => self.integers(&[length]),
                Length::Images(1) => images.clone(),
                Length::Images(times) => {
                    let times = self.integers(&[times]);
                    self.push("Mul", &[&images, &times], &[])
                }
            })
            .collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.push("Concat", &parts, &[("axis", Int(0))])
    }

    /// Adds a node and gives the name of its output.
    fn push(&mut self, operator: &str, inputs: &[&str], attributes: &[(&str, Attribute)]) -> String {
        let name = self.fresh();
        self.nodes.push(node(operator, inputs, &name, attributes));
        name
    }

    /// Adds the node of an operation with these inputs.
    fn operate(
        &mut self,
        operator: &str,
        inputs: &[&TensorIr],
        out: &TensorIr,
        attributes: &[(&str, Attribute)],
    ) -> Result<()> {
        let inputs = inputs.iter().map(|input| self.read(input)).collect::<Result<Vec<_>>>()?;
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let name = self.push(operator, &inputs, attributes);
        self.names.insert(out.id, name);
        Ok(())
    }

    /// As [`Self::operate`], with a further input that is already named.
    fn operate_by(
        &mut self,
        operator: &str,
        input: &TensorIr,
        by: &[&str],
        out: &TensorIr,
        attributes: &[(&str, Attribute)],
    ) -> Result<()> {
        let input = self.read(input)?;
        let inputs: Vec<&str> = [input.as_str()].into_iter().chain(by.iter().copied()).collect();
        let name = self.push(operator, &inputs, attributes);
        self.names.insert(out.id, name);
        Ok(())
    }

    /// Adds the nodes of an operation. `other` is the same operation in the second record.
    fn add(&mut self, operation: &OperationIr, other: &OperationIr) -> Result<()> {
        let shapes = || operation.outputs().zip(other.outputs());
        let out: Vec<Vec<Length>> =
            shapes().map(|(first, second)| lengths(first, second)).collect::<Result<_>>()?;
        match operation {
            OperationIr::BaseFloat(base) | OperationIr::BaseBool(base) | OperationIr::BaseInt(base) => {
                self.add_base(base, &out[0], operation, other)
            }
            OperationIr::NumericFloat(_, numeric) => self.add_numeric(numeric, &out[0], operation),
            OperationIr::Float(_, float) => self.add_float(float, operation),
            OperationIr::Module(module) => self.add_module(module, operation),
            OperationIr::Activation(activation) => self.add_activation(activation, operation),
            _ => Err(no_form(operation)),
        }
    }

    fn add_base(
        &mut self,
        base: &BaseOperationIr,
        out: &[Length],
        operation: &OperationIr,
        other: &OperationIr,
    ) -> Result<()> {
        match base {
            BaseOperationIr::Reshape(shape) => {
                // One length may be left open.
                let open = out.iter().filter(|length| matches!(length, Length::Images(_))).count();
                let wanted = if open == 1 {
                    let length =
                        |length: &Length| if let Length::Fixed(length) = length { *length } else { -1 };
                    self.integers(&out.iter().map(length).collect::<Vec<_>>())
                } else {
                    self.lengths(out)
                };
                self.operate_by("Reshape", &shape.input, &[&wanted], &shape.out, &[])
            }
            BaseOperationIr::Expand(shape) => {
                let wanted = self.lengths(out);
                self.operate_by("Expand", &shape.input, &[&wanted], &shape.out, &[])
            }
            BaseOperationIr::SwapDims(swap) => {
                let mut axes: Vec<i64> = (0..out.len() as i64).collect();
                axes.swap(swap.dim1, swap.dim2);
                self.operate("Transpose", &[&swap.input], &swap.out, &[("perm", Ints(&axes))])
            }
            BaseOperationIr::Permute(permute) => {
                let axes: Vec<i64> = permute.axes.iter().map(|&axis| axis as i64).collect();
                self.operate("Transpose", &[&permute.input], &permute.out, &[("perm", Ints(&axes))])
            }
            BaseOperationIr::Slice(slice) => {
                let (OperationIr::BaseFloat(BaseOperationIr::Slice(second))
                | OperationIr::BaseInt(BaseOperationIr::Slice(second))) = other
                else {
                    return Err(no_form(other));
                };
                let [mut starts, mut ends, mut axes, mut steps]: [Vec<i64>; 4] = [const { Vec::new() }; 4];
                for (axis, (range, in_second)) in slice.ranges.iter().zip(&second.ranges).enumerate() {
                    let length = slice.tensor.shape[axis];
                    let end = range.end.unwrap_or(length as isize);
                    if (range.start, end, range.step) == (0, length as isize, 1) {
                        continue;
                    }
                    if range != in_second {
                        return Err(no_form(operation));
                    }
                    starts.push(range.start as i64);
                    ends.push(range.end.map_or(i64::MAX, |end| end as i64));
                    axes.push(axis as i64);
                    steps.push(range.step as i64);
                }
                if axes.is_empty() {
                    return self.operate("Identity", &[&slice.tensor], &slice.out, &[]);
                }
                let by = [starts, ends, axes, steps].map(|values| self.integers(&values));
                self.operate_by("Slice", &slice.tensor, &by.each_ref().map(String::as_str), &slice.out, &[])
            }
            BaseOperationIr::Cat(cat) => {
                let axis = ("axis", Int(cat.dim as i64));
                self.operate("Concat", &cat.tensors.iter().collect::<Vec<_>>(), &cat.out, &[axis])
            }
            BaseOperationIr::Select(select) => {
                let axis = ("axis", Int(select.dim as i64));
                self.operate("Gather", &[&select.tensor, &select.indices], &select.out, &[axis])
            }
            BaseOperationIr::RepeatDim(repeat) => {
                let mut times = vec![1; repeat.tensor.shape.num_dims()];
                times[repeat.dim] = repeat.times as i64;
                if let [OperationIr::BaseFloat(BaseOperationIr::RepeatDim(second))] =
                    std::slice::from_ref(other)
                    && second.times != repeat.times
                {
                    return Err(no_form(operation));
                }
                let times = self.integers(&times);
                self.operate_by("Tile", &repeat.tensor, &[&times], &repeat.out, &[])
            }
            BaseOperationIr::MaskWhere(mask) => {
                self.operate("Where", &[&mask.mask, &mask.value, &mask.tensor], &mask.out, &[])
            }
            BaseOperationIr::Cast(cast) if cast.input.dtype == cast.out.dtype => {
                self.operate("Identity", &[&cast.input], &cast.out, &[])
            }
            BaseOperationIr::Zeros(zeros) => self.fill(ScalarIr::Float(0.0), out, &zeros.out),
            BaseOperationIr::Ones(ones) => self.fill(ScalarIr::Float(1.0), out, &ones.out),
            _ => Err(no_form(operation)),
        }
    }

    /// A tensor of one number.
    fn fill(&mut self, value: ScalarIr, shape: &[Length], out: &TensorIr) -> Result<()> {
        let (value, shape) = (self.scalar(value), self.lengths(shape));
        let name = self.push("Expand", &[&value, &shape], &[]);
        self.names.insert(out.id, name);
        Ok(())
    }

    fn add_numeric(
        &mut self,
        numeric: &NumericOperationIr,
        out: &[Length],
        operation: &OperationIr,
    ) -> Result<()> {
        use NumericOperationIr as Op;
        match numeric {
            Op::Add(op) => self.operate("Add", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::Sub(op) => self.operate("Sub", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::Mul(op) => self.operate("Mul", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::Div(op) => self.operate("Div", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::AddScalar(op) => self.by_scalar("Add", &op.lhs, op.rhs, &op.out),
            Op::SubScalar(op) => self.by_scalar("Sub", &op.lhs, op.rhs, &op.out),
            Op::MulScalar(op) => self.by_scalar("Mul", &op.lhs, op.rhs, &op.out),
            Op::DivScalar(op) => self.by_scalar("Div", &op.lhs, op.rhs, &op.out),
            Op::PowiScalar(op) => self.by_scalar("Pow", &op.lhs, op.rhs, &op.out),
            Op::ClampMin(op) => self.by_scalar("Max", &op.lhs, op.rhs, &op.out),
            Op::ClampMax(op) => self.by_scalar("Min", &op.lhs, op.rhs, &op.out),
            Op::LowerEqualElem(op) => self.by_scalar("LessOrEqual", &op.lhs, op.rhs, &op.out),
            Op::LowerElem(op) => self.by_scalar("Less", &op.lhs, op.rhs, &op.out),
            Op::GreaterEqualElem(op) => self.by_scalar("GreaterOrEqual", &op.lhs, op.rhs, &op.out),
            Op::GreaterElem(op) => self.by_scalar("Greater", &op.lhs, op.rhs, &op.out),
            Op::Clamp(op) => {
                let (least, most) = (self.scalar(op.min), self.scalar(op.max));
                self.operate_by("Clip", &op.tensor, &[&least, &most], &op.out, &[])
            }
            Op::Neg(op) => self.operate("Neg", &[&op.input], &op.out, &[]),
            Op::Abs(op) => self.operate("Abs", &[&op.input], &op.out, &[]),
            Op::Sign(op) => self.operate("Sign", &[&op.input], &op.out, &[]),
            Op::Full(op) => self.fill(op.value, out, &op.out),
            Op::MeanDim(op) => {
                let axes = [op.axis as i64];
                self.operate("ReduceMean", &[&op.input], &op.out, &[("axes", Ints(&axes))])
            }
            Op::MaxDim(op) => {
                let axes = [op.axis as i64];
                self.operate("ReduceMax", &[&op.input], &op.out, &[("axes", Ints(&axes))])
            }
            Op::SumDim(op) => {
                let axes = self.integers(&[op.axis as i64]);
                self.operate_by("ReduceSum", &op.input, &[&axes], &op.out, &[])
            }
            _ => Err(no_form(operation)),
        }
    }

    fn by_scalar(&mut self, operator: &str, x: &TensorIr, by: ScalarIr, out: &TensorIr) -> Result<()> {
        let by = self.scalar(by);
        self.operate_by(operator, x, &[&by], out, &[])
    }

    fn add_float(&mut self, float: &FloatOperationIr, operation: &OperationIr) -> Result<()> {
        use FloatOperationIr as Op;
        let (operator, op) = match float {
            Op::Matmul(op) => return self.operate("MatMul", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::PowfScalar(op) => return self.by_scalar("Pow", &op.lhs, op.rhs, &op.out),
            Op::Powf(op) => return self.operate("Pow", &[&op.lhs, &op.rhs], &op.out, &[]),
            Op::Exp(op) => ("Exp", op),
            Op::Log(op) => ("Log", op),
            Op::Erf(op) => ("Erf", op),
            Op::Sqrt(op) => ("Sqrt", op),
            Op::Cos(op) => ("Cos", op),
            Op::Sin(op) => ("Sin", op),
            Op::Tanh(op) => ("Tanh", op),
            Op::Recip(op) => ("Reciprocal", op),
            _ => return Err(no_form(operation)),
        };
        self.operate(operator, &[&op.input], &op.out, &[])
    }

    fn add_module(&mut self, module: &ModuleOperationIr, operation: &OperationIr) -> Result<()> {
        use ModuleOperationIr as Op;
        match module {
            Op::Conv2d(op) => {
                let [(top, bottom), (left, right)] = op.options.padding.map(|(a, b)| (a as i64, b as i64));
                let inputs: Vec<&TensorIr> = [&op.x, &op.weight].into_iter().chain(&op.bias).collect();
                let attributes = [
                    ("strides", Ints(&ints(op.options.stride))),
                    ("pads", Ints(&[top, left, bottom, right])),
                    ("dilations", Ints(&ints(op.options.dilation))),
                    ("group", Int(op.options.groups as i64)),
                ];
                self.operate("Conv", &inputs, &op.out, &attributes)
            }
            Op::BatchNorm(op) => {
                let inputs = [&op.x, &op.gamma, &op.beta, &op.mean, &op.variance];
                let epsilon = ("epsilon", Float(op.epsilon.elem()));
                self.operate("BatchNormalization", &inputs, &op.out, &[epsilon])
            }
            Op::LayerNorm(op) => {
                let inputs: Vec<&TensorIr> = [&op.input, &op.gamma].into_iter().chain(&op.beta).collect();
                let attributes = [("axis", Int(-1)), ("epsilon", Float(op.epsilon.elem()))];
                self.operate("LayerNormalization", &inputs, &op.out, &attributes)
            }
            Op::Linear(op) => {
                let (x, weight) = (self.read(&op.x)?, self.read(&op.weight)?);
                let mut name = self.push("MatMul", &[&x, &weight], &[]);
                if let Some(bias) = &op.bias {
                    let bias = self.read(bias)?;
                    name = self.push("Add", &[&name, &bias], &[]);
                }
                self.names.insert(op.out.id, name);
                Ok(())
            }
            Op::MaxPool2d(op) => {
                let [height, width] = ints(op.padding);
                let attributes = [
                    ("kernel_shape", Ints(&ints(op.kernel_size))),
                    ("strides", Ints(&ints(op.stride))),
                    ("pads", Ints(&[height, width, height, width])),
                    ("dilations", Ints(&ints(op.dilation))),
                    ("ceil_mode", Int(op.ceil_mode.into())),
                ];
                self.operate("MaxPool", &[&op.x], &op.out, &attributes)
            }
            Op::AvgPool2d(op) => {
                let [height, width] = ints(op.padding);
                let attributes = [
                    ("kernel_shape", Ints(&ints(op.kernel_size))),
                    ("strides", Ints(&ints(op.stride))),
                    ("pads", Ints(&[height, width, height, width])),
                    ("count_include_pad", Int(op.count_include_pad.into())),
                    ("ceil_mode", Int(op.ceil_mode.into())),
                ];
                self.operate("AveragePool", &[&op.x], &op.out, &attributes)
            }
            Op::AdaptiveAvgPool2d(op) if op.output_size == [1, 1] => {
                self.operate("GlobalAveragePool", &[&op.x], &op.out, &[])
            }
            _ => Err(no_form(operation)),
        }
    }

    fn add_activation(&mut self, activation: &ActivationOperationIr, operation: &OperationIr) -> Result<()> {
        use ActivationOperationIr as Op;
        match activation {
            Op::Relu(op) => self.operate("Relu", &[&op.input], &op.out, &[]),
            Op::Sigmoid(op) => self.operate("Sigmoid", &[&op.input], &op.out, &[]),
            Op::LeakyRelu(op) => {
                self.operate("LeakyRelu", &[&op.lhs], &op.out, &[("alpha", Float(op.rhs.elem()))])
            }
            Op::Softmax(op) => {
                self.operate("Softmax", &[&op.input], &op.out, &[("axis", Int(op.axis as i64))])
            }
            // x (1 + erf(x / √2)) / 2: `Gelu` is an operator of a later version.
            Op::Gelu(op) => {
                let x = self.read(&op.input)?;
                let [root, one, half] =
                    [2.0_f64.sqrt(), 1.0, 0.5].map(|value| self.scalar(ScalarIr::Float(value)));
                let scaled = self.push("Div", &[&x, &root], &[]);
                let erf = self.push("Erf", &[&scaled], &[]);
                let sum = self.push("Add", &[&erf, &one], &[]);
                let product = self.push("Mul", &[&x, &sum], &[]);
                let name = self.push("Mul", &[&product, &half], &[]);
                self.names.insert(op.out.id, name);
                Ok(())
            }
            _ => Err(no_form(operation)),
        }
    }
}

fn no_form(operation: &OperationIr) -> anyhow::Error {
    let text = format!("{operation:?}");
    let name: String = text.chars().take(60).collect();
    unknown(&format!("the operation {name} is not among those that akin writes"))
}

fn ints(values: [usize; 2]) -> [i64; 2] {
    values.map(|value| value as i64)
}

fn lengths(first: &TensorIr, second: &TensorIr) -> Result<Vec<Length>> {
    first.shape.iter().zip(second.shape.iter()).map(|(&first, &second)| Length::new(first, second)).collect()
}

/// The lengths, if none depends on N.
fn fixed(lengths: &[Length]) -> Option<Vec<i64>> {
    lengths
        .iter()
        .map(|length| if let Length::Fixed(length) = length { Some(*length) } else { None })
        .collect()
}

/// A `NodeProto`.
fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, Attribute)]) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, input| node.bytes(1, input));
    let node = node.bytes(2, output).bytes(3, format!("{operator}_{output}")).bytes(4, operator);
    attributes.iter().fold(node, |node, (name, attribute)| {
        let message = Message::default().bytes(1, name);
        let message = match attribute {
            Attribute::Float(value) => message.float(2, *value).number(20, 1),
            Attribute::Int(value) => message.number(3, *value).number(20, 2),
            Attribute::Ints(values) => message.numbers(8, values).number(20, 7),
        };
        node.message(5, &message)
    })
}

/// A `TensorProto`.
fn initializer(name: &str, kind: i64, shape: &[i64], bytes: &[u8]) -> Message {
    Message::default().numbers(1, shape).number(2, kind).bytes(8, name).bytes(9, bytes)
}

/// A `ValueInfoProto` of floats.
fn description(name: &str, shape: &[Length]) -> Message {
    let shape = shape.iter().fold(Message::default(), |shape, length| {
        let length = match length {
            Length::Fixed(length) => Message::default().number(1, *length),
            Length::Images(_) => Message::default().bytes(2, "N"),
        };
        shape.message(1, &length)
    });
    let tensor = Message::default().number(1, FLOAT).message(2, &shape);
    Message::default().bytes(1, name).message(2, &Message::default().message(1, &tensor))
}

#[cfg(test)]
mod tests {
    use akin_core::encoder::EncoderConfig;
    use akin_core::image::Pixels;
    use akin_core::models::{BACKBONES, BackboneConfig};
    use rten::{Model, Value};
    use rten_tensor::NdTensor;
    use rten_tensor::prelude::*;
    use serde_json::{Value as Json, json};

    use super::*;

    /// The largest difference between an encoder and its file, for one and for three images.
    fn difference(parts: Json) -> f32 {
        let config: EncoderConfig = serde_json::from_value(parts).unwrap();
        let device = Device::flex();
        let encoder = config.init(5, &device).unwrap();
        let side = encoder.preprocessing().side() as usize;
        let pictures: Vec<Pixels> = (0..3)
            .map(|picture| {
                let byte = |i: usize| ((i * 37 + picture * 101) % 251) as u8;
                Pixels::new(side as u32, side as u32, (0..side * side * 3).map(byte).collect()).unwrap()
            })
            .collect();
        let expected = encoder.embed(&pictures, &device).unwrap();
        let images: Vec<f32> =
            pictures.iter().flat_map(|picture| encoder.preprocessing().normalise(picture)).collect();
        // The file takes red, green, blue.
        let planes = side * side;
        let images: Vec<f32> = match encoder.preprocessing().numbers().channels {
            Channels::Rgb => images,
            Channels::Bgr => images
                .chunks_exact(3 * planes)
                .flat_map(|image| image.chunks_exact(planes).rev().flatten().copied().collect::<Vec<_>>())
                .collect(),
        };
        let model = Model::load(write(&encoder, &[]).unwrap()).unwrap();
        let run = |images: &[f32]| -> Vec<f32> {
            let images = NdTensor::from_data([images.len() / 3 / planes, 3, side, side], images.to_vec());
            let [output] = model
                .run_n(
                    vec![(model.node_id(INPUT).unwrap(), Value::from(images.into_dyn()).into())],
                    [model.node_id(OUTPUT).unwrap()],
                    None,
                )
                .unwrap();
            output.into_tensor::<f32>().unwrap().to_vec()
        };
        let together = run(&images);
        let alone: Vec<f32> = images.chunks_exact(3 * planes).flat_map(run).collect();
        assert_eq!((together.len(), alone.len()), (expected.len(), expected.len()));
        let differences = expected
            .iter()
            .zip(together.iter().zip(&alone))
            .flat_map(|(&a, (&b, &c))| [(a - b).abs(), (a - c).abs()]);
        differences.fold(0.0, f32::max)
    }

    /// An encoder with a head of eight dimensions and its backbone's own normalisation, at a small side.
    fn parts(name: &str, head: Json, pooling: Json) -> Json {
        let backbone = BackboneConfig::named(name).unwrap();
        let mut preprocessing = serde_json::to_value(backbone.preprocessing()).unwrap();
        let side = backbone.entry().patch.map_or(64, |patch| 3 * patch);
        preprocessing["crop"] = side.into();
        preprocessing["resize"] = side.into();
        json!({ "backbone": { "kind": name }, "head": head, "pooling": pooling, "preprocessing": preprocessing })
    }

    #[test]
    fn every_backbone_computes_the_same_in_an_engine_for_onnx() {
        // Larger ones take too long. The one transformer has all operations of its family.
        let is_small = |name: &str| {
            let backbone = BackboneConfig::named(name).unwrap().absent(&Device::flex()).unwrap();
            backbone.parameters() < 12_000_000 || name == "dinov2_s14"
        };
        for entry in BACKBONES.iter().filter(|entry| is_small(entry.name)) {
            let largest = difference(parts(entry.name, json!({ "dimension": 8 }), Json::Null));
            assert!(largest < 1e-5, "{}: {largest}", entry.name);
        }
    }

    #[test]
    fn every_pooling_and_head_does_too() {
        for (head, pooling) in [
            (json!({ "dimension": 8, "layer_norm": false, "geometry": { "kind": "binary" } }), json!("max")),
            (json!({ "dimension": 8, "geometry": { "kind": "poincare" } }), json!("average_max")),
            (json!({ "dimension": 8 }), json!({ "gem": { "exponent": 3.0 } })),
            (Json::Null, Json::Null),
        ] {
            let largest = difference(parts("small_resnet", head.clone(), pooling.clone()));
            assert!(largest < 1e-5, "{head}, {pooling}: {largest}");
        }
    }
}
