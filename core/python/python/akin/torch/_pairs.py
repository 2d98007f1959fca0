"""Losses of pairs and triplets.

All take an `indices_tuple` from a miner of pytorch-metric-learning: pairs (a, p, a', n) or triplets (a, p, n). Without one
they use all pairs or all triplets. Where pytorch-metric-learning has the loss, its name, arguments and defaults are the
same. Distances are Euclidean, between embeddings of unit length.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack

import torch

from .._errors import ConfigError, EmbeddingsError
from ._loss import Additions, Loss, Options, Terms, closed_form, counted, distances, fixed, scores, weighted
from ._ranks import ELEMENTS
from ._relevance import Pairs, all_pairs, query_means
from ._steps import check, check_choice, check_share


def _mined(indices: Any, pairs: Pairs) -> Any:
    """The rows and columns that a miner chose: of positives, and of negatives."""
    if len(indices) not in (3, 4):
        raise ConfigError(
            f"the `indices_tuple` has {len(indices)} parts", "give pairs (a, p, a', n) or triplets (a, p, n) of a miner"
        )
    a, p, b, n = indices if len(indices) == 4 else (*indices[:2], indices[0], indices[2])
    for rows, columns in ((a, p), (b, n)):
        inside = len(rows) == 0 or (
            int(rows.max()) < len(pairs.positives) and int(columns.max()) < pairs.positives.shape[1]
        )
        if len(rows) != len(columns) or not inside:
            raise EmbeddingsError(
                "the `indices_tuple` names rows that the batch or the reference set does not have",
                "give the miner the same embeddings as the loss",
            )
    return (a, p), (b, n)


def _positive_pairs(indices: Any, pairs: Pairs) -> Any:
    """The rows and columns of the positive pairs: all of them, or those that a miner chose."""
    return pairs.positives.nonzero(as_tuple=True) if indices is None else _mined(indices, pairs)[0]


class MinedLoss(Loss):
    """A loss of pairs or triplets, which a miner can choose."""

    takes_indices = True
    #: Whether a pair counts once for each triplet that it is in.
    by_triplets = False

    def compare(
        self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool, indices_tuple: Any = None
    ) -> list[Terms]:
        pairs = all_pairs(queries, labels, item_labels, itself=itself)
        if indices_tuple is not None:
            counts = [torch.zeros_like(pairs.positives), torch.zeros_like(pairs.negatives)]
            for count, places in zip(counts, _mined(indices_tuple, pairs), strict=True):
                count.index_put_(places, count.new_ones(()), accumulate=True)
            pairs = Pairs(*counts)
        if self.by_triplets and (indices_tuple is None or len(indices_tuple) == 4):
            pairs = pairs.in_triplets()
        return self.pair_loss(queries, items, labels, pairs)

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        """The parts of the loss over these pairs."""
        raise NotImplementedError


class ContrastiveLoss(MinedLoss):
    """Positives closer than one margin, negatives farther than another (Hadsell et al., CVPR 2006).

    Each mean is over the pairs that have a loss.

    Parameters
    ----------
    pos_margin, neg_margin : float
        With `measure="cosine"`, 1 and 0.5 are usual.
    measure : {"euclidean", "cosine"}
        What the margins apply to.
    squared : bool
        Whether each term is half its square, as in the paper.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        pos_margin: float = 0.0,
        neg_margin: float = 1.0,
        *,
        measure: Literal["euclidean", "cosine"] = "euclidean",
        squared: bool = False,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check_choice("the measure of the contrastive loss", measure, "euclidean", "cosine")
        least = 0.0 if measure == "euclidean" else -1.0
        check("the pos_margin of the contrastive loss", pos_margin, least=least)
        check("the neg_margin of the contrastive loss", neg_margin, least=least)
        self.pos_margin, self.neg_margin, self.measure, self.squared = pos_margin, neg_margin, measure, squared

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        if self.measure == "cosine":
            found = scores(queries, items)
            far, near = self.pos_margin - found, found - self.neg_margin
        else:
            found = distances(queries, items)
            far, near = found - self.pos_margin, self.neg_margin - found
        return [self._mean(far, pairs.positives, "pos_pair"), self._mean(near, pairs.negatives, "neg_pair")]

    def _mean(self, excess: Any, counts: Any, kind: str) -> Terms:
        excess = excess.clamp(min=0)
        losses = excess.square() / 2 if self.squared else excess
        return Terms(losses, counts, ((excess > 0) * counts).sum(), kind)


