"""Writes the fixtures beside this file: what the published implementations compute of seeded weights and images.

    python3 core/tests/backbones/fixtures.py [NAME…]

Needs torch, torchvision, timm, pretrainedmodels and safetensors. The tests need none of them.

Each weight is a function of its name and of the number of its element (`formula`), so that no weights are stored. A
fixture holds the names and shapes of all weights, parameters and multiply-adds of the backbone, and, with batch
normalisation frozen and live, samples of the features and of the gradient of a fixed sum of them. They are computed in
double precision. `training.json` holds the losses of some steps of training.
"""

import collections
import hashlib
import importlib.util
import json
import pathlib
import sys

import numpy as np
import safetensors.torch
import timm
import torch
import torchvision
from torch import nn

HERE = pathlib.Path(__file__).parent
SAMPLES = 24


def formula(name, shape):
    """Numbers from -1 to 1: splitmix64 of a hash of the name plus the number of the element."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    count = int(np.prod(shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(40)).astype(np.float64) / 2**23 - 1).reshape(shape)


def weight(name, shape):
    """A weight that keeps activations near 1: He's for matrices, near 1 for scales and variances."""
    numbers = formula(name, shape)
    if len(shape) == 0:
        return torch.zeros(shape, dtype=torch.int64)
    if len(shape) > 1 and shape[0] == 1:
        numbers = 0.5 * numbers
    elif len(shape) > 1:
        numbers = numbers * np.sqrt(6 / (np.prod(shape[1:], dtype=np.int64)))
    elif name.endswith("running_var"):
        numbers = 1 + 0.5 * numbers
    elif name.endswith(".weight"):
        numbers = 1 + 0.25 * numbers
    elif name.endswith(".gamma"):
        numbers = 0.5 + 0.25 * numbers
    else:
        numbers = 0.1 * numbers
    return torch.from_numpy(numbers.astype(np.float32)).double()


class MobilenetV1(nn.Module):
    """The backbone of RetinaFace, as `mobilenet0.25` of Pytorch_Retinaface."""

    def __init__(self):
        super().__init__()

        def plain(inputs, outputs, stride):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.1))

        def pair(inputs, outputs, stride):
            return nn.Sequential(
                nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs),
                nn.LeakyReLU(0.1), nn.Conv2d(inputs, outputs, 1, 1, 0, bias=False), nn.BatchNorm2d(outputs),
                nn.LeakyReLU(0.1))

        self.stage1 = nn.Sequential(plain(3, 8, 2), pair(8, 16, 1), pair(16, 32, 2), pair(32, 32, 1),
                                    pair(32, 64, 2), pair(64, 64, 1))
        self.stage2 = nn.Sequential(pair(64, 128, 2), *[pair(128, 128, 1) for _ in range(5)])
        self.stage3 = nn.Sequential(pair(128, 256, 2), pair(256, 256, 1))
        self.fc = nn.Linear(256, 1000)

    def features(self, images):
        return self.stage3(self.stage2(self.stage1(images)))


