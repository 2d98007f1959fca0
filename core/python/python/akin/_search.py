"""Exact search."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _akin
from ._arrays import embeddings as to_embeddings
from ._errors import ConfigError
from ._labels import encodable
from ._progress import bar


class Nearest(NamedTuple):
    """The nearest items of each query, best first.

    Attributes
    ----------
    items : ndarray of int64, shape (Q, k)
        Their rows in the gallery.
    scores : ndarray of float32, shape (Q, k)
        Their similarity to the query. A larger score is nearer.
    """

    items: NDArray[np.int64]
    scores: NDArray[np.float32]


def nearest(
    queries: Any, gallery: Any = None, *, k: int = 10, similarity: str = "cosine", progress: bool | None = None
) -> Nearest:
    """The k nearest items of the gallery for each query: exact, in blocks, in bounded memory.

    Parameters
    ----------
    queries : array_like, shape (Q, d)
        As in `akin.evaluate`.
    gallery : array_like, shape (N, d), optional
        What is searched. By default the queries search each other, and none finds itself.
    k : int
        The number of items. If there are fewer, all are found.
    similarity : str
        cosine, euclidean (minus the squared distance), dot, hamming (minus the different bits), or poincare:CURVATURE.
    progress : bool, optional
        Show a bar. By default on terminals and in notebooks.

    Returns
    -------
    Nearest
        `items` and `scores`, both of shape (Q, k). Equal scores are in the order of the gallery.

    Examples
    --------
    >>> import akin
    >>> akin.nearest([[0, 2]], [[1, 0], [0, 1], [0.6, 0.8]], k=2).items.tolist()
    [[1, 2]]
    """
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < 2**31:
        raise ConfigError(f"`k` is {k!r}", "give a whole number")
    asked = to_embeddings(queries, "query", similarity)
    searched = None if gallery is None else to_embeddings(gallery, "gallery", similarity)
    shown = bar(progress, len(asked), "searched")
    try:
        return Nearest(*_akin.nearest(asked, searched, int(k), encodable(str(similarity)), shown))
    finally:
        if shown is not None:
            shown.close()
