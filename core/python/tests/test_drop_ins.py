"""The interfaces of other libraries give their numbers."""

import doctest
import importlib
from pathlib import Path
from typing import Any

import akin
import numpy as np
import pytest
from akin import runs
from akin.oml import OVERALL, calc_retrieval_metrics, retrieve
from akin.pml import AccuracyCalculator
from conftest import Creatures, golden


@pytest.mark.parametrize("module", ["oml", "pml", "runs"])
def test_the_examples_of_the_help(module: str) -> None:
    results = doctest.testmod(importlib.import_module(f"akin.{module}"))
    assert results.attempted > 0 and results.failed == 0


# pytorch-metric-learning ---------------------------------------------------------------------------------------------

RANKED = ("mean_average_precision", "mean_average_precision_at_r", "mean_reciprocal_rank", "precision_at_1", "r_precision")


@pytest.mark.parametrize("case", golden("metrics_pml"), ids=lambda case: case["case"])
def test_golden_values_of_pml(case: dict[str, Any]) -> None:
    inputs = case["inputs"]
    for name, expected in case["outputs"].items():
        k = {"k=None": None, "k=5": 5, "k=max_bin_count": "max_bin_count"}[name]
        calculator = AccuracyCalculator(include=RANKED, k=k, avg_of_avgs=case["params"]["avg_of_avgs"])
        found = calculator.get_accuracy(
            inputs["embeddings"], inputs["labels"], inputs.get("gallery_embeddings"), inputs.get("gallery_labels")
        )
        assert found == pytest.approx(expected, abs=2e-6), name


def test_the_case_of_pml_own_tests() -> None:
    """The numbers are those of `tests/utils/test_calculate_accuracies.py` of pytorch-metric-learning: items on a line."""
    query, labels = np.arange(25.0)[:, None], np.arange(25)
    reference = query.copy()
    # Each query finds itself first.
    found = AccuracyCalculator(include=("precision_at_1",)).get_accuracy(query, labels, reference, labels, False)
    assert found == {"precision_at_1": 1}
    reference[20:] *= 100
    found = AccuracyCalculator(include=("precision_at_1",)).get_accuracy(query, labels, reference, labels, False)
    assert found["precision_at_1"] == pytest.approx(20.0 / 25)


def test_classes_of_pml(creatures: Creatures) -> None:
    labels = np.unique(creatures.labels["species"], return_inverse=True)[1]
    each = AccuracyCalculator(include=("precision_at_1",), return_per_class=True)
    mean = AccuracyCalculator(include=("precision_at_1",), avg_of_avgs=True)
    values = each.get_accuracy(creatures.embeddings, labels)["precision_at_1"]
    assert len(values) == 18
    assert mean.get_accuracy(creatures.embeddings, labels)["precision_at_1"] == pytest.approx(np.mean(values))
    huge = labels + 2**40
    assert each.get_accuracy(creatures.embeddings, huge)["precision_at_1"] == values
    lone = AccuracyCalculator(include=RANKED).get_accuracy(creatures.embeddings[:3], [0, 1, 2])
    assert all(np.isnan(value) for value in lone.values())
    among = AccuracyCalculator(include=RANKED)
    part = among.get_accuracy(creatures.embeddings[:50], labels[:50], creatures.embeddings, labels, True)
    whole = akin.evaluate(creatures.embeddings, labels, metrics="map_at_r", similarity="euclidean")
    assert part["mean_average_precision_at_r"] == pytest.approx(whole.per_query["class_map_at_r"][:50].mean())


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0},
        {"k": "all"},
        {"include": ("precision",)},
        {"label_comparison_fn": max},
        {"knn_func": max},
        {"avg_of_avgs": True, "return_per_class": True},
    ],
)
def test_pml_arguments_that_are_refused(arguments: Any) -> None:
    with pytest.raises(akin.ConfigError):
        AccuracyCalculator(**arguments)


# open-metric-learning ------------------------------------------------------------------------------------------------


def test_the_exact_case_of_oml() -> None:
    """The numbers are those of `tests/test_oml/test_functional/test_metrics/test_retrieval_metrics.py` of OML."""
    places = [[0, 1, 3], [0, 3, 4], [1, 2, 4], [2, 3, 4], [0], [3]]
    expected: dict[str, dict[int, list[float]]] = {
        "cmc": {1: [1, 1, 0, 0, 1, 0], 2: [1, 1, 1, 0, 1, 0], 3: [1, 1, 1, 1, 1, 0], 4: [1] * 6},
        "precision": {
            1: [1, 1, 0, 0, 1, 0],
            2: [1, 0.5, 0.5, 0, 1, 0],
            3: [0.6666, 0.3333, 0.6666, 0.3333, 1, 0],
            4: [1, 0.6666, 0.6666, 0.6666, 1, 1],
            5: [1] * 6,
        },
        "map": {
            1: [1, 1, 0, 0, 1, 0],
            2: [1, 0.5, 0.25, 0, 1, 0],
            3: [0.6666, 0.3333, 0.3888, 0.1111, 1, 0],
            4: [0.9166, 0.5, 0.3888, 0.2777, 1, 0.25],
            5: [0.9166, 0.7, 0.5888, 0.4777, 1, 0.25],
        },
    }
    found = calc_retrieval_metrics(
        [list(range(5))] * 6,
        places,
        cmc_top_k=tuple(expected["cmc"]),
        precision_top_k=tuple(expected["precision"]),
        map_top_k=tuple(expected["map"]),
        reduce=False,
    )
    for name, by_k in expected.items():
        for k, values in by_k.items():
            assert found[name][k] == pytest.approx(values, abs=1e-4), (name, k)


