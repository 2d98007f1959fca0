"""Losses with learned proxies of classes.

Labels [B, L] have in their last column the fine class, from 0 to C − 1. A loss has to be given to the optimiser, too:
`loss.parameters()`. Proxies are used by their direction alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Unpack

import torch

from .._errors import ConfigError
from ._loss import Additions, Loss, Options, Terms, fixed, group_sums, part_of, scores, weighted
from ._pairs import log_one_plus_sum_exp
from ._ranking import HapSurrogate
from ._relevance import class_paths
from ._steps import check, check_choice, check_share


def _uniform(classes: int, dimension: int) -> Any:
    """Proxies [C, d] from U(−1/√d, 1/√d)."""
    if classes < 1 or dimension < 1:
        raise ConfigError(f"there are {classes} classes and {dimension} dimensions", "give at least one of each")
    return torch.nn.Parameter(torch.empty(classes, dimension).uniform_(-(dimension**-0.5), dimension**-0.5))


def _normal(classes: int, dimension: int) -> Any:
    """Proxies [C, d] from N(0, 2/C)."""
    proxies = _uniform(classes, dimension)
    torch.nn.init.normal_(proxies, std=(2 / classes) ** 0.5)
    return proxies


def _cosines(rows: Any, proxies: Any) -> Any:
    """The cosines of unit rows to proxies of any length, [B, C]."""
    return scores(rows, torch.nn.functional.normalize(proxies, dim=1).to(rows.dtype))


def _own(labels: Any, classes: int) -> Any:
    """1 at the fine class of each item, [B, C]."""
    return torch.nn.functional.one_hot(labels[:, -1].long(), classes)


def _cross_entropy(logits: Any, labels: Any) -> Terms:
    """The loss of each item, for the logits of the fine classes, [B, C]."""
    return Terms(torch.nn.functional.cross_entropy(logits, labels[:, -1].long(), reduction="none"))


class NormalizedSoftmaxLoss(Loss):
    """Cross-entropy over the cosines to one proxy per fine class (Zhai & Wu, BMVC 2019, eq. 3; HAPPIER, eq. 6).

    Parameters
    ----------
    num_classes : int
        C. The last column of the labels has numbers from 0 to C − 1.
    embedding_size : int
        d.
    temperature : float
        T > 0.
    **options
        As in `Loss`. Proxies always are.

    Attributes
    ----------
    proxies : torch.nn.Parameter
        [C, d]. The optimiser has to train it, too: `loss.parameters()`.
    """

    def __init__(
        self, num_classes: int, embedding_size: int, *, temperature: float = 0.05, **options: Unpack[Options]
    ) -> None:
        super().__init__(**options)
        check("the temperature of NormalizedSoftmaxLoss", temperature, above=True)
        self.proxies = _uniform(num_classes, embedding_size)
        self.temperature = temperature

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        logits = _cosines(queries, self.proxies) / self.temperature
        return [_cross_entropy(logits, labels)]


class Happier(Loss):
    """HAPPIER: (1 − λ) · HapSurrogate + λ · NormalizedSoftmaxLoss (Ramzi et al., ECCV 2022).

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
        That of `NormalizedSoftmaxLoss`.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        *,
        clustering_weight: float = 0.1,
        surrogate: HapSurrogate | None = None,
        temperature: float = 0.05,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check_share("the weight of the clustering", clustering_weight)
        self.clustering_weight = clustering_weight
        self.surrogate = part_of("Happier", surrogate or HapSurrogate())
        self.clustering = NormalizedSoftmaxLoss(num_classes, embedding_size, temperature=temperature)

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        surrogate = self.surrogate.compare(queries, labels, items, item_labels, itself=itself)
        clustering = self.clustering.compare(queries, labels, items, item_labels, itself=itself)
        return weighted(1 - self.clustering_weight, surrogate) + weighted(self.clustering_weight, clustering)


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
    **options
        As in `Loss`. Proxies always are.
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
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the scale of CSL", scale, above=True)
        classes = class_paths(class_labels)
        levels = classes.shape[1]
        if margins is None:
            coarsest, finest = (0.75, 0.15) if levels > 3 else (0.45, 0.25)
            margins = [finest + (coarsest - finest) / max(levels - 1, 1) * above for above in reversed(range(levels))]
        if len(margins) != levels:
            raise ConfigError(
                f"there are {len(margins)} margins for {levels} levels", "give one for each, coarse to fine"
            )
        for margin in margins:
            check("a margin of CSL", margin)
        self.proxies = _uniform(len(classes), embedding_size)
        self.register_buffer("classes", classes)
        self.scale, self.margins, self.average_levels = scale, tuple(margins), average_levels

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        found = _cosines(queries, self.proxies)
        lead = found - found.gather(1, labels[:, -1:].long())
        losses = []
        for level, margin in enumerate(self.margins):
            outside = labels[:, level, None] != self.classes[None, :, level]
            losses.append(log_one_plus_sum_exp(self.scale * (lead + margin), outside))
        total = torch.stack(losses).sum(0)
        return [Terms(total / len(losses) if self.average_levels else total)]


