"""Prints the golden vectors of DCWH with its public code.

    python tests/golden/hashing.py CHECKOUTS

CHECKOUTS is a folder with a checkout, or a bare clone, of each repository in REPOSITORIES, named `owner+name`. Their code
is executed from there: nothing of it stands here. Where the loss is computed inside a training loop or for a GPU, the
lines that compute it are taken from the file by their first and last words.

Needs torch and numpy. Written with torch 2.15 and numpy 2.4, all in float64.
"""

import json
import pathlib
import re
import subprocess
import sys
import textwrap
import types

import numpy
import torch
import torch.nn.functional

REPOSITORIES = {
    "mzhang367+dcwh": "b0b7c8e7acb081ee4ba6a8372641a9f3e4cb36a6",
}
HERE = pathlib.Path(__file__).parent
BITS = 16


def source(repository, path):
    """The text of a file of a repository at its commit."""
    folder = pathlib.Path(sys.argv[1]) / repository
    command = ["git", "-C", folder, "show", f"{REPOSITORIES[repository]}:{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def definition(text, name):
    """The class or function `name` at the top level of a file, on the CPU and in float64."""
    found = re.search(rf"(?ms)^(class|def) {name}\b.*?(?=^\S|\Z)", text).group(0)
    return found.replace(".cuda()", "").replace(".float()", ".double()").replace("FloatTensor", "DoubleTensor")


def lines(text, first, last):
    """The lines from the first that contains `first` to the next that contains `last`, without their indent."""
    every = text.splitlines()
    start = next(i for i, line in enumerate(every) if first in line)
    end = next(i for i in range(start, len(every)) if last in every[i])
    return textwrap.dedent("\n".join(every[start : end + 1]))


def run(code, **names):
    """The names after executing code with these names."""
    scope = {"torch": torch, "np": numpy, "F": torch.nn.functional, "nn": torch.nn, **names}
    exec(code, scope)
    return scope


def rows(generator, count, scale=1.0):
    return torch.randn(count, BITS, generator=generator, dtype=torch.float64) * scale


def numbers(tensor):
    return tensor.detach().tolist()


def write(name, reference, notes, cases):
    file = {
        "name": name,
        "set": "open",
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "reference": reference,
        "notes": notes,
        "cases": cases,
    }
    (HERE / f"{name}.json").write_text(json.dumps(file) + "\n")
    print(f"{name}.json: {len(cases)} cases")


def dcwh():
    loss_file, training = (source("mzhang367+dcwh", path) for path in ["loss.py", "dcwh.py"])
    criterion_class = run(definition(loss_file, "ClassWiseLoss"))["ClassWiseLoss"]
    regularisers = lines(training, "loss_cubic = F.relu", "loss = loss_beacon")
    cases = []
    for number, (seed, inv_var, scale) in enumerate([(0, 1, 0.3), (1, 0.5, 1.0), (2, 1, 1.5), (3, 1, 4.0)]):
        generator = torch.Generator().manual_seed(seed)
        labels = [0, 2, 1, 0, 4, 2, 1, 1, 4, 0]  # No item has class 3.
        features = rows(generator, len(labels), scale)
        features[0, 0] = 0.0  # Its sign is 0.
        centers = rows(generator, 5, scale)
        features.requires_grad_()
        arguments = {} if inv_var == 1 else {"inv_var": inv_var}  # The training gives none.
        criterion = criterion_class(num_classes=5, bit_length=BITS, use_gpu=False, **arguments)
        beacon = criterion(features, torch.tensor(labels), centers)
        args = types.SimpleNamespace(weight_cubic=10, weight_vertex=0.01)
        loss = run(regularisers, features=features, inputs=features, loss_beacon=beacon, args=args)["loss"]
        loss.backward()
        cases.append({
            "case": f"dcwh{number}",
            "params": {"inv_var": inv_var, "weight_cubic": 10, "weight_vertex": 0.01, "cube": 1.1, "floor": 1e-6},
            "inputs": {"features": numbers(features), "labels": labels, "centers": numbers(centers)},
            "outputs": {"loss_beacon": beacon.item(), "loss": loss.item(), "grad_features": numbers(features.grad)},
        })
    # The centres, from a loader of two batches and a network that returns its input.
    centers_computing = run(definition(training, "centers_computing"))["centers_computing"]
    generator = torch.Generator().manual_seed(4)
    features, labels = rows(generator, 9), [0, 3, 1, 2, 0, 2, 2, 1, 3]
    batches = [(features[part], torch.tensor(labels)[part]) for part in [slice(0, 5), slice(5, 9)]]
    centers = centers_computing(torch.nn.Identity(), batches, 4, BITS)
    cases.append({
        "case": "centers",
        "params": {},
        "inputs": {"features": numbers(features), "labels": labels},
        "outputs": {"centers": numbers(centers)},
    })
    write(
        "dcwh",
        ["mzhang367/dcwh b0b7c8e loss.py ClassWiseLoss", "mzhang367/dcwh b0b7c8e dcwh.py (the loss lines, centers_computing)"],
        "float64. The training constructs ClassWiseLoss without its option inv_var, so that it is 1; dcwh1 has the "
        "option's default. features[0,0] is 0 exactly: sign(0)=0. Class 3 lacks an item.",
        cases,
    )


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for print_file in [dcwh]:
        print_file()
