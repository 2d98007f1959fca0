"""Writes a small image encoder with random weights, whose outputs are tokens, as an ONNX file: that of the browser tests.

    python3 tests/peers/onnx_network.py tests/e2e/tokens.onnx
"""

import sys

import numpy
from onnx import TensorProto, helper, numpy_helper, save

random = numpy.random.default_rng(5)


def weight(name, *shape):
    deviation = numpy.prod(shape[1:]) ** -0.5
    return numpy_helper.from_array(random.normal(0, 2 * deviation, shape).astype("float32"), name)


weights = [weight("w1", 16, 3, 8, 8), weight("w2", 32, 16, 4, 4), weight("w3", 64, 32, 2, 2), weight("cls", 1, 1, 64)]
weights.append(numpy_helper.from_array(numpy.array([0, 64, -1]), "rows"))


def convolve(inputs, output, size, stride):
    return helper.make_node(
        "Conv", inputs, [output], kernel_shape=[size, size], strides=[stride, stride], dilations=[1, 1], pads=[0, 0, 0, 0]
    )


nodes = [
    convolve(["pixel_values", "w1"], "a", 8, 4),
    helper.make_node("Relu", ["a"], ["b"]),
    convolve(["b", "w2"], "c", 4, 2),
    helper.make_node("Relu", ["c"], ["d"]),
    convolve(["d", "w3"], "e", 2, 1),
    helper.make_node("Reshape", ["e", "rows"], ["f"]),
    helper.make_node("Transpose", ["f"], ["patches"], perm=[0, 2, 1]),
    helper.make_node("ReduceMean", ["patches"], ["mean"], axes=[1], keepdims=1),
    helper.make_node("Add", ["mean", "cls"], ["class_token"]),
    helper.make_node("Concat", ["class_token", "patches"], ["last_hidden_state"], axis=1),
]
image = helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["batch", 3, 64, 64])
tokens = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", None, 64])
graph = helper.make_graph(nodes, "tokens", [image], [tokens], weights)
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), sys.argv[1])