class ArcFaceLoss(Loss):
    """Cross-entropy over the cosines to one proxy per class, with a margin on the own angle (Deng et al., CVPR 2019).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    margin : float
        In degrees, from 0 to 90.
    scale : float
        s > 0.
    easy_margin : bool
        Whether the margin acts only within a right angle of the proxy.
    label_smoothing : float
        The share of the target that is spread over all classes, from 0 to 1.
    smoothing : {"targets", "logits"}
        What the smoothing mixes; the code of SupRank mixes logits.
    sub_centers : int
        K, the number of proxies of each class, of which the nearest counts.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 28.6,
        scale: float = 64.0,
        *,
        sub_centers: int = 1,
        easy_margin: bool = False,
        label_smoothing: float = 0.0,
        smoothing: Literal["targets", "logits"] = "targets",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        if not 0 <= margin <= 90:
            raise ConfigError(f"the margin of ArcFace is {margin}", "give an angle from 0 to 90 degrees")
        check("the scale of ArcFace", scale, above=True)
        check_share("the label smoothing of ArcFace", label_smoothing)
        check_choice("the smoothing of ArcFace", smoothing, "targets", "logits")
        check("the number of sub-centres", sub_centers, least=1)
        #: [C · K, d], class by class.
        self.proxies = _uniform(num_classes * sub_centers, embedding_size)
        self.margin, self.scale, self.easy_margin = margin, scale, easy_margin
        self.label_smoothing, self.smoothing, self.sub_centers = label_smoothing, smoothing, sub_centers

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        cosines = _cosines(queries, self.proxies).unflatten(1, (-1, self.sub_centers)).amax(2)
        classes = cosines.shape[1]
        own = _own(labels, classes).to(cosines.dtype)
        smooth = own * (1 - self.label_smoothing) + self.label_smoothing / classes
        margins, targets = (own, smooth) if self.smoothing == "targets" else (smooth, own)
        logits = self.scale * (cosines + margins * (self._with_margin(cosines) - cosines))
        return [Terms(-(logits.log_softmax(1) * targets).sum(1))]

    def _with_margin(self, cosines: Any) -> Any:
        """cos(θ + m), or what stands for it where the margin does not act."""
        margin = math.radians(self.margin)
        square = 1 - cosines.square()
        straight = square <= 0
        sine = square.masked_fill(straight, 1.0).sqrt().masked_fill(straight, 0.0)
        turned = cosines * math.cos(margin) - sine * math.sin(margin)
        if self.easy_margin:
            return torch.where(cosines > 0, turned, cosines)
        return torch.where(cosines > -math.cos(margin), turned, cosines - margin * math.sin(margin))


class SubCenterArcFaceLoss(ArcFaceLoss):
    """ArcFace with several proxies for each class, of which the nearest counts (Deng et al., ECCV 2020).

    Parameters
    ----------
    num_classes, embedding_size, margin, scale, sub_centers
        As in `ArcFaceLoss`, whose other settings it takes, too.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 28.6,
        scale: float = 64.0,
        sub_centers: int = 3,
        **options: Any,
    ) -> None:
        super().__init__(num_classes, embedding_size, margin, scale, sub_centers=sub_centers, **options)


