"""Batches of a few classes with several items each, which losses of pairs and rankings need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .._errors import ConfigError, EmbeddingsError, TaxonomyError

#: The most batches of an epoch, whose order is in memory.
_LONGEST_EPOCH = 1 << 24


class _ClassBatches(torch.utils.data.Sampler):
    """Batches of classes with K items each, of which every process gets its share."""

    def __init__(
        self, labels: Any, classes_per_batch: int, items_per_class: int, seed: int, rank: int, processes: int
    ) -> None:
        labels = torch.as_tensor(labels)
        if labels.ndim not in (1, 2) or labels.numel() == 0 or labels.is_floating_point():
            raise EmbeddingsError(
                f"labels have the shape {list(labels.shape)} and the type {labels.dtype}",
                "give whole numbers [N, L] or [N]",
            )
        self.labels = labels.reshape(len(labels), -1)
        fine = self.labels[:, -1]
        self.members = fine.argsort(stable=True).split(fine.unique(return_counts=True)[1].tolist())
        if classes_per_batch < 1 or items_per_class < 1:
            raise ConfigError(
                f"a batch has {classes_per_batch} classes with {items_per_class} items", "give at least one of each"
            )
        self.classes = min(classes_per_batch, len(self.members))
        if not 0 <= rank < processes or self.classes % processes:
            raise ConfigError(
                f"process {rank} of {processes} gets no equal share of {self.classes} classes",
                "give a number of classes that the processes can share equally",
            )
        self.items_per_class, self.seed, self.epoch = items_per_class, seed, 0
        self.rank, self.processes = rank, processes

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        self.epoch += 1
        for drawn in self._epoch(generator):
            # Every process draws the whole batch, so that all draw the same.
            batch = [self._items(fine, generator) for fine in drawn]
            yield [item for items in batch[self.rank :: self.processes] for item in items]

    def _epoch(self, generator: Any) -> Iterator[list[int]]:
        """The places in `members` of the classes of each batch."""
        raise NotImplementedError

    def _items(self, fine: int, generator: Any) -> list[int]:
        members = self.members[fine]
        repeats = -(-self.items_per_class // len(members))
        order = torch.cat([torch.randperm(len(members), generator=generator) for _ in range(repeats)])
        items: list[int] = members[order[: self.items_per_class]].tolist()
        return items


class ClassesSampler(_ClassBatches):
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
        super().__init__(labels, classes_per_batch, items_per_class, seed, rank, processes)

    def __len__(self) -> int:
        return max(1, len(self.labels) // (self.classes * self.items_per_class))

    def _epoch(self, generator: Any) -> Iterator[list[int]]:
        round_: list[int] = []
        for _ in range(len(self)):
            if len(round_) < self.classes:
                round_ = torch.randperm(len(self.members), generator=generator).tolist()
            drawn, round_ = round_[: self.classes], round_[self.classes :]
            yield drawn


class ClassPairsSampler(_ClassBatches):
    """Batches of two coarse classes, with P / 2 of the finest classes of each and K items of these.

    Half of the negatives of an item share its coarse class, so they are hard. An epoch goes through all pairs of coarse
    classes, in random order. This is the sampler `class_pairs` of `akin train`, which HAPPIER and ROADMAP use on Stanford
    Online Products. `HierarchicalSampler` of pytorch-metric-learning draws like this.

    Parameters
    ----------
    labels : array of int, [N, L]
        The label path of each item, coarse to fine.
    classes_per_batch : int
        P, an even number. A coarse class with fewer than P / 2 gives all that it has.
    items_per_class : int
        K.
    level : int
        The column whose classes are paired, before the last. By default the coarsest.
    batches_per_pair : int
        How many batches of an epoch each pair has.
    seed, rank, processes
        As in `ClassesSampler`. With several processes each coarse class needs P / 2 classes.
    """

    def __init__(
        self,
        labels: Any,
        classes_per_batch: int = 16,
        items_per_class: int = 4,
        *,
        level: int = 0,
        batches_per_pair: int = 5,
        seed: int = 0,
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        super().__init__(labels, classes_per_batch, items_per_class, seed, rank, processes)
        if not 0 <= level < self.labels.shape[1] - 1:
            raise ConfigError(
                f"the level {level} is not above the finest of {self.labels.shape[1]}",
                "give the column of a coarser level, counted from 0",
            )
        coarse = self.labels[:, level]
        if any((coarse[members] != coarse[members[0]]).any() for members in self.members):
            raise TaxonomyError(
                f"a class of the finest level is in two classes of level {level}", "give each class one label path"
            )
        parents = torch.stack([coarse[members[0]] for members in self.members])
        self.children = parents.argsort(stable=True).split(parents.unique(return_counts=True)[1].tolist())
        self.half, self.batches_per_pair = classes_per_batch // 2, batches_per_pair
        if classes_per_batch % 2 or batches_per_pair < 1:
            raise ConfigError(
                f"a pair has {batches_per_pair} batches of {classes_per_batch} classes",
                "give at least one batch, and an even number of classes, of which each of the pair gives half",
            )
        if len(self.children) < 2 or len(self) > _LONGEST_EPOCH:
            raise ConfigError(
                f"{len(self.children)} classes of level {level} make an epoch of {len(self)} batches",
                f"choose a level with at least 2 classes, whose pairs make at most {_LONGEST_EPOCH} batches",
            )
        if processes > 1 and min(map(len, self.children)) < self.half:
            raise ConfigError(
                f"a class of level {level} has fewer than {self.half} classes for {processes} processes",
                "give fewer classes per batch, so that all batches have the same size",
            )

    def __len__(self) -> int:
        return len(self.children) * (len(self.children) - 1) // 2 * self.batches_per_pair

    def _epoch(self, generator: Any) -> Iterator[list[int]]:
        pairs = torch.triu_indices(len(self.children), len(self.children), offset=1)
        for place in torch.randperm(len(self), generator=generator).tolist():
            drawn: list[int] = []
            for side in pairs[:, place // self.batches_per_pair].tolist():
                children = self.children[side]
                drawn += children[torch.randperm(len(children), generator=generator)[: self.half]].tolist()
            yield drawn
