"""Losses of binary codes. Embeddings are the outputs of a network, [B, K]; the code of an item has the signs of its outputs.

Labels [B, L] have in their last column the fine class, from 0 to C − 1. Signs and recomputed centres have no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Unpack

import torch
from torch.nn.functional import cross_entropy, softplus

from .._errors import ConfigError
from ._loss import Additions, Loss, Terms, closed_form, distances, fixed, group_sums, scores
from ._pairs import MinedLoss, hinge, sum_over_triplets, triplets
from ._relevance import Pairs, class_paths
from ._steps import check, check_choice


def _quantisation(outputs: Any) -> Any:
    """Σ (sign r − r)² over all outputs."""
    return (outputs.sign() - outputs).square().sum()


def _quantised(outputs: Any, count: Any, weight: float) -> Terms:
    """The same for each of `count` pairs or triplets, or 0 without any."""
    return fixed(_quantisation(outputs) * (count > 0) / count.clamp(min=1), weight)


def _check_sizes(classes: int, bits: int) -> None:
    if classes < 1 or bits < 2:
        raise ConfigError(f"there are {classes} classes and {bits} bits", "give at least one class and two bits")


def _set_means(centres: Any, rows: Any, groups: Any) -> None:
    """Sets each centre to the mean of the rows of its group. One without rows is kept."""
    sums, counts = group_sums(rows.to(centres.dtype), groups, len(centres))
    centres.copy_(torch.where(counts > 0, sums / counts.clamp(min=1), centres))


class Dpsh(MinedLoss):
    """The likelihood that each pair shares a class, or does not, by the dot product of its outputs (Li et al., IJCAI 2016).

    Parameters
    ----------
    quantisation_weight : float
        η, at least 0, as in the public code.
    **options
        As in `Loss`, but for `normalise`.
    """

    def __init__(self, *, quantisation_weight: float = 10.0, **options: Unpack[Additions]) -> None:
        super().__init__(normalise=False, **options)
        check("the quantisation weight of DPSH", quantisation_weight)
        self.quantisation_weight = quantisation_weight

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        theta = scores(queries, items) / 2
        count = (pairs.positives + pairs.negatives).sum()
        return [
            Terms(softplus(-theta), pairs.positives, count, "pos_pair"),
            Terms(softplus(theta), pairs.negatives, count, "neg_pair"),
            _quantised(queries, count, self.quantisation_weight),
        ]


class Dtsh(MinedLoss):
    """The likelihood that items of the same class are nearer than others, by a margin (Wang et al., ACCV 2016).

    Parameters
    ----------
    margin : float, optional
        α. By default half the number of bits.
    quantisation_weight : float
        λ, at least 0.
    **options
        As in `Loss`, but for `normalise`.
    """

    def __init__(
        self, *, margin: float | None = None, quantisation_weight: float = 100.0, **options: Unpack[Additions]
    ) -> None:
        super().__init__(normalise=False, **options)
        check("the margin of DTSH", margin or 0.0)
        check("the quantisation weight of DTSH", quantisation_weight)
        self.margin, self.quantisation_weight = margin, quantisation_weight

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        margin = queries.shape[1] / 2 if self.margin is None else self.margin
        gaps = -scores(queries, items) / 2
        count = (pairs.positives.sum(1) * pairs.negatives.sum(1)).sum()
        quantised = _quantised(queries, count, self.quantisation_weight)
        if self.reducer is not None:
            a, p, n = triplets(pairs)
            losses, _ = hinge(gaps[a, p] - gaps[a, n] + margin, smooth=True)
            return [Terms(losses, kind="triplet", indices=[a, p, n]), quantised]

        def compute(gaps: Any) -> tuple[Any, Any]:
            total, _, gradient = sum_over_triplets(gaps, pairs, margin, smooth=True)
            return total, gradient

        return [fixed(closed_form(gaps, compute) / count.clamp(min=1)), quantised]


class Csq(Loss):
    """Each class has a fixed code, far from those of the others, which its items learn bit by bit (Yuan et al., CVPR 2020).

    If K is a power of two and there are at most 2K classes, the codes are rows of the Hadamard matrix and their negatives.
    Otherwise they are drawn until all are far apart.

    Parameters
    ----------
    num_classes, embedding_size : int
        C and K.
    quantisation_weight : float
        λ, at least 0.
    quantisation : {"log_cosh", "squared"}
        The paper's log cosh(|y| − 1), or the (|y| − 1)² of the authors' code.
    pair_weight : float
        The weight of pairs of the two halves of the batch: 0.2 in the authors' code.
    **options
        As in `Loss`, but for `normalise`. A reducer gets the losses of items.

    Attributes
    ----------
    centres : torch.Tensor
        [C, K], of −1 and 1.
    """

    centres: Any

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        *,
        quantisation_weight: float = 0.05,
        quantisation: Literal["log_cosh", "squared"] = "log_cosh",
        pair_weight: float = 0.0,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(normalise=False, **options)
        check("the quantisation weight of CSQ", quantisation_weight)
        check("the pair weight of CSQ", pair_weight)
        check_choice("the quantisation of CSQ", quantisation, "log_cosh", "squared")
        if num_classes < 1 or embedding_size < 2 or num_classes > 2**embedding_size:
            raise ConfigError(
                f"there are {num_classes} classes for codes of {embedding_size} bits",
                "give at least two bits, and twice the base-2 logarithm of the number of classes",
            )
        self.register_buffer("centres", _codes(num_classes, embedding_size))
        self.quantisation_weight, self.quantisation, self.pair_weight = quantisation_weight, quantisation, pair_weight

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        fine = labels[:, -1].long()
        central = softplus(-2 * queries * self.centres[fine].to(queries.dtype))
        squashed = queries.tanh()
        short = squashed.abs() - 1
        quantised = short.square() if self.quantisation == "squared" else short.cosh().log()
        terms = [Terms((central + self.quantisation_weight * quantised).mean(1))]
        half = len(queries) // 2
        if self.pair_weight == 0 or half == 0:
            return terms
        theta = 10 / queries.shape[1] * scores(squashed[:half], squashed[half : 2 * half])
        same = (fine[:half, None] == fine[half : 2 * half]).to(theta.dtype)
        return [*terms, fixed((softplus(theta) - theta * same).mean(), self.pair_weight)]


def _codes(count: int, bits: int) -> Any:
    """Codes of `count` classes, [C, K]."""
    if bits & (bits - 1) == 0 and count <= 2 * bits:
        matrix = torch.ones(1, 1)
        while len(matrix) < bits:
            matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
        return torch.cat([matrix, -matrix])[:count]
    # The largest distance at which half of all codes or more are far enough from any that were drawn.
    near, apart = 0, 0
    while apart <= bits:
        near += math.comb(bits, apart)
        if 2 * count * near > 2**bits:
            break
        apart += 1
    codes: list[Any] = []
    while len(codes) < count:
        code = torch.randint(2, (bits,)) * 2.0 - 1
        if all(int((code != other).sum()) >= max(apart, 1) for other in codes):
            codes.append(code)
    return torch.stack(codes)


class Dcdh(Loss):
    """Codes around one learned centre for each class; the centres push each other away (Zhang et al., 2021).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and K.
    deviation : float
        σ > 0, the standard deviation of each class.
    centre_weight : float
        λ, the weight of the similarity of the centres.
    quantisation_weight : float
        η, at least 0.
    **options
        As in `Loss`, but for `normalise`.

    Attributes
    ----------
    centres : torch.nn.Parameter
        [C, K]. The optimiser has to train it, too.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        *,
        deviation: float = 2.0,
        centre_weight: float = 0.1,
        quantisation_weight: float = 0.01,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(normalise=False, **options)
        check("the deviation of DCDH", deviation, above=True)
        check("the centre weight of DCDH", centre_weight)
        check("the quantisation weight of DCDH", quantisation_weight)
        _check_sizes(num_classes, embedding_size)
        self.centres = torch.nn.Parameter(torch.randn(num_classes, embedding_size))
        self.deviation, self.centre_weight, self.quantisation_weight = deviation, centre_weight, quantisation_weight

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        fine = labels[:, -1].long()
        centres = self.centres.to(queries.dtype)
        # ‖r‖² is the same for all classes of an item, so that it cancels.
        exponents = (scores(queries, centres) - centres.square().sum(1) / 2) / self.deviation**2
        losses = cross_entropy(exponents, fine, reduction="none")
        with torch.no_grad():
            sums, counts = group_sums(queries.sign(), fine, len(centres))
            targets = ((sums / counts.clamp(min=1))[fine] + self.quantisation_weight * queries).sign()
        losses = losses + self.quantisation_weight * (targets - queries).square().sum(1)
        return [Terms(losses), fixed(self._similarity(centres), self.centre_weight)]

    def _similarity(self, centres: Any) -> Any:
        """The mean of log(1 + exp Θ) over all pairs of two centres, with Θ = (K/2) cos."""
        count, bits = centres.shape
        directions = torch.nn.functional.normalize(centres, dim=1)
        others = 1 - torch.eye(count, dtype=centres.dtype, device=centres.device)
        theta = bits / 2 * scores(directions, directions)
        return (softplus(theta) * others).sum() / max(count * (count - 1), 1)


