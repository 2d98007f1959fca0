"""Losses of rankings: smooth forms of 1 − AP, 1 − H-AP, 1 − NDCG and 1 − recall at k.

Every item of the batch is a query that ranks all items, itself among them, as in the published codes. Against a reference
set a query without a relevant item is left out of the mean. A loss is 0 if no query has one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal, Unpack

import torch

from .._errors import ConfigError
from ._loss import Loss, Options, Terms, part_of, scores, weighted
from . import _ranks
from ._ranks import Block, Counts, Values, quotient, rank_losses, weighted_values
from ._relevance import HierarchicalRelevance, Relevance, all_pairs, by_level, query_means, same_class, shared_levels
from ._steps import LowerStep, UpperStep, check, check_choice, check_share


def _hard(t: Any) -> Any:
    """H(t) with H(0) = 1. At j = k it is the item itself."""
    return (t >= 0).to(t.dtype)


class _Places:
    """The items of each query: their order, [Q, N], in which they belong, and their relevance."""

    def __init__(self, order: Any, relevance: Any) -> None:
        self.order = order
        self.relevance = relevance

    def below(self, block: Block) -> Any:
        return block.along_j(self.order) < block.along_k(self.order)

    def above(self, block: Block) -> Any:
        return block.along_j(self.order) > block.along_k(self.order)

    def shared(self, block: Block) -> Any:
        return torch.minimum(block.along_j(self.relevance), block.along_k(self.relevance))


def _bounds(places: _Places, upper: UpperStep, lower: LowerStep | None = None) -> Callable[[Any, Block], Counts]:
    """Ranks with H⁻ for the items that belong below, and H-ranks with H, or H⁺ for the items that belong above."""

    def count(t: Any, block: Block) -> Counts:
        hard, below, shared = _hard(t), places.below(block), places.shared(block)
        value, slope = upper(t)
        rank = torch.where(below, value, hard).sum(2, keepdim=True)
        rank_slope = torch.where(below, slope, 0.0)
        if lower is None:
            return Counts((hard * shared).sum(2, keepdim=True), None, rank, rank_slope)
        above = places.above(block)
        value, slope = lower(t)
        step = torch.where(above, value, hard) * shared
        return Counts(step.sum(2, keepdim=True), torch.where(above, slope, 0.0) * shared, rank, rank_slope)

    return count


def _sigmoids(places: _Places, temperature: float) -> Callable[[Any, Block], Counts]:
    """Ranks and H-ranks with sigmoids. An item counts 1 for itself, and not σ(0) = ½."""
    step = UpperStep(temperature=temperature, slope=None)

    def count(t: Any, block: Block) -> Counts:
        value, slope = step(t)
        shared, own = places.shared(block), block.along_k(places.relevance)
        above = (value * shared).sum(2, keepdim=True) + own / 2
        return Counts(above, slope * shared, value.sum(2, keepdim=True) + 0.5, slope)

    return count


def _losses(scores: Any, weights: Any, counted: Any, count: Any, value: Any = quotient) -> list[Terms]:
    """1 − Σ w f of each query that counts, [Q, 1]."""
    losses = 1 - weighted_values(scores, weights, count, value)
    return [Terms(losses, counted[:, 0].to(losses.dtype))]


class _Ranking(Loss):
    def count(self, places: _Places) -> Callable[[Any, Block], Counts]:
        """The counts of a block."""
        raise NotImplementedError

    def steps(self) -> dict[str, Any]:
        """The same as settings of the kernel."""
        raise NotImplementedError

    def value(self) -> Any:
        """What a ranked item is worth, as a setting of the kernel."""
        raise NotImplementedError

    @torch.compiler.assume_constant_result
    def settings(self) -> str:
        """All settings of the kernel."""
        return json.dumps({**self.steps(), "value": self.value()})

    def fused(self, queries: Any, items: Any, order: Any, by_place: Any) -> list[Terms]:
        """The loss of each query by the kernel of the CPU."""
        return [Terms(*rank_losses(scores(queries, items), order, by_place, self.settings()))]


def _is_fused(queries: Any) -> bool:
    return _ranks.FUSED and queries.device.type == "cpu"


class _Bounded(_Ranking):
    """Ranks with H⁻ for the items that belong below."""

    def __init__(self, *, step: UpperStep | None = None, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        self.step = step or UpperStep()

    def count(self, places: _Places) -> Callable[[Any, Block], Counts]:
        return _bounds(places, self.step)

    def steps(self) -> dict[str, Any]:
        return {"sigmoid": False, "upper": self.step.settings(), "lower": None}


class _Smooth(_Ranking):
    """Ranks with sigmoids."""

    def __init__(self, *, temperature: float = 0.01, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check(f"the temperature of {type(self).__name__}", temperature, above=True)
        self.temperature = temperature

    def count(self, places: _Places) -> Callable[[Any, Block], Counts]:
        return _sigmoids(places, self.temperature)

    def steps(self) -> dict[str, Any]:
        step = UpperStep(temperature=self.temperature, slope=None)
        return {"sigmoid": True, "upper": step.settings(), "lower": None}


class _ByRelevance(_Ranking):
    """1 − Σ_k H-rank(k) / rank(k) ÷ Σ rel, for AP with the relevance 1 of the items of the query's fine class."""

    def places(self, labels: Any, item_labels: Any, dtype: Any) -> tuple[Any, Any]:
        """The place of each item, [Q, N], and the relevance of each place, [Q, P]."""
        raise NotImplementedError

    def value(self) -> Any:
        return "precision"

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        order, by_place = self.places(labels, item_labels, queries.dtype)
        if _is_fused(queries):
            return self.fused(queries, items, order, by_place)
        places = _Places(order, by_place.gather(1, order))
        total = places.relevance.sum(1, keepdim=True)
        weights = torch.where((order > 0) & (total > 0), 1 / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)
        return _losses(scores(queries, items), weights, total > 0, self.count(places))


