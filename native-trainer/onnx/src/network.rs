//! A network in the engine: pictures as numbers become features.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use akin_base::problem::problem;
use anyhow::Result;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_onnx::onnx::GraphProto;
use rten_tensor::{AsView, Layout as _, NdTensor, Tensor};

use crate::file::OnnxFile;
use crate::graph::{self, Element, Input, Layout};
use crate::old_softmax;

/// The most tokens before the patches that are recognised. More have to be named.
const MAX_PREFIX: usize = 16;
/// The side of the pictures of a network that takes several, where nothing says another.
pub const USUAL_SIDE: u32 = 224;

/// What a config says of a network beyond its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The output that has the features.
    pub output: Option<String>,
    /// The number of tokens before those of the patches.
    pub prefix_tokens: Option<usize>,
    /// Whether a pooling is named, so that tokens are preferred to a vector.
    pub pooled: bool,
}

/// What an output has for a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One vector.
    Vector,
    /// Vectors of tokens: first `prefix` others, of which the first is the class token, then one for each patch.
    Tokens {
        /// The number of tokens before those of the patches.
        prefix: usize,
    },
    /// A vector at each position of a map.
    Maps,
}

/// What a network computes of B pictures: [B, F], [B, T, F] or [B, F, H′, W′].
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers, in row-major order.
    pub values: Vec<f32>,
}

/// A network that was loaded and has embedded a picture.
pub struct Network {
    path: PathBuf,
    sha256: String,
    model: Model,
    input: Input,
    input_id: NodeId,
    output: String,
    output_id: NodeId,
    prefix_tokens: Option<usize>,
    form: Form,
    features: usize,
    threads: Arc<ThreadPool>,
}

impl Network {
    /// Loads a file that was read, and computes the features of a pattern in order to know their number. `side` is the side
    /// of its pictures; none is that of the graph.
    ///
    /// # Errors
    ///
    /// A graph without the one input and output that are needed; an operator that the
    /// engine does not know.
    pub fn open(file: OnnxFile, choice: &Choice, side: Option<u32>) -> Result<Self> {
        let mut proto = file.model()?;
        let OnnxFile { path, mut bytes, data, sha256 } = file;
        if old_softmax::rewrite(&mut proto) {
            bytes = proto.write_buf().map_err(|error| broken(&path, &error.to_string()))?;
        }
        let graph = graph::graph(&proto)?;
        let input = graph::input(graph, &path)?;
        let output = graph::output(graph, choice.output.as_deref(), choice.pooled, &path)?;
        if let (Some(takes), Some(given)) = (input.side, side)
            && takes != given
        {
            return Err(problem(
                format!(
                    "{} takes pictures of {takes}×{takes} pixels, but the preprocessing crops to {given}×{given}",
                    path.display()
                ),
                format!(
                    "set `crop` of the preprocessing to {takes}, or export the encoder for {given} pixels"
                ),
            ));
        }
        let mut options = ModelOptions::with_all_ops();
        for (name, content) in data {
            options.external_data(&name, content);
        }
        let model = quietly(|| options.load(bytes))
            .map_err(|panic| broken(&path, &panic))?
            .map_err(|error| unsupported(&path, graph, error.node(), &error.to_string()))?;
        let id =
            |name: &str| model.find_node(name).ok_or_else(|| broken(&path, &format!("{name} has vanished")));
        let (input_id, output_id) = (id(&input.name)?, id(&output)?);
        let threads = Arc::new(ThreadPool::with_num_threads(rayon::current_num_threads()));
        let mut network = Self {
            path,
            sha256,
            model,
            input,
            input_id,
            output,
            output_id,
            prefix_tokens: choice.prefix_tokens,
            form: Form::Vector,
            features: 0,
            threads,
        };
        network.probe(side, graph)?;
        Ok(network)
    }

