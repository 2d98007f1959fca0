//! A network in the engine: pictures as numbers become features.

use std::path::{Path, PathBuf};

use akin_base::problem::problem;
use anyhow::Result;
use rten_onnx::onnx::GraphProto;

use crate::engine::{Engine, Fault, Numbers, Output, Source, broken, unsupported};
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

/// A network that was loaded and has embedded a picture.
pub struct Network {
    path: PathBuf,
    sha256: String,
    engine: Engine,
    input: Input,
    output: String,
    prefix_tokens: Option<usize>,
    form: Form,
    features: usize,
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
        let engine = Engine::load(Source { graph, path: &path, bytes, data }, &input, &output)?;
        let mut network = Self {
            path,
            sha256,
            engine,
            input,
            output,
            prefix_tokens: choice.prefix_tokens,
            form: Form::Vector,
            features: 0,
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
        let explain = |fault: Fault| match fault {
            Fault::Engine(text) => unsupported(&self.path, graph, None, &text),
            Fault::Panic(text) => broken(&self.path, &text),
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
        let failed = |fault| match fault {
            Fault::Engine(text) | Fault::Panic(text) => broken(&self.path, &text),
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
    fn compute(&self, images: Vec<f32>, batch: usize, side: usize) -> std::result::Result<Output, Fault> {
        let (images, shape) = match self.input.layout {
            Layout::Planes => (images, [batch, 3, side, side]),
            Layout::Pixels => {
                let pixels =
                    images.chunks_exact(3 * side * side).flat_map(|planes| transposed(planes, side * side));
                (pixels.collect(), [batch, side, side, 3])
            }
        };
        let numbers = match self.input.element {
            Element::Float | Element::Half | Element::Double => Numbers::Float(images),
            Element::Byte => {
                Numbers::Byte(images.iter().map(|value| value.round().clamp(0.0, 255.0) as u8).collect())
            }
        };
        self.engine.run(numbers, shape)
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

/// [R, C] → [C, R], with C columns.
fn transposed(rows: &[f32], features: usize) -> Vec<f32> {
    let positions = rows.len() / features;
    (0..features).flat_map(|feature| (0..positions).map(move |at| rows[at * features + feature])).collect()
}
