"""Metrics of one ranking.

A ranking is the shared level of each item with the query: 0 for a stranger, up to L for an item of its own finest class.
The items are best first or, with `scores`, in any order.

>>> from akin import metrics
>>> close_relative_first, distant_relative_first = [2, 3, 0, 1, 3], [1, 3, 0, 2, 3]
>>> round(metrics.ap(close_relative_first, level=3), 2) == round(metrics.ap(distant_relative_first, level=3), 2)
True
>>> round(metrics.h_ap(close_relative_first, relevance="plain"), 2)
0.78
>>> round(metrics.h_ap(distant_relative_first, relevance="plain"), 2)
0.67
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from . import _akin
from ._arrays import to_numpy
from ._errors import ConfigError
from ._evaluate import relevance_text
from ._frame import Frame
from ._labels import encodable


class Options(TypedDict, total=False):
    """How a ranking is read.

    depth : L, by default the largest shared level in the ranking.
    scores : the score of each item, if the items are not best first. A larger score is nearer.
    ties : how equal scores are ranked, as in `akin.evaluate`.
    count_query : whether the query itself counts among the items of its class.
    level : the level of a metric per level, 1 … L, by default L. "All levels" metrics do not need it.
    relevance : the relevance of each shared level, as in `akin.evaluate`.
    """

    depth: int
    scores: Any
    ties: str
    count_query: bool
    level: int
    relevance: str | Sequence[float]


def value(metric: str, shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """The value of a metric by its name, such as `recall@10`; `None` where there is no positive to measure.

    Parameters
    ----------
    metric : str
        Its name, as in `akin.evaluate`.
    shared_levels : array_like of int, shape (N,)
        The shared level of each item.
    **options
        See `Options`.
    """
    ranking, depth = _ranking(shared_levels, options)
    level = _integer(options.get("level", depth), "level")
    return ranking.value(encodable(str(metric)), relevance_text(options.get("relevance", "hierarchical_ap")), level)


def curve(shared_levels: Any, **options: Unpack[Options]) -> Frame:
    """The H-precision/H-recall curve, whose area is H-AP (HAPPIER, eq. 9–11).

    Returns
    -------
    Frame
        `rank`, `h_recall` and `h_precision` at each item with a relevance above 0.
    """
    ranking, _ = _ranking(shared_levels, options)
    ranks, recalls, precisions = ranking.curve(relevance_text(options.get("relevance", "hierarchical_ap")))
    return Frame(
        rank=np.array(ranks, dtype=np.int64),
        h_recall=np.array(recalls, dtype=np.float64),
        h_precision=np.array(precisions, dtype=np.float64),
    )


def catalogue() -> Frame:
    """Every metric: its name, what it is, its formula and source, and what its name means in other tools."""
    rows = _akin.catalogue()
    return Frame({key: np.array([row[key] for row in rows], dtype=object) for key in rows[0]})


def h_ap(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Hierarchical average precision: Σ_i H-rank(i) / rank(i) / Σ_i rel(i)."""
    return value("h_ap", shared_levels, **options)