def _by_fine_class(labels: Any, item_labels: Any, dtype: Any) -> tuple[Any, Any]:
    """Place 1 for the items of the query's fine class, and 0 for the others."""
    same = same_class(labels, item_labels).long()
    return same, torch.tensor([[0.0, 1.0]], dtype=dtype, device=same.device).expand(len(same), 2)


class _ByFineClass(_ByRelevance):
    def places(self, labels: Any, item_labels: Any, dtype: Any) -> tuple[Any, Any]:
        return _by_fine_class(labels, item_labels, dtype)


class _ByLevel(_ByRelevance):
    relevance: Relevance

    def places(self, labels: Any, item_labels: Any, dtype: Any) -> tuple[Any, Any]:
        shared = shared_levels(labels, item_labels)
        return shared, by_level(self.relevance, shared, labels.shape[1], dtype)


class SupAP(_Bounded, _ByFineClass):
    """A smooth upper bound of 1 − AP on the fine classes (ROADMAP, Ramzi et al., NeurIPS 2021, eq. 3 to 5).

    Parameters
    ----------
    step : UpperStep
        H⁻, the step for negatives. Positives count by the true step, without a gradient.
    **options
        As in `Loss`.
    """


class SmoothAPLoss(_Smooth, _ByFineClass):
    """1 − AP on the fine classes with sigmoids for steps (Brown et al., ECCV 2020).

    Parameters
    ----------
    temperature : float
        τ > 0, the width of the sigmoid.
    **options
        As in `Loss`.
    """