class CosFaceLoss(Loss):
    """Cross-entropy over the cosines to one proxy per class, with a margin on the own cosine (Wang et al., CVPR 2018).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    margin : float
        At least 0.
    scale : float
        s > 0.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 0.35,
        scale: float = 64.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the margin of CosFace", margin)
        check("the scale of CosFace", scale, above=True)
        self.proxies = _uniform(num_classes, embedding_size)
        self.margin, self.scale = margin, scale

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        cosines = _cosines(queries, self.proxies)
        own = _own(labels, len(self.proxies))
        return [_cross_entropy(self.scale * (cosines - self.margin * own), labels)]


class SphereFaceLoss(Loss):
    """Cross-entropy over the cosines to one proxy per class, with a multiple of the own angle (Liu et al., CVPR 2017, eq. 7).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    margin : int
        m, how often the own angle counts, from 1 to 8.
    scale : float
        s > 0. A logit is s times the length of the embedding times its cosine: with `normalise`, 30 is usual.
    **options
        As in `Loss`. By default embeddings keep their lengths, as in the paper.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: int = 4,
        scale: float = 1.0,
        **options: Unpack[Options],
    ) -> None:
        options.setdefault("normalise", False)
        super().__init__(**options)
        if margin not in range(1, 9):
            raise ConfigError(f"the margin of SphereFace is {margin}", "give a whole number from 1 to 8")
        check("the scale of SphereFace", scale, above=True)
        self.proxies = _uniform(num_classes, embedding_size)
        self.margin, self.scale = margin, scale

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        cosines = _cosines(torch.nn.functional.normalize(queries, dim=1), self.proxies)
        own = _own(labels, len(self.proxies))
        found = (cosines * own).sum(1, keepdim=True)
        # cos(mθ) is the Chebyshev polynomial T_m of cos θ; ψ(θ) continues it downwards.
        before, multiple = torch.ones_like(found), found
        for _ in range(1, self.margin):
            before, multiple = multiple, 2 * found * multiple - before
        past = torch.zeros_like(found)
        for boundary in range(1, self.margin):
            past = past + (found < math.cos(boundary * math.pi / self.margin))
        beyond = (1 - 2 * (past % 2)) * multiple - 2 * past - found
        logits = self.scale * queries.norm(dim=1, keepdim=True) * (cosines + own * beyond)
        return [_cross_entropy(logits, labels)]


class ProxyAnchorLoss(Loss):
    """Proxies that pull the hard items of their class and push away those of the others (Kim et al., CVPR 2020, eq. 4).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    margin : float
        δ, at least 0.
    alpha : float
        α > 0, the scale of the cosines.
    anchors : {"proxies", "items"}
        Whether each proxy sums over the items, or each item over the proxies, as in the code of HIER.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        margin: float = 0.1,
        alpha: float = 32.0,
        *,
        anchors: Literal["proxies", "items"] = "proxies",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the margin of Proxy-Anchor", margin)
        check("the alpha of Proxy-Anchor", alpha, above=True)
        check_choice("the side of the anchors of Proxy-Anchor", anchors, "proxies", "items")
        self.proxies = _normal(num_classes, embedding_size)
        self.margin, self.alpha, self.anchors = margin, alpha, anchors

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        own = _own(labels, len(self.proxies))
        return self.against(queries, self.proxies, own)

    def against(self, queries: Any, proxies: Any, own: Any) -> list[Terms]:
        """The parts of the loss against proxies [C, d]; `own` is 1 at the proxy of each item, [B, C]."""
        found = _cosines(queries, proxies)
        if self.anchors == "proxies":
            found, own = found.T, own.T
        pull = log_one_plus_sum_exp(-self.alpha * (found - self.margin), own)
        push = log_one_plus_sum_exp(self.alpha * (found + self.margin), 1 - own)
        return [Terms(pull, divisor=(own.sum(1) > 0).sum()), Terms(push)]


class ProxyNCALoss(Loss):
    """An item is pulled to the proxy of its class and pushed away from the others (Movshovitz-Attias et al., ICCV 2017).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    softmax_scale : float
        s > 0, the factor of the squared distance: 9 in ProxyNCA++.
    denominator : {"all", "others"}
        Whether an item's own proxy is among those that it competes with, as in ProxyNCA++ and not in the first paper.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        softmax_scale: float = 1.0,
        *,
        denominator: Literal["all", "others"] = "all",
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the scale of Proxy-NCA", softmax_scale, above=True)
        check_choice("the denominator of Proxy-NCA", denominator, "all", "others")
        self.proxies = _normal(num_classes, embedding_size)
        self.softmax_scale, self.denominator = softmax_scale, denominator

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        own = _own(labels, len(self.proxies))
        return self.against(queries, self.proxies, own)

    def against(self, queries: Any, proxies: Any, own: Any) -> list[Terms]:
        """As that of `ProxyAnchorLoss`."""
        found = 2 * self.softmax_scale * _cosines(queries, proxies)
        if own.shape[1] == 1:
            return [Terms(found.sum(1) * 0)]
        compared = found if self.denominator == "all" else found.masked_fill(own > 0, -torch.inf)
        return [Terms(compared.logsumexp(1) - (found * own).sum(1))]


