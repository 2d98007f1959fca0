"""What labels say of a query and an item: the level that they share, whether they are a pair, and the item's relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from .._errors import ConfigError, TaxonomyError
from ._steps import check


def shared_levels(queries: Any, items: Any) -> Any:
    """The finest level that each query shares with each item, [Q, N], from labels [Q, L] and [N, L], coarse to fine."""
    return (queries[:, None, :] == items[None, :, :]).long().cumprod(2).sum(2)


def same_class(queries: Any, items: Any) -> Any:
    """Whether each query shares the finest level with each item, [Q, N]."""
    return shared_levels(queries, items) == queries.shape[1]


class Pairs(NamedTuple):
    """How often each pair of a query and an item counts, [Q, N]: as a positive and as a negative one."""

    positives: Any
    negatives: Any

    def in_triplets(self) -> Pairs:
        """The same as triplets, each positive with each negative of its query: how often each pair is in one."""
        positives, negatives = self.positives.sum(1, keepdim=True), self.negatives.sum(1, keepdim=True)
        return Pairs(self.positives * negatives, self.negatives * positives)


def all_pairs(queries: Any, labels: Any, item_labels: Any, *, itself: bool) -> Pairs:
    """All pairs of the queries with items, but for each query with itself."""
    same = same_class(labels, item_labels)
    others = ~same
    if itself:
        same = same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)
    return Pairs(same.to(queries.dtype), others.to(queries.dtype))


def query_means(sums: Any, pairs: Any) -> tuple[Any, Any]:
    """The means over the pairs of each query, [Q], from their sums, [Q], and 1 for a query that has a pair, else 0."""
    count = pairs.sum(1)
    return sums / count.clamp(min=1), (count > 0).to(sums.dtype)


def class_paths(class_labels: Any, classes: int | None = None) -> Any:
    """The label path of each fine class, [C, L], coarse to fine. The last column must be 0 … C − 1, for this C if given."""
    paths = torch.as_tensor(class_labels)
    count = len(paths) if classes is None else classes
    if paths.ndim != 2 or not torch.equal(paths[:, -1].long(), torch.arange(count)):
        raise TaxonomyError(
            f"the class labels have the shape {list(paths.shape)} or another last column than 0 … {count - 1}",
            "give one row for each fine class, coarse to fine, in the order of the fine classes",
        )
    return paths.long()


@dataclass(frozen=True)
class HierarchicalRelevance:
    """(l/L)^α / |Ω(l)|, with |Ω(l)| the number of items that share exactly level l (HAPPIER, eq. 4)."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check("the exponent alpha of the relevance", self.alpha)

    def by_level(self, counts: Any) -> Any:
        """rel of each level, [Q, L + 1], from the number of items of each."""
        return _heights(counts) ** self.alpha / counts.clamp(min=1)


@dataclass(frozen=True)
class PlainRelevance:
    """(l/L)^α, whatever the class sizes (the relevance of HAPPIER's worked figures)."""

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check("the exponent alpha of the relevance", self.alpha)

    def by_level(self, counts: Any) -> Any:
        """As that of `HierarchicalRelevance`."""
        return (_heights(counts) ** self.alpha).expand_as(counts)


@dataclass(frozen=True)
class WeightedRelevance:
    """Σ_{p ≤ l} w_p / |Ω(p) ∪ … ∪ Ω(L)| (HAPPIER, property 1): H-AP is then Σ_p w_p AP of level p."""

    weights: Sequence[float]

    def __post_init__(self) -> None:
        for weight in self.weights:
            check("a weight of the relevance", weight)

    def by_level(self, counts: Any) -> Any:
        """As that of `HierarchicalRelevance`."""
        if len(self.weights) != counts.shape[1] - 1:
            raise ConfigError(
                f"the relevance has {len(self.weights)} weights for {counts.shape[1] - 1} levels",
                "give one weight per level, coarse to fine",
            )
        at_least = counts.flip(1).cumsum(1).flip(1)[:, 1:].clamp(min=1)
        shares = torch.tensor(self.weights, dtype=counts.dtype, device=counts.device) / at_least
        return torch.cat([torch.zeros_like(counts[:, :1]), shares.cumsum(1)], 1)


def _heights(counts: Any) -> Any:
    """l/L for the levels 0 … L."""
    depth = counts.shape[1] - 1
    return torch.arange(depth + 1, dtype=counts.dtype, device=counts.device) / depth


Relevance = HierarchicalRelevance | PlainRelevance | WeightedRelevance


def by_level(relevance: Relevance, shared: Any, depth: int, dtype: Any) -> Any:
    """The relevance of an item of each level to each query, [Q, L + 1], from the levels that they share, [Q, N].

    That of a stranger is 0.
    """
    counts = torch.nn.functional.one_hot(shared, depth + 1).sum(1).to(dtype)
    found = relevance.by_level(counts)
    return torch.cat([torch.zeros_like(found[:, :1]), found[:, 1:]], 1)
