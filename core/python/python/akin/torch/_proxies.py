"""Losses with a learned proxy for each fine class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._errors import ConfigError, TaxonomyError
from ._loss import Loss, scores
from ._ranking import HapSurrogate
from ._steps import check, check_share


def _uniform(classes: int, dimension: int) -> Any:
    """Proxies [C, d] from U(−1/√d, 1/√d)."""
    if classes < 1 or dimension < 1:
        raise ConfigError(f"there are {classes} classes and {dimension} dimensions", "give at least one of each")
    return torch.nn.Parameter(torch.empty(classes, dimension).uniform_(-(dimension**-0.5), dimension**-0.5))


class NormSoftmax(Loss):
    """Cross-entropy over the cosines to one proxy per fine class (Zhai & Wu, BMVC 2019, eq. 3; HAPPIER, eq. 6).

    Parameters
    ----------
    num_classes : int
        C. The last column of the labels has numbers from 0 to C − 1.
    embedding_size : int
        d.
    temperature : float
        T > 0.
    normalise : bool
        Whether to scale embeddings to unit length first. Proxies always are.

    Attributes
    ----------
    proxies : torch.nn.Parameter
        [C, d]. The optimiser has to train it, too: `loss.parameters()`.
    """

    def __init__(
        self, num_classes: int, embedding_size: int, *, temperature: float = 0.05, normalise: bool = True
    ) -> None:
        super().__init__(normalise=normalise)
        check("the temperature of NormSoftmax", temperature, above=True)
        self.proxies = _uniform(num_classes, embedding_size)
        self.temperature = temperature

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> Any:
        proxies = torch.nn.functional.normalize(self.proxies, dim=1).to(queries.dtype)
        logits = scores(queries, proxies) / self.temperature
        return torch.nn.functional.cross_entropy(logits, labels[:, -1].long())


class Happier(Loss):
    """HAPPIER: (1 − λ) · HapSurrogate + λ · NormSoftmax (Ramzi et al., ECCV 2022).

    Parameters
    ----------
    num_classes : int
        The number of fine classes. The last column of the labels has numbers from 0 to `num_classes` − 1.
    embedding_size : int
        d.
    clustering_weight : float
        λ, from 0 to 1.
    surrogate : HapSurrogate
        The surrogate of H-AP.
    temperature : float
        That of `NormSoftmax`.
    normalise : bool
        Whether to scale embeddings to unit length first.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        *,
        clustering_weight: float = 0.1,
        surrogate: HapSurrogate | None = None,
        temperature: float = 0.05,
        normalise: bool = True,
    ) -> None:
        super().__init__(normalise=normalise)
        check_share("the weight of the clustering", clustering_weight)
        self.clustering_weight = clustering_weight
        self.surrogate = surrogate or HapSurrogate()
        self.clustering = NormSoftmax(num_classes, embedding_size, temperature=temperature)

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> Any:
        surrogate = self.surrogate.compare(queries, labels, items, item_labels, itself=itself)
        clustering = self.clustering.compare(queries, labels, items, item_labels, itself=itself)
        return (1 - self.clustering_weight) * surrogate + self.clustering_weight * clustering


class CSL(Loss):
    """Closer to the proxy of the item's fine class than to all outside its class, with a margin per level (Sun et al.,
    CVPR 2021, in the form of HAPPIER's code).

    Parameters
    ----------
    class_labels : array of int, [C, L]
        The label path of each fine class, coarse to fine; the last column is 0 … C − 1.
    embedding_size : int
        d.
    scale : float
        s > 0, the scale of the cosines.
    margins : sequence of float, optional
        One for each level, coarse to fine. By default evenly from 0.45 down to 0.25 for two or three levels, from 0.75
        down to 0.15 for more, and 0.25 for one.
    average_levels : bool
        Whether to take the mean over levels instead of the sum.
    normalise : bool
        Whether to scale embeddings to unit length first. Proxies always are.
    """

    classes: Any

    def __init__(
        self,
        class_labels: Any,
        embedding_size: int,
        *,
        scale: float = 32.0,
        margins: Sequence[float] | None = None,
        average_levels: bool = False,
        normalise: bool = True,
    ) -> None:
        super().__init__(normalise=normalise)
        check("the scale of CSL", scale, above=True)
        classes = torch.as_tensor(class_labels)
        if classes.ndim != 2 or not torch.equal(classes[:, -1].long(), torch.arange(len(classes))):
            raise TaxonomyError(
                f"the class labels have the shape {list(classes.shape)} or another last column than 0, 1, …",
                "give one row for each fine class, coarse to fine, in the order of the fine classes",
            )
        levels = classes.shape[1]
        if margins is None:
            coarsest, finest = (0.75, 0.15) if levels > 3 else (0.45, 0.25)
            margins = [finest + (coarsest - finest) / max(levels - 1, 1) * above for above in reversed(range(levels))]
        if len(margins) != levels:
            raise ConfigError(f"there are {len(margins)} margins for {levels} levels", "give one for each, coarse to fine")
        for margin in margins:
            check("a margin of CSL", margin)
        self.proxies = _uniform(len(classes), embedding_size)
        self.register_buffer("classes", classes.long())
        self.scale, self.margins, self.average_levels = scale, tuple(margins), average_levels

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> Any:
        found = scores(queries, torch.nn.functional.normalize(self.proxies, dim=1).to(queries.dtype))
        lead = found - found.gather(1, labels[:, -1:].long())
        losses = []
        for level, margin in enumerate(self.margins):
            outside = labels[:, level, None] != self.classes[None, :, level]
            terms = torch.where(outside, self.scale * (lead + margin), -torch.inf)
            # log(1 + Σ e^t), with the 1 as a term of its own.
            losses.append(torch.cat([terms, torch.zeros_like(terms[:, :1])], 1).logsumexp(1).mean())
        total = torch.stack(losses).sum()
        return total / len(losses) if self.average_levels else total