class _Centred(Loss):
    """A likelihood of classes around centres that are not learned but recomputed."""

    def __init__(
        self, cube: float, cube_weight: float, quantisation_weight: float, floor: float, **options: Unpack[Additions]
    ) -> None:
        super().__init__(normalise=False, **options)
        name = type(self).__name__
        check(f"the cube of {name}", cube, above=True)
        check(f"the cube weight of {name}", cube_weight)
        check(f"the quantisation weight of {name}", quantisation_weight)
        check(f"the floor of {name}", floor)
        self.cube, self.cube_weight, self.quantisation_weight = cube, cube_weight, quantisation_weight
        self.floor = floor

    def likelihood(self, exponents: Any, classes: Any) -> Any:
        """−log(p_i + ε) of each item with p_i = e_iy / (Σ_c e_ic + ε)."""
        if self.floor == 0:
            return cross_entropy(exponents, classes, reduction="none")
        densities = exponents.exp()
        shares = densities / (densities.sum(1, keepdim=True) + self.floor) + self.floor
        return -shares.log().gather(1, classes[:, None])[:, 0]


class Dcwh(_Centred):
    """Codes around one centre for each class (Zhe et al., TNNLS 2020, in the form of its public code).

    Centres are draws from N(0, 1) until `update_centres` is called: before every second epoch, from the third on.

    Parameters
    ----------
    num_classes, embedding_size : int
        C and K.
    deviation : float
        σ > 0, the standard deviation of each class.
    floor : float
        ε, added to the sum of the densities and in the logarithm. 0 takes the exact logarithm.
    cube, cube_weight : float
        ρ > 0, half the width of the cube that outputs should be in, and η₁.
    quantisation_weight : float
        η₂, at least 0.
    **options
        As in `Loss`, but for `normalise`.

    Attributes
    ----------
    centres : torch.Tensor
        [C, K], a buffer.
    """

    centres: Any

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        *,
        deviation: float = 1.0,
        floor: float = 1e-6,
        cube: float = 1.1,
        cube_weight: float = 10.0,
        quantisation_weight: float = 0.01,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(cube, cube_weight, quantisation_weight, floor, **options)
        check("the deviation of Dcwh", deviation, above=True)
        _check_sizes(num_classes, embedding_size)
        self.deviation = deviation
        self.register_buffer("centres", torch.randn(num_classes, embedding_size))

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        gaps = distances(queries, self.centres.to(queries.dtype))
        unlikely = self.likelihood(-gaps.square() / (2 * self.deviation**2), labels[:, -1].long())
        share = 1 / len(queries)
        below, above = ((side - self.cube).clamp(min=0).sum() for side in (-queries, queries))
        # As in the code, which divides these two by the size of the batch once more.
        outside = self.cube_weight * (below + share * above)
        quantised = share * self.quantisation_weight * _quantisation(queries)
        return [Terms(unlikely), fixed(outside + quantised, share)]

    @torch.no_grad()
    def update_centres(self, embeddings: Any, labels: Any) -> None:
        """Sets the centre of each class to the mean of its items, of the outputs [N, K] and labels [N, L] or [N]."""
        labels = self._labels(embeddings, labels)
        _set_means(self.centres, embeddings, labels[:, -1].long())