class HapSurrogate(_ByLevel):
    """A smooth upper bound of 1 − H-AP on all levels (HAPPIER, Ramzi et al., ECCV 2022, eq. 2 to 5).

    The defaults are those of the published code. Those of the paper's text are `smooth_rank=True` with an upper step whose
    offset is 1.4933.

    Parameters
    ----------
    relevance : HierarchicalRelevance, PlainRelevance or WeightedRelevance
        The relevance of an item by its shared level. HAPPIER_F has a larger α, 3 to 5.
    upper_step : UpperStep
        H⁻, for items that belong below.
    lower_step : LowerStep
        H⁺, for items that belong above; used with `smooth_rank`.
    smooth_rank : bool
        Whether the H-rank is smooth and has a gradient.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        *,
        relevance: Relevance | None = None,
        upper_step: UpperStep | None = None,
        lower_step: LowerStep | None = None,
        smooth_rank: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        self.relevance = relevance or HierarchicalRelevance()
        self.upper_step = upper_step or UpperStep(offset=1.44)
        self.lower_step = lower_step or LowerStep()
        self.smooth_rank = smooth_rank

    def count(self, places: _Places) -> Callable[[Any, Block], Counts]:
        return _bounds(places, self.upper_step, self.lower_step if self.smooth_rank else None)

    def steps(self) -> dict[str, Any]:
        lower = asdict(self.lower_step) if self.smooth_rank else None
        return {"sigmoid": False, "upper": self.upper_step.settings(), "lower": lower}


class SmoothHap(_Smooth, _ByLevel):
    """1 − H-AP on all levels with sigmoids for steps (SupRank, Ramzi et al., TPAMI 2025).

    Parameters
    ----------
    relevance : HierarchicalRelevance, PlainRelevance or WeightedRelevance
        The relevance of an item by its shared level.
    temperature : float
        τ > 0, the width of the sigmoid.
    **options
        As in `Loss`.
    """

    def __init__(
        self, *, relevance: Relevance | None = None, temperature: float = 0.01, **options: Unpack[Options]
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self.relevance = relevance or HierarchicalRelevance()


class _NDCG(_Ranking):
    def value(self) -> Any:
        return "discounted_gain"

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        shared = shared_levels(labels, item_labels)
        if _is_fused(queries):
            levels = torch.arange(labels.shape[1] + 1, dtype=queries.dtype)
            by_place = (torch.exp2(levels) - 1).expand(len(queries), -1)
            return self.fused(queries, items, shared, by_place)
        gains = torch.exp2(shared.to(queries.dtype)) - 1
        ranks = torch.arange(1, gains.shape[1] + 1, dtype=gains.dtype, device=gains.device)
        ideal = (gains.sort(1, descending=True).values / torch.log2(1 + ranks)).sum(1, keepdim=True)
        weights = torch.where(ideal > 0, gains / ideal.clamp(min=1e-30), 0.0)

        def value(_: Any, rank: Any, __: Block) -> Values:
            logarithm = torch.log2(1 + rank)
            discount = 1 / logarithm
            return Values(discount, torch.zeros_like(rank), -discount / (logarithm * (1 + rank) * math.log(2)))

        counts = self.count(_Places(shared, torch.zeros_like(gains)))
        return _losses(scores(queries, items), weights, ideal > 0, counts, value)


class SupNDCG(_Bounded, _NDCG):
    """A smooth upper bound of 1 − NDCG on all levels, with the gain 2^l − 1 (SupRank, Ramzi et al., TPAMI 2025).

    Parameters
    ----------
    step : UpperStep
        H⁻, the step for items of a lower level. The others count by the true step.
    **options
        As in `Loss`.
    """


class SmoothNDCG(_Smooth, _NDCG):
    """1 − NDCG on all levels with sigmoids for steps (SupRank, Ramzi et al., TPAMI 2025).

    Parameters
    ----------
    temperature : float
        τ > 0, the width of the sigmoid.
    **options
        As in `Loss`.
    """


class _Recall(_Ranking):
    cutoffs: tuple[int, ...]
    cutoff_temperature: float

    def _cut(self, cutoffs: Sequence[int], cutoff_temperature: float) -> None:
        check("the cutoff_temperature of the recall", cutoff_temperature, above=True)
        if not cutoffs or any(cutoff < 1 for cutoff in cutoffs):
            raise ConfigError(f"the cutoffs of the recall are {list(cutoffs)}", "give at least one, each at least 1")
        self.cutoffs = tuple(cutoffs)
        self.cutoff_temperature = cutoff_temperature

    def value(self) -> Any:
        return {"recall": {"cutoffs": self.cutoffs, "temperature": self.cutoff_temperature}}

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        same, by_place = _by_fine_class(labels, item_labels, queries.dtype)
        if _is_fused(queries):
            return self.fused(queries, items, same, by_place)
        positives = same.sum(1, keepdim=True)
        weights = same.to(queries.dtype)

        def value(_: Any, rank: Any, block: Block) -> Values:
            total, slope = torch.zeros_like(rank), torch.zeros_like(rank)
            for cutoff in self.cutoffs:
                places = positives[block.queries][:, :, None].clamp(1, cutoff).to(rank.dtype)
                share = 1 / (len(self.cutoffs) * places)
                hit = torch.sigmoid((cutoff - rank) / self.cutoff_temperature)
                total, slope = total + share * hit, slope - share * hit * (1 - hit) / self.cutoff_temperature
            return Values(total, torch.zeros_like(rank), slope)

        counts = self.count(_Places(same, torch.zeros_like(weights)))
        return _losses(scores(queries, items), weights, positives > 0, counts, value)


class SupRecall(_Bounded, _Recall):
    """A smooth form of 1 − R@k on the fine classes, with a bound of each rank (SupRank, Ramzi et al., TPAMI 2025).

    R@k here is the share of the first k places that positives take, of those that they could.

    Parameters
    ----------
    cutoffs : sequence of int
        The k, over which the loss is the mean.
    cutoff_temperature : float
        T > 0, the width of the sigmoid of k − rank, in ranks.
    step : UpperStep
        H⁻, the step for negatives.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        *,
        cutoffs: Sequence[int] = (1, 2, 4, 8, 16),
        cutoff_temperature: float = 1.0,
        step: UpperStep | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(step=step, **options)
        self._cut(cutoffs, cutoff_temperature)


