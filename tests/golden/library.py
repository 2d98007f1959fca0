"""Prints the golden vectors of losses that stand in pytorch-metric-learning, recorded from it.

    pip install torch==2.15.0 pytorch-metric-learning==2.9.0
    python tests/golden/library.py

All in float64.
"""

import json
import pathlib

import numpy
import pytorch_metric_learning
import torch
from pytorch_metric_learning import losses

HERE = pathlib.Path(__file__).parent
DIMENSION = 8
# Uneven classes, one of a single item; and two of equal size.
BATCHES = {"uneven": [0, 1, 0, 2, 1, 0, 3, 2, 0, 1, 1], "even": [0, 0, 0, 1, 1, 1]}
LOSSES = [
    ("CosFaceLoss", {"margin": 0.35, "scale": 64}),
    ("CosFaceLoss", {"margin": 0.1, "scale": 16}),
    ("SubCenterArcFaceLoss", {"margin": 28.6, "scale": 64, "sub_centers": 3}),
    ("NTXentLoss", {"temperature": 0.07}),
    ("NTXentLoss", {"temperature": 0.5}),
    ("SupConLoss", {"temperature": 0.1}),
    ("SupConLoss", {"temperature": 0.5}),
    ("CircleLoss", {"m": 0.4, "gamma": 80}),
    ("CircleLoss", {"m": 0.25, "gamma": 8}),
    ("LiftedStructureLoss", {"neg_margin": 1, "pos_margin": 0}),
    ("LiftedStructureLoss", {"neg_margin": 0.5, "pos_margin": 0.2}),
    ("RankedListLoss", {"margin": 0.4, "Tn": 10}),
    ("RankedListLoss", {"margin": 0.2, "Tn": 2, "imbalance": 0.3, "alpha": 1.3, "Tp": 1}),
    ("NPairsLoss", {}),
    ("AngularLoss", {"alpha": 40}),
    ("AngularLoss", {"alpha": 20}),
    ("SphereFaceLoss", {"margin": 4, "scale": 30}),
    ("SphereFaceLoss", {"margin": 3, "scale": 8}),
]
# These take the length of embeddings into account. They get embeddings of unit length, as those of a head are.
OF_UNIT_LENGTH = ("AngularLoss", "SphereFaceLoss")


def record(name, params, batch, labels):
    generator = torch.Generator().manual_seed(len(labels))
    embeddings = torch.randn(len(labels), DIMENSION, generator=generator, dtype=torch.float64, requires_grad=True)
    classes = max(labels) + 1
    proxies = "Face" in name
    loss = getattr(losses, name)(**params, **({"num_classes": classes, "embedding_size": DIMENSION} if proxies else {}))
    inputs = {"embeddings": embeddings.tolist(), "labels": labels}
    if proxies:
        count = classes * params.get("sub_centers", 1)
        rows = torch.randn(count, DIMENSION, generator=generator, dtype=torch.float64)
        loss.W = torch.nn.Parameter(rows.T.contiguous())
        inputs["proxies"] = rows.tolist()
    rows = torch.nn.functional.normalize(embeddings) if name in OF_UNIT_LENGTH else embeddings
    value = loss(rows, torch.tensor(labels))
    value.backward()
    outputs = {"loss": value.item(), "grad_embeddings": embeddings.grad.tolist()}
    if proxies:
        outputs["grad_proxies"] = loss.W.grad.T.tolist()
    return {"case": f"{name}_{batch}_{'_'.join(map(str, params.values()))}", "params": {"loss": name, **params},
            "inputs": inputs, "outputs": outputs}  # fmt: skip


cases = [record(name, params, batch, labels) for name, params in LOSSES for batch, labels in BATCHES.items()]
file = {
    "name": "library_losses",
    "set": "open",
    "torch": torch.__version__,
    "numpy": numpy.__version__,
    "reference": [f"pytorch-metric-learning {pytorch_metric_learning.__version__}"],
    "notes": "float64. The embeddings have other lengths than 1.",
    "cases": cases,
}
(HERE / "library_losses.json").write_text(json.dumps(file) + "\n")
print(f"library_losses.json: {len(cases)} cases")
