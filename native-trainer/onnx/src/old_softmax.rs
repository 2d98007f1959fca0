//! Softmax of files before operator set 13, which the engine would compute over another axis.
//!
//! Until then an axis k, 1 by default, meant: make a matrix of all axes before k and all from k on, and normalise its rows.
//! Now it means that one axis. The older meaning is written out with the newer operators.

use rten_onnx::onnx::{AttributeProto, AttributeType, ModelProto, NodeProto};

/// The first operator set in which an axis is one axis.
const ONE_AXIS: i64 = 13;

/// Writes the older meaning out. Says whether there was something to write.
pub(crate) fn rewrite(model: &mut ModelProto) -> bool {
    let is_onnx = |domain: Option<&str>| matches!(domain.unwrap_or_default(), "" | "ai.onnx");
    let version = model.opset_import.iter().find(|set| is_onnx(set.domain.as_deref()));
    let Some(graph) = &mut model.graph else { return false };
    if version.and_then(|set| set.version).is_none_or(|version| version >= ONE_AXIS) {
        return false;
    }
    let (before, nodes) = (graph.node.len(), std::mem::take(&mut graph.node));
    for (place, node) in nodes.into_iter().enumerate() {
        let axis = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some("axis"));
        let axis = axis.and_then(|attribute| attribute.i).unwrap_or(1);
        let is_softmax = matches!(node.op_type.as_deref(), Some("Softmax" | "LogSoftmax" | "Hardmax"));
        match (&node.input[..], &node.output[..]) {
            ([input], [output]) if is_softmax && axis != -1 && is_onnx(node.domain.as_deref()) => {
                graph.node.extend(rows(&node, input, output, axis, place));
            }
            _ => graph.node.push(node),
        }
    }
    graph.node.len() != before
}

/// The rows of a matrix normalised, and brought back into the shape of the input.
fn rows(node: &NodeProto, input: &str, output: &str, axis: i64, place: usize) -> [NodeProto; 4] {
    let [shape, matrix, normalised] =
        ["shape", "matrix", "normalised"].map(|part| format!("akin.softmax.{place}.{part}"));
    let make = |kind: &str, inputs: &[&str], output: &str, axis: Option<i64>| NodeProto {
        name: node.name.clone(),
        op_type: Some(kind.to_owned()),
        input: inputs.iter().map(|&input| input.to_owned()).collect(),
        output: vec![output.to_owned()],
        attribute: (axis.into_iter())
            .map(|axis| AttributeProto {
                name: Some("axis".into()),
                i: Some(axis),
                r#type: Some(AttributeType::INT),
                ..AttributeProto::default()
            })
            .collect(),
        ..NodeProto::default()
    };
    [
        make("Shape", &[input], &shape, None),
        make("Flatten", &[input], &matrix, Some(axis)),
        make(node.op_type.as_deref().unwrap_or_default(), &[&matrix], &normalised, Some(-1)),
        make("Reshape", &[&normalised, &shape], output, None),
    ]
}