def bn_inception():
    # The package itself imports data sets that this script does not need.
    package = pathlib.Path(importlib.util.find_spec("pretrainedmodels").submodule_search_locations[0])
    spec = importlib.util.spec_from_file_location("bninception", package / "models" / "bninception.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.BNInception()


def resnet_features(model):
    layers = [model.conv1, model.bn1, model.relu, model.maxpool, model.layer1, model.layer2, model.layer3, model.layer4]

    def features(images):
        for layer in layers:
            images = layer(images)
        return images
    return features


def mean(maps):
    return maps.mean((2, 3))


def convolutional(make, features=lambda model: model.features):
    def build():
        model = make()
        return model, lambda images: mean(features(model)(images))
    return build


def transformer(name):
    def build():
        model = timm.create_model(name, pretrained=False, dynamic_img_size=True)
        return model, lambda images: model.forward_head(model.forward_features(images), pre_logits=True)
    return build


# Name: how to make it, images, their side, weights whose gradients are sampled.
RESNET = ["conv1.weight", "bn1.weight", "layer1.0.conv1.weight", "layer2.0.downsample.0.weight",
          "layer3.1.bn2.bias", "layer4.1.conv2.weight"]
TRANSFORMER = ["cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight",
               "blocks.5.attn.proj.bias", "blocks.7.norm2.weight", "blocks.11.mlp.fc2.weight", "norm.bias"]
MODELS = {
    "squeezenet": (convolutional(torchvision.models.squeezenet1_1), 2, 97,
                   ["features.0.weight", "features.7.squeeze.bias", "features.12.expand3x3.weight"]),
    "mobilenet_v1_quarter": (convolutional(MobilenetV1), 2, 64,
                             ["stage1.0.0.weight", "stage1.2.0.weight", "stage2.3.4.bias", "stage3.1.3.weight"]),
    "resnet18": (convolutional(torchvision.models.resnet18, resnet_features), 2, 64, RESNET),
    "resnet34": (convolutional(torchvision.models.resnet34, resnet_features), 2, 64, RESNET),
    "resnet50": (convolutional(torchvision.models.resnet50, resnet_features), 2, 64, RESNET + ["layer4.2.conv3.weight"]),
    "bn_inception": (convolutional(bn_inception), 2, 64,
                     ["conv1_7x7_s2.weight", "inception_3a_pool_proj.weight", "inception_3c_double_3x3_2_bn.weight",
                      "inception_4d_1x1.bias", "inception_5b_3x3.weight", "inception_5b_pool_proj_bn.bias"]),
    "vit_s16": (transformer("vit_small_patch16_224"), 1, 224, TRANSFORMER),
    "deit_s16": (transformer("deit_small_patch16_224"), 2, 96, TRANSFORMER),
    "deit_s16_distilled": (transformer("deit_small_distilled_patch16_224"), 1, 256, TRANSFORMER + ["dist_token"]),
    "dino_s16": (transformer("vit_small_patch16_224.dino"), 2, 128, TRANSFORMER),
    "dinov2_s14": (transformer("vit_small_patch14_reg4_dinov2"), 2, 112,
                   TRANSFORMER + ["reg_token", "blocks.3.ls1.gamma", "blocks.11.ls2.gamma"]),
}
CLASSIFIERS = ("fc.", "classifier.", "last_linear.", "head.", "head_dist.")


def sample(tensor):
    values = tensor.detach().reshape(-1)
    count = values.numel()
    picked = [values[i * count // SAMPLES].item() for i in range(min(SAMPLES, count))]
    return {"largest": values.abs().max().item(), "norm": values.norm().item(), "values": picked}


def measure(model, features, images, gradients, live):
    """The features, and the gradients of their sum with fixed factors."""
    model.train(live)
    images = images.clone().requires_grad_()
    model.zero_grad()
    output = features(images)
    factors = torch.from_numpy(formula("factors", output.shape))
    (output * factors).sum().backward()
    parameters = dict(model.named_parameters())
    result = {"features": sample(output), "gradients": {name: sample(parameters[name].grad) for name in gradients}}
    result["gradients"]["images"] = sample(images.grad)
    return result


def multiply_adds(model, features, side):
    """Counts multiplications of one image: convolutions, linear layers, and the two products of an attention."""
    total = 0

    def count(layer, inputs, output):
        nonlocal total
        if isinstance(layer, nn.Conv2d):
            total += layer.weight.numel() * output.shape[2] * output.shape[3]
        elif isinstance(layer, nn.Linear):
            total += layer.weight.numel() * (output.numel() // output.shape[-1])
        else:
            total += 2 * inputs[0].shape[1] ** 2 * inputs[0].shape[2]

    kinds = (nn.Conv2d, nn.Linear, timm.layers.Attention)
    hooks = [layer.register_forward_hook(count) for layer in model.modules() if isinstance(layer, kinds)]
    model.eval()
    with torch.no_grad():
        features(torch.zeros(1, 3, side, side).double())
    for hook in hooks:
        hook.remove()
    return total


def write_fixture(name):
    build, batch, side, gradients = MODELS[name]
    model, features = build()
    model.double()
    state = {key: weight(key, tuple(value.shape)) for key, value in model.state_dict().items()}
    model.load_state_dict(state)
    images = torch.from_numpy(formula("images", (batch, 3, side, side)))
    fixture = {
        "batch": batch,
        "side": side,
        "parameters": sum(p.numel() for key, p in model.named_parameters() if not key.startswith(CLASSIFIERS)),
        "multiply_adds": {size: multiply_adds(model, features, size) for size in (side, 224)},
        "weights": {key: list(value.shape) for key, value in state.items()},
        "frozen": measure(model, features, images, gradients, False),
    }
    if any(isinstance(layer, nn.BatchNorm2d) for layer in model.modules()):
        fixture["live"] = measure(model, features, images, gradients, True)
        fixture["live"]["running_mean"] = {
            key: sample(value) for key, value in model.state_dict().items()
            if key.endswith("running_mean") and key.startswith(("bn1.", "stage3.1.4", "conv2_3x3_bn"))}
    (HERE / f"{name}.json").write_text(json.dumps(fixture, separators=(",", ":")).replace('},"', '},\n"') + "\n")
    print(name, fixture["frozen"]["features"]["norm"], fixture.get("live", {}).get("features", {}).get("norm"))


# Name: images, their side, the step of gradient descent. With fewer images and larger steps, single and double precision
# differ in torch itself, because live batch normalisation follows so few numbers.
TRAINED = {"squeezenet": (2, 97, 0.02), "mobilenet_v1_quarter": (8, 96, 5e-4), "resnet18": (8, 96, 1e-3),
           "resnet50": (8, 96, 2e-5), "vit_s16": (1, 224, 0.02)}


def write_training():
    """The losses of ten steps of gradient descent towards fixed features, with live batch normalisation."""
    losses = {}
    for name, (batch, side, step) in TRAINED.items():
        model, features = MODELS[name][0]()
        model.double().train()
        model.load_state_dict({key: weight(key, tuple(value.shape)) for key, value in model.state_dict().items()})
        images = torch.from_numpy(formula("images", (batch, 3, side, side)))
        optimizer = torch.optim.SGD(model.parameters(), step)
        values = []
        for _ in range(10):
            optimizer.zero_grad()
            output = features(images)
            loss = (output - torch.from_numpy(formula("factors", output.shape))).square().mean()
            values.append(loss.item())
            loss.backward()
            optimizer.step()
        losses[name] = {"batch": batch, "side": side, "step": step, "losses": values}
        print(name, *values)
    (HERE / "training.json").write_text(json.dumps(losses, indent=1) + "\n")


class RunsCode:
    def __reduce__(self):
        return print, ("this pickle ran code",)


def write_files():
    """Small files of torch.save and safetensors, for the readers."""
    matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4) / 8
    tensors = collections.OrderedDict([
        ("f32", matrix), ("f64", matrix.double()), ("f16", matrix.half()), ("bf16", matrix.bfloat16()),
        ("transposed", matrix.t()), ("row", matrix[1]), ("scalar", torch.tensor(2.5)),
        ("parameter", nn.Parameter(matrix[:, 1:3])), ("i64", torch.tensor(7)), ("u8", torch.tensor([1, 2, 3]).byte()),
        ("empty", torch.zeros(0, 4)),
    ])
    torch.save(tensors, HERE / "tensors.pth")
    torch.save(tensors, HERE / "tensors_legacy.pth", _use_new_zipfile_serialization=False)
    checkpoint = {"epoch": 3, "lr": 0.1, "arch": "tiny", "state_dict": nn.Linear(2, 2).state_dict(), "best": None}
    checkpoint["state_dict"]["weight"].copy_(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    checkpoint["state_dict"]["bias"].fill_(0.5)
    checkpoint["state_dict"] = collections.OrderedDict(
        (f"module.{key}", value) for key, value in checkpoint["state_dict"].items())
    torch.save(checkpoint, HERE / "checkpoint.pth")
    torch.save({"weight": matrix, "hook": RunsCode()}, HERE / "runs_code.pth")
    torch.save({"weight": matrix, "accuracy": np.float64(0.5)}, HERE / "numpy_scalar.pth")
    safetensors.torch.save_file({key: value.detach().clone().contiguous() for key, value in tensors.items()},
                                HERE / "tensors.safetensors")


if __name__ == "__main__":
    torch.manual_seed(0)
    names = sys.argv[1:]
    for name in names or MODELS:
        write_fixture(name)
    if not names:
        write_training()
        write_files()
