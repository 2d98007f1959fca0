"""Sums of functions of smooth ranks, with their gradients in closed form.

The loss of a query i is 1 − Σ_k w_ik f(a_ik, r_ik) over items k: r is the smooth rank of k, and a what is rightly above
it. Autograd would store tensors [Q, K, N] for it. Here the gradient by the scores is computed beside the value:

- on the CPU by akin's kernel, from sorted scores, in O(Q · N log N): `rank_losses`;
- on other devices in plain operations, for one block of queries after the other: memory is O(Q · N), and time
  O(Q · K · N) for K items with a weight: `weighted_values`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from .. import _akin
from ._loss import closed_form

#: Whether the CPU has its own kernel. The tests compare both ways.
FUSED = True

#: The elements of the largest tensor, [block, K, N].
ELEMENTS = 1 << 22


class Block(NamedTuple):
    """A range of queries, with K items k for each, [Q, K]."""

    queries: slice
    items: Any

    def along_j(self, matrix: Any) -> Any:
        """The rows of a matrix [Q, N], as [Q, 1, N]."""
        return matrix[self.queries][:, None, :]

    def along_k(self, matrix: Any) -> Any:
        """The same at the items k, [Q, K, 1]."""
        return matrix[self.queries].gather(1, self.items)[:, :, None]


class Counts(NamedTuple):
    """a_k and r_k, [Q, K, 1], and their slopes by s_j − s_k, [Q, K, N]. Without `above_slope`, a is a constant."""

    above: Any
    above_slope: Any | None
    rank: Any
    rank_slope: Any


class Values(NamedTuple):
    """f(a_k, r_k) and its slopes by both, [Q, K, 1]."""

    value: Any
    above_slope: Any
    rank_slope: Any


def quotient(above: Any, rank: Any, _: Block) -> Values:
    """a / r, the term of AP and H-AP."""
    value = above / rank
    return Values(value, 1 / rank, -value / rank)


def weighted_values(
    scores: Any,
    weights: Any,
    count: Callable[[Any, Block], Counts],
    value: Callable[[Any, Any, Block], Values] = quotient,
) -> Any:
    """Σ_k w_ik f(a_ik, r_ik) of each query, [Q], for scores and weights [Q, N]. `count` makes the counts of a block from s_j − s_k."""

    def compute(scores: Any) -> tuple[Any, Any]:
        chosen = max(1, int((weights != 0).sum(1).max()))
        items = (weights != 0).byte().argsort(dim=1, descending=True, stable=True)[:, :chosen]
        rows = max(1, ELEMENTS // (chosen * scores.shape[1]))
        sums, gradient = scores.new_zeros(len(scores)), torch.zeros_like(scores)
        for start in range(0, len(scores), rows):
            queries = slice(start, start + rows)
            block = Block(queries, items[queries])
            counts = count(block.along_j(scores) - block.along_k(scores), block)
            values = value(counts.above, counts.rank, block)
            weight = block.along_k(weights)
            sums[queries] = (values.value * weight).sum((1, 2))
            slope = counts.rank_slope * (values.rank_slope * weight)
            if counts.above_slope is not None:
                slope = slope + counts.above_slope * (values.above_slope * weight)
            gradient[queries] = slope.sum(1).scatter_add(1, block.items, -slope.sum(2))
        return sums, gradient

    return closed_form(scores, compute)


@torch.library.custom_op(
    "akin::rank_losses", mutates_args=(), schema="(Tensor s, Tensor p, Tensor r, str t) -> (Tensor, Tensor, Tensor)"
)
def _rank_losses(scores: Any, places: Any, relevances: Any, settings: str) -> Any:
    s, p, r = (tensor.contiguous().numpy() for tensor in (scores, places, relevances))
    losses, gradient, counts = (torch.from_numpy(found) for found in _akin.rank_losses(s, p, r, settings))
    return losses, gradient, counts


@_rank_losses.register_fake
def _(scores: Any, places: Any, relevances: Any, settings: str) -> Any:
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    return scores.new_empty(len(scores)), gradient, scores.new_empty(len(scores))


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(output[1])


def _backward(ctx: Any, slope: Any, _: Any, __: Any) -> Any:
    (gradient,) = ctx.saved_tensors
    return slope[:, None] * gradient, None, None, None


_rank_losses.register_autograd(_backward, setup_context=_keep)


def rank_losses(scores: Any, places: Any, relevances: Any, settings: str) -> tuple[Any, Any]:
    """1 − the value of the ranking of each query, and how often it counts, both [Q], for scores and places [Q, N] and the
    relevance of each place, [Q, P]. A query without a relevant item counts 0 times, the others once."""
    losses, _, counts = _rank_losses(scores, places, relevances.double(), settings)
    return losses, counts.detach()
