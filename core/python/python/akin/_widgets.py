"""The widgets of `_notebook`. Imported only where anywidget is installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import traitlets

from ._notebook import PAGE
from ._report import Report

# More queries than this are shown by an even sample: the browser holds every score.
_MOST_QUERIES = 100_000


class _Widget(anywidget.AnyWidget):
    _esm = PAGE / "widget.js"

    # Which widget of the script this is.
    kind = traitlets.Unicode().tag(sync=True)
    hide = traitlets.Unicode().tag(sync=True)


class ReportWidget(_Widget):
    """A report to look into. `query` is the row of the chosen query, or `None`."""

    query = traitlets.Int(None, allow_none=True).tag(sync=True)
    report = traitlets.Dict().tag(sync=True)
    scores = traitlets.Bytes().tag(sync=True)
    labels = traitlets.Bytes().tag(sync=True)
    rows = traitlets.Bytes().tag(sync=True)

    def __init__(self, report: Report, names: Sequence[object] | None) -> None:
        rows = report._core.queries()
        shown = np.arange(len(rows))
        measurement = report._measurement()
        if len(rows) > _MOST_QUERIES:
            shown = np.linspace(0, len(rows) - 1, _MOST_QUERIES).astype(np.int64)
            measurement += f"; an even sample of {_MOST_QUERIES:,} queries is shown below"
        metrics = [
            {"name": name, **{key: entry[key] for key in ("unit", "greater_is_better")}}
            for name in report.metrics
            for entry in [report._entry(name)]
        ]
        depth = len(report.levels)
        columns = [
            (metric, level)
            for level in range(depth + 1)
            for metric, name in enumerate(report.metrics)
            if name in report._at(level)
        ]
        scores = [report._core.scores(report.metrics[metric], level)[shown] for metric, level in columns]
        super().__init__(
            kind="report",
            report={
                "levels": report.levels,
                "metrics": metrics,
                "means": [[report._at(level).get(name) for name in report.metrics] for level in range(depth + 1)],
                "columns": [{"metric": metric, "level": level} for metric, level in columns],
                "classes": [report._taxonomy.classes(level) for level in range(1, depth + 1)],
                "names": None if names is None else [str(names[row]) for row in rows[shown].tolist()],
                "measurement": measurement,
            },
            scores=np.array(scores, dtype="<f4").tobytes(),
            labels=report._ids[rows[shown]].astype("<u4").tobytes(),
            rows=rows[shown].astype("<u4").tobytes(),
        )


class PlaygroundWidget(_Widget):
    """A playground. `state` is what follows the `?` in its address, and `scores` are those of the first list."""

    state = traitlets.Unicode().tag(sync=True)
    scores = traitlets.Dict().tag(sync=True)

    def __init__(self, state: str, hide: Sequence[str]) -> None:
        super().__init__(kind="playground", state=state, hide=" ".join(hide))


class MapWidget(_Widget):
    """A map of a bundle. `query` is the chosen item, `items` those of the chosen class or lasso."""

    bundle = traitlets.Unicode().tag(sync=True)
    encoder = traitlets.Unicode().tag(sync=True)
    map = traitlets.Unicode().tag(sync=True)
    means = traitlets.Bool().tag(sync=True)
    colour = traitlets.Int().tag(sync=True)
    query = traitlets.Int(None, allow_none=True).tag(sync=True)
    items = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, folder: Path, files: set[str], chosen: dict[str, Any], hide: Sequence[str]) -> None:
        self._folder = folder
        self._files = files | {"bundle.json"}
        super().__init__(kind="map", bundle=folder.name, hide=" ".join(hide), **chosen)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Sends the page a file of the bundle, or of the page itself."""
        asked = content["file"]
        of_bundle = asked.removeprefix("bundle/")
        reason, buffers = "", []
        try:
            if of_bundle == asked:
                buffers = [(PAGE / Path(asked).name).read_bytes()]
            elif of_bundle in self._files:
                buffers = [(self._folder / of_bundle).read_bytes()]
            else:
                reason = f"the bundle has no file {of_bundle}"
        except OSError as error:
            reason = f"{asked} cannot be read: {error}"
        self.send({"id": content["id"], "reason": reason}, buffers)