    /// Computes the features of a pattern, twice in one batch, and remembers their form and number.
    fn probe(&mut self, side: Option<u32>, graph: &GraphProto) -> Result<()> {
        let side = self.input.side.or(side).unwrap_or(USUAL_SIDE) as usize;
        let batch = if self.input.one_by_one { 1 } else { 2 };
        let pattern: Vec<f32> =
            (0..batch * 3 * side * side).map(|at| ((at * 37) % 199) as f32 / 100.0).collect();
        let explain = |error: RunFault| match error {
            RunFault::Engine { node, text } => unsupported(&self.path, graph, node.as_deref(), &text),
            RunFault::Panic(text) => broken(&self.path, &text),
        };
        let Output { shape, .. } = match self.compute(pattern.clone(), batch, side) {
            Ok(output) => output,
            // A graph may be made for one picture inside, whatever its input says.
            Err(error) if batch == 2 => {
                let one = pattern[..3 * side * side].to_vec();
                if self.compute(one, 1, side).is_ok() {
                    return Err(problem(
                        format!(
                            "{} embeds one picture, but not two at once: a size of the batch is fixed inside its graph",
                            self.path.display()
                        ),
                        "export it with a dynamic batch: `dynamic_shapes` of `torch.onnx.export`",
                    ));
                }
                return Err(explain(error));
            }
            Err(error) => return Err(explain(error)),
        };
        (self.form, self.features) = self.form_of(&shape, batch)?;
        if let (Some(count), Form::Vector | Form::Maps) = (self.prefix_tokens, self.form) {
            return Err(problem(
                format!(
                    "prefix_tokens is {count}, but the output {} of {} has no tokens",
                    self.output,
                    self.path.display()
                ),
                "remove it, or name an output of tokens",
            ));
        }
        Ok(())
    }

    /// The form of an output of this shape, and its number of features.
    fn form_of(&self, shape: &[usize], batch: usize) -> Result<(Form, usize)> {
        let refuse = |what: &str, hint: &str| {
            Err(problem(format!("the output {} of {} {what}", self.output, self.path.display()), hint))
        };
        let what =
            format!("has the shape {shape:?} for {batch} pictures, which is no vector, no tokens and no map");
        const HINT: &str = "name another output, or export the encoder without its last layers";
        if shape.first() != Some(&batch) || shape.contains(&0) {
            return refuse(&what, HINT);
        }
        match shape[1..] {
            [features] => Ok((Form::Vector, features)),
            [tokens, features] => {
                let prefix = self.prefix_tokens.unwrap_or_else(|| tokens - tokens.isqrt().pow(2));
                if prefix >= tokens || (self.prefix_tokens.is_none() && prefix > MAX_PREFIX) {
                    return refuse(
                        &format!(
                            "has {tokens} tokens for a picture, and {prefix} of them would be no patches"
                        ),
                        "set `prefix_tokens` of the backbone to the number of tokens before the patches: 1 for a class \
                         token alone",
                    );
                }
                Ok((Form::Tokens { prefix }, features))
            }
            [features, height, width] if height == width => Ok((Form::Maps, features)),
            [height, width, features] if height == width => Ok((Form::Maps, features)),
            _ => refuse(&what, HINT),
        }
    }

    /// What the network computes of `batch` pictures of `side` × `side` pixels, whose normalised numbers are [B, 3, S, S].
    ///
    /// # Errors
    ///
    /// A network that fails, or whose output has another form than at first.
    pub fn run(&self, images: &[f32], batch: usize, side: usize) -> Result<Output> {
        let failed = |error| match error {
            RunFault::Engine { text, .. } | RunFault::Panic(text) => broken(&self.path, &text),
        };
        let at_once = if self.input.one_by_one { 1 } else { batch };
        let mut all = Output { shape: Vec::new(), values: Vec::new() };
        for part in images.chunks(at_once * 3 * side * side) {
            let output = self.compute(part.to_vec(), at_once, side).map_err(failed)?;
            if self.form_of(&output.shape, at_once)? != (self.form, self.features) {
                return Err(broken(&self.path, "its output has another form than for the first picture"));
            }
            let Output { shape, values } = self.channels_first(output);
            all.shape = [&[batch], &shape[1..]].concat();
            all.values.extend(values);
        }
        Ok(all)
    }

    /// Maps with their features behind the positions, as Keras and timm's Swin have them, as maps with them in front.
    fn channels_first(&self, output: Output) -> Output {
        match output.shape[..] {
            [batch, height, width, features] if height == width && width != features => Output {
                shape: vec![batch, features, height, width],
                values: (output.values.chunks_exact(height * width * features))
                    .flat_map(|row| transposed(row, features))
                    .collect(),
            },
            _ => output,
        }
    }

