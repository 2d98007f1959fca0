"""Holds the losses of `akin.torch` to the golden vectors of the published codes, and tries them as a training does.

    venv/bin/pip install ./core/python
    venv/bin/python tests/peers/torch_losses.py

Also trains on two processes, whose gradient has to be that of one. Nothing in akin needs this file.
"""

import json
import math
import os
import tempfile
from pathlib import Path

import akin
import akin.torch as losses
import akin.torch._pairs as pairs
import akin.torch._ranking as _ranking
import akin.torch._ranks as ranks
import torch
import torch.multiprocessing as processes
from pytorch_metric_learning import losses as library
from pytorch_metric_learning import miners, reducers, regularizers
from pytorch_metric_learning.utils.distributed import DistributedLossWrapper

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


def check_rankings(fused):
    """The losses of rankings, by the kernel of the CPU or in plain operations."""
    agreement = Agreement()
    ranks.FUSED = fused
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
        ("smooth_ap", losses.SmoothAPLoss, None),
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
    ranks.FUSED = True
    agreement.say("rankings by the kernel" if fused else "rankings in plain operations")


def check_proxies():
    agreement = Agreement()

    def check(case, loss, proxies, inputs, outputs):
        loss.double()
        proxies.data = inputs["proxies"].detach().clone()
        check_loss(agreement, case, loss, inputs, outputs, 1e-6)
        agreement.check(case, proxies.grad, outputs["grad_proxies"], 1e-6)

    for case, params, inputs, outputs in [*cases("happier_cluster_loss"), *cases("norm_softmax")]:
        classes, dimension = inputs["proxies"].shape
        normalise = params.get("impl") == "PML"
        loss = losses.NormalizedSoftmaxLoss(classes, dimension, temperature=params["temperature"], normalise=normalise)
        check(case, loss, loss.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("happier_total"):
        surrogate = losses.HapSurrogate(upper_step=step(params["config"]))
        loss = losses.Happier(
            len(inputs["proxies"]),
            16,
            clustering_weight=params["lam"],
            temperature=params["temperature"],
            surrogate=surrogate,
            normalise=False,
        )
        check(case, loss, loss.clustering.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("csl"):
        loss = losses.CSL(
            inputs["proxy_labels"],
            16,
            scale=params["scale"],
            margins=params["margins"][::-1],
            average_levels=params["reduce_type"] == "mean",
            normalise=False,
        )
        check(case, loss, loss.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("arcface"):
        loss = losses.ArcFaceLoss(
            len(inputs["proxies"]), 16, math.degrees(params["m"]), params["s"], easy_margin=params["easy_margin"],
            label_smoothing=params["label_smoothing"], smoothing="logits",
        )  # fmt: skip
        check(case, loss, loss.proxies, inputs, outputs)
    for case, params, inputs, outputs in [*cases("proxy_anchor"), *cases("proxy_nca")]:
        of_hier = "hier_P" in case
        if of_hier or "margin" in params:
            anchors = "items" if of_hier else "proxies"
            margin = params["mrg"] if of_hier else params["margin"]
            loss = losses.ProxyAnchorLoss(len(inputs["proxies"]), 16, margin, params["alpha"], anchors=anchors)
        else:
            scale = params["softmax_scale"] if "softmax_scale" in params else params["scale"] ** 2
            denominator = "others" if "classic" in case else "all"
            loss = losses.ProxyNCALoss(len(inputs["proxies"]), 16, scale, denominator=denominator)
        check(case, loss, loss.proxies, inputs, outputs)
    for case, params, inputs, outputs in cases("soft_triple"):
        loss = losses.SoftTripleLoss(
            params["num_classes"], 16, params["K"], params["la"], params["gamma"], params["margin"],
            tau=params.get("tau", 0.0), normalise=case.startswith("pml"),
        )  # fmt: skip
        check(case, loss, loss.proxies, inputs, outputs)
    agreement.say("proxies")


def check_pairs():
    agreement = Agreement()

    def check(case, loss, inputs, outputs, indices_tuple=None):
        found = loss(inputs["embeddings"], inputs["labels"], indices_tuple)
        # The library adds a small number to the divisors of means.
        agreement.check(case, found, outputs["loss"], 1e-6)
        found.backward()
        agreement.check(case, inputs["embeddings"].grad, outputs["grad_embeddings"], 1e-6)

    for case, params, inputs, outputs in cases("contrastive"):
        measure = "cosine" if params["distance"] == "cos" else "euclidean"
        check(
            case,
            losses.ContrastiveLoss(params.get("pos_margin", 0), params["neg_margin"], measure=measure),
            inputs,
            outputs,
        )
    for case, params, inputs, outputs in cases("multi_similarity"):
        mined = None
        if "epsilon" in params:
            miner = miners.MultiSimilarityMiner(params["epsilon"])
            mined = miner(
                inputs["embeddings"], inputs["labels"][:, -1] if inputs["labels"].ndim == 2 else inputs["labels"]
            )
        loss = losses.MultiSimilarityLoss(params["alpha"], params["beta"], params["base"])
        check(case, loss, inputs, outputs, mined)
    for case, params, inputs, outputs in cases("triplet"):
        mined = outputs.get("triplets")
        if mined is not None:
            mined = tuple(torch.tensor(mined[part], dtype=torch.long) for part in "apn")
        if "beta" in params:
            loss = losses.MarginLoss(params["margin"], params["nu"], params["beta"])
        else:
            loss = losses.TripletMarginLoss(params["margin"], params.get("swap", False), params.get("smooth", False))
        check(case, loss, inputs, outputs, mined)
        if params.get("type_of_triplets") == "all":
            check(case, loss, inputs_again(inputs), outputs)
    for case, params, inputs, outputs in cases("xbm_pair_loss"):
        check(case, losses.PairLoss(params["margin"], normalise=False), inputs, outputs)
    agreement.say("pairs")


def inputs_again(inputs):
    return {**inputs, "embeddings": inputs["embeddings"].detach().requires_grad_()}


def check_bins():
    agreement = Agreement()
    for case, params, inputs, outputs in cases("fast_ap"):
        # The published code writes another gradient by hand, in single precision.
        if params["impl"].startswith("PML"):
            check_loss(agreement, case, losses.FastAPLoss(params["num_bins"]), inputs, outputs, 1e-9)
    for case, params, inputs, outputs in cases("softbin_ap"):
        ties = {"naver_TAP": "mean", "naver_TAP_simplified": "middle"}.get(case, "end")
        loss = losses.SoftbinAP(bins=params["nq"], lowest=params["min"], ties=ties, normalise=False)
        found = loss(inputs["embeddings"], inputs["labels"])
        agreement.check(case, found, outputs["loss"], 1e-9)
        found.backward()
        # There rounding decides whether a query's score with itself has a gradient, which is along the embedding.
        rows = inputs["embeddings"].detach()
        rows = rows / rows.norm(dim=1, keepdim=True)
        expected = torch.tensor(outputs["grad_embeddings"], dtype=torch.float64)
        found, expected = (part - (part * rows).sum(1, keepdim=True) * rows for part in (rows_of(inputs), expected))
        if ties != "mean":
            agreement.check(case, found, expected.tolist(), 1e-9)
    for case, params, inputs, outputs in cases("blackbox_ap"):
        loss = losses.BlackboxAP(step=params["lambda_val"], margin=params["margin"])
        labels = inputs["labels"].reshape(len(inputs["labels"]), -1)[:, -1]
        rows = inputs["embeddings"]
        (part,) = loss.with_noise(rows @ rows.T, labels[:, None] == labels, inputs["noise"].detach())
        found = part.mean()
        # The reference divides by |P| + 1e-5, and computes in single precision.
        agreement.check(case, found, outputs["loss"], 1e-4)
        found.backward()
        agreement.check(case, rows.grad, outputs["grad_embeddings"], 1e-4)
    agreement.say("AP in bins and from a second ranking")


def rows_of(inputs):
    return inputs["embeddings"].grad


def check_hyperbolic():
    agreement = Agreement()
    for case in json.loads((GOLDEN / "hyperbolic_ops.json").read_text())["cases"]:
        params, outputs = case["params"], case["outputs"]
        inputs = {
            name: torch.tensor(value, dtype=torch.float64, requires_grad=name != "weights")
            for name, value in case["inputs"].items()
        }
        x, y = inputs["x"], inputs.get("y")
        if case["op"] == "to_poincare":
            # No feature is longer than a million.
            ball = losses.Poincare(params["c"], params["clip_r"] or 1e6, riemannian=params["riemannian"])
            found, expected = ball(x), outputs["y"]
        elif case["op"] in ("dist_matrix", "dist_rowwise"):
            found, expected = losses.Poincare(params["c"]).distances(x, y), outputs["dist"]
            found = found if case["op"] == "dist_matrix" else found.diagonal()
        else:
            # The other maps of the ball, which no loss needs.
            continue
        agreement.check(case["op"], found, expected, 1e-9)
        (found * inputs["weights"].reshape(found.shape)).sum().backward()
        for rows, others, name in ((x, y, "grad_x"), (y, x, "grad_y")):
            if name in outputs:
                # The reference has the gradient of a rounding error where two points are equal.
                apart = slice(None) if others is None else ~(rows[:, None] == others).all(2).any(1)
                expected = torch.tensor(outputs[name], dtype=torch.float64)[apart]
                agreement.check(case["op"], rows.grad[apart], expected.tolist(), 1e-6)
    for name in ("hyp_pairwise_ce", "hier_msloss_hyperbolic"):
        for case, params, inputs, outputs in cases(name):
            ball = None
            if params["hyp_c"] > 0:
                ball = losses.Poincare(params["hyp_c"], params["clip_r"], riemannian=params["riemannian"])
            features = inputs["x_euclidean"]
            points = ball(features) if ball else features
            if name == "hyp_pairwise_ce":
                loss = losses.HyperbolicCrossEntropy(ball, temperature=params["tau"])
                expected = outputs["loss_sum_over_ordered_pairs"]
            else:
                loss = losses.HyperbolicMultiSimilarity(ball, alpha=params["alpha"], beta=params["beta"])
                expected = outputs["loss"]
            found = loss(points, inputs["labels"])
            agreement.check(case, found, expected, 1e-9)
            found.backward()
            agreement.check(case, features.grad, outputs["grad_x"], 1e-6)
    agreement.say("hyperbolic pairs")


def check_hashing():
    agreement = Agreement()

    def check(case, value, inputs, outputs, rows=None):
        agreement.check(case, value, outputs["loss"], 1e-6)
        value.backward()
        agreement.check(case, inputs["features"].grad[:rows], outputs["grad_features"], 1e-6)

    for case, params, inputs, outputs in cases("dpsh"):
        features, labels, rows = inputs["features"], inputs["labels"], int(inputs["batch"])
        count, bits = features.shape
        # One code compares a batch with all outputs, without a gradient there; the other weighs the signs by the bits.
        weight = params.get("lambda", params.get("alpha", 0) * count / bits)
        loss = losses.Dpsh(quantisation_weight=weight)
        value = loss(features[:rows], labels[:rows], None, features.detach(), labels)
        check(case, value, inputs, outputs, rows)
    for case, params, inputs, outputs in cases("dtsh"):
        features, labels = inputs["features"], inputs["labels"]
        # There Θ has no ½, a query is one of its positives, and the quantisation error is a mean over bits.
        scaled = features * 2**0.5
        value = losses.Dtsh(margin=params["alpha"], quantisation_weight=0)(scaled, labels, None, scaled, labels)
        value = value + params["lambda"] * (features.sign() - features).square().mean()
        check(case, value, inputs, outputs)
    for case, params, inputs, outputs in cases("csq"):
        loss = losses.Csq(
            len(inputs["centers"]), inputs["features"].shape[1], quantisation_weight=params["lambda2"],
            quantisation="squared", pair_weight=params["lambda1"],
        )  # fmt: skip
        if case.startswith("swuxyj"):
            agreement.check(case, loss.centres, inputs["centers"].tolist(), 1e-9)
        loss.centres = inputs["centers"].detach()
        check(case, loss(inputs["features"], inputs["labels"]), inputs, outputs)
    for case, params, inputs, outputs in cases("dcdh"):
        classes, bits = inputs["centers"].shape
        loss = losses.Dcdh(
            classes, bits, deviation=params["sigma"] ** -0.5, centre_weight=params["inner_param"],
            quantisation_weight=params["eta"],
        ).double()  # fmt: skip
        loss.centres.data = inputs["centers"].detach()
        # There a centre is compared with itself, too.
        value = loss(inputs["features"], inputs["labels"]) + params["inner_param"] * math.log(2) / (classes - 1)
        check(case, value, inputs, outputs)
        agreement.check(case, loss.centres.grad, outputs["grad_centers"], 1e-6)
    for case, params, inputs, outputs in cases("dcwh"):
        labels = inputs["labels"]
        if case == "centers":
            loss = losses.Dcwh(int(labels.max()) + 1, inputs["features"].shape[1]).double()
            loss.update_centres(inputs["features"], labels)
            agreement.check(case, loss.centres, outputs["centers"], 1e-6)
            continue
        loss = losses.Dcwh(
            len(inputs["centers"]), inputs["features"].shape[1], deviation=params["inv_var"] ** -0.5,
            floor=params["floor"], cube=params["cube"], cube_weight=params["weight_cubic"],
            quantisation_weight=params["weight_vertex"],
        )  # fmt: skip
        loss.centres = inputs["centers"].detach()
        check(case, loss(inputs["features"], labels), inputs, outputs)
    for case, params, inputs, outputs in ragged("hpdh_loss"):
        labels, centres = inputs["labels"], inputs["centers"][::-1]
        loss = losses.Hpdh(
            torch.arange(len(centres[-1]))[:, None].expand(-1, len(centres)), params["len_bit"],
            deviations=[1 / precision for precision in params["inv_var"][::-1]], cube=params["cube"],
            cube_weight=params["weight_cubic"], quantisation_weight=params["weight_vertex"],
        )  # fmt: skip
        for level, rows in enumerate(centres):
            setattr(loss, f"centres_{level}", torch.tensor(rows, dtype=torch.float64))
        check(case, loss(inputs["features"], labels), inputs, outputs)
    for case, _, inputs, outputs in ragged("hpdh_centers"):
        labels = inputs["labels"]
        fine = labels[:, -1].unique()
        paths = torch.stack([labels[labels[:, -1] == number][0] for number in fine])
        loss = losses.Hpdh(paths, inputs["features"].shape[1]).double()
        loss.update_centres(inputs["features"], labels)
        for level, rows in enumerate(outputs["centers"][::-1]):
            agreement.check(case, getattr(loss, f"centres_{level}"), rows, 1e-5)
    agreement.say("codes")


def ragged(name):
    """The cases of a file whose centres differ in number from level to level."""
    for case in json.loads((GOLDEN / f"{name}.json").read_text())["cases"]:
        inputs = dict(case["inputs"])
        labels = torch.tensor(inputs["labels"])
        inputs["labels"] = labels.flip(1) if labels.ndim == 2 else labels
        inputs["features"] = torch.tensor(inputs["features"], dtype=torch.float64, requires_grad=True)
        yield case.get("case", name), case.get("params", {}), inputs, case["outputs"]


#: Losses that pytorch-metric-learning has, too, their settings, and whether its miners choose for them.
LIBRARY = [
    ("ContrastiveLoss", {}, True),
    ("ContrastiveLoss", {"pos_margin": 0.2, "neg_margin": 1.3}, True),
    ("TripletMarginLoss", {}, True),
    ("TripletMarginLoss", {"margin": 0.3, "smooth_loss": True}, True),
    ("TripletMarginLoss", {"margin": 0.3, "swap": True}, True),
    ("MarginLoss", {}, True),
    ("MarginLoss", {"nu": 0.1, "learn_beta": True}, True),
    ("MarginLoss", {"nu": 0.1, "learn_beta": True, "num_classes": 9}, True),
    ("MultiSimilarityLoss", {}, True),
    ("NTXentLoss", {}, True),
    ("SupConLoss", {}, True),
    ("CircleLoss", {}, True),
    ("LiftedStructureLoss", {}, False),
    ("AngularLoss", {}, True),
    ("AngularLoss", {"alpha": 25}, True),
    ("NPairsLoss", {}, False),
    ("RankedListLoss", {"margin": 0.4, "Tn": 10}, False),
    ("SubCenterArcFaceLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("FastAPLoss", {"num_bins": 7}, False),
    ("NormalizedSoftmaxLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("ArcFaceLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("CosFaceLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("SphereFaceLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("SphereFaceLoss", {"num_classes": 9, "embedding_size": 16, "margin": 3, "scale": 4}, False),
    ("ProxyAnchorLoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("ProxyNCALoss", {"num_classes": 9, "embedding_size": 16}, False),
    ("SoftTripleLoss", {"num_classes": 9, "embedding_size": 16}, False),
]  # fmt: skip


def check_recorded():
    """Losses of pytorch-metric-learning, as recorded."""
    agreement = Agreement()
    for case, params, inputs, outputs in cases("library_losses"):
        options = {name: value for name, value in params.items() if name != "loss"}
        if "proxies" in inputs:
            rows, dimension = inputs["proxies"].shape
            options |= {"num_classes": rows // options.get("sub_centers", 1), "embedding_size": dimension}
        # Those that do not scale embeddings were recorded with embeddings of unit length.
        loss = getattr(losses, params["loss"])(**options, normalise=True).double()
        if "proxies" in inputs:
            loss.proxies.data = inputs["proxies"].detach().clone()
        check_loss(agreement, case, loss, inputs, outputs, 1e-6)
        if "proxies" in inputs:
            agreement.check(case, loss.proxies.grad, outputs["grad_proxies"], 1e-6)
    agreement.say("recorded from pytorch-metric-learning")


def check_library():
    """Our losses beside those of pytorch-metric-learning with the same name, with its miners and reference sets."""
    agreement = Agreement()
    generator = torch.Generator().manual_seed(3)
    for name, options, is_mined in LIBRARY:
        both = beside(name, options, generator)
        for mined, has_reference in [(False, False), (True, False), (False, True), (True, True)]:
            if (mined and not is_mined) or (has_reference and not is_mined) or (has_reference and "swap" in options):
                continue
            check_beside(agreement, both, generator, f"{name} {options}", mined=mined, has_reference=has_reference)
    for options in ({}, {"invariance_lambda": 3, "variance_mu": 2, "covariance_v": 5, "eps": 0.1}):
        views = [drawn(40, generator)[0] / 2, drawn(40, generator)[0]]
        gradients = []
        for loss in (library.VICRegLoss(**options), losses.VICRegLoss(**options)):
            again = [rows.clone().requires_grad_() for rows in views]
            value = loss(again[0], ref_emb=again[1])
            gradients.append([value.detach(), *torch.autograd.grad(value, again)])
        for expected, found in zip(*gradients, strict=True):
            agreement.check(f"VICRegLoss {options}", found, expected.tolist(), 1e-7)
    assert isinstance(losses.SupAP(), library.BaseMetricLossFunction)
    agreement.say("pytorch-metric-learning")


def drawn(count, generator):
    rows = torch.randn(count, 16, generator=generator, dtype=torch.float64)
    return rows, torch.randint(9, (count,), generator=generator)


def beside(name, options, generator, own_options=None):
    """The loss of pytorch-metric-learning and ours, with the same proxies."""
    theirs, ours = getattr(library, name)(**options), getattr(losses, name)(**(own_options or options))
    if hasattr(ours, "proxies"):
        ours.proxies.data = torch.randn(ours.proxies.shape, generator=generator, dtype=torch.float64)
        weights = next(theirs.parameters())
        weights.data = ours.proxies.data if weights.shape == ours.proxies.shape else ours.proxies.data.T.clone()
    return theirs.double(), ours.double()


def check_beside(agreement, both, generator, what, *, mined=False, has_reference=False):
    """Holds the values and gradients of both losses to each other."""
    rows, labels = drawn(40, generator)
    reference = drawn(30, generator) if has_reference else (None, None)
    chosen = miners.TripletMarginMiner(0.3)(rows, labels, *reference) if mined else None
    gradients = []
    for loss in both:
        loss.zero_grad()
        again = rows.clone().requires_grad_()
        given, against = again, reference[0]
        if isinstance(loss, (library.AngularLoss, losses.AngularLoss)):
            # The library leaves the length of negatives as it is.
            given = torch.nn.functional.normalize(again)
            against = None if against is None else torch.nn.functional.normalize(against)
        value = loss(given, labels, chosen, against, reference[1])
        value.backward()
        gradients.append([value.detach(), again.grad, *(part.grad.clone() for part in loss.parameters())])
    for expected, found in zip(*gradients, strict=True):
        expected = expected.T if expected.shape != found.shape else expected
        agreement.check(f"{what} {mined} {has_reference}", found, expected.tolist(), 1e-7)


def check_reducers():
    """Reducers and regularisers of embeddings beside those of pytorch-metric-learning, and in every loss."""
    agreement = Agreement()
    generator = torch.Generator().manual_seed(4)
    # There these losses are columns, so that a reducer with weights of classes gives each loss the weights of all.
    of_columns = ("MultiSimilarityLoss", "CircleLoss", "LiftedStructureLoss", "AngularLoss")
    without_anchors = ("TripletMarginLoss", "MarginLoss", "LiftedStructureLoss", "AngularLoss")
    for name, options, is_mined in LIBRARY:
        for reducer in [
            reducers.MeanReducer(), reducers.SumReducer(), reducers.AvgNonZeroReducer(),
            reducers.ThresholdReducer(low=0.1),
            *([] if name in of_columns else [reducers.ClassWeightedReducer(torch.linspace(1, 3, 9))]),
            *([] if name in without_anchors else [reducers.PerAnchorReducer()]),
            *([reducers.DivisorReducer()] if name in ("MarginLoss", "ProxyAnchorLoss") else []),
            *([reducers.MultipleReducers({"pos_loss": reducers.SumReducer()})] if name == "ContrastiveLoss" else []),
        ]:  # fmt: skip
            both = beside(name, {**options, "reducer": reducer}, generator)
            for mined in [False, True] if is_mined else [False]:
                check_beside(agreement, both, generator, f"{name} {options} {reducer}", mined=mined)
    settings = {"num_classes": 9, "embedding_size": 16}
    for theirs, ours in [
        (regularizers.LpRegularizer(), losses.LpRegularizer()),
        (regularizers.LpRegularizer(p=1, power=2), losses.LpRegularizer(p=1, power=2)),
        (regularizers.LpRegularizer(p=3), regularizers.LpRegularizer(p=3)),
        (regularizers.ZeroMeanRegularizer(), losses.ZeroMeanRegularizer()),
    ]:
        for name, options in [("ContrastiveLoss", {}), ("ArcFaceLoss", settings), ("FastAPLoss", {})]:
            given = [
                {**options, "embedding_regularizer": regularizer, "embedding_reg_weight": 0.3}
                for regularizer in (theirs, ours)
            ]
            check_beside(agreement, beside(name, given[0], generator, given[1]), generator, f"{name} {ours}")
    agreement.say("reducers and regularisers of pytorch-metric-learning")
    embeddings, labels = batch()
    # Here the mean is over what has a loss, or over another number than that of the losses.
    other_mean = losses.ContrastiveLoss | losses.MarginLoss | losses.TripletMarginLoss | losses.ProxyAnchorLoss
    other_mean |= losses.HierarchicalProxy | losses.Dpsh
    for loss in everything():
        if isinstance(loss, losses.Levels | losses.HyperbolicCrossEntropy):
            continue
        plain = loss(embeddings, labels).detach()
        for loss.reducer in (torch.mean, reducers.MeanReducer()):
            # Sixteen classes of one item each: there is no positive pair.
            alone = loss(embeddings[:16], torch.arange(16)[:, None] // torch.tensor([8, 2, 1]))
            assert torch.isfinite(alone), type(loss).__name__
        # A module would have to stay one.
        del loss.reducer
        loss.reducer = torch.mean
        found = loss(embeddings.requires_grad_(), labels)
        assert isinstance(loss, other_mean) or torch.isclose(found, plain), type(loss).__name__
        loss.reducer = lambda found: found[found > 0].sum() / 7
        (gradient,) = torch.autograd.grad(loss(embeddings, labels), embeddings)
        assert torch.isfinite(gradient).all() and gradient.abs().max() > 0, type(loss).__name__
    for ranks.FUSED in (False, True):
        for ranking in (losses.SupAP, losses.SmoothHap, losses.SupNDCG, losses.SmoothRecall, losses.FastAPLoss):
            each = ranking(reducer=lambda found: found)(embeddings, labels)
            alone = [
                ranking()(embeddings[[query]], labels[[query]], ref_emb=embeddings, ref_labels=labels)
                for query in range(64)
            ]
            assert ranking is losses.FastAPLoss or torch.allclose(each, torch.stack(alone), atol=1e-6), ranking
            assert each.shape == (64,) and torch.isclose(each.mean(), ranking()(embeddings, labels)), ranking
    print("reducers: in every loss, with one loss for each query of a ranking")


def check_hierarchical_proxies():
    embeddings, labels = batch()
    paths = torch.stack([torch.arange(16) // 8, torch.arange(16) // 2, torch.arange(16)], 1)
    for base in (losses.ProxyAnchorLoss(16, 16), losses.ProxyNCALoss(16, 16)):
        alone = base(embeddings, labels)
        tree = losses.HierarchicalProxy(base, paths, weights=[0.5, 0.25, 1.0])
        directions = torch.nn.functional.normalize(base.proxies.detach(), dim=1)
        expected = alone.detach().clone()
        for level, weight in ((0, 0.5), (1, 0.25)):
            coarse = torch.stack([directions[paths[:, level] == group].sum(0) for group in paths[:, level].unique()])
            coarse_base = type(base)(len(coarse), 16)
            coarse_base.proxies.data = coarse
            expected += weight * coarse_base(embeddings, labels[:, level]).detach()
        torch.testing.assert_close(tree(embeddings, labels).detach(), expected)
        clusters = losses.HierarchicalProxy(base, clusters=5, every=2)
        for _ in range(3):
            group, coarse = clusters.groups[0], clusters.coarse_0
            assert sorted(group.unique().tolist()) == [*range(5)], "no cluster is empty"
            for number in range(5):
                mean = torch.nn.functional.normalize(directions[group == number].sum(0), dim=0)
                torch.testing.assert_close(coarse[number], mean)
            base.proxies.data = torch.randn(16, 16)
            directions = torch.nn.functional.normalize(base.proxies, dim=1)
            before = coarse.clone()
            clusters(embeddings, labels)
            if torch.equal(clusters.coarse_0, before):
                clusters(embeddings, labels)
        again = losses.HierarchicalProxy(type(base)(16, 16), clusters=5)
        again.load_state_dict(clusters.state_dict())
        torch.testing.assert_close(again.eval()(embeddings, labels), clusters.eval()(embeddings, labels))
    print("hierarchical proxies: those of a tree, and clusters")


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
        losses.SmoothAPLoss(), losses.SupNDCG(), losses.SmoothNDCG(), losses.SupRecall(), losses.SmoothRecall(),
        losses.Calibration(), losses.Roadmap(), losses.NormalizedSoftmaxLoss(classes, dimension),
        losses.Happier(classes, dimension), losses.CSL(paths, dimension), losses.Levels([library.ContrastiveLoss()] * 3),
        losses.FastAPLoss(), losses.SoftbinAP(), losses.BlackboxAP(), losses.ArcFaceLoss(classes, dimension),
        losses.CosFaceLoss(classes, dimension), losses.ProxyAnchorLoss(classes, dimension),
        losses.ProxyNCALoss(classes, dimension), losses.SoftTripleLoss(classes, dimension, tau=0.2),
        losses.HierarchicalProxy(losses.ProxyAnchorLoss(classes, dimension)).eval(), losses.ContrastiveLoss(),
        losses.MultiSimilarityLoss(), losses.PairLoss(), losses.MarginLoss(), losses.TripletMarginLoss(swap=True),
        losses.NTXentLoss(), losses.SupConLoss(), losses.CircleLoss(gamma=8), losses.LiftedStructureLoss(),
        losses.RankedListLoss(0.4, 10), losses.SubCenterArcFaceLoss(classes, dimension), losses.AngularLoss(),
        losses.NPairsLoss(), losses.SphereFaceLoss(classes, dimension),
        losses.HyperbolicCrossEntropy(), losses.HyperbolicMultiSimilarity(), losses.Dpsh(), losses.Dtsh(),
        losses.Csq(classes, dimension), losses.Dcdh(classes, dimension), losses.Dcwh(classes, dimension),
        losses.Hpdh(paths, dimension, floor=0),
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
        is_ranking = isinstance(loss, (_ranking._Ranking, losses.Happier, losses.Roadmap))
        compiled = torch.compile(loss, backend="aot_eager", fullgraph=is_ranking)(rows, labels)
        torch.testing.assert_close(compiled, value)
        largest = float(gradient.abs().max())
        torch.testing.assert_close(torch.autograd.grad(compiled, rows)[0], gradient, rtol=1e-4, atol=1e-5 * largest)
        with torch.autocast("cpu", torch.bfloat16):
            half = loss(rows.bfloat16(), labels)
        half, value = half.detach(), value.detach()
        assert abs(half - value) < 0.1 * abs(value) + 0.02, (name, half, value)
        # In plain operations, and in blocks of few queries, too.
        whole = ranks.ELEMENTS
        for ranks.FUSED, elements in [(False, whole), (False, 5000), (True, 5000)]:
            ranks.ELEMENTS = pairs.ELEMENTS = elements
            again = loss(rows, labels)
            torch.testing.assert_close(again.detach(), value)
            slopes = torch.autograd.grad(again, rows)[0]
            torch.testing.assert_close(slopes, gradient, rtol=1e-4, atol=1e-5 * largest)
        ranks.ELEMENTS = pairs.ELEMENTS = whole
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


def check_sampler():
    _, labels = batch(size=100, classes=16)
    sampler = losses.ClassesSampler(labels, 4, 3, seed=5)
    fine = labels[:, -1]
    drawn = torch.zeros(16)
    for _ in range(32):
        batches = list(sampler)
        assert len(batches) == len(sampler) == 100 // 12
        for items in batches:
            classes, counts = fine[items].unique(return_counts=True)
            assert len(classes) == 4 and (counts == 3).all()
            drawn[classes] += 1
            for number in classes:
                own = [item for item in items if fine[item] == number]
                assert len(set(own)) == min(3, int((fine == number).sum())), "no item twice without need"
    assert drawn.max() - drawn.min() <= 32, "all classes are drawn about as often"
    again, other = losses.ClassesSampler(labels, 4, 3, seed=5), losses.ClassesSampler(labels, 4, 3, seed=6)
    first = list(losses.ClassesSampler(labels, 4, 3, seed=5))
    assert list(again) == first and list(other) != first and list(again) != first
    shares = [losses.ClassesSampler(labels, 4, 3, seed=5, rank=rank, processes=2) for rank in (0, 1)]
    for whole, *parts in zip(first, *shares, strict=True):
        assert sorted(whole) == sorted(parts[0] + parts[1]) and not set(fine[parts[0]].tolist()) & set(
            fine[parts[1]].tolist()
        )
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(labels), batch_sampler=sampler)
    assert next(iter(loader))[0].shape == (12, 3)
    pairs = losses.ClassPairsSampler(labels, 6, 3, level=1, batches_per_pair=2, seed=5)
    middle, seen = labels[:, 1], []
    for items in pairs:
        classes, counts = fine[items].unique(return_counts=True)
        parents = middle[items].unique().tolist()
        # Each of these coarse classes has two fine ones, fewer than half of six.
        assert len(parents) == 2 and len(classes) == 4 and (counts == 3).all()
        seen.append(tuple(parents))
    every = [(first, second) for first in range(8) for second in range(first + 1, 8)]
    assert sorted(seen) == sorted(every * 2) and seen != sorted(seen) and len(seen) == len(pairs)
    draws = list(losses.ClassPairsSampler(labels, 6, 3, seed=5))
    assert draws == list(losses.ClassPairsSampler(labels, 6, 3, seed=5)) != list(pairs)
    shares = [list(losses.ClassPairsSampler(labels, 6, 3, seed=5, rank=rank, processes=2)) for rank in (0, 1)]
    for whole, *parts in zip(draws, *shares, strict=True):
        assert sorted(whole) == sorted(parts[0] + parts[1]) and len(parts[0]) == len(parts[1]) == 9
    print("samplers: classes, pairs, items, epochs and processes")


def check_refusals():
    embeddings, labels = batch()
    for wrong in [
        lambda: losses.SupAP()(embeddings, labels, indices_tuple=(labels[:, 0],) * 3),
        lambda: losses.ContrastiveLoss()(embeddings, labels, (labels[:, 0],) * 2),
        lambda: losses.ContrastiveLoss()(embeddings, labels, (torch.tensor([64]),) * 3),
        lambda: losses.ClassesSampler(labels, 0),
        lambda: losses.ClassesSampler(labels, 4, rank=1, processes=3),
        lambda: losses.ClassesSampler(labels.float()),
        lambda: losses.ClassPairsSampler(labels[:, 2]),
        lambda: losses.ClassPairsSampler(labels, 5),
        lambda: losses.ClassPairsSampler(labels, level=2),
        lambda: losses.ClassPairsSampler(labels.flip(1)),
        lambda: losses.ClassPairsSampler(labels, batches_per_pair=0),
        lambda: losses.ClassPairsSampler(labels * torch.tensor([0, 1, 1])),
        lambda: losses.ClassPairsSampler(labels, 8, level=1, processes=2),
        lambda: losses.ArcFaceLoss(16, 16, margin=91),
        lambda: losses.HierarchicalProxy(losses.ProxyNCALoss(16, 16), labels),
        lambda: losses.Hpdh(labels, 16),
        lambda: losses.Csq(16, 3),
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
        lambda: losses.Levels([library.ContrastiveLoss()])(embeddings, labels),
        lambda: losses.HyperbolicCrossEntropy(reducer=torch.mean)(embeddings, labels),
        lambda: losses.SupAP(reducer="mean"),
        lambda: losses.Roadmap(sup_ap=losses.SupAP(reducer=torch.sum)),
        lambda: losses.HierarchicalProxy(losses.ProxyNCALoss(16, 16, reducer=torch.sum)),
        lambda: losses.SupAP(reducer=reducers.DoNothingReducer()),
        lambda: losses.SupAP(embedding_regularizer=losses.LpRegularizer(), embedding_reg_weight=-1),
        lambda: losses.LpRegularizer(p=0.5),
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
    print("refusals, each with a hint")


def train(rank, world, address, results):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(address)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
    embeddings, labels = batch()
    own = slice(rank * 64 // world, (rank + 1) * 64 // world)
    network = torch.nn.parallel.DistributedDataParallel(network_of())
    for name, loss in gathered_losses().items():
        # Our wrapper, and that of pytorch-metric-learning.
        for wrapper in (losses.Gathered, DistributedLossWrapper):
            network.zero_grad()
            wrapper(loss)(network(embeddings[own]), labels[own]).backward()
            if rank == 0:
                torch.save(network.module.weight.grad, f"{results}/{wrapper.__name__}-{name}")
    torch.distributed.destroy_process_group()


def network_of():
    torch.manual_seed(7)
    return torch.nn.Linear(16, 16)


def gathered_losses():
    torch.manual_seed(8)
    return {
        "happier": losses.Happier(16, 16),
        "sup_recall": losses.SupRecall(),
        "roadmap": losses.Roadmap(),
        "triplet": losses.TripletMarginLoss(),
    }


def check_processes():
    embeddings, labels = batch()
    with tempfile.TemporaryDirectory() as results:
        processes.spawn(train, (2, 29517, results), nprocs=2)
        for name, loss in gathered_losses().items():
            network = network_of()
            loss(network(embeddings), labels).backward()
            expected = network.weight.grad
            for wrapper in ("Gathered", "DistributedLossWrapper"):
                found = torch.load(f"{results}/{wrapper}-{name}")
                difference = float((found - expected).abs().max() / expected.abs().max())
                assert difference < 1e-6, f"{name}: {difference:.1e}"
                print(f"two processes, {wrapper}: the gradient of {name} is that of one but for {difference:.1e}")


if __name__ == "__main__":
    check_rankings(fused=True)
    check_rankings(fused=False)
    check_proxies()
    check_pairs()
    check_bins()
    check_hyperbolic()
    check_hashing()
    check_recorded()
    check_library()
    check_reducers()
    check_hierarchical_proxies()
    check_hier()
    check_training()
    check_sampler()
    check_refusals()
    check_processes()