class Hpdh(_Centred):
    """Codes around one centre for each class of every level (Zhang et al., arXiv:1901.11259, in the form of its code).

    Centres are draws from N(0, 1) until `update_centres` is called: before each epoch but the first.

    Parameters
    ----------
    class_labels : array of int, [C, L]
        The label path of each fine class, coarse to fine. Each level numbers its classes from 0.
    embedding_size : int
        K.
    deviations : sequence of float, optional
        σ of each level, coarse to fine. By default 4, 2, 1.5, 1 for four levels, else L, …, 2, 1.
    squared : bool
        Whether exponents are −‖r − μ‖²/2σ, and not −‖r − μ‖/2σ².
    floor, cube, cube_weight, quantisation_weight : float
        As in `Dcwh`.
    mean_over_bits : bool
        Whether the two regularisers are divided by the number of bits.
    **options
        As in `Loss`, but for `normalise`. A reducer gets the losses of items on each level.

    Attributes
    ----------
    centres_0, centres_1, … : torch.Tensor
        [C_l, K] of each level, buffers.
    """

    classes: Any

    def __init__(
        self,
        class_labels: Any,
        embedding_size: int,
        *,
        deviations: Sequence[float] | None = None,
        squared: bool = True,
        floor: float = 1e-8,
        cube: float = 1.1,
        cube_weight: float = 10.0,
        quantisation_weight: float = 0.1,
        mean_over_bits: bool = True,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(cube, cube_weight, quantisation_weight, floor, **options)
        classes = class_paths(class_labels)
        levels = classes.shape[1]
        if deviations is None:
            deviations = [4.0, 2.0, 1.5, 1.0] if levels == 4 else [float(levels - level) for level in range(levels)]
        if len(deviations) != levels:
            raise ConfigError(
                f"there are {len(deviations)} deviations for {levels} levels", "give one for each, coarse to fine"
            )
        for deviation in deviations:
            check("a deviation of Hpdh", deviation, above=True)
        _check_sizes(len(classes), embedding_size)
        self.register_buffer("classes", classes)
        self.deviations, self.squared, self.mean_over_bits = tuple(deviations), squared, mean_over_bits
        for level in range(levels):
            count = int(classes[:, level].max()) + 1
            self.register_buffer(f"centres_{level}", torch.randn(count, embedding_size))

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        rows, bits = queries.shape
        outside = (queries.abs() - self.cube).clamp(min=0).sum()
        regularisers = self.cube_weight * outside + self.quantisation_weight * _quantisation(queries)
        terms = [fixed(regularisers / (rows * bits if self.mean_over_bits else rows))]
        for level, deviation in enumerate(self.deviations):
            gaps = distances(queries, self._centres(level).to(queries.dtype))
            exponents = -gaps.square() / (2 * deviation) if self.squared else -gaps / (2 * deviation**2)
            terms.append(Terms(self.likelihood(exponents, labels[:, level].long())))
        return terms

    def _centres(self, level: int) -> Any:
        return getattr(self, f"centres_{level}")

    @torch.no_grad()
    def update_centres(self, embeddings: Any, labels: Any) -> None:
        """Sets the centre of each fine class to the mean of its items, of the outputs [N, K] and labels [N, L], and that of
        each coarser class to the mean of its children's. A class without items keeps its centre."""
        labels = self._labels(embeddings, labels).long()
        known = labels[:, -1].unique()
        _set_means(self._centres(len(self.deviations) - 1), embeddings, labels[:, -1])
        for level in reversed(range(len(self.deviations) - 1)):
            children = torch.unique(self.classes[known][:, level : level + 2], dim=0)
            _set_means(self._centres(level), self._centres(level + 1)[children[:, 1]], children[:, 0])
