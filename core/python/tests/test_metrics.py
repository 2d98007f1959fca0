"""The metrics of one ranking, and its curve."""

import doctest
import importlib
from typing import Any

import akin
import numpy as np
import pytest
from akin import metrics
from conftest import golden


def test_golden_values_of_happier() -> None:
    names = {"H-AP_bruteforce_definition": "h_ap", "NDCG": "ndcg", "ASI": "asi"}
    for case in golden("metrics_happier"):
        params, outputs = case["params"], case["outputs"]
        alpha = params["alpha"]
        relevance = alpha if params["relevance_type"] == "map" else f"hierarchical_ap:{alpha}"
        scores = outputs["per_query_stable"]
        for query, levels in enumerate(outputs["levels_sorted_stable"]):
            if max(levels) == 0:
                continue
            options: metrics.Options = {
                "depth": params["hierarchy_levels"],
                "relevance": relevance,
                "count_query": params["query_in_gallery"],
            }
            for theirs, ours in names.items():
                if ours == "h_ap" and params["relevance_type"] == "map":
                    continue  # They count class sizes otherwise there.
                if scores[theirs][query] is not None:
                    value = metrics.value(ours, levels, **options)
                    assert value == pytest.approx(scores[theirs][query], abs=2e-6), (case["case"], ours, query)


def test_every_metric_has_a_function() -> None:
    levels = [3, 0, 2, 3, 1, 0]
    for row in metrics.catalogue().rows():
        function = getattr(metrics, row["name"])
        k = {} if row["spelling"] == row["name"] else {"k": 3}
        name = row["name"] + ("@3" if k else "")
        assert function(levels, **k) == metrics.value(name, levels), name
        assert function.__doc__


def test_scores_need_no_order() -> None:
    levels, scores = [0, 3, 1, 2], [0.1, 0.9, 0.3, 0.5]
    assert metrics.h_ap(levels, scores=scores) == metrics.h_ap([3, 2, 1, 0])
    ties = {name: metrics.ap([0, 1], level=1, scores=[1, 1], ties=name) for name in ("stable", "optimistic", "shared")}
    assert ties == {"stable": 0.5, "optimistic": 1.0, "shared": 0.5}


def test_the_area_of_the_curve_is_h_ap() -> None:
    levels = [2, 0, 3, 1, 1, 0, 3]
    curve = akin.curve(levels)
    area = (curve["h_precision"] * np.diff(curve["h_recall"], prepend=0)).sum()
    assert area == pytest.approx(metrics.h_ap(levels))
    assert akin.curve([0, 0]).height == 0


def test_a_ranking_without_positives_has_no_value() -> None:
    assert metrics.h_ap([0, 0, 0]) is None
    assert metrics.recall([], k=1) is None


@pytest.mark.parametrize(
    ("metric", "levels", "options"),
    [
        ("ap", [-1], {}),
        ("ap", [[1]], {}),
        ("ap", [0.5], {}),
        ("ap", [3], {"depth": 2}),
        ("ap", [1], {"level": 2}),
        ("ap", [1], {"level": 0}),
        ("ap", [1], {"depth": 0}),
        ("ap", [1], {"depth": 10**6}),
        ("ap", [1], {"scores": [np.nan]}),
        ("ap", [1], {"scores": [1, 2]}),
        ("ap", [1], {"ties": "none"}),
        ("h_ap", [1], {"relevance": [1, 2]}),
        ("nothing", [1], {}),
        ("recall", [1], {}),
        ("recall@0", [1], {}),
    ],
)
def test_what_is_refused(metric: str, levels: Any, options: Any) -> None:
    with pytest.raises(akin.ConfigError) as raised:
        metrics.value(metric, levels, **options)
    assert raised.value.hint


@pytest.mark.parametrize("module", ["metrics", "_evaluate", "_search", "_taxonomy"])
def test_the_examples_of_the_help(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"akin.{module}"))
    assert results.attempted > 0 and results.failed == 0


def test_golden_values_of_hashing() -> None:
    for case in golden("metrics_hashing"):
        inputs, outputs, r = case["inputs"], case["outputs"]["stable_order"], case["params"]["r"]
        queries, database = (np.array(inputs[f"{name}_codes"]) for name in ("query", "database"))
        of_queries, of_database = (np.array(inputs[f"{name}_labels"]) for name in ("query", "database"))
        shared = (of_queries[:, None] == of_database[None]).sum(2)
        order = np.argsort((queries[:, None] != database[None]).sum(2), axis=1, kind="stable")
        lists = [shared[query, items].tolist() for query, items in enumerate(order)]
        depth = of_queries.shape[1]
        for theirs, ours in {"mAHP": f"mahp@{r}", "nDCG": f"mean_ndcg@{r}"}.items():
            # They count a query without a positive as 0.
            values = [metrics.value(ours, levels, depth=depth) or 0.0 for levels in lists]
            assert np.nan_to_num(values).mean() == pytest.approx(outputs[theirs], abs=1e-5), (case["case"], theirs)


def test_golden_values_of_hierarchical_precision() -> None:
    checked = 0
    for case in golden("metrics_hierarchical_precision"):
        labels = np.array(case["inputs"]["labels"])
        lists = []
        for query, order in enumerate(case["inputs"]["ranking_with_self"]):
            others = [item for item in order if item != query]
            lists.append((labels[query] == labels[others]).sum(1).tolist())
        for theirs, expected in {**case["outputs"]["metrics"], **case["outputs"]["metrics_ahp_full"]}.items():
            metric, _, similarity = theirs.partition(" (")
            wu_palmer = "wu_palmer_" if similarity == "WUP)" else ""
            name, _, k = metric.partition("@")
            if name == "P":
                ours = f"{wu_palmer or 'hierarchical_'}precision@{k}"
            elif name == "AHP":
                ours = f"{wu_palmer}ahp@{k or len(lists[0])}"
            else:
                continue
            values = [metrics.value(ours, levels, depth=labels.shape[1]) for levels in lists]
            assert np.mean([np.nan if value is None else value for value in values]) == pytest.approx(expected), theirs
            checked += 1
    assert checked >= 8
