"""Holds the losses of `akin.torch` to the golden vectors of the published codes, and tries them as a training does.

    venv/bin/pip install ./core/python
    venv/bin/python tests/peers/torch_losses.py

Also trains on two processes, whose gradient has to be that of one. Nothing in akin needs this file.
"""

import json
import os
import tempfile
from pathlib import Path

import akin
import akin.torch as losses
import akin.torch._ranks as ranks
import torch
import torch.multiprocessing as processes
from pytorch_metric_learning.losses import ContrastiveLoss

GOLDEN = Path(__file__).parent.parent / "golden"


def cases(name):
    """The cases of a file, with its numbers as tensors. Labels are coarse to fine here, and fine to coarse there."""
    for case in json.loads((GOLDEN / f"{name}.json").read_text())["cases"]:
        inputs = {key: torch.tensor(value) for key, value in case["inputs"].items() if "labels" in key}
        inputs = {key: (value.flip(1) if value.ndim == 2 else value) for key, value in inputs.items()}
        for key, value in case["inputs"].items():
            if isinstance(value, dict):
                inputs[key] = torch.tensor([*value.values()]).T
            elif "labels" not in key:
                inputs[key] = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        yield case["case"], case["params"], inputs, case["outputs"]


class Agreement:
    """The largest relative difference of values and gradients."""

    def __init__(self):
        self.worst, self.count = 0.0, 0

    def check(self, what, found, expected, tolerance):
        expected = torch.tensor(expected, dtype=torch.float64)
        difference = float((found.detach() - expected).abs().max() / expected.abs().max().clamp(min=1e-3))
        assert difference < tolerance, f"{what}: {difference:.1e}"
        self.worst, self.count = max(self.worst, difference), self.count + 1

    def say(self, name):
        print(f"{name}: {self.count} values and gradients, the largest relative difference {self.worst:.1e}")


def step(config):
    return losses.UpperStep(
        temperature=config["tau"],
        slope=None if config["rho"] < 0 else config["rho"],
        threshold=config.get("delta") or 0.0,
        offset=config.get("offset"),
        start=config.get("start", 0.5),
    )


def reference(inputs):
    if "ref_embeddings" not in inputs:
        return {}
    return {"ref_emb": inputs["ref_embeddings"], "ref_labels": inputs["ref_labels"]}


def check_loss(agreement, what, loss, inputs, outputs, tolerance):
    found = loss(inputs["embeddings"], inputs["labels"], **reference(inputs))
    agreement.check(what, found, outputs["loss"], tolerance)
    found.backward()
    agreement.check(what, inputs["embeddings"].grad, outputs["grad_embeddings"], tolerance)
    if "grad_ref_embeddings" in outputs:
        agreement.check(what, inputs["ref_embeddings"].grad, outputs["grad_ref_embeddings"], tolerance)


def check_rankings():
    agreement = Agreement()
    for case, params, inputs, outputs in cases("happier_hap_surrogate"):
        # The labels of queries and items are numbered separately in one case, which is no tree.
        if params["stop_grad"] or "ref_labels" in inputs:
            continue
        if params["hierarchy_level"] != "MULTI":
            inputs["labels"] = inputs["labels"][:, -1 - params["hierarchy_level"], None]
        config, alpha = params["config"], params["alpha"]
        map_weights = params["relevance_type"] == "map"
        relevance = losses.WeightedRelevance(alpha) if map_weights else losses.HierarchicalRelevance(alpha)
        loss = losses.HapSurrogate(
            relevance=relevance, upper_step=step(config), smooth_rank=config["with_hrank"], normalise=False
        )
        # The reference rounds relevances to single precision.
        check_loss(agreement, case, loss, inputs, outputs, 1e-6)
    for case, params, inputs, outputs in cases("suprank_h_ap"):
        relevance = losses.HierarchicalRelevance(params["alpha"])
        if params["rank"] == "smooth":
            loss = losses.SmoothHap(relevance=relevance, temperature=params["tau"], normalise=False)
            check_loss(agreement, case, loss, inputs, outputs, 1e-6)
    for name, smooth, bound in [
        ("sup_ap", None, losses.SupAP),
        ("smooth_ap", losses.SmoothAP, None),
        ("suprank_ndcg", losses.SmoothNDCG, losses.SupNDCG),
        ("suprank_recall", losses.SmoothRecall, losses.SupRecall),
    ]:
        for case, params, inputs, outputs in cases(name):
            # There a query without a positive makes the mean no number; here it is left out.
            if "nopos1" in case:
                continue
            cutoffs = {"cutoffs": params["at_k"], "cutoff_temperature": params["temp"]} if "at_k" in params else {}
            if smooth is not None and "rho" not in params:
                loss = smooth(temperature=params["tau"], normalise=False, **cutoffs)
            else:
                loss = bound(step=step(params), normalise=False, **cutoffs)
            # The code of NDCG sums its ideal in single precision, and Smooth-AP's own code computes in it.
            tolerance = 1e-5 if "official" in case else 1e-6 if name == "suprank_ndcg" else 1e-9
            check_loss(agreement, f"{name} {case}", loss, inputs, outputs, tolerance)
    for case, params, inputs, outputs in cases("calibration"):
        loss = losses.Calibration(positive=params["pos_margin"], negative=params["neg_margin"], mean="active")
        check_loss(agreement, case, loss, inputs, outputs, 1e-9)
    for case, params, inputs, outputs in cases("roadmap_total"):
        calibration = losses.Calibration(positive=params["pos_margin"], negative=params["neg_margin"], mean="active")
        roadmap = losses.Roadmap(sup_ap=losses.SupAP(step=step(params)), calibration=calibration)
        # The code scales embeddings to unit length for the calibration only, so the gradient along them is another.
        rows = inputs["embeddings"].detach()
        gradient = torch.tensor(outputs["grad_embeddings"], dtype=torch.float64) / 2
        across = gradient - (gradient * rows).sum(1, keepdim=True) * rows
        half = {"loss": outputs["loss"] / 2, "grad_embeddings": across.tolist()}
        check_loss(agreement, case, roadmap, inputs, half, 1e-6)
    agreement.say("rankings")


