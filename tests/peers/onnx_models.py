"""Writes ten published architectures as ONNX files, with random weights and a dynamic batch.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/onnx_models.py models [NAME…]
    venv/bin/python tests/peers/onnx_models.py --fixtures native-trainer/onnx/tests/files

Beside each file stands what its library says of preprocessing, as `config.json` (timm) or `preprocessor_config.json`
(transformers). `onnx_engines.py` sets akin beside ONNX Runtime on these files.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import helper


class Visual(torch.nn.Module):
    """The image tower of a transformers model with two towers: pixels to the projected embedding."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).image_embeds


class Tokens(torch.nn.Module):
    """The tokens of a transformer of timm, after its last norm."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, pixel_values):
        return self.model.forward_features(pixel_values)


def torchvision_model(name):
    import torchvision

    model = torchvision.models.get_model(name, weights=None)
    model.fc = torch.nn.Identity()
    return model, None


def timm_model(name, tokens=False, **settings):
    import timm

    model = timm.create_model(name, pretrained=False, num_classes=0, **settings)
    config = {"architecture": name, "pretrained_cfg": timm.data.resolve_data_config({"img_size": 224}, model=model)}
    return (Tokens(model) if tokens else model), {"config.json": config}


def clip_model():
    from transformers import CLIPImageProcessor, CLIPVisionConfig, CLIPVisionModelWithProjection

    # The published sizes of ViT-B/16.
    config = CLIPVisionConfig(patch_size=16, projection_dim=512)
    return Visual(CLIPVisionModelWithProjection(config)), {"preprocessor_config.json": CLIPImageProcessor().to_dict()}


MODELS = {
    "resnet50": lambda: torchvision_model("resnet50"),
    "convnext_tiny": lambda: timm_model("convnext_tiny"),
    "vit_base_patch16": lambda: timm_model("vit_base_patch16_224"),
    "dinov2_s14_registers": lambda: timm_model("vit_small_patch14_reg4_dinov2", tokens=True, img_size=224),
    "dinov3_s16": lambda: timm_model("vit_small_patch16_dinov3", tokens=True, img_size=224),
    "siglip2_b16": lambda: timm_model("vit_base_patch16_siglip_224"),
    "clip_vit_b16": clip_model,
    "efficientnet_b0": lambda: timm_model("efficientnet_b0"),
    "mobilenetv4_small": lambda: timm_model("mobilenetv4_conv_small"),
    "swin_tiny": lambda: timm_model("swin_tiny_patch4_window7_224"),
}


def disturb(model):
    """Gives what a fresh network leaves at 0 or 1 (biases, norms, statistics, layer scales) random values, so that a
    mistake in it shows."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() <= 1:
                scale = 0.3 if "gamma" in name else 1.0
                parameter.mul_(0.0 if parameter.abs().max() < 1e-3 else 1.0)
                parameter.add_(0.05 * scale * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(0, 0.1)
            if name.endswith("running_var"):
                buffer.uniform_(0.7, 1.3)


def export(name, folder):
    torch.manual_seed(0)
    model, files = MODELS[name]()
    disturb(model)
    model.eval()
    folder.mkdir(parents=True, exist_ok=True)
    image = torch.randn(2, 3, 224, 224)
    torch.onnx.export(
        model,
        (image,),
        str(folder / "model.onnx"),
        input_names=["pixel_values"],
        output_names=["features"],
        dynamic_shapes=({0: torch.export.Dim("batch")},),
        dynamo=True,
        external_data=False,
    )
    for file, content in (files or {}).items():
        (folder / file).write_text(json.dumps(content, indent=1, default=list))


# --- Fixtures of the tests: tiny networks, and files that akin refuses ---------------------------------------------------

SIDE = 32


def pattern(shape, kind=np.float32):
    """Numbers that the tests compute too: floats from -1 to 0.98, or bytes."""
    steps = (np.arange(np.prod(shape)) * 37) % 199
    return (steps.astype(kind) if kind == np.uint8 else (steps / 100 - 1).astype(kind)).reshape(shape)


class Convolutions(torch.nn.Module):
    """Three blocks; a vector, or maps."""

    def __init__(self, vector):
        super().__init__()
        widths = [3, 8, 12, 16]
        blocks = [
            torch.nn.Sequential(torch.nn.Conv2d(a, b, 3, 2, 1), torch.nn.BatchNorm2d(b), torch.nn.ReLU())
            for a, b in zip(widths, widths[1:])
        ]
        self.body = torch.nn.Sequential(*blocks)
        self.head = torch.nn.Linear(16, 10) if vector else None

    def forward(self, images):
        maps = self.body(images)
        return maps if self.head is None else self.head(maps.mean((2, 3)))


class Pixels(torch.nn.Module):
    """Bytes [B, H, W, 3], which the network normalises itself."""

    def __init__(self):
        super().__init__()
        self.inner = Convolutions(vector=True)

    def forward(self, images):
        return self.inner(images.permute(0, 3, 1, 2).float() / 255 - 0.5)


class Transformer(torch.nn.Module):
    """A class token and two registers before 16 patches; the tokens, and a pooled vector."""

    def __init__(self, batch=None):
        super().__init__()
        self.batch, d = batch, 24
        self.patches = torch.nn.Conv2d(3, d, 8, 8)
        self.prefix = torch.nn.Parameter(torch.randn(1, 3, d))
        self.positions = torch.nn.Parameter(torch.randn(1, 19, d))
        layer = lambda: torch.nn.TransformerEncoderLayer(d, 4, 48, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = torch.nn.ModuleList([layer(), layer()])
        self.norm = torch.nn.LayerNorm(d)
        self.pooler = torch.nn.Linear(d, 20)

    def forward(self, images):
        patches = self.patches(images).flatten(2).transpose(1, 2)
        if self.batch:
            patches = patches.reshape(self.batch, 16, 24)
        tokens = torch.cat([self.prefix.expand(patches.shape[0], -1, -1), patches], 1) + self.positions
        for block in self.blocks:
            tokens = block(tokens)
        tokens = self.norm(tokens)
        return tokens, torch.tanh(self.pooler(tokens[:, 0]))


def write_fixture(folder, name, make, outputs, example=None, dynamic=True, expect=True, **options):
    """Exports a network and, with `expect`, what ONNX Runtime computes of three images by it."""
    torch.manual_seed(1)
    model = make()
    disturb(model)
    model.eval()
    if example is not None and example.dtype == torch.float16:
        model.half()
    if example is None:
        example = torch.from_numpy(pattern((2, 3, SIDE, SIDE)))
    path = folder / f"{name}.onnx"
    shapes = dynamic if isinstance(dynamic, dict) else {0: torch.export.Dim("batch")} if dynamic else None
    options = {"external_data": False, **options}
    torch.onnx.export(
        model,
        (example,),
        str(path),
        input_names=["pixel_values"],
        output_names=outputs,
        dynamic_shapes=(shapes,) if shapes else None,
        dynamo=True,
        **options,
    )
    strip(path)
    if expect:
        kind = np.uint8 if example.dtype == torch.uint8 else np.float32
        images = pattern((3, *example.shape[1:]), kind)
        session = onnxruntime.InferenceSession(str(path))
        for output in outputs:
            (result,) = session.run([output], {"pixel_values": images})
            result.astype("<f4").tofile(folder / f"{name}.{output}.f32")


def strip(path):
    """Removes what the exporter notes of its own source, which is larger than these networks."""
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:]
    del model.metadata_props[:]
    onnx.save(model, path)


def refused_fixtures(folder):
    """Files that akin refuses, each for one reason."""
    value = helper.make_tensor_value_info
    image = ["batch", 3, SIDE, SIDE]

    def save(name, nodes, inputs=(("x", 1, image),), outputs=(("y", 1, ["batch", 3]),), initializers=()):
        graph = helper.make_graph(
            nodes, "g", [value(*item) for item in inputs], [value(*item) for item in outputs], list(initializers)
        )
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.example", 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / f"{name}.onnx")

    mean = lambda source, target: helper.make_node("ReduceMean", [source, "axes"], [target], "mean", keepdims=0)
    axes = onnx.numpy_helper.from_array(np.array([2, 3]), "axes")
    strange = helper.make_node("Sharpen", ["x"], ["s"], "block/sharpen", domain="com.example")
    save("unknown-operator", [strange, mean("s", "y")], initializers=[axes])
    nameless = helper.make_node("Sharpen", ["x"], ["s"], domain="com.example")
    save("nameless-operator", [nameless, mean("s", "y")], initializers=[axes])
    ids = ("ids", onnx.TensorProto.INT64, ["batch", 77])
    save("two-inputs", [mean("x", "y")], inputs=[("x", 1, image), ids], initializers=[axes])
    save("fixed-batch", [mean("x", "y")], inputs=[("x", 1, [4, 3, SIDE, SIDE])], outputs=[("y", 1, [4, 3])], initializers=[axes])
    all_axes = onnx.numpy_helper.from_array(np.array([1, 2, 3]), "axes")
    save("scalar-output", [mean("x", "y")], outputs=[("y", 1, ["batch"])], initializers=[all_axes])
    best = helper.make_node("ArgMax", ["x"], ["y"], "best", axis=1, keepdims=0)
    save("integer-output", [best], outputs=[("y", onnx.TensorProto.INT64, ["batch", SIDE, SIDE])])
    two = [mean("x", "a"), mean("x", "b")]
    save("two-outputs", two, outputs=[("a", 1, ["batch", 3]), ("b", 1, ["batch", 3])], initializers=[axes])
    for name, location in [("missing-data", "weights.bin"), ("data-outside", "../weights.bin")]:
        weights = onnx.TensorProto(name="w", data_type=1, dims=[3, 3], data_location=onnx.TensorProto.EXTERNAL)
        weights.external_data.add(key="location", value=location)
        nodes = [mean("x", "m"), helper.make_node("MatMul", ["m", "w"], ["y"], "product")]
        save(name, nodes, initializers=[axes, weights])


def write_fixtures(folder):
    folder.mkdir(parents=True, exist_ok=True)
    vector = lambda: Convolutions(vector=True)
    write_fixture(folder, "vector", vector, ["embedding"])
    batch, height, width = torch.export.Dim("batch"), torch.export.Dim("height"), torch.export.Dim("width")
    write_fixture(folder, "maps", lambda: Convolutions(vector=False), ["maps"], dynamic={0: batch, 2: height, 3: width})
    write_fixture(folder, "tokens", Transformer, ["last_hidden_state", "pooler_output"])
    pixels = torch.from_numpy(pattern((2, SIDE, SIDE, 3), np.uint8))
    write_fixture(folder, "pixels", Pixels, ["embedding"], example=pixels)
    half = torch.from_numpy(pattern((2, 3, SIDE, SIDE))).half()
    write_fixture(folder, "half", vector, ["embedding"], example=half, expect=False)
    one = torch.from_numpy(pattern((1, 3, SIDE, SIDE)))
    write_fixture(folder, "one-by-one", vector, ["embedding"], example=one, dynamic=False, expect=False)
    write_fixture(folder, "batch-inside", lambda: Transformer(batch=1), ["last_hidden_state", "pooler_output"], example=one, dynamic=False, expect=False)
    declare_dynamic(folder / "batch-inside.onnx")
    write_fixture(folder, "external", vector, ["embedding"], external_data=True)
    refused_fixtures(folder)
    # Before operator set 13 Softmax normalises all axes from its axis on together.
    nodes = [helper.make_node("Softmax", ["x"], ["s"]), helper.make_node("ReduceMax", ["s"], ["y"], axes=[2, 3], keepdims=0)]
    image, vector = ("x", 1, ["batch", 3, SIDE, SIDE]), ("y", 1, ["batch", 3])
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value(*image)], [value(*vector)])
    path = folder / "old-softmax.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6), path)
    (result,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": pattern((3, 3, SIDE, SIDE))})
    result.tofile(folder / "old-softmax.y.f32")
    # All weights of these are equal, so their numbers reach 10²¹, and a softmax would leave rounding alone.
    light = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    for name in ["light_squeezenet", "light_resnet50", "light_shufflenet"]:
        model = onnx.load(light / f"{name}.onnx")
        softmax = model.graph.node.pop()
        model.graph.output[0].name = softmax.input[0]
        onnx.save(model, folder / f"{name}.onnx")
        session = onnxruntime.InferenceSession(str(folder / f"{name}.onnx"))
        (result,) = session.run(None, {session.get_inputs()[0].name: pattern((1, 3, 224, 224))})
        result.astype("<f4").tofile(folder / f"{name}.f32")


def declare_dynamic(path):
    """Lets a file say that its batch is dynamic, which its graph is not."""
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(model, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="the folder for the files, one folder a network")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="networks (all)")
    parser.add_argument("--fixtures", action="store_true", help="write the fixtures of akin-onnx's tests into the folder")
    arguments = parser.parse_args()
    if arguments.fixtures:
        write_fixtures(arguments.out)
    else:
        for name in arguments.names:
            export(name, arguments.out / name)
            print(name, flush=True)
