"""Weights in and out: for each backbone, pooling and head, torch's random weights go into akin, and what `akin export --to`
writes goes back into torch and into ONNX Runtime. The embeddings of drawn pictures have to agree with those of `akin embed`.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    cargo build --release
    venv/bin/python tests/peers/weights.py --akin target/release/akin

Nothing in akin needs this file. The weights of the backbone have to come back as they were, bit by bit: the training that
makes the run has a rate of 0. It ends with 1 if an embedding or a weight differs. The pictures have the size that the
encoder reads, because decoders and resizing differ in the last digit.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import timm
import torch
import torchvision
from PIL import Image
from safetensors.torch import load_file, save_file

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("--only", default="", help="run the cases whose name has this in it")
arguments = parser.parse_args()
arguments.akin = os.path.abspath(arguments.akin)

TOLERANCE = 1e-5
COSINE = ""
BALL = '{ kind = "poincare" }'
BINARY = '{ kind = "binary" }'
LINEAR = "layer_norm = false"
# The backbone, torch's network of the same names, the side of the images, and settings of head and pooling.
resnet = lambda name: lambda: torchvision.models.get_model(name, weights=None)
vit = lambda name: lambda: timm.create_model(name, pretrained=False)
tower = lambda name, outputs: lambda: timm.create_model(name, pretrained=False, num_classes=outputs)
CASES = [
    ("small_resnet", None, 32, "", ""),
    ("mobilenet_v1_quarter", None, 64, "", ""),
    ("bn_inception", None, 96, "", ""),
    ("squeezenet", resnet("squeezenet1_1"), 64, "", ""),
    ("squeezenet", resnet("squeezenet1_1"), 65, LINEAR, '"average_max"'),
    ("resnet18", resnet("resnet18"), 64, "", ""),
    ("resnet18", resnet("resnet18"), 80, LINEAR, '"max"'),
    ("resnet18", resnet("resnet18"), 64, "geometry = " + BALL, "{ gem = { exponent = 3.0 } }"),
    ("resnet18", resnet("resnet18"), 64, "geometry = " + BINARY, ""),
    ("resnet34", resnet("resnet34"), 64, "", ""),
    ("resnet50", resnet("resnet50"), 64, "", ""),
    ("vit_s16", vit("vit_small_patch16_224"), 224, "", ""),
    ("vit_s16", vit("vit_small_patch16_224"), 96, LINEAR, '"average"'),
    ("deit_s16", vit("deit_small_patch16_224"), 224, LINEAR, ""),
    ("deit_s16_distilled", vit("deit_small_distilled_patch16_224"), 224, LINEAR, ""),
    ("deit_s16_distilled", vit("deit_small_distilled_patch16_224"), 160, "", ""),
    ("dino_s16", vit("vit_small_patch16_224"), 96, "geometry = " + BALL, ""),
    ("dinov2_s14", vit("vit_small_patch14_reg4_dinov2"), 98, "", ""),
    ("vit_b16", vit("vit_base_patch16_224"), 224, "", ""),
    ("dinov2_b14_reg4", vit("vit_base_patch14_reg4_dinov2"), 224, "", '"average"'),
    ("dinov2_b14", vit("vit_base_patch14_dinov2"), 224, "", ""),
    ("dinov3_s16", vit("vit_small_patch16_dinov3"), 224, "", ""),
    ("dinov3_s16", vit("vit_small_patch16_dinov3"), 96, LINEAR, '"average"'),
    ("dinov3_s16_plus", vit("vit_small_plus_patch16_dinov3"), 160, "", '"max"'),
    ("dinov3_b16", vit("vit_base_patch16_dinov3"), 224, "", ""),
    ("clip_b16", tower("vit_base_patch16_clip_quickgelu_224", 512), 224, "", ""),
    ("open_clip_b16", tower("vit_base_patch16_clip_224", 512), 160, LINEAR, ""),
    ("siglip2_b16", vit("vit_base_patch16_siglip_224"), 224, "", ""),
    ("siglip2_b16", vit("vit_base_patch16_siglip_224"), 160, LINEAR, ""),
    ("convnext_t", vit("convnext_tiny"), 224, "", ""),
    ("convnext_t", vit("convnext_tiny"), 96, LINEAR, ""),
    ("convnext_b", vit("convnext_base"), 224, "", ""),
    # Of these each takes some minutes.
    ("vit_l16", vit("vit_large_patch16_224"), 96, "", ""),
    ("dinov2_l14", vit("vit_large_patch14_dinov2"), 98, "", ""),
    ("dinov2_l14_reg4", vit("vit_large_patch14_reg4_dinov2"), 98, "", ""),
    ("dinov3_l16", vit("vit_large_patch16_dinov3"), 96, "", ""),
    ("bioclip2", tower("vit_large_patch14_clip_224", 768), 98, "", ""),
]

CONFIG = """
[run]
steps = 1
device = "cpu"

[data]
kind = "csv"
path = "data/labels.csv"
levels = ["order", "family", "species"]

[model]
backbone = {{ kind = "{backbone}" }}
head = {{ dimension = 8{head} }}
batch_norm = "frozen"
preprocessing = {{ crop = {side} }}
{lines}

[loss]
kind = "{loss}"

[sampler]
classes_per_batch = 2
images_per_class = 2