class SmoothRecall(_Smooth, _Recall):
    """1 − R@k on the fine classes with sigmoids for steps (Patel et al., CVPR 2022; in the form of SupRank's code).

    Parameters
    ----------
    cutoffs, cutoff_temperature, **options
        As in `SupRecall`.
    temperature : float
        τ > 0, the width of the sigmoid in a rank.
    """

    def __init__(
        self,
        *,
        cutoffs: Sequence[int] = (1, 2, 4, 8, 16),
        cutoff_temperature: float = 1.0,
        temperature: float = 0.01,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(temperature=temperature, **options)
        self._cut(cutoffs, cutoff_temperature)


class Calibration(Loss):
    """Positives score above one number and negatives below another, the same in every batch (ROADMAP, eq. 7).

    Parameters
    ----------
    positive, negative : float
        α and β ≤ α: what positives should score at least, and negatives at most.
    mean : {"queries", "active"}
        The pairs that a mean is taken over: those of each query, then the queries, as in the paper; or all that have a
        loss, as in the published code.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        *,
        positive: float = 0.9,
        negative: float = 0.6,
        mean: Literal["queries", "active"] = "queries",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        if not negative <= positive:
            raise ConfigError(
                f"calibration has positive = {positive} and negative = {negative}",
                "set `negative` at most `positive`; the paper has 0.9 and 0.6",
            )
        check_choice("the mean of the calibration", mean, "queries", "active")
        self.positive, self.negative, self.mean = positive, negative, mean

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        found = scores(queries, items)
        positives, negatives = all_pairs(queries, labels, item_labels, itself=itself)
        return [
            self._mean(self.positive - found, positives, "pos_pair"),
            self._mean(found - self.negative, negatives, "neg_pair"),
        ]

    def _mean(self, excess: Any, pairs: Any, kind: str) -> Terms:
        excess = excess.clamp(min=0)
        if self.mean == "active":
            return Terms(excess, pairs, ((excess > 0) * pairs).sum(), kind)
        return Terms(*query_means((excess * pairs).sum(1), pairs))


class Roadmap(Loss):
    """(1 − λ) · SupAP + λ · Calibration (ROADMAP, Ramzi et al., NeurIPS 2021, eq. 2).

    The published code adds both: it is twice this loss with the mean "active" and the offset 1.44.

    Parameters
    ----------
    calibration_weight : float
        λ, from 0 to 1.
    sup_ap : SupAP
        The bound of 1 − AP.
    calibration : Calibration
        The calibration of scores.
    **options
        As in `Loss`. Both parts are scaled alike, whatever their `normalise`.
    """

    def __init__(
        self,
        *,
        calibration_weight: float = 0.5,
        sup_ap: SupAP | None = None,
        calibration: Calibration | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check_share("the weight of the calibration", calibration_weight)
        self.calibration_weight = calibration_weight
        self.sup_ap = part_of("Roadmap", sup_ap or SupAP())
        self.calibration = part_of("Roadmap", calibration or Calibration())

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        bound = self.sup_ap.compare(queries, labels, items, item_labels, itself=itself)
        calibration = self.calibration.compare(queries, labels, items, item_labels, itself=itself)
        return weighted(1 - self.calibration_weight, bound) + weighted(self.calibration_weight, calibration)
