"""Sets akin's engine for ONNX files beside ONNX Runtime, on the files of `onnx_models.py` and the light models of the
package onnx: embeddings, and images per second on the same cores.

    venv/bin/python tests/peers/onnx_models.py models
    cargo build --release -p akin-onnx --example run
    venv/bin/python tests/peers/onnx_engines.py --run target/release/examples/run models

Nothing in akin needs this file. It prints a table in Markdown, and ends with 1 if a cosine is below 0.9999. Both engines
take turns, and the fastest of their batches counts, because other programs may run at the same time.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--run", required=True, help="the example `run` of akin-onnx")
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--seconds", type=float, default=4, help="for each turn")
parser.add_argument("--turns", type=int, default=3)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("models", type=pathlib.Path, help="the folder of the files")
arguments = parser.parse_args()
environment = {**os.environ, "RAYON_NUM_THREADS": str(arguments.threads)}


def measure(path, folder):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    entry = session.get_inputs()[0]
    batch = 1 if entry.shape[0] == 1 else arguments.batch
    images = np.random.default_rng(0).standard_normal((batch, 3, 224, 224)).astype("f4")
    images.tofile(folder / "images.f32")
    (expected,) = session.run(None, {entry.name: images})
    rates = {"akin": [], "ONNX Runtime": []}
    for _ in range(arguments.turns):
        command = [arguments.run, path, folder / "images.f32", str(batch), folder / "outputs.f32", str(arguments.seconds)]
        answer = subprocess.run(command, capture_output=True, text=True, env=environment)
        if answer.returncode != 0:
            return None, answer.stderr.split("Error: ")[-1].split("\n")[0]
        rates["akin"].append(float(answer.stdout.split()[1]))
        fastest, start = float("inf"), time.perf_counter()
        while time.perf_counter() - start < arguments.seconds:
            before = time.perf_counter()
            session.run(None, {entry.name: images})
            fastest = min(fastest, time.perf_counter() - before)
        rates["ONNX Runtime"].append(batch / fastest)
    found = np.fromfile(folder / "outputs.f32", "<f4").astype("f8")
    found, wanted = (array.reshape(batch, -1) for array in (found, expected.astype("f8")))
    cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    difference = np.abs(found - wanted).max() / np.abs(wanted).max()
    return (expected.shape, cosines.min(), difference, max(rates["akin"]), max(rates["ONNX Runtime"])), None


files = [(file.parent.name, file) for file in sorted(arguments.models.glob("*/model.onnx"))]
light = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
files += [(file.stem, file) for file in sorted(light.glob("*.onnx"))]
print("| network | output | cosine | largest difference | akin, images/s | ONNX Runtime, images/s | ratio |")
print("|---|---|--:|--:|--:|--:|--:|")
differs = False
with tempfile.TemporaryDirectory() as scratch:
    for name, file in files:
        if name.startswith("light_"):
            # All its weights are equal, so its numbers reach 10²¹, and a softmax would leave rounding alone.
            model = onnx.load(file)
            if model.graph.node[-1].op_type == "Softmax":
                model.graph.output[0].name = model.graph.node.pop().input[0]
            file = pathlib.Path(scratch) / "light.onnx"
            onnx.save(model, file)
        result, refusal = measure(file, pathlib.Path(scratch))
        if result is None:
            print(f"| {name} | refused: {refusal} | | | | | |", flush=True)
            continue
        shape, cosine, difference, own, other = result
        differs |= not cosine >= 0.9999
        print(
            f"| {name} | {list(shape[1:])} | {cosine:.7f} | {difference:.1e} | {own:.1f} | {other:.1f} | {own / other:.2f} |",
            flush=True,
        )
sys.exit(differs)
