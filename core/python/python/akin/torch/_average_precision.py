"""Losses of AP from rankings in bins, and from a second ranking."""

from __future__ import annotations

from typing import Any, Literal, Unpack

import torch

from .._errors import ConfigError
from ._loss import Loss, Options, Terms, closed_form, scores
from ._relevance import all_pairs, query_means, same_class
from ._steps import check, check_choice


def _histograms(positions: Any, sets: tuple[Any, ...], bins: int) -> list[Any]:
    """The weight in each bin, [Q, bins], of sets of items at positions [Q, N] in 0 … bins − 1.

    A set is given by the weight of each item, [Q, N]. An item counts 1 − |u − b| in the two bins b around it.
    """
    columns: list[list[Any]] = [[] for _ in sets]
    for place in range(bins):
        share = (1 - (positions - place).abs()).clamp(min=0)
        for column, weights in zip(columns, sets, strict=True):
            column.append((share * weights).sum(1))
    return [torch.stack(column, 1) for column in columns]


def _one_minus_mean(precision: Any, positive: Any, positives: Any) -> Terms:
    """1 − AP of each query, from the precision in its bins and the positives there, [Q, bins], and all positives [Q, N]."""
    found, counts = query_means((positive * precision).sum(1), positives)
    return Terms(1 - found, counts)


def _check_bins(bins: int, least: int) -> None:
    if not least <= bins <= 1000:
        raise ConfigError(f"the number of bins is {bins}", f"give a number from {least} to 1000")


class FastAPLoss(Loss):
    """1 − AP of a ranking in bins of squared distance (Cakir et al., CVPR 2019).

    A query without a positive is left out of the mean.

    Parameters
    ----------
    num_bins : int
        The number of intervals of squared distance, 0 … 4.
    **options
        As in `Loss`.
    """

    def __init__(self, num_bins: int = 10, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        _check_bins(num_bins, 1)
        self.num_bins = num_bins

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        positions = (1 - scores(queries, items)) * self.num_bins / 2
        positives, negatives = all_pairs(queries, labels, item_labels, itself=itself)
        positive, every = _histograms(positions, (positives, positives + negatives), self.num_bins + 1)
        precision = positive.cumsum(1) / every.cumsum(1).clamp(min=1e-12)
        return [_one_minus_mean(precision, positive, positives)]


class SoftbinAP(Loss):
    """1 − AP of a ranking in bins of similarity (Revaud et al., ICCV 2019).

    A query ranks itself as one of its positives. Against a reference set, a query without a positive is left out of the
    mean. The published code has 25 bins and 0 for the lowest.

    Parameters
    ----------
    bins : int
        M.
    lowest : float
        The centre of the last bin, from −1 to below 1. The first is at 1.
    ties : {"end", "middle", "mean"}
        The precision at the items of a bin: down to its end, about its middle, or the mean over all orders of the bin
        (TAP of He et al., CVPR 2018).
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        *,
        bins: int = 20,
        lowest: float = -1.0,
        ties: Literal["end", "middle", "mean"] = "end",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        _check_bins(bins, 2)
        if not -1 <= lowest < 1:
            raise ConfigError(f"the lowest centre of a bin is {lowest}", "give a number from -1 to below 1")
        check_choice("the treatment of ties in SoftbinAP", ties, "end", "middle", "mean")
        self.bins, self.lowest, self.ties = bins, lowest, ties

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        last = self.bins - 1
        positions = ((1 - scores(queries, items)) * (last / (1 - self.lowest))).clamp(0, last)
        if itself:
            # It is always in the first bin, and has no gradient.
            own = torch.eye(len(positions), dtype=torch.bool, device=positions.device)
            positions = positions.masked_fill(own, 0.0)
        positives = same_class(labels, item_labels).to(positions.dtype)
        positive, every = _histograms(positions, (positives, torch.ones_like(positives)), self.bins)
        return [_one_minus_mean(self._precision(positive, every), positive, positives)]

    def _precision(self, positive: Any, every: Any) -> Any:
        positive_to, every_to = positive.cumsum(1), every.cumsum(1)
        if self.ties == "end":
            return positive_to / every_to.clamp(min=1e-12)
        positive_from, every_from = positive_to - positive, every_to - every
        if self.ties == "middle":
            return (positive_from + positive_to + 1) / (every_from + every_to + 1)
        ratio = (positive - 1).clamp(min=0) / ((every - 1).clamp(min=0) + 1e-8)
        ends = torch.log((every_to + 1) / (every_from + 1))
        return (every * ratio + (positive_from + 1 - ratio * (every_from + 1)) * ends) / (every + 1e-8)


class BlackboxAP(Loss):
    """The true 1 − AP, with a gradient from a second ranking (Rolínek et al., CVPR 2020).

    A query ranks itself as one of its positives. Against a reference set, a query without a positive is left out of the
    mean. Ties are broken by the order of the items.

    Parameters
    ----------
    step : float
        λ > 0: how far scores move for the second ranking.
    margin : float
        α, by which negatives must score below positives.
    random_margin : bool
        Whether the margin of each pair is multiplied by a draw of |N(0, 1)|, as in the published code.
    **options
        As in `Loss`.
    """

    def __init__(
        self, *, step: float = 4.0, margin: float = 0.02, random_margin: bool = False, **options: Unpack[Options]
    ) -> None:
        super().__init__(**options)
        check("the step of BlackboxAP", step, above=True)
        check("the margin of BlackboxAP", margin)
        self.step, self.margin, self.random_margin = step, margin, random_margin

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        found = scores(queries, items)
        noise = torch.randn_like(found) if self.random_margin else torch.ones_like(found)
        return self.with_noise(found, same_class(labels, item_labels), noise)

    def with_noise(self, found: Any, same: Any, noise: Any) -> list[Terms]:
        """The loss of each query, for scores [Q, N], with the margin of each pair multiplied by |noise|, [Q, N]."""

        count = same.sum(1).to(found.dtype)
        queries = (count > 0).sum().clamp(min=1)

        def compute(found: Any) -> tuple[Any, Any]:
            shift = torch.where(same, -0.5, 0.5).to(found.dtype)
            moved = found + self.margin * noise.abs() * shift
            weight = same / count.clamp(min=1)[:, None]
            rank = _ranks(moved)
            # The rank of a positive among the positives.
            among = _ranks(torch.where(same, moved, -torch.inf))
            value = (weight * (1 - among / rank)).sum(1)
            # λ moves scores by the slope of the mean over queries.
            slope = weight * among / rank.square() / queries
            return value, (_ranks(moved + self.step * slope) - rank) * queries / self.step

        return [Terms(closed_form(found, compute), (count > 0).to(found.dtype))]


def _ranks(found: Any) -> Any:
    """The rank of each item by decreasing score, 1 … N, over N."""
    order = found.argsort(dim=1, descending=True, stable=True)
    ranks = torch.arange(1, found.shape[1] + 1, dtype=found.dtype, device=found.device) / found.shape[1]
    return torch.empty_like(found).scatter_(1, order, ranks.expand_as(found))