[optimizer]
lr_backbone = 0.0
"""


def akin(*words):
    result = subprocess.run([arguments.akin, *words], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"akin {' '.join(words)}\n{result.stderr}")
    return result.stdout


def random_weights(make, file):
    """The weights of torch's network, larger than its initial ones, so that every layer has an effect. Returns its own."""
    torch.manual_seed(0)
    network = make()
    with torch.no_grad():
        for name, weight in network.state_dict().items():
            if name.endswith("running_var"):
                weight.uniform_(0.5, 2)
            elif name.endswith("running_mean"):
                weight.normal_(std=0.1)
            elif weight.is_floating_point() and weight.dim() == 1:
                weight.add_(0.1 * torch.randn_like(weight))
            elif name.endswith(("_token", "pos_embed")):
                weight.normal_(std=0.3)
    save_file(network.state_dict(), file)
    return network.state_dict()


def of_lines(folder, pictures):
    """The embeddings by the file of lines, as a user imports it."""
    spec = importlib.util.spec_from_file_location("encoder", folder / "encoder.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.inference_mode():
        images = torch.stack([module.preprocess(Image.open(picture)) for picture in pictures])
        return module.embed(module.load(), images).numpy()


def of_onnx(folder, pictures):
    """The embeddings by ONNX Runtime, in one batch and one by one, with the preprocessing beside the file."""
    onnx.checker.check_model(str(folder / "model.onnx"), full_check=True)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    pixels = np.stack([np.asarray(Image.open(picture), np.float32) for picture in pictures])
    numbers = [np.array(settings[key], np.float32) for key in ("image_mean", "image_std")]
    images = ((pixels * np.float32(settings["rescale_factor"]) - numbers[0]) / numbers[1]).transpose(0, 3, 1, 2)
    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    [together] = session.run(None, {"images": images})
    alone = np.concatenate([session.run(None, {"images": image[None]})[0] for image in images])
    assert np.abs(together - alone).max() < TOLERANCE, "the embeddings depend on the batch"
    return together


def of_hub(folder, pictures, case):
    """Whether timm's own loader finds the network of a folder for the hub, with all weights."""
    config = json.loads((folder / "config.json").read_text())
    if "pretrained_cfg" not in config:
        return
    network = timm.create_model(f"local-dir:{folder}", pretrained=True)
    weights = network.state_dict()
    for name, weight in load_file(folder / "model.safetensors").items():
        assert torch.equal(weights[name], weight), f"{case}: timm loaded another {name}"


failed = False
with tempfile.TemporaryDirectory() as name:
    os.chdir(name)
    akin("biomorphs", "data", "--branching", "2,2,2", "--images-per-class", "3", "--side", "32")
    print(f"torch {torch.__version__}, timm {timm.__version__}, onnxruntime {onnxruntime.__version__}\n")
    print(f"{'backbone':<22} {'head and pooling':<62} {'weights':<8} {'torch':>8} {'onnx':>8}")
    for number, (backbone, make, side, head, pooling) in enumerate(CASES):
        case = f"{backbone} {head} {pooling}"
        if arguments.only not in case:
            continue
        loss = "hyperbolic_cross_entropy" if "poincare" in head else "hpdh" if "binary" in head else "happier"
        lines = [f"pooling = {pooling}"] if pooling else []
        own = None
        if make:
            own = random_weights(make, "weights.safetensors")
            lines.append('weights = "weights.safetensors"')
        pathlib.Path("config.toml").write_text(CONFIG.format(
            backbone=backbone, side=side, head=f", {head}" if head else "", lines="\n".join(lines), loss=loss))
        akin("train", "config.toml", "--out", f"run{number}")
        random = np.random.default_rng(number)
        pictures = []
        for picture in range(3):
            pictures.append(f"{number}-{picture}.png")
            Image.fromarray(random.integers(0, 256, (side, side, 3), dtype=np.uint8)).save(pictures[-1])
        akin("embed", f"run{number}", *pictures, "--out", f"{number}.npy")
        expected = np.load(f"{number}.npy")
        out = lambda format: pathlib.Path(f"{format}{number}")
        formats = ["onnx", "safetensors"] + (["pytorch", "hub"] if make else [])
        for format in formats:
            akin("export", f"run{number}", "--to", format, "--out", str(out(format)), "--licence", "MIT")
        difference = {"onnx": np.abs(of_onnx(out("onnx"), pictures) - expected).max()}
        weights = "-"
        if make:
            difference["torch"] = max(np.abs(of_lines(out(format), pictures) - expected).max() for format in ("pytorch", "hub"))
            of_hub(out("hub"), pictures, case)
            back = load_file(out("safetensors") / "model.safetensors")
            heads = ("fc.", "head", "classifier.")
            # DINOv2 without registers goes out with positions for the size of the images.
            resampled = {"pos_embed"} if backbone.startswith("dinov2") and "reg" not in backbone and "s14" not in backbone else set()
            kept = [name for name in own if not name.startswith(heads) and name not in resampled]
            same = all(torch.equal(back[name], own[name]) for name in kept)
            weights = "same" if same else "DIFFER"
        bad = weights == "DIFFER" or max(difference.values()) > TOLERANCE
        failed |= bad
        show = [f"{difference[key]:8.1e}" if key in difference else f"{'-':>8}" for key in ("torch", "onnx")]
        print(f"{backbone:<22} {head + ' ' + pooling:<62} {weights:<8} {' '.join(show)}{'  DIFFERS' if bad else ''}", flush=True)
sys.exit(int(failed))