class SoftTripleLoss(Loss):
    """Cross-entropy over classes with several centres each (Qian et al., ICCV 2019).

    Parameters
    ----------
    num_classes, embedding_size : int
        C and d.
    centers_per_class : int
        K.
    la : float
        λ > 0, the scale of the similarities.
    gamma : float
        γ > 0: how soft the choice among the centres of a class is.
    margin : float
        δ, at least 0.
    tau : float
        τ: how strongly the centres of a class are pulled together. The paper has 0.2, pytorch-metric-learning none.
    **options
        As in `Loss`.
    """

    def __init__(
        self,
        num_classes: int,
        embedding_size: int,
        centers_per_class: int = 10,
        la: float = 20.0,
        gamma: float = 0.1,
        margin: float = 0.01,
        *,
        tau: float = 0.0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(**options)
        check("the la of SoftTriple", la, above=True)
        check("the gamma of SoftTriple", gamma, above=True)
        check("the margin of SoftTriple", margin)
        check("the tau of SoftTriple", tau)
        if not 1 <= centers_per_class <= 1000:
            raise ConfigError(f"SoftTriple has {centers_per_class} centres per class", "give a number from 1 to 1000")
        #: [C · K, d], class by class.
        self.proxies = _uniform(num_classes * centers_per_class, embedding_size)
        self.centers_per_class = centers_per_class
        self.la, self.gamma, self.margin, self.tau = la, gamma, margin, tau

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        found = _cosines(queries, self.proxies).unflatten(1, (-1, self.centers_per_class))
        likeness = ((found / self.gamma).softmax(2) * found).sum(2)
        own = _own(labels, likeness.shape[1])
        terms = [_cross_entropy(self.la * (likeness - self.margin * own), labels)]
        if self.tau > 0 and self.centers_per_class > 1:
            terms.append(fixed(self._spread(), self.tau))
        return terms

    def _spread(self) -> Any:
        """Half the mean distance of two centres of one class."""
        centres = torch.nn.functional.normalize(self.proxies, dim=1).unflatten(0, (-1, self.centers_per_class))
        cosines = centres @ centres.transpose(1, 2)
        # The published code adds 1e-5, so that the gradient of merged centres is finite.
        distances = (2 + 1e-5 - 2 * cosines).sqrt().triu(1)
        return distances.sum() / (len(self.proxies) * (self.centers_per_class - 1))


class HierarchicalProxy(Loss):
    """HPL: one proxy loss on several levels, where coarse proxies are mean directions of fine ones (Yang et al., WACV 2022).

    Parameters
    ----------
    loss : ProxyAnchorLoss or ProxyNCALoss
        The loss of each level. Its proxies are the fine ones.
    class_labels : array of int, [C, L], optional
        The label path of each fine class, coarse to fine: the coarse levels are then those of the tree (HPL-GT). Without
        it there is one coarse level, of clusters of the fine proxies.
    clusters : int, optional
        How many clusters there are. By default a tenth of the classes, from 2 to 500.
    every : int
        T: coarse proxies are made again before every T-th step of the training.
    weights : sequence of float, optional
        The weight of each level, coarse to fine. By default 0.1 for coarse levels and 1 for the fine one.
    **options
        As in `Loss`. Embeddings are scaled to unit length if `loss` does so.
    """

    groups: Any
    steps: Any

    def __init__(
        self,
        loss: ProxyAnchorLoss | ProxyNCALoss,
        class_labels: Any = None,
        *,
        clusters: int | None = None,
        every: int = 50,
        weights: Sequence[float] | None = None,
        **options: Unpack[Additions],
    ) -> None:
        super().__init__(normalise=loss.normalise, **options)
        classes = len(loss.proxies)
        check("the steps between two updates of HPL", every, least=1)
        self.loss, self.every, self.clustered = loss, every, class_labels is None
        part_of("HierarchicalProxy", loss)
        if class_labels is None:
            count = min(max(classes // 10, 2), 500, classes) if clusters is None else clusters
            if not 1 <= count <= classes:
                raise ConfigError(
                    f"HPL has {count} clusters of {classes} classes", f"give a number from 1 to {classes}"
                )
            # Grown around drawn proxies by the first update.
            groups = torch.full((1, classes), -1)
            groups[0, torch.randperm(classes)[:count]] = torch.arange(count)
        else:
            paths = class_paths(class_labels, classes)
            levels = [
                torch.unique(paths[:, : level + 1], dim=0, return_inverse=True)[1]
                for level in range(paths.shape[1] - 1)
            ]
            groups = torch.stack(levels) if levels else torch.empty(0, classes, dtype=torch.long)
        self.weights = [0.1] * len(groups) + [1.0] if weights is None else list(weights)
        if len(self.weights) != len(groups) + 1:
            raise ConfigError(
                f"there are {len(self.weights)} weights for {len(groups) + 1} levels",
                "give one for each level, coarse to fine; clusters make one coarse level",
            )
        for weight in self.weights:
            check("a weight of HPL", weight)
        self.register_buffer("groups", groups)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        for level, group in enumerate(groups):
            count = int(group.max()) + 1
            self.register_buffer(f"coarse_{level}", torch.zeros(count, loss.proxies.shape[1]))
        self.update()

    @torch.no_grad()
    def update(self) -> None:
        """Makes clusters and coarse proxies again from the fine proxies."""
        directions = torch.nn.functional.normalize(self.loss.proxies, dim=1)
        for level in range(len(self.groups)):
            if self.clustered:
                self.groups[level] = _clusters(directions, self.groups[level])
            self._coarse(level).copy_(_means(directions, self.groups[level]))

    def _coarse(self, level: int) -> Any:
        return getattr(self, f"coarse_{level}")

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> list[Terms]:
        if self.training:
            if int(self.steps) % self.every == 0:
                self.update()
            self.steps += 1
        fine = labels[:, -1].long()
        fine_loss = self.loss.compare(queries, labels, items, item_labels, itself=itself)
        terms = weighted(self.weights[-1], fine_loss)
        for level, weight in enumerate(self.weights[:-1]):
            coarse = self._coarse(level)
            own = torch.nn.functional.one_hot(self.groups[level][fine], len(coarse))
            terms += weighted(weight, self.loss.against(queries, coarse, own))
        return terms


def _means(directions: Any, groups: Any) -> Any:
    """The mean direction of each group of rows, [K, d]. Rows of the group −1 are in none."""
    known = groups >= 0
    sums, _ = group_sums(directions[known], groups[known], int(groups.max()) + 1)
    return torch.nn.functional.normalize(sums, dim=1)


def _clusters(directions: Any, groups: Any, rounds: int = 10) -> Any:
    """The clusters of rows, grown from those given: each row joins the nearest mean, until nothing changes."""
    count = int(groups.max()) + 1
    for _ in range(rounds):
        cosines, nearest = (directions @ _means(directions, groups).T).max(1)
        sizes = torch.bincount(nearest, minlength=count)
        for empty in (sizes == 0).nonzero()[:, 0]:
            # An empty cluster takes the row that fits its own worst.
            worst = torch.where(sizes[nearest] > 1, cosines, torch.inf).argmin()
            sizes[nearest[worst]] -= 1
            sizes[empty] = 1
            nearest[worst] = empty
        if torch.equal(nearest, groups):
            break
        groups = nearest
    return groups
