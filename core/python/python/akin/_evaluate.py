"""Every query ranks the gallery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _akin
from ._arrays import embeddings as to_embeddings
from ._errors import ConfigError, TaxonomyError
from ._labels import codes_of, encodable, number, text_of
from ._progress import bar
from ._report import Report


def evaluate(
    embeddings: Any,
    labels: Any,
    *,
    gallery: Any = None,
    gallery_labels: Any = None,
    levels: Sequence[str] | None = None,
    metrics: str | Sequence[str] = (),
    similarity: str = "cosine",
    relevance: str | Sequence[float] = "hierarchical_ap",
    ties: str = "stable",
    count_query: bool = False,
    places: Any = None,
    junk: Sequence[Any] | None = None,
    groups: Any = None,
    gallery_groups: Any = None,
    unknown: Any = None,
    qualify: bool = False,
    bootstrap: int | None = None,
    decomposability_gap: int | None = None,
    hyperbolicity: int | None = None,
    progress: bool | None = None,
) -> Report:
    """Ranks the gallery for every query, and reports metrics: as `akin eval`, digit for digit.

    Without a gallery the queries rank each other, and no query ranks itself. A query without a positive at a level is left
    out of the mean at that level. The ranking is exact, and memory does not grow with queries times gallery.

    Parameters
    ----------
    embeddings : array_like, shape (Q, d)
        One embedding per query: an array of numpy, a tensor of torch, a memory map. float32, one row behind the other, is
        not copied.
    labels : table or array_like, shape (Q,) or (Q, L)
        The labels of the queries, coarse to fine: a frame of pandas, polars or pyarrow, a dict of columns, a structured
        array, or an array with one column per level. A missing label is unknown: it may be missing from some level down.
    gallery, gallery_labels : optional, shape (N, d) and (N, L)
        What the queries rank.
    levels : sequence of str, optional
        The columns of the levels, coarse to fine; of an array, their names. By default all columns.
    metrics : str or sequence of str, optional
        What is measured; `akin.metrics.catalogue()` explains each. By default h_ap, ndcg, asi, ap, map_at_r and recall@1.
        recall@k is the hit rate, and true_recall@k the share of the positives found.
    similarity : str
        cosine, euclidean, dot, hamming, or poincare:CURVATURE.
    relevance : str or sequence of float
        The relevance of each shared level: hierarchical_ap (HAPPIER, eq. 4), plain, each with an exponent if it is not 1
        (`"plain:2"`), or one weight per level.
    ties : str
        How items with equal scores are ranked: stable, strict, optimistic, pessimistic, or shared, as scikit-learn has it.
    count_query : bool
        Count the query itself among the items of its class, as most published results do.
    places : array_like of int, shape (Q,), optional
        The row of each query in the gallery, if the queries are in it. A query never ranks itself.
    junk : sequence of sequences, length N, optional
        For each item of the gallery, the finest classes whose queries leave it out.
    groups, gallery_groups : array_like, shapes (Q,) and (N,), optional
        A query leaves out the items of its own group, such as a burst, a camera or a product.
    unknown : label or list of labels, optional
        Labels that mean that it is not known, besides missing ones; -1, for example.
    qualify : bool
        Identify a class by its full label path: the same name under two parents is then two classes.
    bootstrap : int, optional
        The resamples of 95 % intervals; 1000 is common.
    decomposability_gap : int, optional
        Measure how much higher AP is in batches of this many items than over the whole set.
    hyperbolicity : int, optional
        Measure how tree-like the distances are, from 10 draws of this many items.
    progress : bool, optional
        Show a bar. By default on terminals and in notebooks.

    Returns
    -------
    Report

    Raises
    ------
    akin.Error
        What akin refuses, with a hint. Ctrl-C raises KeyboardInterrupt within a second.

    References
    ----------
    Ramzi et al., Hierarchical Average Precision Training for Pertinent Image Retrieval, ECCV 2022.

    Examples
    --------
    >>> import akin
    >>> report = akin.evaluate(
    ...     [[1, 0], [0.9, 0.1], [0.5, 0.5], [0, 1]],
    ...     {"kind": ["fruit", "fruit", "fruit", "fruit"], "variety": ["gala", "gala", "kaiser", "kaiser"]},
    ... )
    >>> report["recall@1", "variety"]
    0.75
    """
    queries = to_embeddings(embeddings, "query", similarity)
    sets = [("labels", labels)]
    if gallery is None:
        _refuse("gallery", gallery_labels=gallery_labels, places=places, junk=junk, gallery_groups=gallery_groups)
    elif gallery_labels is None:
        raise TaxonomyError("the gallery has no labels", "give them as `gallery_labels`")
    else:
        sets.append(("gallery_labels", gallery_labels))
    labelled = number(sets, levels, unknown, qualify)
    _check_length(len(queries), len(labelled.ids[0]), "query", "labels")
    ranked = None
    if gallery is not None:
        ranked = (to_embeddings(gallery, "gallery", similarity), labelled.ids[1])
        _check_length(len(ranked[0]), len(ranked[1]), "gallery", "gallery_labels")
    left_out: tuple[list[int], list[int]] | list[list[int]] | None = None
    if junk is not None:
        _refuse("no `junk`", places=places, groups=groups)
        left_out = _junk(junk, labelled.taxonomy)
    if groups is not None:
        _refuse("no `groups`", places=places)
        left_out = _groups(groups, gallery_groups, gallery is not None)
    elif gallery_groups is not None:
        raise ConfigError("`gallery_groups` is given without `groups`", "give the groups of the queries, too")
    if left_out is not None:
        _refuse("nothing that queries leave out", decomposability_gap=decomposability_gap, hyperbolicity=hyperbolicity)
    settings: _akin.Settings = {
        "metrics": _names(metrics),
        "similarity": encodable(str(similarity)),
        "relevance": relevance_text(relevance),
        "ties": encodable(str(ties)),
        "count_query": bool(count_query),
        "bootstrap": _whole(bootstrap, "bootstrap"),
        "decomposability_gap": _whole(decomposability_gap, "decomposability_gap"),
        "hyperbolicity": _whole(hyperbolicity, "hyperbolicity"),
    }
    rows = None if places is None else _places(places, len(queries), len(ranked[0]) if ranked else 0)
    shown = bar(progress, len(queries), "ranked")
    try:
        core = _akin.evaluate(
            labelled.taxonomy, (queries, labelled.ids[0]), ranked, rows, left_out, settings, shown
        )
    finally:
        if shown is not None:
            shown.close()
    return Report(core, labelled.taxonomy, labelled.ids[0])


def relevance_text(relevance: str | Sequence[float]) -> str:
    """A relevance as the command line writes it."""
    if isinstance(relevance, str):
        return encodable(relevance)
    try:
        return "weighted_ap:" + ",".join(repr(float(weight)) for weight in relevance)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the relevance is {relevance!r}", "give its name, or one weight per level") from error


def _names(metrics: str | Sequence[str]) -> list[str]:
    try:
        return [encodable(str(metric)) for metric in (metrics.split(",") if isinstance(metrics, str) else metrics)]
    except TypeError as error:
        raise ConfigError(f"the metrics are {metrics!r}", "give their names") from error


def _refuse(without: str, **given: Any) -> None:
    """Refuses arguments that have a meaning only with others, or without them."""
    for name, value in given.items():
        if value is not None:
            needs = f"needs {without}" if without.startswith("no") else f"is given without `{without}`"
            raise ConfigError(f"`{name}` {needs}", "leave out one of them, or give what is missing")


def _check_length(embeddings: int, labels: int, name: str, argument: str) -> None:
    if embeddings != labels:
        raise TaxonomyError(
            f"there are {embeddings:,} {name} embeddings and {labels:,} rows of `{argument}`",
            "give each embedding one row of labels, in the same order",
        )


def _whole(value: int | None, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**62:
        raise ConfigError(f"`{name}` is {value!r}", "give a whole number")
    return int(value)


def _places(places: Any, queries: int, items: int) -> list[int]:
    array = np.asarray(places)
    if array.dtype.kind not in "iu" or array.shape != (queries,) or ((array < 0) | (array >= items)).any():
        raise ConfigError(
            f"`places` are not {queries:,} rows of the gallery, from 0 to {items - 1:,}",
            "give each query its row in the gallery",
        )
    rows: list[int] = array.tolist()
    return rows


def _groups(groups: Any, gallery_groups: Any, has_gallery: bool) -> tuple[list[int], list[int]]:
    if has_gallery and gallery_groups is None:
        raise ConfigError("the gallery has no groups", "give them as `gallery_groups`")
    numbers: dict[str, int] = {}
    of_queries = [numbers.setdefault(name, len(numbers)) for name in codes_of(groups, "groups")]
    if not has_gallery:
        return of_queries, of_queries
    named = codes_of(gallery_groups, "gallery_groups")
    return of_queries, [numbers.setdefault(name, len(numbers)) for name in named]


def _junk(junk: Sequence[Any], taxonomy: _akin.Taxonomy) -> list[list[int]]:
    level = len(taxonomy.levels)
    classes: dict[str, list[int]] = {}
    for place, name in enumerate(taxonomy.classes(level)):
        classes.setdefault(name, []).append(place)
    ids = []
    for item, names in enumerate(junk):
        of_item: list[int] = []
        for value in [] if names is None else [names] if isinstance(names, str | bytes | int) else names:
            wanted = text_of(value)
            if wanted is None or wanted not in classes:
                raise TaxonomyError(
                    f"item {item} of the gallery is junk for {wanted!r}, which is no {taxonomy.levels[-1]}",
                    "correct the class, or remove it",
                )
            of_item += classes[wanted]
        ids.append(of_item)
    return ids
