"""The retrieval metrics of open-metric-learning, with its interface.

>>> from akin.oml import calc_retrieval_metrics
>>> calc_retrieval_metrics([[0, 5, 4]], [[0, 10, 4]], cmc_top_k=(1,), precision_top_k=(2,), map_top_k=())
{'cmc': {1: 1.0}, 'precision': {2: 0.5}}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import to_numpy
from ._errors import ConfigError
from ._labels import codes_of
from ._search import nearest

# The key of the means over all categories.
OVERALL = "OVERALL"


def calc_retrieval_metrics(
    retrieved_ids: Sequence[Any] | NDArray[Any],
    gt_ids: Sequence[Any] | NDArray[Any],
    query_categories: Any = None,
    cmc_top_k: Sequence[int] = (5,),
    precision_top_k: Sequence[int] = (5,),
    map_top_k: Sequence[int] = (5,),
    reduce: bool = True,
    verbose: bool = True,
) -> dict[Any, Any]:
    """`oml.functional.metrics.calc_retrieval_metrics`, without torch: the same arguments and values.

    Parameters
    ----------
    retrieved_ids : sequence of sequences of int
        The items that each query found, the nearest first; `akin.oml.retrieve` finds them.
    gt_ids : sequence of sequences of int
        The items that it should find.
    query_categories : array_like, optional
        The category of each query, for means by category.
    cmc_top_k, precision_top_k, map_top_k : sequences of int
        cmc@k is 1 if one of the first k items is right. precision@k divides by min(k, n), where n items are right, and so
        does map@k. A query that should find nothing scores 1 if it finds nothing, and 0 otherwise.
    reduce : bool
        Means over queries; otherwise arrays with the value of each query.
    verbose : bool
        Has no effect.

    Returns
    -------
    dict
        `{"cmc": {k: value}, "precision": …, "map": …}`; with categories one of these for each, and `"OVERALL"`.
    """
    if len(retrieved_ids) != len(gt_ids):
        raise ConfigError(
            f"{len(retrieved_ids)} queries found items, and {len(gt_ids)} should find some", "give both for each query"
        )
    hits = [_hits(found, right, query) for query, (found, right) in enumerate(zip(retrieved_ids, gt_ids, strict=True))]
    wanted: list[tuple[str, Sequence[int], Callable[[NDArray[np.bool_], int, int], float]]] = [
        ("cmc", cmc_top_k, _cmc),
        ("precision", precision_top_k, _precision),
        ("map", map_top_k, _average_precision),
    ]
    if not any(len(ks) for _, ks, _ in wanted):
        raise ConfigError("no metric is asked for", "give at least one k")
    scores = {
        name: {k: np.array([function(*hit, _positive(k)) for hit in hits]) for k in ks}
        for name, ks, function in wanted
        if len(ks)
    }
    if not reduce:
        return scores
    if query_categories is None:
        return _means(scores, np.ones(len(hits), dtype=bool))
    names = np.array(codes_of(query_categories, "query_categories"))
    if len(names) != len(hits):
        raise ConfigError(f"there are {len(names)} categories for {len(hits)} queries", "give one for each")
    by_category = {str(name): _means(scores, names == name) for name in np.unique(names)}
    return {**by_category, OVERALL: _means(scores, np.ones(len(hits), dtype=bool))}


def retrieve(
    queries: Any, gallery: Any = None, *, n_items: int = 100, similarity: str = "euclidean"
) -> NDArray[np.int64]:
    """The items that each query finds, [Q, n_items], for `calc_retrieval_metrics`. Euclidean, as OML ranks."""
    return nearest(queries, gallery, k=n_items, similarity=similarity).items


def _hits(found: Any, right: Any, query: int) -> tuple[NDArray[np.bool_], int]:
    """Which of the found items are right, and how many are right in all."""
    items, wanted = to_numpy(found).reshape(-1), to_numpy(right).reshape(-1)
    if len(np.unique(items)) != len(items):
        raise ConfigError(f"query {query} found an item twice", "give each item once")
    return np.isin(items, wanted), len(np.unique(wanted))


def _positive(k: Any) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k <= 0:
        raise ConfigError(f"k is {k!r}", "give a whole number above 0")
    return int(k)


def _cmc(hits: NDArray[np.bool_], right: int, k: int) -> float:
    return float(hits[:k].any()) if right else float(len(hits) == 0)


def _precision(hits: NDArray[np.bool_], right: int, k: int) -> float:
    return float(hits[:k].sum() / min(k, right)) if right else float(len(hits) == 0)


def _average_precision(hits: NDArray[np.bool_], right: int, k: int) -> float:
    if not right:
        return float(len(hits) == 0)
    first = hits[:k]
    precisions = np.cumsum(first) / np.arange(1, len(first) + 1)
    return float(precisions[first].sum() / min(k, right))


def _means(scores: dict[str, dict[int, NDArray[np.float64]]], queries: NDArray[np.bool_]) -> dict[str, Any]:
    return {
        name: {k: float(values[queries].mean()) if queries.any() else float("nan") for k, values in by_k.items()}
        for name, by_k in scores.items()
    }
