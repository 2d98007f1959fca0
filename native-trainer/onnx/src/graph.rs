//! What a graph says of itself: the one input that takes pictures, and the outputs.

use std::collections::HashSet;
use std::path::Path;

use akin_base::problem::{a_few, did_you_mean, problem};
use anyhow::Result;
use rten_onnx::onnx::{DataType, GraphProto, ModelProto, ValueInfoProto};

/// The order of the numbers of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Plane after plane: [B, 3, H, W].
    Planes,
    /// Pixel after pixel: [B, H, W, 3].
    Pixels,
}

/// The type of the numbers of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Numbers in single precision.
    Float,
    /// Numbers in half precision. The engine computes in single precision.
    Half,
    /// Numbers in double precision. The engine computes in single precision.
    Double,
    /// Bytes from 0 to 255: the graph itself normalises them.
    Byte,
}

/// The input of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The order of its numbers.
    pub layout: Layout,
    /// The type of its numbers.
    pub element: Element,
    /// The side of the square that it takes, in pixels; none if the graph takes several.
    pub side: Option<u32>,
    /// Whether it takes one picture at a time.
    pub one_by_one: bool,
}

/// Which outputs are taken without being named, if there are several: the embedding of a model with two towers, the
/// embedding of another, the tokens.
const KNOWN_OUTPUTS: [&str; 3] = ["image_embeds", "pooler_output", "last_hidden_state"];

/// The graph of a model.
///
/// # Errors
///
/// A model without a graph.
pub(crate) fn graph(model: &ModelProto) -> Result<&GraphProto> {
    model.graph.as_ref().ok_or_else(|| problem("the ONNX file has no graph", crate::file::EXPORT_AGAIN))
}

/// Finds the input of a graph.
///
/// # Errors
///
/// No input or several, or one that takes no square RGB pictures, or a fixed number of them other than 1.
pub(crate) fn input(graph: &GraphProto, path: &Path) -> Result<Input> {
    // Older files list the weights among the inputs.
    let weights: HashSet<&str> =
        graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref()).collect();
    let inputs: Vec<&ValueInfoProto> =
        graph.input.iter().filter(|value| !weights.contains(name(value))).collect();
    let [value] = inputs.as_slice() else {
        let names: Vec<&str> = inputs.iter().map(|value| name(value)).collect();
        return Err(problem(
            format!(
                "{} has {} inputs ({}), and akin gives it pictures alone",
                path.display(),
                names.len(),
                a_few(&names)
            ),
            "export the image encoder alone, such as `model.visual` of open_clip or the vision model of transformers",
        ));
    };
    let refuse = |what: String, hint: &str| {
        Err(problem(format!("the input {} of {} {what}", name(value), path.display()), hint))
    };
    let tensor = value.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let element = match tensor.and_then(|tensor| tensor.elem_type) {
        Some(DataType::FLOAT) => Element::Float,
        Some(DataType::FLOAT16) => Element::Half,
        Some(DataType::DOUBLE) => Element::Double,
        Some(DataType::UINT8) => Element::Byte,
        other => {
            let kind = other.map_or("of no type".into(), |kind| format!("of the type {kind}"));
            return refuse(
                format!("is {kind}"),
                "export an encoder whose input is float32, float16 or uint8",
            );
        }
    };
    let Some(shape) = tensor.and_then(|tensor| tensor.shape.as_ref()) else {
        return refuse(
            "has no shape".into(),
            "export the encoder with its input's shape, [batch, 3, height, width]",
        );
    };
    let dims: Vec<Option<i64>> =
        shape.dim.iter().map(|dim| dim.dim_value.filter(|&value| value > 0)).collect();
    let shown: Vec<String> = (shape.dim.iter().zip(&dims))
        .map(|(dim, value)| match value {
            Some(value) => value.to_string(),
            None => dim.dim_param.clone().unwrap_or_else(|| "?".into()),
        })
        .collect();
    let shown = format!("[{}]", shown.join(", "));
    let pictures =
        "export an encoder of RGB pictures: [batch, 3, height, width], or [batch, height, width, 3]";
    let (layout, channels, sides) = match dims[..] {
        [_, channels, height, width] if channels == Some(3) || width != Some(3) => {
            (Layout::Planes, channels, [height, width])
        }
        [_, height, width, channels] => (Layout::Pixels, channels, [height, width]),
        _ => return refuse(format!("has the shape {shown}"), pictures),
    };
    if channels.is_some_and(|channels| channels != 3) {
        return refuse(format!("has the shape {shown}"), pictures);
    }
    let side = match sides {
        [None, None] => None,
        [Some(height), Some(width)] if height == width && height <= 4096 => Some(height as u32),
        _ => {
            return refuse(
                format!("has the shape {shown}"),
                "akin gives square pictures of at most 4096 pixels a side: export the encoder for such",
            );
        }
    };
    let batch = dims[0];
    if batch.is_some_and(|batch| batch != 1) {
        return refuse(
            format!("has the shape {shown}: it takes {} pictures at a time, never fewer", batch.unwrap_or(0)),
            "export it with a dynamic batch: `dynamic_shapes` of `torch.onnx.export` (or `dynamic_axes` of older ones)",
        );
    }
    Ok(Input { name: name(value).to_owned(), layout, element, side, one_by_one: batch == Some(1) })
}

