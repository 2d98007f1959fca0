"""Metrics for torchmetrics, which has to be installed.

```python
from akin.torchmetrics import Evaluation, Retrieval

metric = Evaluation("h_ap", levels=["order", "family", "species"])
for images, labels in loader:                 # labels [B, 3]
    metric.update(model(images), labels)      # on every process
metric.compute()                              # over all items of all processes, exactly
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torchmetrics

from . import metrics as _metrics
from ._arrays import to_numpy
from ._errors import ConfigError
from ._evaluate import evaluate
from ._report import Report


class Evaluation(torchmetrics.Metric):  # type: ignore[misc, unused-ignore]
    """A metric of `akin.evaluate` over all embeddings that it is given, each of which ranks the others.

    Embeddings and labels are gathered from all processes, so that the value is that of one process. They stay on their
    device until they are evaluated on the CPU.

    Parameters
    ----------
    metric : str
        As in `akin.evaluate`.
    level : str or int, optional
        The level of a metric per level: its name, or its number from 1 on. By default the finest.
    **options
        What `akin.evaluate` takes: levels, similarity, relevance and so on.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(self, metric: str = "h_ap", *, level: str | int | None = None, **options: Any) -> None:
        names = ("dist_sync_on_step", "process_group", "dist_sync_fn", "sync_on_compute", "compute_on_cpu")
        super().__init__(**{name: options.pop(name) for name in names if name in options})
        self.metric = metric
        self.level = level
        self.options = options
        self.add_state("embeddings", default=[], dist_reduce_fx="cat")
        self.add_state("labels", default=[], dist_reduce_fx="cat")

    def update(self, embeddings: Any, labels: Any) -> None:
        """Adds embeddings [B, d] and labels [B] or [B, L]."""
        if embeddings.ndim != 2 or labels.ndim not in (1, 2) or len(embeddings) != len(labels):
            raise ConfigError(
                f"embeddings have the shape {list(embeddings.shape)}, and labels {list(labels.shape)}",
                "give [B, d] and [B] or [B, L]",
            )
        self.embeddings.append(embeddings.detach())
        self.labels.append(labels)

    def report(self) -> Report:
        """The whole report of the embeddings of this process."""
        # After the gathering, the states are tensors.
        embeddings, labels = (
            torch.cat(state) if isinstance(state, list) else state for state in (self.embeddings, self.labels)
        )
        options = {"progress": False, **self.options}
        return evaluate(embeddings, labels, metrics=[self.metric], **options)

    def compute(self) -> Any:
        """The mean over all queries that have a value."""
        report = self.report()
        per_level = report._entry(self.metric)["per_level"]
        value = report[self.metric, report.levels[-1] if self.level is None else self.level] if per_level else report[self.metric]
        return torch.tensor(float("nan") if value is None else value, dtype=torch.float64)


class Retrieval(torchmetrics.Metric):  # type: ignore[misc, unused-ignore]
    """A metric over rankings that are given item by item, as the retrieval metrics of torchmetrics take them.

    Parameters
    ----------
    metric : str
        As in `akin.evaluate`. `"true_recall@10"` is what torchmetrics calls recall.
    empty_target_action : str
        What a query without a positive is: "neg" 0, "pos" 1, "skip" left out, as `akin.evaluate` does, "error" an error.
    ignore_index : int, optional
        A target that is left out.
    aggregation : str or callable
        mean, median, min, max, or a function of a tensor.
    level : int
        The level of a metric per level, of graded targets.
    ties : str
        As in `akin.evaluate`.
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        metric: str = "ap",
        empty_target_action: str = "neg",
        ignore_index: int | None = None,
        aggregation: str | Callable[[Any], Any] = "mean",
        level: int = 1,
        ties: str = "stable",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if empty_target_action not in ("neg", "pos", "skip", "error"):
            raise ConfigError(f"`empty_target_action` is {empty_target_action!r}", "write neg, pos, skip or error")
        if not callable(aggregation) and aggregation not in ("mean", "median", "min", "max"):
            raise ConfigError(f"`aggregation` is {aggregation!r}", "write mean, median, min or max, or give a function")
        self.metric = metric
        self.empty_target_action = empty_target_action
        self.ignore_index = ignore_index
        self.aggregation = aggregation
        self.level = level
        self.ties = ties
        for state in ("indexes", "preds", "target"):
            self.add_state(state, default=[], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any, indexes: Any) -> None:
        """Adds scores, targets (0 and 1, or shared levels), and the query of each. All have one shape."""
        if preds.shape != target.shape or preds.shape != indexes.shape:
            raise ConfigError(
                f"the shapes are {list(preds.shape)}, {list(target.shape)} and {list(indexes.shape)}", "give one shape"
            )
        keep = torch.ones_like(target, dtype=torch.bool) if self.ignore_index is None else target != self.ignore_index
        self.preds.append(preds.detach()[keep])
        self.target.append(target[keep].long())
        self.indexes.append(indexes[keep].long())

    def compute(self) -> Any:
        """The aggregated value; 0 where every query is skipped."""
        preds, target, indexes = (
            to_numpy(torch.cat(state) if isinstance(state, list) else state)
            for state in (self.preds, self.target, self.indexes)
        )
        order = np.argsort(indexes, kind="stable")
        preds, target = preds[order], target[order]
        ends = np.cumsum(np.unique(indexes, return_counts=True)[1])
        depth = max(int(target.max(initial=0)), 1, self.level)
        values = []
        for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
            options: _metrics.Options = {"depth": depth, "level": self.level, "scores": preds[start:end], "ties": self.ties}
            value = _metrics.value(self.metric, target[start:end], **options)
            if value is not None:
                values.append(value)
            elif self.empty_target_action == "error":
                raise ConfigError("a query has no positive", "choose another `empty_target_action`")
            elif self.empty_target_action != "skip":
                values.append(float(self.empty_target_action == "pos"))
        if not values:
            return torch.tensor(0.0)
        tensor = torch.tensor(values, dtype=torch.float64)
        if callable(self.aggregation):
            return self.aggregation(tensor)
        return getattr(tensor, self.aggregation)()