    /// The output for `batch` pictures: its shape and its numbers.
    fn compute(&self, images: Vec<f32>, batch: usize, side: usize) -> std::result::Result<Output, RunFault> {
        let images = NdTensor::from_data([batch, 3, side, side], images);
        let images: Tensor<f32> = match self.input.layout {
            Layout::Planes => images.into_dyn(),
            Layout::Pixels => images.permuted([0, 2, 3, 1]).to_tensor().into_dyn(),
        };
        let images: Value = match self.input.element {
            Element::Float | Element::Half | Element::Double => images.into(),
            Element::Byte => images.map(|&value| value.round().clamp(0.0, 255.0) as u8).into(),
        };
        let options = RunOptions::default().with_thread_pool(Some(self.threads.clone()));
        let run = || self.model.run(vec![(self.input_id, images.into())], &[self.output_id], Some(options));
        let outputs = quietly(run)
            .map_err(RunFault::Panic)?
            .map_err(|error| RunFault::Engine { node: None, text: error.to_string() })?;
        let no_numbers =
            || RunFault::Engine { node: None, text: format!("the output {} has no floats", self.output) };
        let output: Tensor<f32> =
            outputs.into_iter().next().and_then(Value::into_tensor).ok_or_else(no_numbers)?;
        Ok(Output { shape: output.shape().to_vec(), values: output.into_data() })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// See [`OnnxFile::sha256`].
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// What its graph says of its input.
    pub fn input(&self) -> &Input {
        &self.input
    }

    /// The name of the output that has the features.
    pub fn output(&self) -> &str {
        &self.output
    }

    /// The form of its output.
    pub fn form(&self) -> Form {
        self.form
    }

    /// F, the number of features.
    pub fn features(&self) -> usize {
        self.features
    }
}

/// [P, F] → [F, P].
fn transposed(rows: &[f32], features: usize) -> Vec<f32> {
    let positions = rows.len() / features;
    (0..features).flat_map(|feature| (0..positions).map(move |at| rows[at * features + feature])).collect()
}

/// Why a network computed nothing.
enum RunFault {
    Engine { node: Option<String>, text: String },
    Panic(String),
}

/// How many calls run whose panics are not printed.
static QUIET: AtomicUsize = AtomicUsize::new(0);

/// Runs `call` and returns the message of a panic, which is not printed: the error says it. The engine has threads of its
/// own, so panics of any thread are not printed meanwhile.
fn quietly<T>(call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let printing = take_hook();
        set_hook(Box::new(move |panic| {
            if QUIET.load(Ordering::Relaxed) == 0 {
                printing(panic);
            }
        }));
    });
    QUIET.fetch_add(1, Ordering::Relaxed);
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.fetch_sub(1, Ordering::Relaxed);
    result.map_err(|panic| message_of(&*panic))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason is given").to_owned()
}

/// The error of a graph that the engine refuses. It names the node and its operator.
fn unsupported(path: &Path, graph: &GraphProto, node: Option<&str>, text: &str) -> anyhow::Error {
    let operator =
        |node: &&rten_onnx::onnx::NodeProto| node.op_type.as_deref().unwrap_or_default().to_owned();
    let named = graph.node.iter().find(|found| node.is_some() && found.name.as_deref() == node);
    let mentioned = || {
        graph
            .node
            .iter()
            .find(|node| !operator(node).is_empty() && text.contains(&format!("{} operator", operator(node))))
    };
    let place = named.or_else(mentioned).map(|node| {
        let name = node.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map_or_else(
            || format!("without a name, whose output is {}", node.output.first().map_or("", |output| output)),
            str::to_owned,
        );
        format!("the operator {} (node {name}): ", operator(&node))
    });
    problem(
        format!(
            "the engine for ONNX files cannot run {}: {}{text}",
            path.display(),
            place.unwrap_or_default()
        ),
        "export the encoder without this operator, for example with another `opset_version`; the engine, rten, runs most \
         operators of ONNX's own set, and none of other domains",
    )
}

/// The error of a file that the engine does not get through.
fn broken(path: &Path, text: &str) -> anyhow::Error {
    problem(
        format!("{} cannot be computed: {text}", path.display()),
        "check that the file runs elsewhere, for example in ONNX Runtime, and export it again",
    )
}
