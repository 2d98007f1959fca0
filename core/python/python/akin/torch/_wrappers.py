"""Losses of losses: on every level, against earlier batches, and over several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from .._errors import ConfigError
from ._steps import check


class Levels(torch.nn.Module):
    """Σ_l w_l · L_l(labels of level l): a loss for each level, such as those of pytorch-metric-learning.

    The Σ baselines of HAPPIER's tables. Each loss is called with the labels of its level alone, [B].

    Parameters
    ----------
    losses : sequence of torch.nn.Module
        One for each level, coarse to fine. Losses with proxies have a class count of their own.
    weights : sequence of float, optional
        By default 1 each.
    """

    def __init__(self, losses: Sequence[Any], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        weights = [1.0] * len(losses) if weights is None else list(weights)
        if not losses or len(weights) != len(losses):
            raise ConfigError(
                f"there are {len(losses)} losses and {len(weights)} weights", "give one of each per level"
            )
        for weight in weights:
            check("a weight of a level", weight)
        self.losses = torch.nn.ModuleList(losses)
        self.weights = weights

    def forward(self, embeddings: Any, labels: Any, *args: Any, ref_labels: Any = None, **options: Any) -> Any:
        """The loss of embeddings [B, d] with labels [B, L]. The rest is given to each loss."""
        if labels.ndim != 2 or labels.shape[1] != len(self.losses):
            raise ConfigError(
                f"labels have the shape {list(labels.shape)}, but there are losses for {len(self.losses)} levels",
                "give labels [B, L], coarse to fine",
            )
        total = 0.0
        for level, (loss, weight) in enumerate(zip(self.losses, self.weights, strict=True)):
            if ref_labels is not None:
                options["ref_labels"] = ref_labels[:, level]
            total = total + weight * loss(embeddings, labels[:, level], *args, **options)
        return total


class CrossBatchMemory(torch.nn.Module):
    """XBM: compares a batch with itself and with the embeddings of earlier batches (Wang et al., CVPR 2020, algorithm 1).

    L(batch against batch and memory) + w · L(batch against itself). Neither the memory nor the copy of the batch beside
    it has a gradient. The memory is saved in the state of the module.

    Parameters
    ----------
    loss : torch.nn.Module
        A loss of pairs or rankings, which takes `ref_emb` and `ref_labels`.
    size : int
        The number of embeddings in the memory.
    start : int
        How many batches are only remembered, because embeddings still change fast.
    batch_weight : float
        w, the weight of the batch against itself.
    """

    memory: Any
    memory_labels: Any
    seen: Any

    def __init__(self, loss: Any, *, size: int = 8192, start: int = 2000, batch_weight: float = 1.0) -> None:
        super().__init__()
        check("the size of the memory", size, least=1)
        check("the start of the memory", start)
        check("the weight of the batch", batch_weight)
        self.loss, self.size, self.start, self.batch_weight = loss, size, start, batch_weight
        self.register_buffer("memory", torch.empty(0, 0))
        self.register_buffer("memory_labels", torch.empty(0, 0, dtype=torch.long))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, embeddings: Any, labels: Any) -> Any:
        """The loss of embeddings [B, d] with labels [B, L] or [B]."""
        rows, own = embeddings.detach(), labels.reshape(len(labels), -1)
        if self.memory.numel() == 0:
            self.memory = rows.new_empty(0, rows.shape[1])
            self.memory_labels = own.new_empty(0, own.shape[1])
        if int(self.seen) < self.start:
            loss = self.loss(embeddings, labels)
        else:
            items = torch.cat([rows, self.memory])
            item_labels = torch.cat([own, self.memory_labels]).reshape(-1, *labels.shape[1:])
            loss = self.loss(embeddings, labels, ref_emb=items, ref_labels=item_labels)
            if self.batch_weight > 0:
                loss = loss + self.batch_weight * self.loss(embeddings, labels)
        self.memory = torch.cat([rows, self.memory])[: self.size]
        self.memory_labels = torch.cat([own, self.memory_labels])[: self.size]
        self.seen += 1
        return loss

    def _load_from_state_dict(self, state: Any, prefix: str, *args: Any) -> None:
        # The memory of a state may have another size than this one.
        for name in ("memory", "memory_labels"):
            if prefix + name in state:
                setattr(self, name, torch.empty_like(state[prefix + name]))
        super()._load_from_state_dict(state, prefix, *args)


class Gathered(torch.nn.Module):
    """A loss over the batches of all processes, with the gradient of one process that has them all.

    Each process computes the loss of all embeddings. `torch.nn.parallel.DistributedDataParallel` takes the mean of the
    gradients of the processes, and the gradient that a process gets here is that of the sum over them. Parameters of the
    loss, such as proxies, have the same gradient in every process and need no more.

    Parameters
    ----------
    loss : torch.nn.Module
        A loss without a reference set.
    """

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, embeddings: Any, labels: Any) -> Any:
        """The loss of all embeddings, of which this process has [B, d] with labels [B, L] or [B]; B is the same in all."""
        if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
            return self.loss(embeddings, labels)
        gathered = [torch.empty_like(labels) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(gathered, labels.contiguous())
        return self.loss(_Gather.apply(embeddings.contiguous()), torch.cat(gathered))


class _Gather(torch.autograd.Function):
    """The rows of all processes. The gradient of the own rows is the sum over the losses of all processes."""

    @staticmethod
    def forward(ctx: Any, rows: Any) -> Any:
        ctx.first = torch.distributed.get_rank() * len(rows)
        gathered = [torch.empty_like(rows) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(gathered, rows)
        ctx.count = len(rows)
        return torch.cat(gathered)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Any) -> Any:
        gradient = gradient.clone()
        torch.distributed.all_reduce(gradient)
        return gradient[ctx.first : ctx.first + ctx.count]
