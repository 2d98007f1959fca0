"""Times training steps of `akin` beside torch, on the same networks, batches and threads, in turns, in one sitting:
forwards, backwards and AdamW's step, with live batch normalisation; and the network forwards alone, as in evaluation.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    cargo build --release
    venv/bin/python tests/peers/training.py --akin target/release/akin

Nothing in akin needs this file. torch's loss is the mean of all features, and akin's that of HAPPIER, which takes less
than a millisecond. The column `floor` is what a network cannot go below: its multiply-adds at the speed of torch's matrix
product of 2048 × 2048 numbers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=3, help="turns of akin and torch")
parser.add_argument("--steps", type=int, default=5, help="steps of a turn; the first is not counted")
parser.add_argument("--only", default="squeezenet,resnet50,vit_s16", help="what to measure")
parser.add_argument("--of-torch", help="measure this network in torch, and print JSON")
arguments = parser.parse_args()

for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"]:
    os.environ[variable] = str(arguments.threads)

# The batch and the side of the images, as in the table of the README.
SHAPES = {"squeezenet": (64, 128), "resnet18": (16, 224), "resnet50": (16, 224), "vit_s16": (16, 224)}


def network_of_torch(name):
    """The network without its classifier."""
    import torch
    import torchvision

    if name == "squeezenet":
        return torchvision.models.squeezenet1_1().features
    if name == "vit_s16":
        # ViT-S/16: 12 blocks of 6 heads, 384 features.
        network = torchvision.models.VisionTransformer(224, 16, 12, 6, 384, 1536)
        network.heads = torch.nn.Identity()
        return network
    network = getattr(torchvision.models, name)()
    network.fc = torch.nn.Identity()
    return network


def measure_torch(name):
    """The median seconds of a step and of an evaluation, the peak memory, and the speed of a product."""
    import resource

    import torch

    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    batch, side = SHAPES[name]
    network, images = network_of_torch(name), torch.rand(batch, 3, side, side) * 4 - 2
    optimizer = torch.optim.AdamW(network.parameters(), 1e-6)

    def step():
        optimizer.zero_grad()
        network(images).mean().backward()
        optimizer.step()

    def evaluate():
        network.eval()
        with torch.no_grad():
            network(images)
        network.train()

    def seconds(work, count):
        times = []
        for _ in range(1 + count):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return times[1:]

    result = {
        "seconds": statistics.median(seconds(step, arguments.steps)),
        "evaluation_seconds": statistics.median(seconds(evaluate, arguments.steps)),
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    matrix = torch.rand(2048, 2048)
    result["product"] = 2048**3 / min(seconds(lambda: matrix @ matrix, 5)) / 1e9
    print(json.dumps(result))


def run(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main():
    header = f"{'network':<12} {'what':<12} {'akin':>9} {'torch':>9} {'÷ torch':>8} {'floor':>9}"
    print(f"{arguments.threads} threads, {arguments.rounds} turns; medians\n{header}", flush=True)
    for name in arguments.only.split(","):
        batch, side = SHAPES[name]
        akin, torch = [], []
        for _ in range(arguments.rounds):
            command = [arguments.akin, "bench", "train", "--json", "--progress", "none", "--backbones", name]
            command += ["--batch", str(batch), "--side", str(side), "--steps", str(arguments.steps)]
            akin += run(command)["rows"]
            shared = ["--akin", arguments.akin, "--threads", str(arguments.threads), "--steps", str(arguments.steps)]
            torch.append(run([sys.executable, __file__, *shared, "--of-torch", name]))

        def median(rows, key):
            return statistics.median(row[key] for row in rows)

        count = median(akin, "billion_multiply_adds_per_second") * median(akin, "seconds")
        product = max(row["product"] for row in torch)
        for what, key, part in [("step", "seconds", 1), ("evaluation", "evaluation_seconds", 1 / 3)]:
            ours, theirs, floor = median(akin, key), median(torch, key), count * part / product
            print(f"{name:<12} {what:<12} {ours:8.2f}s {theirs:8.2f}s {ours / theirs:7.2f}× {floor:8.2f}s", flush=True)
        ours, theirs = median(akin, "peak_memory") / 1e9, median(torch, "peak_memory") / 1e9
        print(f"{name:<12} {'memory':<12} {ours:7.2f}GB {theirs:7.2f}GB {ours / theirs:7.2f}×", flush=True)


if arguments.of_torch:
    measure_torch(arguments.of_torch)
else:
    main()
