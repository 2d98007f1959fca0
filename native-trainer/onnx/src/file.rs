//! An ONNX file and the files of its external data, read whole under limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use akin_base::files::read_regular_file;
use akin_base::problem::{Advise, problem};
use akin_base::quantities::rounded_bytes;
use akin_core::digest::sha256;
use anyhow::Result;
use rten_onnx::onnx::{DataLocation, GraphProto, ModelProto, TensorProto};

use crate::graph::{self, Input};
use crate::wire;

/// The largest ONNX file, in bytes: what Protocol Buffers can hold.
pub const MAX_FILE: u64 = 2 << 30;
/// The most bytes of an ONNX file and its external data together.
pub const MAX_TOTAL: u64 = 4 << 30;

/// What to do with a file that is damaged or something else.
pub(crate) const EXPORT_AGAIN: &str = "download or export the file again; `torch.onnx.export` and Hugging Face's `optimum-cli export onnx` write such files";

/// The bytes of an ONNX file and of its external data.
pub struct OnnxFile {
    /// Where it was read.
    pub path: PathBuf,
    /// The file itself.
    pub bytes: Vec<u8>,
    /// The files with external data, by the names that the file gives them.
    pub data: BTreeMap<String, Vec<u8>>,
    /// The SHA-256 of the file and, if there are any, of the files with external data behind it, sorted by their names.
    pub sha256: String,
}

impl OnnxFile {
    /// Reads a file, and the files in its folder that it names as external data.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is too large or no ONNX file; external data that are missing, are outside the folder of
    /// the file, or are too large.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_limited(path, 0, MAX_FILE, "check the path of the ONNX file")?;
        let model = parse(&bytes, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut data = BTreeMap::new();
        let mut total = bytes.len() as u64;
        for location in external(model.graph.as_ref()) {
            if !is_inside(&location) {
                return Err(problem(
                    format!("{} has weights in {location:?}, which leads out of its folder", path.display()),
                    "akin reads no file outside the folder of the model: export it as one file, or with its data beside it",
                ));
            }
            let hint = "put the file with the weights beside the ONNX file: both belong together, and the name must stay";
            let content = read_limited(&folder.join(&location), total, MAX_TOTAL, hint)?;
            total += content.len() as u64;
            data.insert(location, content);
        }
        let sha256 = if data.is_empty() {
            sha256(&bytes)
        } else {
            let parts = std::iter::once(&bytes).chain(data.values());
            sha256(parts.map(|part| sha256(part)).collect::<String>().as_bytes())
        };
        Ok(Self { path: path.to_owned(), bytes, data, sha256 })
    }

    /// A file of a bundle, all of whose weights are inside.
    ///
    /// # Errors
    ///
    /// Bytes that are no ONNX file, or have external data.
    pub fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self> {
        let model = parse(&bytes, path)?;
        if let Some(location) = external(model.graph.as_ref()).first() {
            return Err(problem(
                format!("{} has weights in {location:?}, but all of them should be inside", path.display()),
                "export the bundle again",
            ));
        }
        Ok(Self { path: path.to_owned(), sha256: sha256(&bytes), bytes, data: BTreeMap::new() })
    }

    /// The input of the graph.
    ///
    /// # Errors
    ///
    /// No input or several, or one that takes no square pictures in RGB, or a fixed number of them other than 1.
    pub fn input(&self) -> Result<Input> {
        graph::input(graph::graph(&self.model()?)?, &self.path)
    }

    /// The model in the file.
    pub(crate) fn model(&self) -> Result<ModelProto> {
        parse(&self.bytes, &self.path)
    }
}

fn read_limited(path: &Path, before: u64, limit: u64, hint: &str) -> Result<Vec<u8>> {
    let unreadable = || format!("{} cannot be read", path.display());
    let length = fs::metadata(path).advise(unreadable, hint)?.len();
    if before.saturating_add(length) > limit {
        let together = if before > 0 { " together with the files before it" } else { "" };
        return Err(problem(
            format!(
                "{} has {}{together}, and akin reads at most {}",
                path.display(),
                rounded_bytes(before.saturating_add(length)),
                rounded_bytes(limit)
            ),
            "use a smaller encoder, or one with weights in half precision",
        ));
    }
    read_regular_file(path).advise(unreadable, hint)
}

/// The model in the bytes of a file.
///
/// # Errors
///
/// Bytes that are no ONNX file, or not a whole one.
pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<ModelProto> {
    let refuse = |flaw: String| problem(format!("{} cannot be used: {flaw}", path.display()), EXPORT_AGAIN);
    wire::check(bytes).map_err(|flaw| refuse(flaw.to_string()))?;
    ModelProto::parse_buf(bytes).map_err(|error| refuse(error.to_string()))
}

/// Whether a path of external data stays in the folder of its file.
fn is_inside(location: &str) -> bool {
    // A backslash separates folders on Windows, and a colon follows a drive there.
    let is_plain = !location.is_empty() && !location.contains(['\\', ':']);
    is_plain && Path::new(location).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The names of the files with external data, sorted.
fn external(graph: Option<&GraphProto>) -> Vec<String> {
    let mut locations = Vec::new();
    let mut graphs: Vec<&GraphProto> = graph.into_iter().collect();
    while let Some(graph) = graphs.pop() {
        let attributes = || graph.node.iter().flat_map(|node| &node.attribute);
        graphs.extend(attributes().filter_map(|attribute| attribute.g.as_ref()));
        let tensors =
            graph.initializer.iter().chain(attributes().filter_map(|attribute| attribute.t.as_ref()));
        locations.extend(tensors.filter_map(location));
    }
    locations.sort_unstable();
    locations.dedup();
    locations
}

/// The file with the data of a tensor; none if the model holds them. A tensor without a name of a file gives an empty one,
/// which is refused.
pub(crate) fn location(tensor: &TensorProto) -> Option<String> {
    if tensor.data_location != Some(DataLocation::EXTERNAL) {
        return None;
    }
    let entry = tensor.external_data.iter().find(|entry| entry.key.as_deref() == Some("location"));
    Some(entry.and_then(|entry| entry.value.clone()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_data_stay_in_the_folder() {
        for inside in ["model.onnx_data", "weights/part 1.bin", "a..b"] {
            assert!(is_inside(inside), "{inside}");
        }
        for outside in ["", "../x", "/etc/passwd", "a/../../x", "..", "c:\\x", "a\\..\\..\\x", "./../x"] {
            assert!(!is_inside(outside), "{outside}");
        }
    }
}