/// Chooses the output whose features are taken: the one with the wanted name, else the only one, else the first of
/// `image_embeds`, `pooler_output` and `last_hidden_state`; with `pooled`, the tokens before the vectors.
///
/// # Errors
///
/// An output that is not there, or several of which none is known.
pub(crate) fn output(graph: &GraphProto, wanted: Option<&str>, pooled: bool, path: &Path) -> Result<String> {
    let names: Vec<&str> = graph.output.iter().map(name).collect();
    if let Some(wanted) = wanted {
        if names.contains(&wanted) {
            return Ok(wanted.to_owned());
        }
        let near = did_you_mean(wanted, names.iter().copied());
        return Err(problem(
            format!("{} has no output {wanted}", path.display()),
            format!("{near}its outputs are {}", a_few(&names)),
        ));
    }
    let has = |known: &&str| names.contains(known);
    let known = if pooled {
        KNOWN_OUTPUTS.iter().rev().find(|name| has(name))
    } else {
        KNOWN_OUTPUTS.iter().find(|name| has(name))
    };
    match (&names[..], known) {
        ([only], _) => Ok((*only).to_owned()),
        (_, Some(known)) => Ok((*known).to_owned()),
        _ => Err(problem(
            format!("{} has {} outputs: {}", path.display(), names.len(), a_few(&names)),
            "say which one has the features: `output` of the backbone in the config, or `--output`",
        )),
    }
}

fn name(value: &ValueInfoProto) -> &str {
    value.name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rten_onnx::onnx::{Dimension, TensorShapeProto, TypeProto, TypeProtoTensor};

    use super::*;

    fn value(name: &str, kind: DataType, dims: &[i64]) -> ValueInfoProto {
        let dim =
            |&value: &i64| Dimension { dim_value: (value > 0).then_some(value), ..Dimension::default() };
        let shape = TensorShapeProto { dim: dims.iter().map(dim).collect() };
        let tensor = TypeProtoTensor { elem_type: Some(kind), shape: Some(shape) };
        let kind = TypeProto { tensor_type: Some(tensor), ..TypeProto::default() };
        ValueInfoProto { name: Some(name.into()), r#type: Some(kind) }
    }

    fn read(dims: &[i64]) -> Result<Input> {
        let graph = GraphProto { input: vec![value("x", DataType::FLOAT, dims)], ..GraphProto::default() };
        input(&graph, Path::new("m.onnx"))
    }

    #[test]
    fn the_shape_of_the_input_says_layout_side_and_batch() {
        let of = |dims: &[i64]| read(dims).map(|input| (input.layout, input.side, input.one_by_one)).unwrap();
        assert_eq!(of(&[0, 3, 224, 224]), (Layout::Planes, Some(224), false));
        assert_eq!(of(&[0, 0, 0, 0]), (Layout::Planes, None, false));
        assert_eq!(of(&[1, 3, 0, 0]), (Layout::Planes, None, true));
        assert_eq!(of(&[0, 224, 224, 3]), (Layout::Pixels, Some(224), false));
        assert_eq!(of(&[0, 0, 0, 3]), (Layout::Pixels, None, false));
    }

    #[test]
    fn inputs_that_are_no_pictures_are_refused() {
        for dims in [
            &[0, 3, 224][..],
            &[0, 1, 28, 28],
            &[0, 3, 224, 336],
            &[0, 3, 224, 0],
            &[0, 3, 8192, 8192],
            &[0, 28, 28, 1],
            &[4, 3, 224, 224],
        ] {
            assert!(read(dims).is_err(), "{dims:?}");
        }
        let message = read(&[4, 3, 224, 224]).unwrap_err().to_string();
        assert!(message.contains("4 pictures at a time"), "{message}");
        let text = value("ids", DataType::INT64, &[0, 77]);
        let graph = GraphProto { input: vec![text], ..GraphProto::default() };
        assert!(input(&graph, Path::new("m.onnx")).is_err());
    }

    #[test]
    fn the_output_is_the_named_one_the_only_one_or_a_known_one() {
        let of = |names: &[&str], wanted, pooled| {
            let outputs = names.iter().map(|name| value(name, DataType::FLOAT, &[0, 8])).collect();
            let graph = GraphProto { output: outputs, ..GraphProto::default() };
            output(&graph, wanted, pooled, Path::new("m.onnx")).ok()
        };
        let clip = ["last_hidden_state", "image_embeds"];
        assert_eq!(of(&["y"], None, false).unwrap(), "y");
        assert_eq!(of(&clip, None, false).unwrap(), "image_embeds");
        assert_eq!(of(&clip, None, true).unwrap(), "last_hidden_state");
        assert_eq!(of(&["a", "b"], Some("b"), false).unwrap(), "b");
        assert_eq!(of(&["a", "b"], None, false), None);
        assert_eq!(of(&["a", "b"], Some("c"), false), None);
        assert_eq!(of(&[], None, false), None);
    }
}
