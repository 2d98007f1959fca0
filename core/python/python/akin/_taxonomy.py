"""The tree of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import TaxonomyError
from ._labels import number

_UNKNOWN = np.iinfo(np.uint32).max


class Taxonomy:
    """The tree of classes that labels form.

    Parameters
    ----------
    labels : table or array_like, shape (N, L)
        As in `akin.evaluate`.
    levels : sequence of str, optional
        The columns of the levels, coarse to fine; of an array, their names.
    unknown : label or list of labels, optional
        Labels that mean that it is not known, besides missing ones.
    qualify : bool
        Identify a class by its full label path.

    Attributes
    ----------
    levels : list of str
        The names of the levels, coarse to fine.
    ids : ndarray of int64, shape (N, L)
        The class of each item at each level, numbered in the order in which they first appear; -1 where it is unknown.

    Examples
    --------
    >>> import akin
    >>> taxonomy = akin.Taxonomy({"kind": ["apple", "apple", "pear"], "variety": ["gala", "fuji", "kaiser"]})
    >>> taxonomy.classes("variety"), taxonomy.parents("variety").tolist()
    (['gala', 'fuji', 'kaiser'], [0, 0, 1])
    >>> taxonomy.shared_levels(0).tolist()
    [2, 1, 0]
    """

    def __init__(
        self, labels: Any, levels: Sequence[str] | None = None, *, unknown: Any = None, qualify: bool = False
    ) -> None:
        self._core, (ids,) = number([("labels", labels)], levels, unknown, qualify)
        self.levels: list[str] = self._core.levels
        self.ids: NDArray[np.int64] = np.where(ids == _UNKNOWN, -1, ids.astype(np.int64))

    def classes(self, level: str | int) -> list[str]:
        """The names of the classes at a level, by its name or number from 1 on."""
        return self._core.classes(self._level(level))

    def parents(self, level: str | int) -> NDArray[np.int64]:
        """The parent of each class at a level; empty at level 1."""
        return np.array(self._core.parents(self._level(level)), dtype=np.int64)

    def path(self, item: int) -> list[str]:
        """The names of the known classes of an item, coarse to fine."""
        row = self.ids[item].tolist()
        return self._core.path([_UNKNOWN if number_of_class < 0 else number_of_class for number_of_class in row])

    def shared_levels(self, query: int) -> NDArray[np.int64]:
        """The shared level of one item with every item: the finest level at which both are known to have one class."""
        same = (self.ids == self.ids[query]) & (self.ids >= 0)
        return np.where(same.any(axis=1), len(self.levels) - np.argmax(same[:, ::-1], axis=1), 0)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        sizes = [f"{len(self._core.classes(place))} {name}" for place, name in enumerate(self.levels, start=1)]
        return f"Taxonomy of {len(self):,} items: {', '.join(sizes)}"

    def _level(self, level: str | int) -> int:
        if isinstance(level, str) and level in self.levels:
            return self.levels.index(level) + 1
        if isinstance(level, int | np.integer) and 1 <= level <= len(self.levels):
            return int(level)
        raise TaxonomyError(f"there is no level {level!r}", f"the levels are {', '.join(self.levels)}")
