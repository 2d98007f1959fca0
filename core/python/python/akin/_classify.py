"""What a gallery takes queries for, and how far that holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _akin
from ._arrays import embeddings as to_embeddings
from ._errors import ConfigError
from ._labels import encodable, number


class Answer(NamedTuple):
    """What a gallery says of a query.

    Attributes
    ----------
    path : list of str
        The classes that may be said at the promise, coarse to fine. Empty where none may.
    certainty : float or None
        The probability that the path is right.
    votes : list of (str, float)
        The most likely class at each level, with its certainty, also below the path.
    unlike : bool
        Whether nothing in the gallery is like the query.
    """

    path: list[str]
    certainty: float | None
    votes: list[tuple[str, float]]
    unlike: bool


class Classifier:
    """A gallery whose items vote for the classes of queries, with certainties that were measured on the gallery itself.

    The ten nearest items vote. How often such votes are right is measured by asking with each item of the gallery, which is
    left out meanwhile; that takes as long as a search with all of them.

    Parameters
    ----------
    gallery : array_like, shape (N, d)
        Embeddings, as in `akin.evaluate`.
    labels : table or array_like, shape (N, L)
        Their labels, as in `akin.evaluate`.
    levels, unknown, qualify
        As in `akin.evaluate`.
    similarity : str
        As in `akin.evaluate`.
    """

    def __init__(
        self,
        gallery: Any,
        labels: Any,
        *,
        levels: Sequence[str] | None = None,
        similarity: str = "cosine",
        unknown: Any = None,
        qualify: bool = False,
    ) -> None:
        array = to_embeddings(gallery, "gallery", similarity)
        self._taxonomy, (ids,) = number([("labels", labels)], levels, unknown, qualify)
        self._core = _akin.Classifier(array, ids, encodable(str(similarity)))
        self._similarity = similarity
        self.levels: list[str] = self._taxonomy.levels

    def __call__(self, queries: Any, *, promise: float = 0.95) -> list[Answer]:
        """The answer to each query: as deep as at least a share `promise` of such answers is right.

        Parameters
        ----------
        queries : array_like, shape (Q, d)
            Embeddings.
        promise : float
            The least share of right answers, 0.5 to 0.999.
        """
        try:
            share = float(promise)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the promise is {promise!r}", "give 0.95, for example") from error
        said = self._core.answers(to_embeddings(queries, "query", self._similarity), share)
        return [self._answer(*answer) for answer in said]

    def _answer(self, levels: list[tuple[int, float]], reached: int, unlike: bool, possible: bool) -> Answer:
        votes = [
            (self._taxonomy.class_name(level, number_of_class), certainty)
            for level, (number_of_class, certainty) in enumerate(levels, start=1)
        ]
        certainty = votes[reached - 1][1] if reached > 0 else None
        return Answer([name for name, _ in votes[:reached]], certainty, votes, unlike)


def classify(
    queries: Any,
    gallery: Any,
    labels: Any,
    *,
    promise: float = 0.95,
    levels: Sequence[str] | None = None,
    similarity: str = "cosine",
    unknown: Any = None,
    qualify: bool = False,
) -> list[Answer]:
    """What the gallery takes each query for, as deep as the answer holds. As `akin classify`.

    For several sets of queries, make an `akin.Classifier` once.

    Parameters
    ----------
    queries, gallery : array_like, shapes (Q, d) and (N, d)
        Embeddings, as in `akin.evaluate`.
    labels : table or array_like, shape (N, L)
        The labels of the gallery.
    promise : float
        The least share of right answers, 0.5 to 0.999.
    levels, similarity, unknown, qualify
        As in `akin.evaluate`.

    Returns
    -------
    list of Answer
    """
    classifier = Classifier(
        gallery, labels, levels=levels, similarity=similarity, unknown=unknown, qualify=qualify
    )
    return classifier(queries, promise=promise)
