"""The Poincaré ball, and HIER, which learns a hierarchy in it (Kim et al., CVPR 2023)."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from .._errors import ConfigError
from ._steps import check

#: The numbers of the largest matrix, [triplets, P].
_NUMBERS = 1 << 21


class Poincare(torch.nn.Module):
    """Maps features into the Poincaré ball: the last layer of a network whose embeddings are points of it.

    Features longer than `clip_radius` are shortened to it, and mapped by the exponential map at the centre.

    Parameters
    ----------
    curvature : float
        c > 0: the radius of the ball is 1/√c.
    clip_radius : float
        The largest length of a feature (Guo et al., CVPR 2022).
    riemannian : bool
        Whether the gradient by a point is that of the ball, (1 − c|z|²)²/4 times that of the space around it.
    """

    def __init__(self, curvature: float = 0.1, clip_radius: float = 2.3, *, riemannian: bool = True) -> None:
        super().__init__()
        check("the curvature", curvature, above=True)
        check("the clip radius", clip_radius, above=True)
        self.curvature, self.clip_radius, self.riemannian = curvature, clip_radius, riemannian

    def forward(self, features: Any) -> Any:
        """The points [B, d] of features [B, d]."""
        length = features.norm(dim=1, keepdim=True)
        clipped = features * (self.clip_radius / (length + 1e-5)).clamp(max=1)
        root = self.curvature**0.5
        scaled = root * clipped.norm(dim=1, keepdim=True).clamp(min=1e-5)
        points = torch.tanh(scaled) * clipped / scaled
        # Not up to the border, where distances are infinite.
        points = points * ((1 - 1e-3) / root / points.norm(dim=1, keepdim=True).clamp(min=1e-5)).clamp(max=1)
        return _Riemannian.apply(points, self.curvature) if self.riemannian else points

    def distances(self, x: Any, y: Any) -> Any:
        """The distances of points [N, d] and [M, d] of the ball, [N, M]: 2/√c artanh(√c |−x ⊕ y|)."""
        c = self.curvature
        gap = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
        below = 1 - 2 * c * x @ y.T + c**2 * x.square().sum(1)[:, None] * y.square().sum(1)
        # As in the published code, whose sum ⊕ has 1e-5 added to its denominator.
        length = gap * below.clamp(min=1e-15).sqrt() / (below + 1e-5)
        return 2 / c**0.5 * torch.atanh((c**0.5 * length).clamp(max=1 - 1e-5))


class _Riemannian(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, points: Any, curvature: float) -> Any:
        ctx.save_for_backward(points)
        ctx.curvature = curvature
        return points.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Any) -> tuple[Any, None]:
        (points,) = ctx.saved_tensors
        scale = (1 - ctx.curvature * points.square().sum(1, keepdim=True)).square() / 4
        return gradient * scale, None


class Hier(torch.nn.Module):
    """HIER: related items are nearer to their common ancestor than others, with learned ancestors. A regulariser.

    In a triplet, items i and j are mutual neighbours and k is not one of i. The lowest common ancestors of the pair and of
    all three are drawn among the proxies, and the pair should be nearer to its own. The loss is the mean over triplets of
    the batch plus that over triplets of the proxies (eq. 6 to 9, with the draw of the public code).

    Parameters
    ----------
    embedding_size : int
        d.
    ball : Poincare, optional
        The ball of the embeddings. Without it, embeddings are directions, with the distance 2 − 2 x·y.
    proxies : int
        P, the number of proxies.
    neighbours : int
        K: each of two mutual neighbours is among the K nearest of the other, itself counted.
    triplets : int
        How many triplets each item gets.
    margin : float
        δ.
    temperature : float
        τ > 0, that of the softmax by which ancestors are drawn.

    Attributes
    ----------
    proxies : torch.nn.Parameter
        [P, d], features. The optimiser has to train it, too.
    """

    def __init__(
        self,
        embedding_size: int,
        ball: Poincare | None = None,
        *,
        proxies: int = 512,
        neighbours: int = 20,
        triplets: int = 50,
        margin: float = 0.1,
        temperature: float = 0.1,
    ) -> None:
        super().__init__()
        if embedding_size < 1 or proxies < 2 or neighbours < 2 or triplets < 1:
            raise ConfigError(
                f"HIER has {proxies} proxies of {embedding_size} numbers, {neighbours} neighbours and {triplets} triplets",
                "give at least 2 proxies and neighbours, and at least 1 of the others",
            )
        check("the margin of HIER", margin)
        check("the temperature of HIER", temperature, above=True)
        radius = ball.clip_radius if ball else 1.0
        self.ball = ball
        self.proxies = torch.nn.Parameter(torch.randn(proxies, embedding_size) * 0.9 * radius / embedding_size**0.5)
        self.neighbours, self.triplets, self.margin, self.temperature = neighbours, triplets, margin, temperature

    def forward(self, embeddings: Any, labels: Any = None) -> Any:
        """The loss of points of the ball, or of directions, [B, d].

        Among the neighbours of an item those of its own class come first, with labels [B, L] (the last column is the
        class) or [B].
        """
        points = embeddings if self.ball else torch.nn.functional.normalize(embeddings, dim=1)
        ancestors = self._ancestors().to(points.dtype)
        classes = None if labels is None else labels.reshape(len(labels), -1)[:, -1]
        with torch.no_grad():
            drawn = [self._draw(self._distances(points, points), classes)]
            drawn.append(self._draw(self._distances(ancestors, ancestors), None))
        of_points = self.of_triplets(self._distances(points, ancestors), drawn[0])
        return of_points + self.of_triplets(self._distances(ancestors, ancestors), drawn[1])

    def _ancestors(self) -> Any:
        return self.ball(self.proxies) if self.ball else torch.nn.functional.normalize(self.proxies, dim=1)

    def _distances(self, x: Any, y: Any) -> Any:
        return self.ball.distances(x, y) if self.ball else 2 - 2 * x @ y.T

    def _draw(self, distances: Any, classes: Any) -> Any:
        """Triplets of rows, [T, 3]."""
        if classes is not None:
            distances = distances + (classes[:, None] != classes) * (1 + distances.max())
        nearest = distances.topk(min(self.neighbours, len(distances)), largest=False).indices
        near = torch.zeros_like(distances, dtype=torch.bool).scatter_(1, nearest, True)
        mutual = near & near.T & ~torch.eye(len(near), dtype=torch.bool, device=near.device)
        anchors = ((mutual.sum(1) >= 2) & (~mutual).any(1)).nonzero()[:, 0]
        if len(anchors) == 0:
            return anchors.new_empty(0, 3)
        related = torch.multinomial(mutual[anchors].float(), self.triplets, replacement=True)
        unrelated = torch.multinomial((~mutual[anchors]).float(), self.triplets, replacement=True)
        return torch.stack([anchors[:, None].expand_as(related), related, unrelated], 2).flatten(0, 1)

    def of_triplets(self, distances: Any, triplets: Any, noise: Any = None) -> Any:
        """The mean loss of triplets [T, 3] of the rows of `distances`, [N, P].

        `noise` has the two draws from Gumbel(0, 1) of each triplet, [2, T, P]. By default they are drawn.
        """
        if len(triplets) == 0:
            return distances.sum() * 0
        rows = max(1, _NUMBERS // distances.shape[1])
        total = distances.new_zeros(())
        for start in range(0, len(triplets), rows):
            part = slice(start, start + rows)
            given = None if noise is None else noise[:, part]
            # Computed again on the way back, so that memory holds one block.
            total = total + checkpoint(self._sum, distances, triplets[part], given, use_reentrant=False)
        return total / len(triplets)

    def _sum(self, distances: Any, triplets: Any, noise: Any) -> Any:
        i, j, k = (distances[triplets[:, place]] for place in range(3))
        pair = torch.maximum(i, j)
        if noise is None:
            noise = -torch.log(torch.empty(2, *pair.shape, dtype=pair.dtype, device=pair.device).exponential_())
        low = self._choice(pair, noise[0])
        high = self._choice(torch.maximum(pair, k), noise[1])
        near = [((item * low).sum(1), (item * high).sum(1)) for item in (i, j, k)]
        hinges = [near[0][0] - near[0][1], near[1][0] - near[1][1], near[2][1] - near[2][0]]
        loss = torch.stack([(hinge + self.margin).clamp(min=0) for hinge in hinges]).sum(0)
        return (loss * (low.argmax(1) != high.argmax(1))).sum()

    def _choice(self, largest: Any, noise: Any) -> Any:
        """One proxy for each row, as ones and zeros, with the gradient of the softmax that it is drawn from."""
        soft = torch.softmax(-largest / self.temperature + noise, 1)
        hard = torch.zeros_like(soft).scatter_(1, soft.argmax(1, keepdim=True), 1.0)
        return hard + soft - soft.detach()
