"""What all losses share: how they are called, and the checks of what they get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

import torch
from torch.autograd.function import once_differentiable

from .._errors import ConfigError, EmbeddingsError
from ._steps import check


try:
    from pytorch_metric_learning.losses import BaseMetricLossFunction as _Base
    from pytorch_metric_learning.reducers import BaseReducer as _Reducer
    from pytorch_metric_learning.reducers import DoNothingReducer as _DoNothing
except ImportError:
    _Base, _Reducer, _DoNothing = torch.nn.Module, (), ()


class Additions(TypedDict, total=False):
    """The settings of every loss, see `Loss`."""

    reducer: Callable[..., Any] | None
    embedding_regularizer: Callable[[Any], Any] | None
    embedding_reg_weight: float


class Options(Additions, total=False):
    """The settings of every loss whose embeddings may have any length, see `Loss`."""

    normalise: bool


class Terms(NamedTuple):
    """Losses of items, pairs or triplets, whose sum, divided by `divisor`, is part of a loss."""

    #: Of any shape.
    losses: Any
    #: How often each counts, of the same shape. By default once.
    counts: Any = None
    #: By default Σ counts. Below 1 it is 1.
    divisor: Any = None
    #: What they are losses of, in the words of pytorch-metric-learning.
    kind: str = "element"
    #: The rows of the items, pairs or triplets. By default their places in `losses`.
    indices: Any = None
    weight: Any = 1.0

    def mean(self) -> Any:
        """The part of the loss."""
        if self.counts is None:
            count = max(self.losses.numel(), 1) if self.divisor is None else self.divisor
            total = self.losses.sum()
        else:
            count = self.counts.sum() if self.divisor is None else self.divisor
            total = (self.losses * self.counts).sum()
        return self.weight * total / (count.clamp(min=1) if isinstance(count, torch.Tensor) else count)

    def reduced(self, reducer: Callable[..., Any], embeddings: Any, labels: Any) -> Any:
        """What a reducer makes of the losses that count; 0 if none does."""
        if self.kind == "fixed":
            return self.mean()
        losses, indices = self.losses, self.indices
        if self.counts is not None:
            indices = counted(self.counts)
            losses = losses[indices]
        elif indices is None:
            indices = [torch.arange(len(losses), device=losses.device)]
        if len(losses) == 0:
            return self.mean()
        if not isinstance(reducer, _Reducer):
            return self.weight * reducer(losses)
        name = {"pos_pair": "pos_loss", "neg_pair": "neg_loss"}.get(self.kind, "loss")
        divisor = len(losses) if self.divisor is None else self.divisor
        part = {
            "losses": losses,
            "indices": indices[0] if self.kind == "element" else tuple(indices),
            "reduction_type": self.kind,
            "divisor": divisor,
        }
        return self.weight * reducer({name: part}, embeddings, labels)


def fixed(value: Any, weight: Any = 1.0) -> Terms:
    """A part of a loss that is no mean, such as a regulariser. No reducer changes it."""
    return Terms(value, kind="fixed", weight=weight)


def weighted(weight: Any, terms: list[Terms]) -> list[Terms]:
    """The same parts with this weight."""
    return [part._replace(weight=weight * part.weight) for part in terms]


def part_of(name: str, loss: Loss) -> Loss:
    """A loss that is part of the loss of this name, which has the reducer and the regulariser of both."""
    if loss.reducer is not None or loss.embedding_regularizer is not None:
        raise ConfigError(
            f"the {type(loss).__name__} in {name} has a reducer or a regulariser of its own", f"give them to {name}"
        )
    return loss


class Loss(_Base):
    """A loss of a batch, by itself or against a reference set.

    It is a `BaseMetricLossFunction` where pytorch-metric-learning is installed, so that its wrappers take it.

    Parameters
    ----------
    normalise : bool
        Whether to scale embeddings to unit length first.
    reducer : callable, optional
        What makes one number of the losses that the loss is a mean of: those of queries, items, pairs or triplets. It is a
        function of these numbers, [T], such as `torch.sum`, or a reducer of pytorch-metric-learning. It is called once
        for each mean; the contrastive loss, for example, has one of positive and one of negative pairs. Regularisers of
        a loss are no mean, and stay as they are.
    embedding_regularizer : callable, optional
        A function of the embeddings [B, d], before they are scaled, whose value is added to the loss:
        `LpRegularizer`, `ZeroMeanRegularizer`, one of pytorch-metric-learning, or any other.
    embedding_reg_weight : float
        The weight of that value.
    """

    #: Whether a miner can choose the pairs.
    takes_indices = False

    def __init__(
        self,
        *,
        normalise: bool = True,
        reducer: Callable[..., Any] | None = None,
        embedding_regularizer: Callable[[Any], Any] | None = None,
        embedding_reg_weight: float = 1.0,
    ) -> None:
        super().__init__()
        check("the embedding_reg_weight", embedding_reg_weight)
        for name, value in (("reducer", reducer), ("embedding_regularizer", embedding_regularizer)):
            if (value is not None and not callable(value)) or isinstance(value, _DoNothing):
                raise ConfigError(
                    f"the {name} of {type(self).__name__} is {value!r}", "give a function that makes one number"
                )
        # The base class of pytorch-metric-learning has set its own, as a module.
        self._modules.pop("reducer", None)
        self.normalise, self.reducer = normalise, reducer
        self.embedding_regularizer, self.embedding_reg_weight = embedding_regularizer, embedding_reg_weight

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
            terms = self.compare(queries, labels, queries, labels, itself=True, **mined)
            return self._total(terms, embeddings, labels)
        ref_labels = self._labels(ref_emb, ref_labels).to(labels.device)
        if ref_labels.shape[1] != labels.shape[1] or ref_emb.shape[1] != embeddings.shape[1]:
            raise EmbeddingsError(
                "the reference set has another number of levels or another dimension than the batch",
                "give both the same columns of labels, and embeddings of one network",
            )
        items = self._rows(ref_emb).to(queries.dtype)
        terms = self.compare(queries, labels, items, ref_labels, itself=False, **mined)
        return self._total(terms, embeddings, labels)

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        """The parts of the loss of queries [Q, d] that rank items [N, d], with labels [Q, L] and [N, L].

        If `itself`, both are the batch.
        """
        raise NotImplementedError

    def _total(self, terms: list[Terms], embeddings: Any, labels: Any) -> Any:
        reducer = self.reducer
        if reducer is None:
            parts = [part.mean() for part in terms]
        elif all(part.kind == "fixed" for part in terms):
            raise ConfigError(
                f"{type(self).__name__} is no mean of losses, and takes no `reducer`", "create it without one"
            )
        else:
            fine = None if labels is None else labels[:, -1]
            parts = [part.reduced(reducer, embeddings, fine) for part in terms]
        if self.embedding_regularizer is not None:
            parts.append(self.embedding_reg_weight * self.embedding_regularizer(embeddings))
        return sum(parts[1:], parts[0])

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


def counted(counts: Any) -> tuple[Any, ...]:
    """The places of numbers above 0, as in `torch.where`, each as often as its number says."""
    times = counts[counts > 0].long()
    return tuple(places.repeat_interleave(times) for places in counts.nonzero(as_tuple=True))


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
    """The value that `compute` makes of the inputs, with the gradient that it makes beside it, or one value for each row."""
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
        return slope[..., None] * gradient, None
