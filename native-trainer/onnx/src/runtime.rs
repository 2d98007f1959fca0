//! ONNX Runtime by Microsoft, from a library that is already on this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use akin_base::problem::problem;
use anyhow::Result;
use half::f16;
use ort::environment::Environment;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Tensor};

use crate::engine::{NO_FLOATS, Numbers, Output, Source, unsupported};
use crate::graph::{Element, Input};

/// The variable that names the library, as ONNX Runtime's other users have it.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// The library, if the environment names one.
pub(crate) fn library() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A graph in ONNX Runtime.
pub(crate) struct Runtime {
    session: Mutex<Session>,
    input: String,
    output: String,
    element: Element,
}

impl Runtime {
    /// Loads a graph.
    ///
    /// # Errors
    ///
    /// A library that is missing or another one, and a graph that it refuses.
    pub(crate) fn load(library: &Path, source: Source, input: &Input, output: &str) -> Result<Self> {
        let environment = environment(library)?;
        let Source { graph, path, bytes, data } = source;
        let session = (|| {
            let mut builder =
                Session::builder(environment)?.with_intra_threads(rayon::current_num_threads())?;
            for (name, content) in data {
                builder = builder.with_external_initializer_file_in_memory(name, content.into())?;
            }
            builder.commit_from_memory(&bytes)
        })();
        let session =
            session.map_err(|error: ort::Error| unsupported(path, graph, None, &error.to_string()))?;
        Ok(Self {
            session: Mutex::new(session),
            input: input.name.clone(),
            output: output.to_owned(),
            element: input.element,
        })
    }

    /// The output for an input of this shape, or why there is none.
    pub(crate) fn run(&self, numbers: Numbers, shape: [usize; 4]) -> std::result::Result<Output, String> {
        let run = || -> ort::Result<Output> {
            let value: DynValue = match (numbers, self.element) {
                (Numbers::Byte(values), _) => Tensor::from_array((shape, values))?.into_dyn(),
                (Numbers::Float(values), Element::Half) => {
                    let values: Vec<f16> = values.into_iter().map(f16::from_f32).collect();
                    Tensor::from_array((shape, values))?.into_dyn()
                }
                (Numbers::Float(values), Element::Double) => {
                    let values: Vec<f64> = values.into_iter().map(f64::from).collect();
                    Tensor::from_array((shape, values))?.into_dyn()
                }
                (Numbers::Float(values), _) => Tensor::from_array((shape, values))?.into_dyn(),
            };
            // A run that failed leaves the session as it was.
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            let inputs = vec![(self.input.as_str(), SessionInputValue::from(value))];
            let outputs = session.run(inputs)?;
            let output = outputs
                .get(&self.output)
                .ok_or_else(|| ort::Error::new(format!("it gave no output {}", self.output)))?;
            let (shape, values) = if let Ok((shape, values)) = output.try_extract_tensor::<f16>() {
                (shape, values.iter().map(|value| value.to_f32()).collect())
            } else if let Ok((shape, values)) = output.try_extract_tensor::<f64>() {
                (shape, values.iter().map(|&value| value as f32).collect())
            } else {
                let (shape, values) =
                    output.try_extract_tensor::<f32>().map_err(|_| ort::Error::new(NO_FLOATS))?;
                (shape, values.to_vec())
            };
            Ok(Output { shape: shape.iter().map(|&length| length.max(0) as usize).collect(), values })
        };
        run().map_err(|error| error.to_string())
    }
}

/// The library's environment, of which a process has one.
pub(crate) fn environment(library: &Path) -> Result<&'static Environment> {
    static ENVIRONMENT: OnceLock<std::result::Result<Environment, String>> = OnceLock::new();
    let environment = ENVIRONMENT.get_or_init(|| {
        let builder = ort::init_from(library).map_err(|error| error.to_string())?;
        builder.with_telemetry(false).build().map_err(|error| error.to_string())
    });
    environment.as_ref().map_err(|error| {
        problem(
            format!("{VARIABLE} names {}, which is no library of ONNX Runtime: {error}", library.display()),
            "name the file libonnxruntime of ONNX Runtime 1.18 or later, for example that of the Python package \
             onnxruntime, or remove the variable: akin has an engine of its own",
        )
    })
}
