"""Holds `akin.pml` and `akin.torchmetrics` to pytorch-metric-learning and torchmetrics, on random data.

    venv/bin/pip install ./core/python
    venv/bin/python tests/peers/drop_ins.py

Also evaluates on two processes, whose value has to be that of one. Nothing in akin needs this file.
"""

import itertools
import os
import tempfile
import warnings

import numpy as np
import torch
import torch.multiprocessing as processes
import torchmetrics.retrieval as theirs
from akin import pml
from akin.torchmetrics import Evaluation, Retrieval
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN

RANKED = ("mean_average_precision", "mean_average_precision_at_r", "mean_reciprocal_rank", "precision_at_1", "r_precision")


def data(seed, items, classes, dimension=8):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (items,), generator=generator)
    return torch.randn(items, dimension, generator=generator) + labels[:, None] % 5, labels


def check_pml():
    worst, count = 0.0, 0
    for seed, (k, avg_of_avgs, mode) in enumerate(
        itertools.product([None, 5, "max_bin_count"], [False, True], ["alone", "reference", "included"])
    ):
        query, labels = data(seed, 120, 9)
        reference, reference_labels = data(seed + 100, 200, 9)
        if mode == "included":
            reference, reference_labels = torch.cat([query, reference]), torch.cat([labels, reference_labels])
        given = [] if mode == "alone" else [reference, reference_labels, mode == "included"]
        # faiss is another exact search.
        knn = CustomKNN(LpDistance(normalize_embeddings=False))
        options = {"include": RANKED, "k": k, "avg_of_avgs": avg_of_avgs}
        expected = AccuracyCalculator(**options, device=torch.device("cpu"), knn_func=knn).get_accuracy(query, labels, *given)
        found = pml.AccuracyCalculator(**options).get_accuracy(query, labels, *given)
        assert found.keys() == expected.keys()
        worst = max(worst, *(abs(found[name] - expected[name]) for name in expected))
        count += len(expected)
    assert worst < 1e-6, worst
    print(f"pytorch-metric-learning: {count} values, the largest difference {worst:.1e}")


def check_torchmetrics():
    pairs = {
        "ap": theirs.RetrievalMAP,
        "mrr": theirs.RetrievalMRR,
        "precision@3": lambda **options: theirs.RetrievalPrecision(top_k=3, **options),
        "true_recall@3": lambda **options: theirs.RetrievalRecall(top_k=3, **options),
        "recall@3": lambda **options: theirs.RetrievalHitRate(top_k=3, **options),
        "r_precision": theirs.RetrievalRPrecision,
    }
    worst, count = 0.0, 0
    for seed, ((name, make), action) in enumerate(itertools.product(pairs.items(), ["neg", "pos", "skip"])):
        generator = torch.Generator().manual_seed(seed)
        indexes = torch.randint(20, (300,), generator=generator)
        preds, target = torch.rand(300, generator=generator), torch.rand(300, generator=generator) < 0.15
        metrics = [make(empty_target_action=action), Retrieval(name, empty_target_action=action)]
        for metric in metrics:
            for part in range(3):
                metric.update(preds[part::3], target[part::3], indexes[part::3])
        expected, found = (float(metric.compute()) for metric in metrics)
        worst, count = max(worst, abs(expected - found)), count + 1
    assert worst < 1e-6, worst
    print(f"torchmetrics: {count} values, the largest difference {worst:.1e}")


def evaluate(rank, ranks, folder):
    torch.distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=ranks)
    embeddings, labels = data(7, 90, 6)
    metric = Evaluation("h_ap")
    metric.update(embeddings[rank::ranks], torch.stack([labels % 2, labels], 1)[rank::ranks])
    np.save(os.path.join(folder, f"{ranks}-{rank}.npy"), metric.compute().numpy())
    torch.distributed.destroy_process_group()


def check_processes():
    with tempfile.TemporaryDirectory() as folder:
        for ranks in [1, 2]:
            processes.spawn(evaluate, (ranks, folder), ranks)
            if os.path.exists(os.path.join(folder, "store")):
                os.remove(os.path.join(folder, "store"))
        one, *two = (np.load(os.path.join(folder, name)) for name in ["1-0.npy", "2-0.npy", "2-1.npy"])
    # The order of the items decides only ties.
    assert all(abs(value - one) < 1e-12 for value in two), (one, two)
    print("two processes: the value of one")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    check_pml()
    check_torchmetrics()
    check_processes()
