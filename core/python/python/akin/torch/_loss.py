"""What all losses share: how they are called, and the checks of what they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .._errors import ConfigError, EmbeddingsError


try:
    from pytorch_metric_learning.losses import BaseMetricLossFunction as _Base
except ImportError:
    _Base = torch.nn.Module


class Loss(_Base):
    """A loss of a batch, by itself or against a reference set.

    It is a `BaseMetricLossFunction` where pytorch-metric-learning is installed, so that its wrappers take it.

    Parameters
    ----------
    normalise : bool
        Whether to scale embeddings to unit length first.
    """

    #: Whether a miner can choose the pairs.
    takes_indices = False

    def __init__(self, *, normalise: bool = True) -> None:
        super().__init__()
        self.normalise = normalise

    def forward(
        self,
        embeddings: Any,
        labels: Any,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> Any:
        """The loss of embeddings [B, d] with labels [B, L], coarse to fine, or [B].

        With a reference set, the batch is compared with it and not with itself. An `indices_tuple` is the choice of a
        miner. It must be None for losses that are not of pairs or triplets.
        """
        mined = {} if indices_tuple is None else {"indices_tuple": indices_tuple}
        if mined and not self.takes_indices:
            raise ConfigError(
                f"{type(self).__name__} is no loss of pairs or triplets, and takes no `indices_tuple`",
                "call it without a miner",
            )
        if (ref_emb is None) != (ref_labels is None):
            raise ConfigError(
                "a reference set has embeddings and labels", "give `ref_emb` and `ref_labels`, or neither"
            )
        labels = self._labels(embeddings, labels)
        queries = self._rows(embeddings)
        if ref_emb is None:
            return self.compare(queries, labels, queries, labels, itself=True, **mined)
        ref_labels = self._labels(ref_emb, ref_labels).to(labels.device)
        if ref_labels.shape[1] != labels.shape[1] or ref_emb.shape[1] != embeddings.shape[1]:
            raise EmbeddingsError(
                "the reference set has another number of levels or another dimension than the batch",
                "give both the same columns of labels, and embeddings of one network",
            )
        items = self._rows(ref_emb).to(queries.dtype)
        return self.compare(queries, labels, items, ref_labels, itself=False, **mined)

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> Any:
        """The loss of queries [Q, d] that rank items [N, d], with labels [Q, L] and [N, L]. If `itself`, both are the batch."""
        raise NotImplementedError

    def _rows(self, embeddings: Any) -> Any:
        # Half precision has too few digits for differences of scores.
        rows = embeddings if embeddings.dtype == torch.float64 else embeddings.float()
        return torch.nn.functional.normalize(rows, dim=1) if self.normalise else rows

    def _labels(self, embeddings: Any, labels: Any) -> Any:
        if embeddings.ndim != 2 or not embeddings.is_floating_point():
            raise EmbeddingsError(
                f"embeddings have the shape {list(embeddings.shape)} and the type {embeddings.dtype}",
                "give floating-point numbers [B, d]",
            )
        labels = torch.as_tensor(labels, device=embeddings.device)
        labels = labels[:, None] if labels.ndim == 1 else labels
        if labels.ndim != 2 or len(labels) != len(embeddings) or labels.is_floating_point() or labels.shape[1] == 0:
            raise EmbeddingsError(
                f"labels have the shape {list(labels.shape)} and the type {labels.dtype} for {len(embeddings)} embeddings",
                "give whole numbers [B, L], coarse to fine, or [B]",
            )
        return labels


def scores(queries: Any, items: Any) -> Any:
    """The scores of unit rows, [Q, N], in the precision of the rows."""
    with torch.autocast(queries.device.type, enabled=False):
        return queries @ items.T


def distances(queries: Any, items: Any) -> Any:
    """The Euclidean distances of rows, [Q, N]. Rows that are equal up to rounding have distance 0 with gradient 0."""
    with torch.autocast(queries.device.type, enabled=False):
        squares = queries.square().sum(1)[:, None] + items.square().sum(1)
        squared = squares - 2 * queries @ items.T
    zero = squared <= 4 * torch.finfo(squared.dtype).eps * squares
    return squared.masked_fill(zero, 1.0).sqrt().masked_fill(zero, 0.0)


def group_sums(rows: Any, groups: Any, count: int) -> tuple[Any, Any]:
    """The sum of the rows of each group, [K, d], and their number, [K, 1], from rows [N, d] and groups [N]."""
    sums = rows.new_zeros(count, rows.shape[1]).index_add_(0, groups, rows)
    return sums, torch.bincount(groups, minlength=count).to(rows.dtype)[:, None]


@torch.compiler.disable
def closed_form(inputs: Any, compute: Callable[[Any], tuple[Any, Any]]) -> Any:
    """The value that `compute` makes of the inputs, with the gradient that it makes beside it."""
    return _ClosedForm.apply(inputs, compute)


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Any, compute: Callable[[Any], tuple[Any, Any]]) -> Any:
        value, gradient = compute(inputs)
        ctx.save_for_backward(gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Any) -> tuple[Any, None]:
        (gradient,) = ctx.saved_tensors
        return slope * gradient, None