def weighted_ap(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Weighted sum of the AP of every level; weights of a `weighted_ap` relevance, otherwise equal.

    Σ_l w_l AP(l) / Σ_l w_l
    """
    return value("weighted_ap", shared_levels, **options)


def h_precision(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Hierarchical precision at rank k of the H-AP curve: Σ_{rank(i) ≤ k} min(rel(i), rel_k) / (k rel_k)."""
    return value(_at("h_precision", k), shared_levels, **options)


def h_recall(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Hierarchical recall at rank k of the H-AP curve: Σ_{rank(i) ≤ k} rel(i) / Σ_i rel(i)."""
    return value(_at("h_recall", k), shared_levels, **options)


def ndcg(shared_levels: Any, k: int | None = None, **options: Unpack[Options]) -> float | None:
    """Normalised discounted cumulative gain, exponential gain: Σ_i (2^l(i) − 1) / log2(1 + rank(i)) / ideal."""
    return value(_at("ndcg", k), shared_levels, **options)


def ndcg_linear(shared_levels: Any, k: int | None = None, **options: Unpack[Options]) -> float | None:
    """Normalised discounted cumulative gain, linear gain: Σ_i l(i) / log2(1 + rank(i)) / ideal."""
    return value(_at("ndcg_linear", k), shared_levels, **options)


def mean_ndcg(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Mean of the normalised discounted cumulative gains at ranks 1 … k, as in HPDH's code.

    1/k Σ_{n ≤ k} DCG(n) / ideal DCG(n), with DCG(n) = Σ_{rank(i) ≤ n} l(i) / log2(max(2, rank(i) − 1))
    """
    return value(_at("mean_ndcg", k), shared_levels, **options)


def asi(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Average set intersection with the ideal list: 1/P Σ_{n ≤ P} 1/n Σ_{l ≥ 1} min(n_l, ideal n_l)."""
    return value("asi", shared_levels, **options)


def hierarchical_precision(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Hierarchical precision, similarity by the height of the lowest common ancestor.

    Σ_{rank(i) ≤ k} l(i)/L / ideal
    """
    return value(_at("hierarchical_precision", k), shared_levels, **options)


def wu_palmer_precision(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Hierarchical precision, Wu-Palmer similarity: Σ_{rank(i) ≤ k} (l(i) + 1)/(L + 1) / ideal."""
    return value(_at("wu_palmer_precision", k), shared_levels, **options)


def ahp(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Area under hierarchical precision by the trapezoidal rule, at most (k − 1)/k.

    1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)
    """
    return value(_at("ahp", k), shared_levels, **options)


def wu_palmer_ahp(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Area under hierarchical precision as `ahp`, with Wu-Palmer similarity.

    1/k (Σ_{n ≤ k} HP@n − (HP@1 + HP@k)/2)
    """
    return value(_at("wu_palmer_ahp", k), shared_levels, **options)


def mahp(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Mean of hierarchical precision over the first k ranks: 1/k Σ_{n ≤ k} HP@n."""
    return value(_at("mahp", k), shared_levels, **options)


def mistake_severity(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Height of the lowest common ancestor of the query and the first wrong item: L − l(first wrong item)."""
    return value("mistake_severity", shared_levels, **options)


def ap(shared_levels: Any, k: int | None = None, **options: Unpack[Options]) -> float | None:
    """Average precision; with a k, that of the first k items: 1/R Σ_i rank⁺(i) / rank(i)."""
    return value(_at("ap", k), shared_levels, **options)


def trapezoid_ap(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Average precision by trapezoids, as the benchmarks of Oxford and Paris compute it.

    1/R Σ_i ((rank⁺(i) − 1) / (rank(i) − 1) + rank⁺(i) / rank(i)) / 2, with 1 for 0/0
    """
    return value("trapezoid_ap", shared_levels, **options)


def map_at_r(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Average precision of the first R items: 1/R Σ_{rank(i) ≤ R} rank⁺(i) / rank(i)."""
    return value("map_at_r", shared_levels, **options)


def recall(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Hit rate at k, which metric learning calls recall: is there a positive among the first k items?.

    1 if the first positive's rank ≤ k, else 0
    """
    return value(_at("recall", k), shared_levels, **options)


def true_recall(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Recall at k as information retrieval has it: the share of the positives among the first k items.

    |positives of rank ≤ k| / R
    """
    return value(_at("true_recall", k), shared_levels, **options)


def precision(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Precision at k, divided by k even where there are fewer positives: |positives of rank ≤ k| / k."""
    return value(_at("precision", k), shared_levels, **options)


def capped_precision(shared_levels: Any, k: int, **options: Unpack[Options]) -> float | None:
    """Precision at k, divided by the number of positives where there are fewer than k.

    |positives of rank ≤ k| / min(k, R)
    """
    return value(_at("capped_precision", k), shared_levels, **options)


def r_precision(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Precision at R, the number of positives: |positives of rank ≤ R| / R."""
    return value("r_precision", shared_levels, **options)


def mrr(shared_levels: Any, **options: Unpack[Options]) -> float | None:
    """Mean reciprocal rank: 1 / rank of the first positive."""
    return value("mrr", shared_levels, **options)


def _ranking(shared_levels: Any, options: Options) -> tuple[_akin.Ranking, int]:
    levels = to_numpy(shared_levels)
    if levels.size == 0:
        levels = levels.astype(np.int64)
    if levels.ndim != 1 or levels.dtype.kind not in "iu" or (levels < 0).any():
        raise ConfigError(
            f"the shared levels are of type {levels.dtype} and shape {list(levels.shape)}",
            "give one whole number from 0 on per item",
        )
    depth = _integer(options.get("depth", max(int(levels.max(initial=0)), 1)), "depth")
    scores = options.get("scores")
    if scores is not None:
        scores = to_numpy(scores)
        if scores.ndim != 1 or scores.dtype.kind not in "iuf":
            raise ConfigError(f"the scores have the shape {list(scores.shape)}", "give one number per item")
        with np.errstate(over="ignore"):
            scores = scores.astype(np.float32).tolist()
    ties, count_query = encodable(str(options.get("ties", "stable"))), bool(options.get("count_query", False))
    return _akin.Ranking(levels.tolist(), depth, scores, ties, count_query), depth


def _integer(number: Any, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < 2**31:
        raise ConfigError(f"`{name}` is {number!r}", "give a whole number")
    return int(number)


def _at(metric: str, k: int | None) -> str:
    return metric if k is None else f"{metric}@{_integer(k, 'k')}"