class MultiSimilarityLoss(MinedLoss):
    """Weighs each pair by its own score and by the other pairs of its query (Wang et al., CVPR 2019, eq. 15).

    Parameters
    ----------
    alpha, beta : float
        The weights of positives and of negatives, above 0.
    base : float
        λ, from which both are measured.
    **options
        As in `Loss`.
    """

    def __init__(self, alpha: float = 2.0, beta: float = 50.0, base: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the alpha of the Multi-Similarity loss", alpha, above=True)
        check("the beta of the Multi-Similarity loss", beta, above=True)
        self.alpha, self.beta, self.base = alpha, beta, base

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        return multi_similarity(scores(queries, items) - self.base, pairs, self.alpha, self.beta)


def multi_similarity(beyond: Any, pairs: Pairs, alpha: float, beta: float) -> list[Terms]:
    """The loss of each query, for scores beyond the base, [Q, N]."""
    pull = log_one_plus_sum_exp(-alpha * beyond, pairs.positives) / alpha
    push = log_one_plus_sum_exp(beta * beyond, pairs.negatives) / beta
    return [Terms(pull + push)]


def log_one_plus_sum_exp(exponents: Any, counted: Any) -> Any:
    """log(1 + Σ_j e^{z_j}) of each row, over the entries that count."""
    chosen = torch.where(counted > 0, exponents, -torch.inf)
    return torch.cat([chosen, torch.zeros_like(chosen[:, :1])], 1).logsumexp(1)


class PairLoss(MinedLoss):
    """The sum over positive pairs of 1 − s, and over negative pairs that score above a margin of s, for each query.

    The loss that cross-batch memory was published with (Wang et al., CVPR 2020). It grows with the number of items.

    Parameters
    ----------
    margin : float
        Negatives that score at most this have no loss.
    **options
        As in `Loss`.
    """

    def __init__(self, margin: float = 0.5, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the margin of the pair loss", margin, least=-1.0)
        self.margin = margin

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        found = scores(queries, items)
        negatives = pairs.negatives * (found > self.margin)
        return [Terms(((1 - found) * pairs.positives + found * negatives).sum(1))]


class MarginLoss(MinedLoss):
    """Positives inside a boundary and negatives outside it, both by a margin (Wu et al., ICCV 2017).

    The mean is over the pairs that have a loss. A pair counts once for each triplet that it is in; a reducer gets the
    triplets, which take O(B³) memory. The paper draws them with a `DistanceWeightedMiner`.

    Parameters
    ----------
    margin : float
        α, at least 0.
    nu : float
        The weight of the learned boundaries as a regulariser.
    beta : float
        The boundary, above 0.
    learn_beta : bool
        Whether the boundary is learned: `loss.parameters()`.
    num_classes : int, optional
        Gives each class a boundary. The last column of the labels then has numbers from 0 to `num_classes` − 1.
    **options
        As in `Loss`.
    """

    beta: Any
    by_triplets = True

    def __init__(
        self,
        margin: float = 0.2,
        nu: float = 0.0,
        beta: float = 1.2,
        *,
        learn_beta: bool = False,
        num_classes: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the margin of the margin loss", margin)
        check("the nu of the margin loss", nu)
        check("the beta of the margin loss", beta, above=True)
        self.margin, self.nu = margin, nu
        boundaries = torch.full((num_classes or 1,), float(beta))
        if learn_beta:
            self.beta = torch.nn.Parameter(boundaries)
        else:
            self.register_buffer("beta", boundaries)

    def compare(
        self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool, indices_tuple: Any = None
    ) -> list[Terms]:
        if self.reducer is None:
            return super().compare(queries, labels, items, item_labels, itself=itself, indices_tuple=indices_tuple)
        boundary, far, near = self._excess(queries, items, labels)
        a, p, n = triplets(all_pairs(queries, labels, item_labels, itself=itself), indices_tuple)
        far, near = far[a, p], near[a, n]
        number = (far > 0).sum() + (near > 0).sum()
        own = Terms(boundary[a], divisor=number, indices=[a]) if len(boundary) > 1 else fixed(boundary[0])
        return [Terms(far + near, divisor=number, kind="triplet", indices=[a, p, n]), *self._learned(own)]

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        positives, negatives = pairs
        boundary, far, near = self._excess(queries, items, labels)
        number = ((far > 0) * positives + (near > 0) * negatives).sum()
        own = Terms(boundary, positives.sum(1), number) if len(boundary) > 1 else fixed(boundary[0])
        return [Terms(far, positives, number), Terms(near, negatives, number), *self._learned(own)]

    def _excess(self, queries: Any, items: Any, labels: Any) -> tuple[Any, Any, Any]:
        """The boundary, or that of each query, and how far each pair is on its wrong side, as a positive and as a negative one."""
        boundary = self.beta.to(queries.dtype)
        if len(boundary) > 1:
            boundary = boundary[labels[:, -1].long()]
        beyond = distances(queries, items) - boundary[:, None]
        return boundary, (beyond + self.margin).clamp(min=0), (self.margin - beyond).clamp(min=0)

    def _learned(self, own: Terms) -> list[Terms]:
        """The regulariser of the boundaries, if they are learned."""
        return weighted(self.nu, [own]) if self.nu and self.beta.requires_grad else []


class TripletMarginLoss(Loss):
    """A positive closer than a negative by a margin, over all triplets or those of a miner.

    The mean is over the triplets that have a loss. All triplets of a batch take O(B²) memory, and O(B³) with a reducer.

    Parameters
    ----------
    margin : float
        At least 0.
    swap : bool
        Whether the positive takes the query's place where it is nearer to the negative (Balntas et al., BMVC 2016).
    smooth_loss : bool
        Whether a term is log(1 + e^x) instead of max(x, 0) (Hermans et al., 2017).
    **options
        As in `Loss`.
    """

    takes_indices = True

    def __init__(
        self, margin: float = 0.05, swap: bool = False, smooth_loss: bool = False, **options: Unpack[Options]
    ) -> None:
        super().__init__(**options)
        check("the margin of the triplet loss", margin)
        self.margin, self.swap, self.smooth_loss = margin, swap, smooth_loss

    def compare(
        self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool, indices_tuple: Any = None
    ) -> list[Terms]:
        pairs = all_pairs(queries, labels, item_labels, itself=itself)
        found = distances(torch.cat([queries, items]) if self.swap else queries, items)
        if indices_tuple is None and self.reducer is None:
            return [fixed(closed_form(found, lambda found: self._all_triplets(found, pairs)))]
        a, p, n = triplets(pairs, indices_tuple)
        far = found[a, n]
        if self.swap:
            far = torch.minimum(far, found[len(queries) + p, n])
        losses, _ = hinge(found[a, p] - far + self.margin, smooth=self.smooth_loss)
        return [Terms(losses, divisor=(losses > 0).sum(), kind="triplet", indices=[a, p, n])]

    def _all_triplets(self, found: Any, pairs: Pairs) -> tuple[Any, Any]:
        total, count, gradient = sum_over_triplets(found, pairs, self.margin, smooth=self.smooth_loss, swap=self.swap)
        share = 1 / count.clamp(min=1)
        return total * share, gradient * share


def triplets(pairs: Pairs, indices: Any = None) -> Any:
    """The rows a, p and n of all triplets, or of those that a miner chose: each positive with each negative of its query."""
    if indices is not None and len(indices) == 3:
        (a, p), (_, n) = _mined(indices, pairs)
        return a, p, n
    (a, p), (b, n) = [counted(kind) for kind in pairs] if indices is None else _mined(indices, pairs)
    positive, negative = torch.where(a[:, None] == b)
    return a[positive], p[positive], n[negative]


def hinge(excess: Any, *, smooth: bool) -> tuple[Any, Any]:
    """The loss of triplets that violate their margin by `excess`, and its slope."""
    if smooth:
        return torch.nn.functional.softplus(excess), torch.sigmoid(excess)
    return excess.clamp(min=0), (excess > 0).to(excess.dtype)


def sum_over_triplets(
    found: Any, pairs: Pairs, margin: float, *, smooth: bool, swap: bool = False
) -> tuple[Any, Any, Any]:
    """The sum over all triplets, how many have a loss, and the gradient by the distances [Q, N], for blocks of queries.

    With `swap`, the distances between items follow in the rows after the Q of the queries.
    """
    queries, items = pairs.positives.shape
    chosen = max(1, int(pairs.positives.sum(1).max()))
    order = pairs.positives.argsort(dim=1, descending=True, stable=True)[:, :chosen]
    gradient = torch.zeros_like(found)
    total, count = found.new_zeros(()), found.new_zeros(())
    rows = max(1, ELEMENTS // (chosen * items))
    for start in range(0, queries, rows):
        block = slice(start, min(start + rows, queries))
        places = order[block]
        far = found[block][:, None, :]
        if swap:
            between = found[queries:][places]
            nearer = between < far
            far = torch.minimum(far, between)
        terms, slopes = hinge(found[block].gather(1, places)[:, :, None] - far + margin, smooth=smooth)
        counted = pairs.positives[block].gather(1, places)[:, :, None] * pairs.negatives[block][:, None, :]
        terms, slopes = terms * counted, slopes * counted
        total, count = total + terms.sum(), count + (terms > 0).sum()
        gradient[block] = gradient[block].scatter_add(1, places, slopes.sum(2))
        if swap:
            gradient[queries:].index_add_(0, places.flatten(), -(slopes * nearer).flatten(0, 1))
            slopes = slopes * ~nearer
        gradient[block] -= slopes.sum(1)
    return total, count, gradient


class NTXentLoss(MinedLoss):
    """Cross-entropy of each positive against the negatives of its query (Sohn, NeurIPS 2016; Chen et al., ICML 2020).

    Parameters
    ----------
    temperature : float
        T > 0.
    **options
        As in `Loss`.
    """

    def __init__(self, temperature: float = 0.07, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the temperature of NT-Xent", temperature, above=True)
        self.temperature = temperature

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        exponents = scores(queries, items) / self.temperature
        repeated = exponents + pairs.negatives.clamp(min=1).log()
        competing = _log_sum_exp(repeated, pairs.negatives)
        terms = torch.nn.functional.softplus(competing[:, None] - exponents)
        return [Terms(terms, pairs.positives, kind="pos_pair")]


class SupConLoss(MinedLoss):
    """Cross-entropy of each positive against all items, the mean over queries (Khosla et al., NeurIPS 2020, eq. 2).

    Parameters
    ----------
    temperature : float
        T > 0.
    **options
        As in `Loss`.
    """

    def __init__(self, temperature: float = 0.1, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the temperature of SupCon", temperature, above=True)
        self.temperature = temperature

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        exponents = scores(queries, items) / self.temperature
        positives = (pairs.positives > 0).to(exponents.dtype)
        every = _log_sum_exp(exponents, positives + pairs.negatives)
        losses, counts = query_means(((every[:, None] - exponents) * positives).sum(1), positives)
        # As in pytorch-metric-learning, a reducer also gets the 0 of a query without a positive.
        return [Terms(losses, divisor=counts.sum())]


class CircleLoss(MinedLoss):
    """Pairs, each weighed by its distance from the score that it should have (Sun et al., CVPR 2020).

    The weights are constants for the gradient. The mean is over queries with a positive and a negative.

    Parameters
    ----------
    m : float
        The relaxation: positives should score 1 − m, negatives m.
    gamma : float
        γ > 0, the scale.
    **options
        As in `Loss`.
    """

    def __init__(self, m: float = 0.4, gamma: float = 80.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the m of the circle loss", m, least=-1.0)
        check("the gamma of the circle loss", gamma, above=True)
        self.m, self.gamma = m, gamma

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        found = scores(queries, items)
        fixed = found.detach()
        pull = -self.gamma * (1 + self.m - fixed).clamp(min=0) * (found - (1 - self.m))
        push = self.gamma * (fixed + self.m).clamp(min=0) * (found - self.m)
        total = _log_sum_exp(pull, pairs.positives) + _log_sum_exp(push, pairs.negatives)
        both = (pairs.positives > 0).any(1) & (pairs.negatives > 0).any(1)
        # As in pytorch-metric-learning, a reducer also gets the 0 of the other queries.
        return [Terms(torch.nn.functional.softplus(total) * both, divisor=both.sum())]


class LiftedStructureLoss(MinedLoss):
    """Each positive pair against all negatives of its two items (Oh Song et al., CVPR 2016, eq. 4).

    An item of a reference set is no query and has no negatives of its own: there only those of the query are summed.

    Parameters
    ----------
    neg_margin, pos_margin : float
        m⁻ and m⁺.
    **options
        As in `Loss`.
    """

    def __init__(self, neg_margin: float = 1.0, pos_margin: float = 0.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the neg_margin of the lifted structure loss", neg_margin)
        check("the pos_margin of the lifted structure loss", pos_margin)
        self.neg_margin, self.pos_margin = neg_margin, pos_margin

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        found = distances(queries, items)
        repeated = self.neg_margin - found + pairs.negatives.clamp(min=1).log()
        both = _log_sum_exp(repeated, pairs.negatives)[:, None]
        if queries is items:
            both = torch.logaddexp(both, both.T)
        terms = (found - self.pos_margin + both).clamp(min=0).square() / 2
        return [Terms(terms, pairs.positives, kind="pos_pair")]


class AngularLoss(MinedLoss):
    """A small angle at each negative between the two items of a positive pair (Wang et al., ICCV 2017, eq. 8).

    A miner chooses the positive pairs. Each is compared with all negatives of its first item. Here these have unit length,
    too, which in pytorch-metric-learning they have only if the embeddings have it.

    Parameters
    ----------
    alpha : float
        α, in degrees from 0 to 86.
    **options
        As in `Loss`.
    """

    def __init__(self, alpha: float = 40.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        if not 0 <= alpha <= 86:
            raise ConfigError(f"the alpha of the angular loss is {alpha}", "give an angle in degrees, from 0 to 86")
        self.alpha = alpha

    def compare(
        self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool, indices_tuple: Any = None
    ) -> list[Terms]:
        pairs = all_pairs(queries, labels, item_labels, itself=itself)
        rows, columns = _positive_pairs(indices_tuple, pairs)
        steepness = math.tan(math.radians(self.alpha)) ** 2
        own, other = queries[rows], items[columns]
        near = 2 * (1 + steepness) * (own * other).sum(1, keepdim=True)
        found = log_one_plus_sum_exp(4 * steepness * scores(own + other, items) - near, pairs.negatives[rows])
        return [Terms(found, kind="pos_pair", indices=[rows, columns])]


class NPairsLoss(MinedLoss):
    """Cross-entropy of one positive per class against those of the other classes (Sohn, NeurIPS 2016, eq. 7).

    Of each class only the first pair counts, in the order of the batch or of a miner.

    Parameters
    ----------
    scale : float
        s > 0, the scale of the scores. pytorch-metric-learning has none, which is 1; `akin train` has 16 by default.
    **options
        As in `Loss`. In the paper they keep their lengths.
    """

    def __init__(self, *, scale: float = 1.0, **options: Unpack[Options]) -> None:
        super().__init__(**options)
        check("the scale of the N-pairs loss", scale, above=True)
        self.scale = scale

    def compare(
        self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool, indices_tuple: Any = None
    ) -> list[Terms]:
        pairs = all_pairs(queries, labels, item_labels, itself=itself)
        rows, columns = _positive_pairs(indices_tuple, pairs)
        first: dict[int, int] = {}
        for place, label in enumerate(labels[rows, -1].tolist()):
            first.setdefault(label, place)
        places = torch.tensor([first[label] for label in sorted(first)], dtype=torch.long, device=queries.device)
        logits = self.scale * scores(queries[rows[places]], items[columns[places]])
        targets = torch.arange(len(places), device=queries.device)
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        return [Terms(losses, indices=[rows[places]])]


class VICRegLoss(Loss):
    """Two views of each item agree, while every dimension varies by itself (Bardes et al., ICLR 2022, eq. 6).

    Called as `loss(embeddings, ref_emb=other_views)`, where row i of both is item i: it takes no labels.

    Parameters
    ----------
    invariance_lambda, variance_mu, covariance_v : float
        The weights of the three parts, at least 0.
    eps : float
        Added to a variance below its root, above 0.
    **options
        As in `Loss`, but for `normalise`.
    """

    def __init__(
        self,
        invariance_lambda: float = 25.0,
        variance_mu: float = 25.0,
        covariance_v: float = 1.0,
        eps: float = 1e-4,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(normalise=False, **options)
        for name, weight in [
            ("invariance", invariance_lambda),
            ("variance", variance_mu),
            ("covariance", covariance_v),
        ]:
            check(f"the weight of the {name} of VICReg", weight)
        check("the eps of VICReg", eps, above=True)
        self.invariance_lambda, self.variance_mu = invariance_lambda, variance_mu
        self.covariance_v, self.eps = covariance_v, eps

    def forward(
        self,
        embeddings: Any,
        labels: Any = None,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> Any:
        """The loss of two views [B, d] of the same items."""
        if labels is not None or indices_tuple is not None or ref_labels is not None:
            raise ConfigError("VICReg compares two views, without labels", "call it as `loss(views, ref_emb=others)`")
        if ref_emb is None or embeddings.shape != ref_emb.shape or embeddings.ndim != 2 or len(embeddings) < 2:
            raise EmbeddingsError(
                f"the views have the shapes {list(embeddings.shape)} and {ref_emb if ref_emb is None else list(ref_emb.shape)}",
                "give both views of at least two items, [B, d]",
            )
        views = [self._rows(embeddings), self._rows(ref_emb)]
        terms = [Terms((views[0] - views[1]).square().mean(1), weight=self.invariance_lambda)]
        for rows in views:
            spread = (rows.var(dim=0) + self.eps).sqrt()
            terms.append(Terms((1 - spread).clamp(min=0), weight=self.variance_mu / 2))
            centred = rows - rows.mean(dim=0)
            covariance = scores(centred.T, centred.T) / (len(rows) - 1)
            apart = covariance.square().sum() - covariance.diagonal().square().sum()
            terms.append(fixed(apart / rows.shape[1], self.covariance_v))
        return self._total(terms, embeddings, None)


class RankedListLoss(Loss):
    """Positives inside one ball around the query, negatives outside a larger one, the hard ones most (Wang et al., CVPR 2019).

    Parameters
    ----------
    margin : float
        m, between the two balls.
    Tn : float
        How much more a hard negative counts; 10 is usual.
    imbalance : float
        The share of the negatives, from 0 to 1.
    alpha : float, optional
        The boundary of the negatives. By default 1 + m/2.
    Tp : float
        How much more a hard positive counts.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        margin: float,
        Tn: float,
        imbalance: float = 0.5,
        alpha: float | None = None,
        Tp: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        alpha = 1 + margin / 2 if alpha is None else alpha
        check("the margin of the ranked list loss", margin)
        check("the alpha of the ranked list loss", alpha, above=True)
        check("the Tn of the ranked list loss", Tn)
        check("the Tp of the ranked list loss", Tp)
        check_share("the imbalance of the ranked list loss", imbalance)
        self.margin, self.Tn, self.imbalance, self.alpha, self.Tp = margin, Tn, imbalance, alpha, Tp

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        pairs = all_pairs(queries, labels, item_labels, itself=itself)
        found = distances(queries, items)
        far = (found - (self.alpha - self.margin)).clamp(min=0)
        near = (self.alpha - found).clamp(min=0)
        positive_loss = _weighted_mean(far, pairs.positives, self.Tp)
        negative_loss = _weighted_mean(near, pairs.negatives, self.Tn)
        return [Terms((1 - self.imbalance) * positive_loss + self.imbalance * negative_loss)]


def _weighted_mean(excess: Any, counted: Any, temperature: float) -> Any:
    """The mean of the excess of the counted pairs of each query, with weights that grow with it, [Q]."""
    weights = torch.exp(temperature * excess) * counted * (excess > 0)
    # As in pytorch-metric-learning, 1e-5 for each item.
    return (weights * excess).sum(1) / (weights.sum(1) + 1e-5 * excess.shape[1])


def _log_sum_exp(exponents: Any, counted: Any) -> Any:
    """log Σ_j e^{z_j} of each row, over the entries that count; nearly −∞ without one, with a gradient of 0."""
    return exponents.masked_fill(counted <= 0, -1e30).logsumexp(1)