def check_proxies():
    agreement = Agreement()

    def check(case, loss, proxies, inputs, outputs):
        loss.double()
        proxies.data = inputs["proxies"].detach().clone()
        check_loss(agreement, case, loss, inputs, outputs, 1e-6)
        agreement.check(case, proxies.grad, outputs["grad_proxies"], 1e-6)

    for case, params, inputs, outputs in cases("happier_cluster_loss"):
        loss = losses.NormSoftmax(params["num_classes"], 16, temperature=params["temperature"], normalise=False)
        check(case, loss, loss.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("happier_total"):
        surrogate = losses.HapSurrogate(upper_step=step(params["config"]))
        loss = losses.Happier(
            len(inputs["proxies"]), 16, clustering_weight=params["lam"], temperature=params["temperature"],
            surrogate=surrogate, normalise=False,
        )
        check(case, loss, loss.clustering.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("csl"):
        loss = losses.CSL(
            inputs["proxy_labels"], 16, scale=params["scale"], margins=params["margins"][::-1],
            average_levels=params["reduce_type"] == "mean", normalise=False,
        )
        check(case, loss, loss.proxies, inputs, outputs)
    agreement.say("proxies")


def check_hier():
    agreement = Agreement()
    for case, params, inputs, outputs in cases("hier_loss"):
        ball = None
        if params["hyp_c"] > 0:
            ball = losses.Poincare(params["hyp_c"], params["clip_r"], riemannian=params["riemannian"])
        features = inputs["x_euclidean"]
        loss = losses.Hier(
            features.shape[1], ball, proxies=params["num_hproxies"], margin=params["mrg"], temperature=params["tau"]
        )
        loss.proxies.data = inputs["lcas_euclidean"].detach().clone()
        points = ball(features) if ball else torch.nn.functional.normalize(features, dim=1)
        ancestors = loss._ancestors()
        agreement.check(case, points, outputs["z"], 1e-9)
        total = 0.0
        for rows, name in [(points, "samples"), (ancestors, "lcas")]:
            noise = torch.stack([inputs[f"gumbel_{of}_{name}"].detach() for of in ("ij", "ijk")])
            found = loss.of_triplets(loss._distances(rows, ancestors), inputs[f"triplets_{name}"], noise)
            agreement.check(case, found, outputs[f"loss_{name}"], 1e-6)
            total = total + found
        total.backward()
        agreement.check(case, features.grad, outputs["grad_x"], 1e-6)
        agreement.check(case, loss.proxies.grad, outputs["grad_lcas_euclidean"], 1e-6)
    agreement.say("HIER")


def batch(size=64, dimension=16, classes=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    fine = torch.randint(classes, (size,), generator=generator)
    return torch.randn(size, dimension, generator=generator), torch.stack([fine // 8, fine // 2, fine], 1)


def everything(classes=16, dimension=16):
    paths = torch.stack([torch.arange(classes) // 8, torch.arange(classes) // 2, torch.arange(classes)], 1)
    return [
        losses.HapSurrogate(), losses.HapSurrogate(smooth_rank=True), losses.SmoothHap(), losses.SupAP(),
        losses.SmoothAP(), losses.SupNDCG(), losses.SmoothNDCG(), losses.SupRecall(), losses.SmoothRecall(),
        losses.Calibration(), losses.Roadmap(), losses.NormSoftmax(classes, dimension),
        losses.Happier(classes, dimension), losses.CSL(paths, dimension), losses.Levels([ContrastiveLoss()] * 3),
    ]  # fmt: skip


def check_training():
    embeddings, labels = batch()
    for loss in everything():
        name = type(loss).__name__
        rows = embeddings.clone().requires_grad_()
        value = loss(rows, labels)
        (gradient,) = torch.autograd.grad(value, rows)
        assert value.ndim == 0 and torch.isfinite(gradient).all() and gradient.abs().max() > 0, name
        # A compiled loss is the same, and so is one of half precision, nearly.
        torch.compiler.reset()
        compiled = torch.compile(loss, backend="aot_eager")(rows, labels)
        torch.testing.assert_close(compiled, value)
        with torch.autocast("cpu", torch.bfloat16):
            half = loss(rows.bfloat16(), labels)
        half, value = half.detach(), value.detach()
        assert abs(half - value) < 0.1 * abs(value) + 0.02, (name, half, value)
        # In blocks of few queries, too.
        whole, ranks.ELEMENTS = ranks.ELEMENTS, 5000
        torch.testing.assert_close(loss(rows, labels), value)
        ranks.ELEMENTS = whole
    memory = losses.CrossBatchMemory(losses.SupAP(), size=100, start=1)
    alone = losses.SupAP()(embeddings, labels)
    assert float(memory(embeddings, labels)) == float(alone) and len(memory.memory) == 64
    later, later_labels = batch(seed=1)
    both = losses.SupAP()(
        later, later_labels, ref_emb=torch.cat([later, embeddings]), ref_labels=torch.cat([later_labels, labels])
    )
    torch.testing.assert_close(memory(later, later_labels), both + losses.SupAP()(later, later_labels))
    assert len(memory.memory) == 100
    again = losses.CrossBatchMemory(losses.SupAP(), size=100, start=1)
    again.load_state_dict(memory.state_dict())
    torch.testing.assert_close(again(embeddings, labels), memory(embeddings, labels))
    print("training: values, compiled, in half precision, in blocks and with a memory")


def check_refusals():
    embeddings, labels = batch()
    for wrong in [
        lambda: losses.SupAP()(embeddings, labels, indices_tuple=()),
        lambda: losses.SupAP()(embeddings, labels[:-1]),
        lambda: losses.SupAP()(embeddings, labels.float()),
        lambda: losses.SupAP()(embeddings.long(), labels),
        lambda: losses.SupAP()(embeddings, labels, ref_emb=embeddings),
        lambda: losses.SupAP()(embeddings, labels, ref_emb=embeddings, ref_labels=labels[:, :2]),
        lambda: losses.SupAP(step=losses.UpperStep(temperature=0)),
        lambda: losses.SupRecall(cutoffs=[0]),
        lambda: losses.Happier(0, 16),
        lambda: losses.HapSurrogate(relevance=losses.WeightedRelevance([1.0]))(embeddings, labels),
        lambda: losses.CSL(labels, 16),
        lambda: losses.Levels([ContrastiveLoss()])(embeddings, labels),
    ]:
        try:
            wrong()
        except akin.Error as error:
            assert error.hint, error
        else:
            raise AssertionError("this must be refused")
    alone = losses.SupAP()(embeddings[:2], torch.tensor([[0, 0, 0], [1, 2, 5]]))
    assert float(alone) == 0, "each is its own only positive"
    empty = losses.HapSurrogate()(
        embeddings[:2], torch.zeros(2, 3, dtype=torch.long), ref_emb=embeddings, ref_labels=labels + 1
    )
    assert float(empty) == 0, "no query has a relevant item"
    print("refusals: 12, each with a hint")


def train(rank, world, address, results):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(address)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    embeddings, labels = batch()
    own = slice(rank * 64 // world, (rank + 1) * 64 // world)
    network = torch.nn.parallel.DistributedDataParallel(network_of())
    for name, loss in gathered_losses().items():
        network.zero_grad()
        losses.Gathered(loss)(network(embeddings[own]), labels[own]).backward()
        if rank == 0:
            torch.save(network.module.weight.grad, f"{results}/{name}")
    torch.distributed.destroy_process_group()


def network_of():
    torch.manual_seed(7)
    return torch.nn.Linear(16, 16)


def gathered_losses():
    torch.manual_seed(8)
    return {"happier": losses.Happier(16, 16), "sup_recall": losses.SupRecall(), "roadmap": losses.Roadmap()}


def check_processes():
    embeddings, labels = batch()
    with tempfile.TemporaryDirectory() as results:
        processes.spawn(train, (2, 29517, results), nprocs=2)
        for name, loss in gathered_losses().items():
            network = network_of()
            loss(network(embeddings), labels).backward()
            expected, found = network.weight.grad, torch.load(f"{results}/{name}")
            difference = float((found - expected).abs().max() / expected.abs().max())
            assert difference < 1e-6, f"{name}: {difference:.1e}"
            print(f"two processes: the gradient of {name} differs from that of one by {difference:.1e}")


if __name__ == "__main__":
    check_rankings()
    check_proxies()
    check_hier()
    check_training()
    check_refusals()
    check_processes()
