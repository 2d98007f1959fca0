"""Times akin in Python beside what its users have: evaluation and losses, in turns, each in a process of its own.

    venv/bin/pip install -r tests/peers/requirements.txt ./core/python
    venv/bin/pip install ranx omegaconf gdown validators && venv/bin/pip install --no-deps open-metric-learning
    venv/bin/python tests/peers/python.py evaluate --items 5000 [--akin target/release/akin]
    venv/bin/python tests/peers/python.py losses --batch 256,1024

`evaluate`: random unit embeddings in clusters, 512 numbers each. All measure the finest of three levels; akin measures all three,
with H-AP. What runs longer than `--limit` seconds or needs more than `--memory` GB is ended, and the table says so.

`losses`: milliseconds of value and gradient; the median of `--rounds`. The published H-AP surrogate and Smooth-AP are written
with tensors [B, B, B], as in `losses.py`.

Nothing in akin needs this file.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("what", choices=["evaluate", "losses"])
parser.add_argument("--items", type=int, default=5000)
parser.add_argument("--batch", default="256,1024")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--limit", type=float, default=600)
parser.add_argument("--memory", type=float, default=16)
parser.add_argument("--akin", help="the program, to compare with its command")
parser.add_argument("--only", help="names, separated by commas")
parser.add_argument("--worker", help="one of them, in a process of its own")
parser.add_argument("--folder")
arguments = parser.parse_args()
for variable in [
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "NUMBA_NUM_THREADS",
]:
    os.environ[variable] = str(arguments.threads)

# After the numbers of threads are set.
import numpy as np  # noqa: E402


def items(count, dimension=512):
    random = np.random.default_rng(0)
    fine = np.arange(count) // 10
    rows = random.normal(size=(count // 10 + 1, dimension)).astype(np.float32)[fine]
    rows += 2 * random.normal(size=rows.shape).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.stack([fine // 100, fine // 10, fine], 1)


def akin_evaluate(rows, labels):
    import akin

    report = akin.evaluate(rows, labels, metrics=["h_ap", "ap", "map_at_r", "recall@1"], progress=False)
    return report["ap", report.levels[-1]]


def akin_command(rows, labels):
    folder = arguments.folder
    command = [arguments.akin, "eval", "--queries", f"{folder}/q.npy", "--query-labels", f"{folder}/q.csv"]
    command += ["--levels", "a,b,c", "--metrics", "h_ap,ap,map_at_r,recall@1", "--json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(printed)["levels"][-1]["ap"]


def product(rows, labels):
    total = 0.0
    for start in range(0, len(rows), 1000):
        total += float((rows[start : start + 1000] @ rows.T)[0, 0])
    return total


def pml(rows, labels):
    import torch
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    calculator = AccuracyCalculator(
        include=("mean_average_precision", "mean_average_precision_at_r", "precision_at_1"),
        k=None,
        device=torch.device("cpu"),
    )
    found = calculator.get_accuracy(torch.from_numpy(rows), torch.from_numpy(labels[:, -1]))
    return found["mean_average_precision"]


def torchmetrics(rows, labels):
    import torch
    from torchmetrics.retrieval import RetrievalMAP

    rows, fine = torch.from_numpy(rows), torch.from_numpy(labels[:, -1])
    metric = RetrievalMAP()
    for query in range(len(rows)):
        others = torch.arange(len(rows)) != query
        scores = (rows[query] @ rows.T)[others]
        metric.update(scores, (fine == fine[query])[others], torch.full((len(scores),), query))
    return float(metric.compute())


def oml(rows, labels):
    import torch
    from oml.functional.knn import batched_knn
    from oml.functional.metrics import calc_retrieval_metrics

    rows, fine = torch.from_numpy(rows), torch.from_numpy(labels[:, -1])
    every = torch.arange(len(rows))
    positives = [((fine == fine[query]) & (every != query)).nonzero()[:, 0] for query in range(len(rows))]
    _, found, _ = batched_knn(rows, every, every, 100)
    measured = calc_retrieval_metrics(
        list(found), positives, cmc_top_k=(1,), map_top_k=(100,), precision_top_k=(1,), verbose=False
    )
    return float(measured["map"][100])


def ranx(rows, labels):
    from ranx import Qrels, Run, evaluate

    fine = labels[:, -1]
    names = [str(item) for item in range(len(rows))]
    qrels, run = {}, {}
    for query in range(len(rows)):
        scores = rows[query] @ rows.T
        others = [item for item in range(len(rows)) if item != query]
        run[names[query]] = {names[item]: float(scores[item]) for item in others}
        qrels[names[query]] = {names[item]: 1 for item in np.flatnonzero(fine == fine[query]) if item != query}
    return evaluate(Qrels(qrels), Run(run), ["map", "precision@1"])["map"]


EVALUATIONS = {
    "akin": akin_evaluate,
    "akin eval": akin_command,
    "numpy's product": product,
    "pytorch-metric-learning": pml,
    "torchmetrics": torchmetrics,
    "open-metric-learning, first 100": oml,
    "ranx": ranx,
}


def losses_of(name, batch):
    """A loss of a batch, as a function of embeddings."""
    import torch
    from pytorch_metric_learning import losses as library

    import akin.torch

    fine = torch.arange(batch) // 4
    labels = torch.stack([fine // 16, fine // 4, fine], 1)
    of = {
        "akin": akin.torch,
        "pml": library,
    }
    who, _, loss = name.partition(" ")
    if who == "published":
        # The file beside this one.
        import losses as published

        levels = published.shared_levels(labels)
        relevances = published.hierarchical_relevances(levels)
        if loss == "HapSurrogate":
            return lambda rows: published.hap_surrogate(rows, levels, relevances, False)
        return lambda rows: published.smooth_ap(rows, fine)
    options = (
        {"num_classes": batch // 4, "embedding_size": 512}
        if loss in ("ArcFaceLoss", "ProxyAnchorLoss", "Happier")
        else {}
    )
    made = getattr(of[who], loss)(**options)
    return lambda rows: made(rows, labels if who == "akin" else fine)


LOSSES = [
    "akin HapSurrogate", "published HapSurrogate", "akin SmoothHap", "akin SupAP", "akin Roadmap", "akin SupRecall",
    "akin SmoothAPLoss", "published SmoothAPLoss", "pml SmoothAPLoss", "akin FastAPLoss", "pml FastAPLoss",
    "akin TripletMarginLoss", "pml TripletMarginLoss", "akin ContrastiveLoss", "pml ContrastiveLoss",
    "akin MultiSimilarityLoss", "pml MultiSimilarityLoss", "akin SupConLoss", "pml SupConLoss",
    "akin NTXentLoss", "pml NTXentLoss", "akin ProxyAnchorLoss", "pml ProxyAnchorLoss", "akin ArcFaceLoss", "pml ArcFaceLoss",
]  # fmt: skip


def work():
    """What a process of its own does: prints seconds and a value."""
    resource.setrlimit(resource.RLIMIT_DATA, (int(arguments.memory * 1e9),) * 2)
    if arguments.what == "evaluate":
        rows, labels = items(arguments.items)
        small = items(200)
        EVALUATIONS[arguments.worker](*small) if arguments.worker != "akin eval" else None
        start = time.perf_counter()
        value = EVALUATIONS[arguments.worker](rows, labels)
        seconds = time.perf_counter() - start
    else:
        import torch

        torch.set_num_threads(arguments.threads)
        batch = int(arguments.batch)
        torch.manual_seed(0)
        rows = torch.nn.functional.normalize(
            torch.randn(batch, 512) + 0.5 * torch.randn(batch // 4, 512)[torch.arange(batch) // 4]
        )
        loss = losses_of(arguments.worker, batch)
        times = []
        for _ in range(2 + 10 * arguments.rounds):
            again = rows.clone().requires_grad_()
            start = time.perf_counter()
            value = loss(again)
            value.backward()
            times.append(time.perf_counter() - start)
            if sum(times) > 60:
                break
        seconds, value = statistics.median(times[2:] or times), float(value.detach())
    who = resource.RUSAGE_CHILDREN if arguments.worker == "akin eval" else resource.RUSAGE_SELF
    print(json.dumps([seconds, float(value), resource.getrusage(who).ru_maxrss / 1024]))


def run(name, **options):
    """Seconds, value and peak MB; or why there are none."""
    command = [sys.executable, __file__, arguments.what, "--worker", name, "--threads", str(arguments.threads)]
    command += ["--memory", str(arguments.memory), "--rounds", str(arguments.rounds)]
    for option, value in options.items():
        command += [f"--{option}", str(value)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        return f"more than {arguments.limit:.0f} s"
    if done.returncode:
        told = (done.stderr.strip() or "killed").splitlines()[-1]
        return "out of memory" if "alloc" in told or "Memory" in told or done.returncode < 0 else told
    return json.loads(done.stdout.splitlines()[-1])


def evaluate():
    chosen = arguments.only.split(",") if arguments.only else [*EVALUATIONS]
    chosen = [name for name in chosen if name != "akin eval" or arguments.akin]
    with tempfile.TemporaryDirectory() as folder:
        rows, labels = items(arguments.items)
        np.save(f"{folder}/q.npy", rows)
        np.savetxt(f"{folder}/q.csv", labels, fmt="%d", delimiter=",", header="a,b,c", comments="")
        options = {"items": arguments.items, "folder": folder}
        if arguments.akin:
            options["akin"] = arguments.akin
        found = {name: [] for name in chosen}
        for turn in range(arguments.rounds):
            for name in chosen:
                # What fails or is slow once is not tried again.
                if turn == 0 or (isinstance(found[name][0], list) and found[name][0][0] < 60):
                    found[name].append(run(name, **options))
    print(f"{arguments.items:,} x 512, {arguments.threads} threads, {time.strftime('%Y-%m-%d')}\n")
    print("| | seconds | peak MB | value |\n|---|--:|--:|--:|")
    for name, results in found.items():
        if isinstance(results[0], str):
            print(f"| {name} | {results[0]} | | |")
            continue
        seconds = statistics.median(result[0] for result in results)
        print(f"| {name} | {seconds:.2f} | {results[0][2]:.0f} | {results[0][1]:.4f} |")


def losses():
    chosen = arguments.only.split(",") if arguments.only else LOSSES
    batches = arguments.batch.split(",")
    print(f"value and gradient, {arguments.threads} threads, {time.strftime('%Y-%m-%d')}\n")
    print("| | " + " | ".join(f"B = {batch}, ms | MB" for batch in batches) + " |\n|---|" + "--:|--:|" * len(batches))
    for name in chosen:
        cells = []
        for batch in batches:
            found = run(name, batch=batch)
            cells += [found, ""] if isinstance(found, str) else [f"{1000 * found[0]:.1f}", f"{found[2]:.0f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if arguments.worker:
    work()
elif arguments.what == "evaluate":
    evaluate()
else:
    losses()
