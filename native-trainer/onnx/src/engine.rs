//! What computes a graph: rten, or ONNX Runtime where its library is named.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use akin_base::problem::problem;
use anyhow::Result;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_onnx::onnx::{GraphProto, NodeProto};
use rten_tensor::{Layout as _, Tensor};

use crate::graph::Input;
#[cfg(feature = "onnxruntime")]
use crate::runtime::Runtime;

/// What a network computes of B pictures: [B, F], [B, T, F] or [B, F, H′, W′].
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// Its numbers, in row-major order.
    pub values: Vec<f32>,
}

/// Numbers for the input of a graph.
pub(crate) enum Numbers {
    Float(Vec<f32>),
    Byte(Vec<u8>),
}

/// A graph with the bytes of its file and of its external data. `graph` and `path` say what is wrong where.
pub(crate) struct Source<'a> {
    pub(crate) graph: &'a GraphProto,
    pub(crate) path: &'a Path,
    pub(crate) bytes: Vec<u8>,
    pub(crate) data: BTreeMap<String, Vec<u8>>,
}

/// A graph that was loaded.
pub(crate) enum Engine {
    Rten {
        model: Box<Model>,
        input: NodeId,
        output: NodeId,
        threads: Arc<ThreadPool>,
    },
    #[cfg(feature = "onnxruntime")]
    Runtime(Runtime),
}

/// What is wrong with an output of integers.
pub(crate) const NO_FLOATS: &str = "the output has no floats";

/// Why a graph computed nothing.
pub(crate) enum Fault {
    Engine(String),
    Panic(String),
}

/// What would compute a file now: the engine's name.
///
/// # Errors
///
/// A library of ONNX Runtime that the environment names and that cannot be loaded.
pub fn engine() -> Result<String> {
    #[cfg(feature = "onnxruntime")]
    if let Some(library) = crate::runtime::library() {
        crate::runtime::environment(&library)?;
        return Ok(format!("ONNX Runtime of {}", library.display()));
    }
    Ok("rten".into())
}

impl Engine {
    /// Loads a graph into ONNX Runtime, if the environment names its library and akin was built for it, else into rten.
    pub(crate) fn load(source: Source, input: &Input, output: &str) -> Result<Self> {
        #[cfg(feature = "onnxruntime")]
        if let Some(library) = crate::runtime::library() {
            return Ok(Self::Runtime(Runtime::load(&library, source, input, output)?));
        }
        let Source { graph, path, bytes, data } = source;
        let mut options = ModelOptions::with_all_ops();
        for (name, content) in data {
            options.external_data(&name, content);
        }
        let model = quietly(|| options.load(bytes))
            .map_err(|panic| broken(path, &panic))?
            .map_err(|error| unsupported(path, graph, error.node(), &error.to_string()))?;
        let id =
            |name: &str| model.find_node(name).ok_or_else(|| broken(path, &format!("{name} has vanished")));
        let (input, output) = (id(&input.name)?, id(output)?);
        let threads = Arc::new(ThreadPool::with_num_threads(rayon::current_num_threads()));
        Ok(Self::Rten { model: Box::new(model), input, output, threads })
    }

    /// The output for an input of this shape.
    pub(crate) fn run(&self, numbers: Numbers, shape: [usize; 4]) -> std::result::Result<Output, Fault> {
        match self {
            Self::Rten { model, input, output, threads } => {
                let value: Value = match numbers {
                    Numbers::Float(values) => Tensor::from_data(&shape, values).into(),
                    Numbers::Byte(values) => Tensor::from_data(&shape, values).into(),
                };
                let options = RunOptions::default().with_thread_pool(Some(threads.clone()));
                let outputs = quietly(|| model.run(vec![(*input, value.into())], &[*output], Some(options)))
                    .map_err(Fault::Panic)?
                    .map_err(|error| Fault::Engine(error.to_string()))?;
                let no_floats = || Fault::Engine(NO_FLOATS.into());
                let output: Tensor<f32> =
                    outputs.into_iter().next().and_then(Value::into_tensor).ok_or_else(no_floats)?;
                Ok(Output { shape: output.shape().to_vec(), values: output.into_data() })
            }
            #[cfg(feature = "onnxruntime")]
            Self::Runtime(runtime) => runtime.run(numbers, shape).map_err(Fault::Engine),
        }
    }
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
pub(crate) fn unsupported(path: &Path, graph: &GraphProto, node: Option<&str>, text: &str) -> anyhow::Error {
    let operator = |node: &&NodeProto| node.op_type.as_deref().unwrap_or_default().to_owned();
    let named = graph.node.iter().find(|found| node.is_some() && found.name.as_deref() == node);
    let mentioned = || {
        graph.node.iter().find(|node| {
            let name = operator(node);
            let forms = [format!("{name} operator"), format!(":{name}(")];
            !name.is_empty() && forms.iter().any(|form| text.contains(form))
        })
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
        "export the encoder without this operator, for example with another `opset_version`. akin's own engine runs most \
         operators of ONNX's own set, and none of other domains; ONNX Runtime runs more, where ORT_DYLIB_PATH names its \
         library and akin was installed with it",
    )
}

/// The error of a file that the engine does not get through.
pub(crate) fn broken(path: &Path, text: &str) -> anyhow::Error {
    problem(
        format!("{} cannot be computed: {text}", path.display()),
        "check that the file runs elsewhere, for example in ONNX Runtime, and export it again",
    )
}
