"""Sets `akin eval` of the recipes `hier/pretrained` beside timm: the embeddings and R@k of CUB-200-2011 with drawn pictures,
from random weights of timm's architectures.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    cargo build --release
    venv/bin/python tests/peers/pretrained.py --akin target/release/akin

Nothing in akin needs this file. It draws the data set in its published layout, saves the weights as torch does, and lets
both read the same files. It ends with 1 if an embedding or a score differs. The embeddings are not the same to the last
digit, because decoders of JPEG round differently: by one level of 255 here and there.
"""

import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import timm
import torch
import torchvision.transforms as transforms
from PIL import Image, ImageDraw

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("--images-per-class", type=int, default=4)
parser.add_argument("--threads", type=int, default=os.cpu_count())
arguments = parser.parse_args()
arguments.akin = os.path.abspath(arguments.akin)
torch.set_num_threads(arguments.threads)
os.environ["RAYON_NUM_THREADS"] = str(arguments.threads)

IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
INCEPTION = (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)
# The recipe, the architecture of timm, the file of weights, and the normalisation of Hyp's code.
NETWORKS = [
    ("deit", "deit_small_patch16_224", "deit_small_patch16_224-cd65a155.pth", IMAGENET),
    ("dino", "vit_small_patch16_224", "dino_deitsmall16_pretrain.pth", IMAGENET),
    ("vit", "vit_small_patch16_224", "vit_small_patch16_224_in21k.safetensors", INCEPTION),
]
# The two readings of the preprocessing: the text's 256 × 256, and the code's shorter side of 256.
READINGS = [("256 × 256", (256, 256), []), ("shorter side 256", 256, ["--set", "model.preprocessing.squeeze=false"])]
# How far the cosine of the two embeddings of a picture may be from 1.
TOLERANCE = 1e-5


def draw(folder):
    """CUB-200-2011 with two training classes and ten test classes. Returns the test images and their classes."""
    random = np.random.default_rng(0)
    names = [f"{number:03}.Bird_{number}" for number in [1, 100, *range(101, 111)]]
    images, labels, test = [], [], []
    for name in names:
        colour, corners = random.integers(0, 256, 3), int(random.integers(3, 8))
        for number in range(arguments.images_per_class):
            width, height = (int(side) for side in random.integers(240, 500, 2))
            picture = Image.new("RGB", (width, height), tuple(int(c) for c in random.integers(0, 256, 3)))
            centre, radius = random.uniform(0.3, 0.7, 2) * (width, height), random.uniform(0.25, 0.45) * min(width, height)
            turn = random.uniform(0, 2 * np.pi)
            angles = turn + 2 * np.pi * np.arange(corners) / corners
            points = [(centre[0] + radius * np.cos(a), centre[1] + radius * np.sin(a)) for a in angles]
            fill = tuple(int(c) for c in np.clip(colour + random.integers(-40, 41, 3), 0, 255))
            ImageDraw.Draw(picture).polygon(points, fill=fill)
            file = pathlib.Path("images") / name / f"{name}_{number}.jpg"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            picture.save(folder / file, quality=90)
            images.append(f"{len(images) + 1} {file.relative_to('images')}")
            labels.append(f"{len(labels) + 1} {int(name[:3])}")
            if int(name[:3]) > 100:
                test.append((folder / file, int(name[:3])))
    (folder / "images.txt").write_text("\n".join(images) + "\n")
    (folder / "image_class_labels.txt").write_text("\n".join(labels) + "\n")
    (folder / "classes.txt").write_text("\n".join(f"{int(name[:3])} {name}" for name in names) + "\n")
    return test


def random_network(architecture):
    """A network of timm whose weights are larger than timm's initial ones, so that every layer has an effect."""
    network = timm.create_model(architecture, pretrained=False)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if weight.dim() > 1 and "pos_embed" not in name and "token" not in name:
                torch.nn.init.kaiming_uniform_(weight, a=1)
                weight.mul_(0.7)
            elif weight.dim() == 1:
                weight.add_(0.1 * torch.randn_like(weight))
            else:
                torch.nn.init.normal_(weight, std=0.3)
    return network.eval()


def save(network, name, file):
    """Saves the weights as they are published: a file of safetensors, `model` in a `.pth` of DeiT, or all of one."""
    weights = network.state_dict()
    if file.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file(weights, file)
    elif name == "deit":
        torch.save({"model": weights}, file)
    else:
        # DINO's file has no classifier.
        torch.save({key: weight for key, weight in weights.items() if not key.startswith("head")}, file)


def of_timm(network, test, resize, normalisation):
    """The class tokens, scaled to unit length."""
    transform = transforms.Compose([
        transforms.Resize(resize, interpolation=transforms.InterpolationMode.BICUBIC),
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize(*normalisation),
    ])
    images = torch.stack([transform(Image.open(file).convert("RGB")) for file, _ in test])
    with torch.no_grad():
        tokens = torch.cat([network.forward_features(part)[:, 0] for part in images.split(10)])
    return torch.nn.functional.normalize(tokens, dim=1).numpy()


def recall(embeddings, classes, k):
    """In percent, as Hyp's code has it: the k nearest of the k + 1, without the first."""
    scores = embeddings @ embeddings.T
    np.fill_diagonal(scores, np.inf)
    nearest = np.argsort(-scores, axis=1, kind="stable")[:, 1 : k + 1]
    return 100 * (classes[nearest] == classes[:, None]).any(1).mean()


def akin(words, folder):
    result = subprocess.run([arguments.akin, *words], capture_output=True, text=True, env={**os.environ, "AKIN_DATA": str(folder)})
    if result.returncode:
        sys.exit(f"akin {' '.join(words)}\n{result.stderr}")
    return result.stdout


failed = False
with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    test = draw(folder / "CUB_200_2011")
    classes = np.array([label for _, label in test])
    (folder / "weights").mkdir()
    print(f"{len(test)} test images of {len(set(classes))} classes, timm {timm.__version__}, torch {torch.__version__}\n")
    print(f"{'recipe':<26} {'resized to':<18} {'1 - least cosine':>18}   R@1, R@2, R@4 of timm and of akin")
    for network_name, architecture, file, normalisation in NETWORKS:
        torch.manual_seed(0)
        network = random_network(architecture)
        save(network, network_name, folder / "weights" / file)
        sha256 = hashlib.sha256((folder / "weights" / file).read_bytes()).hexdigest()
        recipe = f"hier/pretrained/cub-{network_name}"
        for reading, resize, sets in READINGS:
            sets = ["--set", f"model.weights_sha256={sha256}", *sets]
            expected = of_timm(network, test, resize, normalisation)
            out = folder / "embeddings.npy"
            akin(["embed", recipe, *[str(file) for file, _ in test], "--out", str(out), "--overwrite", *sets], folder)
            got = np.load(out)
            difference = 1 - (got * expected).sum(1).min()
            rows = akin(["eval", recipe, *sets], folder).splitlines()
            scores = [re.search(rf"R@{k} +[\d.]+ +([\d.]+)", "\n".join(rows)) for k in (1, 2, 4)]
            scores = [float(score.group(1)) for score in scores]
            wanted = [round(recall(expected, classes, k), 2) for k in (1, 2, 4)]
            same = difference < TOLERANCE and np.allclose(scores, wanted, atol=0.006)
            failed |= not same
            show = lambda numbers: " ".join(f"{number:6.2f}" for number in numbers)
            print(f"{recipe:<26} {reading:<18} {difference:>18.1e}   {show(wanted)}  {show(scores)}{'' if same else '  DIFFERS'}")
sys.exit(failed)
