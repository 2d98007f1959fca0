"""Losses of pairs by hyperbolic distance, the base losses of HIER's tables. Without a ball they are of directions."""

from __future__ import annotations

from typing import Any, Unpack

import torch

from ._hier import Poincare
from ._loss import Additions, Loss, Terms, fixed, scores
from ._pairs import MinedLoss, multi_similarity
from ._relevance import Pairs, same_class
from ._steps import check


def _likeness(ball: Poincare | None, queries: Any, items: Any) -> Any:
    """The negative distance of points of the ball, or the cosine of directions, [Q, N]."""
    return -ball.distances(queries, items) if ball else scores(queries, items)


class HyperbolicMultiSimilarity(MinedLoss):
    """Multi-Similarity on hyperbolic distances, measured from the mean of all pairs (the code of HIER, CVPR 2023).

    Parameters
    ----------
    ball : Poincare, optional
        The ball of the embeddings. Without it, embeddings are directions.
    alpha, beta : float
        The weights of positives and of negatives, above 0.
    **options
        As in `Loss`, but for `normalise`.
    """

    def __init__(
        self, ball: Poincare | None = None, *, alpha: float = 1.0, beta: float = 5.0, **options: Unpack[Additions]
    ) -> None:
        super().__init__(normalise=ball is None, **options)
        check("the alpha of the Multi-Similarity loss", alpha, above=True)
        check("the beta of the Multi-Similarity loss", beta, above=True)
        self.ball, self.alpha, self.beta = ball, alpha, beta

    def pair_loss(self, queries: Any, items: Any, labels: Any, pairs: Pairs) -> list[Terms]:
        found = _likeness(self.ball, queries, items)
        every = pairs.positives + pairs.negatives
        base = (found * every).sum() / every.sum().clamp(min=1)
        return multi_similarity(found - base, pairs, self.alpha, self.beta)


class HyperbolicCrossEntropy(Loss):
    """Cross-entropy of finding the other image of a class among those of all classes (Ermolov et al., CVPR 2022).

    The v-th images of all classes are view v. For an ordered pair of views (a, b), an image i in a and the image j of its
    class in b, j is found among view b and the rest of view a. The loss is the sum over pairs of views of the mean.

    Parameters
    ----------
    ball : Poincare, optional
        The ball of the embeddings. Without it, embeddings are directions.
    temperature : float, optional
        τ > 0. By default 0.2 in the ball and 0.1 without one.
    **options
        As in `Loss`, but for `normalise`. It takes no reducer.
    """

    def __init__(
        self, ball: Poincare | None = None, *, temperature: float | None = None, **options: Unpack[Additions]
    ) -> None:
        super().__init__(normalise=ball is None, **options)
        temperature = (0.2 if ball else 0.1) if temperature is None else temperature
        check("the temperature of the cross-entropy", temperature, above=True)
        self.ball, self.temperature = ball, temperature

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        found = _likeness(self.ball, queries, items) / self.temperature
        inside = found if itself else _likeness(self.ball, queries, queries) / self.temperature
        own, others = _views(labels), _views(item_labels)
        pairs = same_class(labels, item_labels)
        candidates = found
        if itself:
            itself_at = torch.eye(len(found), dtype=torch.bool, device=found.device)
            pairs = pairs & ~itself_at
            candidates = found.masked_fill(itself_at, -torch.inf)
        rest = (own[:, None] == own) & ~torch.eye(len(own), dtype=torch.bool, device=own.device)
        view_a = inside.masked_fill(~rest, -torch.inf).logsumexp(1)
        total = found.new_zeros(())
        for view in range(int(others.max()) + 1):
            in_view = others == view
            view_b = torch.logaddexp(view_a, candidates[:, in_view].logsumexp(1))
            chosen = pairs & in_view
            # How many classes have both views: one for each pair of an image in a with one in b.
            count = torch.zeros_like(view_a).index_add_(0, own, chosen.sum(1).to(view_a.dtype))
            weight = chosen / count[own].clamp(min=1)[:, None]
            total = total + torch.where(chosen, weight * (view_b[:, None] - found), 0.0).sum()
        return [fixed(total)]


def _views(labels: Any) -> Any:
    """The number of earlier rows of its class for each row, [B]."""
    same = same_class(labels, labels)
    return same.tril(-1).sum(1)
