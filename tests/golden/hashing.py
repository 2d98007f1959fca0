"""Prints the golden vectors of DCWH, DPSH, DTSH and CSQ, with the public code of each.

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
    "jiangqy+DPSH-pytorch": "042318182814a03c8bc77a331037f331d988f508",
    "swuxyj+DeepHash-pytorch": "ab14068ea9b33e8fe12de49d976d0c2e3f0dc129",
    "yuanli2333+Hadamard-Matrix-for-hashing": "55cab0092813728c43b0a828e484d0dccb2751a7",
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


def one_hot(classes, count):
    return torch.nn.functional.one_hot(torch.tensor(classes), count).double()


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


def dpsh():
    cases = []
    text = source("jiangqy+DPSH-pytorch", "DPSH_CIFAR_10.py")
    logtrick = definition(text, "Logtrick")
    every = text.splitlines()
    start = next(i for i, line in enumerate(every) if line.strip() == "Bbatch = torch.sign(train_outputs)")
    branch = next(i for i in range(start, len(every)) if every[i].strip() == "else:")
    loss_lines = "\n".join([
        every[start].strip(),
        lines("\n".join(every[branch:]), "theta_x =", "regterm ="),
        lines("\n".join(every[branch:]), "loss =  -", "loss =  -"),
    ])
    labels = [0, 1, 0, 2, 1, 0, 2, 2, 1, 0, 3]
    batch = 5
    for number, (seed, scale, weight) in enumerate([(0, 0.7, 10), (1, 2.0, 10), (2, 1.0, 0.5)]):
        features = rows(torch.Generator().manual_seed(seed), len(labels), scale)
        outputs = features[:batch].clone().requires_grad_()
        targets = one_hot(labels, 4)
        names = run(logtrick, Variable=lambda tensor: tensor)
        scope = run(
            loss_lines, train_outputs=outputs, U=features.clone(), S=(targets[:batch] @ targets.t() > 0).double(),
            num_train=len(labels), train_label=labels[:batch], lamda=weight, use_gpu=False,
            Logtrick=names["Logtrick"], Variable=lambda tensor: tensor,
        )
        scope["loss"].backward()
        cases.append({
            "case": f"jiangqy{number}",
            "params": {"lambda": weight},
            "inputs": {"features": numbers(features), "labels": labels, "batch": batch},
            "outputs": {"loss": scope["loss"].item(), "grad_features": numbers(outputs.grad)},
        })
    loss_class = run(definition(source("swuxyj+DeepHash-pytorch", "DPSH.py"), "DPSHLoss"))["DPSHLoss"]
    for number, (seed, scale) in enumerate([(3, 0.7), (4, 2.0)]):
        features = rows(torch.Generator().manual_seed(seed), len(labels), scale)
        config = {"alpha": 0.1, "num_train": len(labels), "n_class": 4, "device": "cpu"}
        criterion = loss_class(config, BITS)
        criterion.U, criterion.Y = features.clone(), one_hot(labels, 4)
        outputs = features[:batch].clone().requires_grad_()
        loss = criterion(outputs, one_hot(labels[:batch], 4), list(range(batch)), config)
        loss.backward()
        cases.append({
            "case": f"swuxyj{number}",
            "params": {"alpha": 0.1},
            "inputs": {"features": numbers(features), "labels": labels, "batch": batch},
            "outputs": {"loss": loss.item(), "grad_features": numbers(outputs.grad)},
        })
    write(
        "dpsh",
        ["jiangqy/DPSH-pytorch 0423181 DPSH_CIFAR_10.py (the loss lines)", "swuxyj/DeepHash-pytorch ab14068 DPSH.py DPSHLoss"],
        "float64. The first `batch` rows are compared with all rows, which have no gradient. A query is compared with "
        "itself, too. The regulariser: lambda * sum / (rows * batch) in the first, alpha * mean over bits in the second.",
        cases,
    )


def dtsh():
    loss_class = run(definition(source("swuxyj+DeepHash-pytorch", "DTSH.py"), "DTSHLoss"))["DTSHLoss"]
    cases = []
    labels = [0, 1, 0, 2, 1, 2]
    for number, (seed, scale, margin, weight) in enumerate([(0, 0.4, 5, 1), (1, 1.0, 5, 1), (2, 0.7, 8, 0)]):
        features = rows(torch.Generator().manual_seed(seed), len(labels), scale).requires_grad_()
        criterion = loss_class({}, BITS)
        loss = criterion(features, one_hot(labels, 3), None, {"alpha": margin, "lambda": weight})
        loss.backward()
        cases.append({
            "case": f"dtsh{number}",
            "params": {"alpha": margin, "lambda": weight},
            "inputs": {"features": numbers(features), "labels": labels},
            "outputs": {"loss": loss.item(), "grad_features": numbers(features.grad)},
        })
    write(
        "dtsh",
        ["swuxyj/DeepHash-pytorch ab14068 DTSH.py DTSHLoss"],
        "float64. Theta is r_i.r_j without the 1/2. A query is one of its positives. The mean over bits of the "
        "quantisation error. Every class has two items, so that the mean over queries is that over triplets.",
        cases,
    )


def csq():
    cases = []
    labels = [0, 3, 1, 2, 0, 2, 4, 4]
    centres_class = definition(source("swuxyj+DeepHash-pytorch", "CSQ.py"), "CSQLoss")
    hadamard = lambda size: numpy.array(
        [[(-1) ** bin(row & column).count("1") for column in range(size)] for row in range(size)]
    )
    loss_class = run(centres_class, hadamard=hadamard)["CSQLoss"]
    for number, (seed, scale, weight) in enumerate([(0, 0.5, 0.0001), (1, 1.5, 0.0001), (2, 1.0, 0.05)]):
        features = rows(torch.Generator().manual_seed(seed), len(labels), scale).requires_grad_()
        config = {"dataset": "imagenet", "n_class": 5, "device": "cpu", "lambda": weight}
        criterion = loss_class(config, BITS)
        criterion.hash_targets = criterion.hash_targets.double()
        loss = criterion(features, one_hot(labels, 5), None, config)
        loss.backward()
        cases.append({
            "case": f"swuxyj{number}",
            "params": {"lambda1": 0, "lambda2": weight},
            "inputs": {"features": numbers(features), "labels": labels, "centers": numbers(criterion.hash_targets)},
            "outputs": {"loss": loss.item(), "grad_features": numbers(features.grad)},
        })
    repository = "yuanli2333+Hadamard-Matrix-for-hashing"
    pairwise = run(source(repository, "my_pairwise_loss.py"))["pairwise_loss"]
    training = source(repository, "train.py")
    first = lines(training, "center_loss = criterion(0.5 * (y + 1)", "Q_loss =")
    halves = lines(training, "output1 = y.narrow", "data_imbalance=data_imbalance").replace(".cuda()", "")
    total = lines(training, "loss = args.lambda0*center_loss + args.lambda1*", "args.lambda1*")
    for number, (seed, scale, lambda1) in enumerate([(3, 0.5, 0.2), (4, 1.5, 0.2), (5, 1.0, 0)]):
        generator = torch.Generator().manual_seed(seed)
        features = rows(generator, len(labels), scale).requires_grad_()
        centers = torch.sign(rows(generator, 5))
        args = types.SimpleNamespace(lambda0=1, lambda1=lambda1, lambda2=0.05, hash_bit=BITS)
        y = features.tanh()  # The last layer of its network.
        scope = run(
            "\n".join([first, halves, total]), y=y, hash_center=centers[labels], label=one_hot(labels, 5), args=args,
            criterion=torch.nn.BCELoss(), pairwise_loss=pairwise, data_imbalance=100,
        )
        scope["loss"].backward()
        cases.append({
            "case": f"yuanli{number}",
            "params": {"lambda1": lambda1, "lambda2": 0.05},
            "inputs": {"features": numbers(features), "labels": labels, "centers": numbers(centers)},
            "outputs": {
                "center_loss": scope["center_loss"].item(),
                "similarity_loss": float(scope["similarity_loss"]),
                "Q_loss": scope["Q_loss"].item(),
                "loss": scope["loss"].item(),
                "grad_features": numbers(features.grad),
            },
        })
    write(
        "csq",
        ["yuanli2333/Hadamard-Matrix-for-hashing 55cab00 train.py (the loss lines), my_pairwise_loss.py pairwise_loss",
         "swuxyj/DeepHash-pytorch ab14068 CSQ.py CSQLoss"],
        "float64. features are the values before the tanh. The quantisation is the mean of (|y| - 1)^2. The first code "
        "adds lambda1 times the likelihood of the pairs of the two halves of the batch.",
        cases,
    )


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for print_file in [dcwh, dpsh, dtsh, csq]:
        print_file()
