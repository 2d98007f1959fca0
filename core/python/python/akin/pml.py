"""akin's evaluation with the interface of pytorch-metric-learning.

>>> from akin.pml import AccuracyCalculator
>>> calculator = AccuracyCalculator(include=("precision_at_1", "mean_average_precision_at_r"))
>>> calculator.get_accuracy([[0, 0], [0, 1], [5, 5], [5, 6]], [0, 0, 1, 1])
{'mean_average_precision_at_r': 1.0, 'precision_at_1': 1.0}
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import embeddings as to_embeddings
from ._arrays import to_numpy
from ._errors import ConfigError, TaxonomyError
from ._evaluate import evaluate

_RANKED = ("mean_average_precision", "mean_average_precision_at_r", "mean_reciprocal_rank", "precision_at_1", "r_precision")
_CLUSTERED = ("AMI", "NMI")


class AccuracyCalculator:
    """`pytorch_metric_learning.utils.accuracy_calculator.AccuracyCalculator`, in bounded memory.

    The arguments, the names and the values are those of version 2.9, with these differences:

    - Labels are compared as they are. There they become float32, so that ids above 2^24 collide.
    - `knn_func` is the name of a similarity: by default `"euclidean"`, as there; `"cosine"`, for example.
    - AMI and NMI need scikit-learn, which clusters unless `kmeans_func` is given. Where it is not installed they are left out.
    - `label_comparison_fn` is refused: give labels of several levels to `akin.evaluate` instead.
    - `device` has no effect.
    """

    def __init__(
        self,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        avg_of_avgs: bool = False,
        return_per_class: bool = False,
        k: int | str | None = None,
        label_comparison_fn: Callable[..., Any] | None = None,
        device: Any = None,
        knn_func: str | None = None,
        kmeans_func: Callable[[Any, int], Any] | None = None,
    ) -> None:
        if label_comparison_fn is not None:
            raise ConfigError(
                "`label_comparison_fn` is not supported", "give labels of several levels to akin.evaluate"
            )
        if knn_func is not None and not isinstance(knn_func, str):
            raise ConfigError("`knn_func` is not the name of a similarity", 'write "euclidean" or "cosine", for example')
        if avg_of_avgs and return_per_class:
            raise ConfigError("`avg_of_avgs` and `return_per_class` exclude each other", "leave out one of them")
        if k not in (None, "max_bin_count") and (isinstance(k, bool) or not isinstance(k, int) or k <= 0):
            raise ConfigError(f"`k` is {k!r}", "give a whole number above 0, None or 'max_bin_count'")
        self.avg_of_avgs = avg_of_avgs
        self.return_per_class = return_per_class
        self.k = k
        self.knn_func = knn_func or "euclidean"
        self.kmeans_func = kmeans_func
        self._metrics = self._chosen([*_CLUSTERED, *_RANKED], include, exclude)
        if not self._metrics:
            raise ConfigError("no metric is left", "include more, or exclude fewer")

    def get_curr_metrics(self) -> list[str]:
        """The metrics that are computed."""
        return list(self._metrics)

    def get_accuracy(
        self,
        query: Any,
        query_labels: Any,
        reference: Any = None,
        reference_labels: Any = None,
        ref_includes_query: bool = False,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ) -> dict[str, Any]:
        """The value of each metric. With `return_per_class`, a list of the values of each class, in the order of labels.

        Parameters
        ----------
        query, reference : array_like, shapes (Q, d) and (N, d)
            Embeddings. Without a reference the queries rank each other.
        query_labels, reference_labels : array_like, shapes (Q,) and (N,), or (Q, L) and (N, L)
            Two items are of one class if their whole rows agree.
        ref_includes_query : bool
            Whether the first Q items of the reference are the queries.
        """
        metrics = self._chosen(self._metrics, include, exclude)
        asked = to_embeddings(query, "query", self.knn_func)
        labels = [_rows(query_labels, "query_labels")]
        if reference is None:
            ranked, ref_includes_query = None, True
        else:
            ranked = to_embeddings(reference, "reference", self.knn_func)
            labels.append(_rows(reference_labels, "reference_labels"))
            first = ranked[: len(asked)], labels[1][: len(asked)]
            if ref_includes_query and not (np.array_equal(first[0], asked) and np.array_equal(first[1], labels[0])):
                raise ConfigError(
                    "the first items of the reference are not the queries", "leave out `ref_includes_query`"
                )
        if any(len(rows) != len(array) for rows, array in zip(labels, [asked, ranked], strict=False) if array is not None):
            raise TaxonomyError("embeddings and labels have different lengths", "give one label per embedding")
        if len({rows.shape[1] for rows in labels}) > 1:
            raise TaxonomyError("query and reference labels have different columns", "give both the same")
        # Numbers of the different rows, in the order of the labels.
        _, numbers = np.unique(np.concatenate(labels), axis=0, return_inverse=True)
        numbers = numbers.reshape(-1)
        own, theirs = numbers[: len(asked)], numbers[len(asked) :] if ranked is not None else numbers
        values = self._clusters(asked, own, [metric for metric in metrics if metric in _CLUSTERED])
        wanted = [metric for metric in metrics if metric in _RANKED]
        if wanted:
            values |= self._ranked(wanted, asked, own, ranked, theirs, ref_includes_query)
        return values

    def _ranked(
        self,
        metrics: list[str],
        asked: NDArray[np.float32],
        own: NDArray[np.int64],
        ranked: NDArray[np.float32] | None,
        theirs: NDArray[np.int64],
        includes_query: bool,
    ) -> dict[str, Any]:
        sizes = np.bincount(theirs, minlength=own.max() + 1)
        positives = sizes[own] - int(includes_query)
        items = len(theirs) - int(includes_query)
        largest = int(sizes[own].max())
        k = items if self.k is None else largest - int(includes_query) if self.k == "max_bin_count" else int(self.k)
        k = max(k, 1)
        if k < largest - int(includes_query) and {"r_precision", "mean_average_precision_at_r"} & set(metrics):
            warnings.warn(
                f"k is {k}, and a class has {largest} items: r_precision and mean_average_precision_at_r are cut at k",
                stacklevel=3,
            )
        classes = np.unique(own)
        try:
            report = evaluate(
                asked,
                own,
                gallery=ranked,
                gallery_labels=None if ranked is None else theirs,
                places=np.arange(len(asked)) if ranked is not None and includes_query else None,
                metrics=["recall@1", "map_at_r", "r_precision", "mrr", f"ap@{k}", f"precision@{k}", f"recall@{k}"][
                    : 7 if k > 1 else 6
                ],
                similarity=self.knn_func,
                progress=False,
            )
        except TaxonomyError:
            # No query has a positive.
            lone: Any = [np.nan] * len(classes) if self.return_per_class else np.nan
            return {metric: lone for metric in metrics}
        scores = {name: report._core.scores(name, 1) for name in report.metrics}
        has_positives = positives > 0
        is_cut = positives > k
        per_query = {
            "precision_at_1": scores["recall@1"],
            "r_precision": np.where(is_cut, scores[f"precision@{k}"], scores["r_precision"]),
            "mean_average_precision": scores[f"ap@{k}"],
            "mean_average_precision_at_r": np.where(is_cut, scores[f"ap@{k}"], scores["map_at_r"]),
            # A query without a hit among the first k counts as 0.
            "mean_reciprocal_rank": np.where(scores[f"recall@{k}"] > 0, scores["mrr"], 0.0),
        }
        return {metric: self._mean(per_query[metric][has_positives], own[has_positives]) for metric in metrics}

    def _mean(self, values: NDArray[np.float64], classes: NDArray[np.int64]) -> Any:
        if not (self.avg_of_avgs or self.return_per_class):
            return float(values.mean())
        _, numbers = np.unique(classes, return_inverse=True)
        means = np.bincount(numbers, values) / np.bincount(numbers)
        return means.tolist() if self.return_per_class else float(means.mean())

    def _clusters(self, asked: NDArray[np.float32], own: NDArray[np.int64], metrics: list[str]) -> dict[str, Any]:
        if not metrics:
            return {}
        try:
            scores = importlib.import_module("sklearn.metrics")
            cluster = importlib.import_module("sklearn.cluster")
        except ImportError:
            warnings.warn("AMI and NMI are left out: they need scikit-learn", stacklevel=3)
            return {}
        count = len(np.unique(own))
        found = (
            to_numpy(self.kmeans_func(asked, count))
            if self.kmeans_func is not None
            else cluster.KMeans(count, n_init=1, max_iter=20, random_state=0).fit_predict(asked)
        )
        functions = {"AMI": scores.adjusted_mutual_info_score, "NMI": scores.normalized_mutual_info_score}
        return {metric: float(functions[metric](own, found)) for metric in metrics}

    def _chosen(self, metrics: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> list[str]:
        unknown = [metric for metric in [*include, *exclude] if metric not in (*_CLUSTERED, *_RANKED)]
        if unknown:
            raise ConfigError(f"there is no metric {unknown[0]!r}", f"the metrics are {', '.join(_CLUSTERED + _RANKED)}")
        return [metric for metric in metrics if metric not in exclude and (not include or metric in include)]


def _rows(labels: Any, name: str) -> NDArray[Any]:
    array = to_numpy(labels)
    if array.ndim not in (1, 2) or array.dtype.kind not in "iufbUS":
        raise TaxonomyError(f"`{name}` has the shape {list(array.shape)} and type {array.dtype}", "give one label per item")
    return array[:, None] if array.ndim == 1 else array
