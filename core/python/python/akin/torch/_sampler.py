"""Batches of a few classes with several items each, which losses of pairs and rankings need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .._errors import ConfigError, EmbeddingsError


class ClassesSampler(torch.utils.data.Sampler):
    """Batches of P classes with K items each: the `batch_sampler` of a `DataLoader`.

    An epoch goes through the classes in rounds. A round shuffles all classes and cuts them into batches, so that no class is
    twice in a batch, and all are drawn equally often, whatever their size. The items of a class are drawn without repetition
    if it has K. An epoch has about as many items as there are. This is the sampler `classes` of `akin train`.

    Parameters
    ----------
    labels : array of int, [N, L] or [N]
        The label path of each item. The last column is the class.
    classes_per_batch : int
        P. If there are fewer classes, all are drawn.
    items_per_class : int
        K.
    seed : int
        Each epoch has its own draws from it.
    rank, processes : int
        With several processes, each gets its own share of the classes of a batch: P is divided by `processes`.
    """

    def __init__(
        self,
        labels: Any,
        classes_per_batch: int = 16,
        items_per_class: int = 4,
        *,
        seed: int = 0,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        labels = torch.as_tensor(labels)
        if labels.ndim not in (1, 2) or len(labels) == 0 or labels.is_floating_point():
            raise EmbeddingsError(
                f"labels have the shape {list(labels.shape)} and the type {labels.dtype}",
                "give whole numbers [N, L] or [N]",
            )
        fine = labels.reshape(len(labels), -1)[:, -1]
        order = fine.argsort(stable=True)
        self.members = order.split(fine.unique(return_counts=True)[1].tolist())
        self.classes = min(classes_per_batch, len(self.members))
        if self.classes < 1 or items_per_class < 1:
            raise ConfigError(
                f"a batch has {classes_per_batch} classes with {items_per_class} items", "give at least one of each"
            )
        if not 0 <= rank < processes or self.classes % processes:
            raise ConfigError(
                f"process {rank} of {processes} gets no equal share of {self.classes} classes",
                "give a number of classes that the processes can share equally",
            )
        self.items_per_class, self.seed, self.epoch = items_per_class, seed, 0
        self.rank, self.processes, self.count = rank, processes, len(labels)

    def __len__(self) -> int:
        return max(1, self.count // (self.classes * self.items_per_class))

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        round_: list[int] = []
        for _ in range(len(self)):
            if len(round_) < self.classes:
                round_ = torch.randperm(len(self.members), generator=generator).tolist()
            drawn, round_ = round_[: self.classes], round_[self.classes :]
            # Every process draws the whole batch, so that all draw the same.
            batch = [self._items(fine, generator) for fine in drawn]
            yield [item for items in batch[self.rank :: self.processes] for item in items]

    def _items(self, fine: int, generator: Any) -> list[int]:
        members = self.members[fine]
        repeats = -(-self.items_per_class // len(members))
        order = torch.cat([torch.randperm(len(members), generator=generator) for _ in range(repeats)])
        items: list[int] = members[order[: self.items_per_class]].tolist()
        return items
