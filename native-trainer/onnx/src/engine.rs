//! What computes a graph: rten, or ONNX Runtime where its library is named.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use anyhow::Result;
use rten::{Model, ModelOptions, NodeId, RunOptions, ThreadPool, Value};
use rten_onnx::onnx::ModelProto;
use rten_tensor::{Layout as _, Tensor};

use crate::graph::Input;
use crate::network::{Output, broken, unsupported};
#[cfg(feature = "onnxruntime")]
use crate::runtime::Runtime;

/// Numbers for the input of a graph.
pub(crate) enum Numbers {
    Float(Vec<f32>),
    Byte(Vec<u8>),
}

/// The bytes of a graph, with the files of its external data.
pub(crate) struct Source {
    pub(crate) proto: ModelProto,
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
    pub(crate) fn load(source: Source, input: &Input, output: &str, path: &Path) -> Result<Self> {
        #[cfg(feature = "onnxruntime")]
        if let Some(library) = crate::runtime::library() {
            return Ok(Self::Runtime(Runtime::load(&library, source, input, output, path)?));
        }
        let Source { proto, bytes, data } = source;
        let graph = crate::graph::graph(&proto)?;
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
                let no_floats = || Fault::Engine("the output has no floats".into());
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