def test_categories_and_empty_lists_of_oml() -> None:
    """The numbers are those of `test_metrics_retrieval.py`, in the same folder."""
    found, right = [[0, 5, 4], [2, 1, 5], [2, 1, 5]], [[0, 10, 4], [2, 3], [2, 3]]
    options: Any = {"cmc_top_k": (1,), "precision_top_k": (3, 5), "map_top_k": ()}
    overall = {"cmc": {1: 1.0}, "precision": {3: pytest.approx(5 / 9), 5: pytest.approx(5 / 9)}}
    assert calc_retrieval_metrics(found, right, **options) == overall
    assert calc_retrieval_metrics(found, right, query_categories=["cat", "dog", "dog"], **options) == {
        "cat": {"cmc": {1: 1.0}, "precision": {3: pytest.approx(2 / 3), 5: pytest.approx(2 / 3)}},
        "dog": {"cmc": {1: 1.0}, "precision": {3: 0.5, 5: 0.5}},
        OVERALL: overall,
    }
    empty = calc_retrieval_metrics(
        [[], [], []], [[0], [], [10, 20]], cmc_top_k=(3,), precision_top_k=(2,), map_top_k=(1,), reduce=False
    )
    assert all(values.tolist() == [0, 1, 0] for by_k in empty.values() for values in by_k.values())


def test_oml_and_evaluate_agree(creatures: Creatures) -> None:
    labels = creatures.labels["species"]
    right = [np.setdiff1d(np.flatnonzero(labels == label), [item]) for item, label in enumerate(labels)]
    found = calc_retrieval_metrics(retrieve(creatures.embeddings, n_items=20), right, cmc_top_k=(1, 10))
    report = akin.evaluate(
        creatures.embeddings, labels, metrics=["recall@1", "recall@10", "capped_precision@5"], similarity="euclidean"
    )
    assert found["cmc"] == pytest.approx({1: report["recall@1", 1], 10: report["recall@10", 1]})
    assert found["precision"][5] == pytest.approx(report["capped_precision@5", 1])


# TREC and ranx -------------------------------------------------------------------------------------------------------


def test_a_run_and_qrels_from_files(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q1 Q0 a 1 3.0 me\nq1 Q0 b 2 2.0 me\nq1 Q0 c 3 1.0 me\nq2 Q0 x 1 1 me\n")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 c 1\nq1 0 z 1\nq2 0 y 1\nq3 0 a 0\nq4 0 a 1\n")
    names = ["ap", "mrr", "precision@5", "recall@1", "true_recall", "true_recall@100"]
    table = runs.evaluate(tmp_path / "run", tmp_path / "qrels", names)
    assert table["query"].tolist() == ["q1", "q2", "q4"]
    assert table["ap"] == pytest.approx([(1 + 2 / 3) / 3, 0, 0])
    assert table["mrr"].tolist() == [1, 0, 0]
    assert table["precision@5"] == pytest.approx([2 / 5, 0, 0])
    assert table["recall@1"].tolist() == [1, 0, 0]
    assert table["true_recall"] == pytest.approx([2 / 3, 0, 0])
    assert table["true_recall@100"] == pytest.approx([2 / 3, 0, 0])


def test_graded_runs() -> None:
    run = {"q": {"a": 0.5, "b": 0.9, "c": 0.1}}
    qrels = {"q": {"a": 2, "c": 1, "d": 2}}
    gains, ideal = [0, 2, 1], [2, 2, 1]
    discounts = 1 / np.log2(np.arange(3) + 2)
    table = runs.evaluate(run, qrels, ["ndcg_linear@3"])
    assert table["ndcg_linear@3"][0] == pytest.approx((gains @ discounts) / (ideal @ discounts))
    # trec_eval ranks equal scores by the name of the item, the last first.
    assert runs.evaluate({"q": {"a": 1, "b": 1}}, {"q": {"b": 1}}, ["recall@1"])["recall@1"][0] == 1


def test_runs_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(akin.ConfigError, match="h_ap is not defined"):
        runs.evaluate({}, {}, ["h_ap"])
    with pytest.raises(akin.ConfigError, match="a grade is 0.5"):
        runs.evaluate({}, {"q": {"a": 0.5}}, ["ap"])
    (tmp_path / "run").write_text("q1 Q0 a\n")
    with pytest.raises(akin.ConfigError, match="line 1"):
        runs.evaluate(tmp_path / "run", {}, ["ap"])
