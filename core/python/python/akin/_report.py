"""The report of an evaluation."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _akin
from ._errors import ConfigError
from ._frame import NOTHING, Frame
from ._labels import Ids, number

ALL_LEVELS = "all levels"
_UNKNOWN = np.iinfo(np.uint32).max


class Report:
    """The scores of an evaluation: means over queries, and the scores of each query and class.

    `report["h_ap"]` is the mean of a metric over all levels, `report["recall@1", "species"]` of one at a level. All values
    are as `akin eval --json` prints them: shares from 0 to 1.

    Attributes
    ----------
    levels : list of str
        The names of the levels, coarse to fine.
    metrics : list of str
        The metrics, in the order that they were asked for.
    queries : int
        The number of queries.
    ranked : int
        The number of items that each query ranks.
    config : dict
        How it was measured: metrics, relevance, ties, similarity and so on.
    """

    def __init__(self, core: _akin.Report, taxonomy: _akin.Taxonomy, ids: Ids) -> None:
        self._core = core
        self._taxonomy = taxonomy
        self._ids = ids
        self._means: dict[str, Any] = json.loads(core.json(per_query=False))
        self.config: dict[str, Any] = self._means["config"]
        self.metrics: list[str] = self.config["metrics"]
        self.queries: int = self._means["queries"]
        self.ranked: int = self._means["ranked"]
        self.levels: list[str] = [level["name"] for level in self._means["levels"]]

    def to_dict(self) -> dict[str, Any]:
        """The report as `akin eval --json` prints it."""
        means: dict[str, Any] = json.loads(self._core.json(per_query=False))
        return means

    def __getitem__(self, key: str | tuple[str, str | int]) -> float | None:
        """The mean of a metric: over all levels, or at a level, by its name or number from 1 on.

        `None` where no query has a value.
        """
        metric, level = (key, 0) if isinstance(key, str) else key
        means = self._at(self._level(level))
        if metric not in means or metric not in self.metrics:
            hint = f"the metrics are {', '.join(self.metrics)}"
            if isinstance(key, str) and metric in self.metrics:
                hint = f"{metric} has a value at each level: write report[{metric!r}, {self.levels[-1]!r}]"
            raise ConfigError(f"{metric} was not measured here", hint)
        mean: float | None = means[metric]
        return mean

    @property
    def per_level(self) -> Frame:
        """The means: a row over all levels, and a row for each level.

        A cell is NaN where a metric is not measured, or no query has a value. With a bootstrap the columns `…_low` and
        `…_high` are its 95 % interval.
        """
        rows = [self._at(level) for level in range(len(self.levels) + 1)]
        frame = Frame(level=np.array([ALL_LEVELS, *self.levels], dtype=object))
        frame["queries"] = np.array([row["queries"] for row in rows])
        for metric in self.metrics:
            frame[metric] = _numbers([row.get(metric) for row in rows])
            if self.config.get("bootstrap"):
                intervals = [row.get("interval", {}).get(metric, [None, None]) for row in rows]
                frame[f"{metric}_low"] = _numbers([low for low, _ in intervals])
                frame[f"{metric}_high"] = _numbers([high for _, high in intervals])
        return frame

    @property
    def per_query(self) -> Frame:
        """The scores of each query.

        `query` is its row, `closest` the finest level at which it has a positive, 0 for none; then its labels, and its
        scores, named as in the file of `akin eval --per-query`: `h_ap`, `species_recall@1`. NaN where it has none.
        """
        queries = self._core.queries()
        frame = Frame(query=queries, closest=self._core.closest())
        for level, name in enumerate(self.levels, start=1):
            frame[name] = self._names(level)[queries]
        for level in range(len(self.levels) + 1):
            for metric in self.metrics:
                if metric in self._at(level):
                    column = metric if level == 0 else f"{self.levels[level - 1]}_{metric}"
                    frame[column] = self._core.scores(metric, level)
        return frame

    def per_class(self, level: str | int | None = None) -> Frame:
        """The means over the queries of each class of a level, by default the finest: the worst first.

        Metrics per level are measured at this level.
        """
        by_class = self._by_class(level)
        frame = Frame({by_class["level"]: np.array([row["name"] for row in by_class["classes"]], dtype=object)})
        frame["queries"] = np.array([row["queries"] for row in by_class["classes"]])
        for metric in self.metrics:
            frame[metric] = _numbers([row[metric] for row in by_class["classes"]])
        return frame

    def macro_average(self, level: str | int | None = None) -> dict[str, float | None]:
        """The mean of each metric over classes of the mean over their queries: each class counts as much as any other."""
        average = self._by_class(level)["macro_average"]
        return {metric: average[metric] for metric in self.metrics}

    def worst(self, n: int = 10, metric: str | None = None, level: str | int | None = None) -> Frame:
        """The `n` queries with the worst scores of a metric, by default the first one.

        A metric per level is that at `level`, by default the finest.
        """
        metric = self.metrics[0] if metric is None else metric
        entry = self._entry(metric)
        at = self._level(len(self.levels) if level is None else level) if entry["per_level"] else 0
        scores = self._core.scores(metric, at)
        order = np.argsort(scores if entry["greater_is_better"] else -scores, kind="stable")
        order = order[~np.isnan(scores[order])][: max(n, 0)]
        return Frame({name: column[order] for name, column in self.per_query.items()})

    def compare(self, other: Report) -> Frame:
        """Tests the difference from another report over the same queries.

        Returns
        -------
        Frame
            A row for each metric, over all levels and at each level: the means of this report (`first`) and of the other
            (`second`) over the queries that have a value in both, their `difference`, and `p` of a paired permutation
            test: the probability of a difference at least as large if the two were equal. Not corrected for the number of
            tests.
        """
        if not np.array_equal(self._ids, other._ids) or not self._same_classes(other):
            raise ConfigError(
                "the queries of the two reports have other labels", "compare two evaluations of the same queries"
            )
        tests = json.loads(self._core.compare(other._core))
        frame = Frame(level=np.array([test["level"] or ALL_LEVELS for test in tests], dtype=object))
        frame["metric"] = np.array([test["metric"] for test in tests], dtype=object)
        frame["queries"] = np.array([test["queries"] for test in tests])
        for column in ("first", "second", "difference", "p"):
            frame[column] = _numbers([test[column] for test in tests])
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Bars of every metric over all levels and at each level. Needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.subplots()[1]
        bars = [
            (f"{metric}\n{name}", value)
            for level, name in enumerate([ALL_LEVELS, *self.levels])
            for metric in self.metrics
            if (value := self._at(level).get(metric)) is not None
        ]
        names, values = zip(*bars, strict=True)
        ax.barh(range(len(bars)), values)
        ax.set_yticks(range(len(bars)), labels=names)
        ax.invert_yaxis()
        return ax

    def to_latex(self) -> str:
        """The means as a table for LaTeX, in percent, with the package `booktabs`."""
        return self._table().to_latex()

    def __repr__(self) -> str:
        return f"{self._table()!r}\n\n{self._measurement()}"

    def _repr_html_(self) -> str:
        return f"{self._table()._repr_html_()}<p>{html.escape(self._measurement())}</p>"

    def __reduce__(self) -> tuple[Any, ...]:
        levels, depth = self.levels, len(self.levels)
        tree = [(self._taxonomy.classes(level), self._taxonomy.parents(level)) for level in range(1, depth + 1)]
        return _read, (self._core.json(per_query=True), levels, tree, self._ids)

    def _table(self) -> Frame:
        """The means as text, in percent where they are shares."""
        frame = self.per_level
        table = Frame(level=frame["level"], queries=frame["queries"])
        for metric in self.metrics:
            entry = self._entry(metric)
            table[metric] = np.array([_cell(value, entry["unit"]) for value in frame[metric].tolist()], dtype=object)
        return table

    def _measurement(self) -> str:
        config = self.config
        relevance = ", ".join(f"{key} {value}" for key, value in config["relevance"].items() if key != "kind")
        similarity = config["similarity"]
        if isinstance(similarity, dict):
            similarity = ", ".join(f"{name} of {value}" for name, value in similarity.items())
        return (
            f"{self.queries:,} queries, each ranks {self.ranked:,} items by {similarity}; relevance "
            f"{config['relevance']['kind']} ({relevance}); ties {config['ties']}"
            + ("; the query counts among its class" if config["count_query"] else "")
        )

    def _entry(self, metric: str) -> dict[str, Any]:
        for entry in _akin.catalogue():
            if metric in self.metrics and entry["name"] == metric.split("@")[0]:
                return entry
        raise ConfigError(f"{metric} was not measured", f"the metrics are {', '.join(self.metrics)}")

    def _names(self, level: int) -> NDArray[np.object_]:
        """The class of each query at a level, 1 … L; empty where it is unknown."""
        names = np.array([*self._taxonomy.classes(level), ""], dtype=object)
        ids = self._ids[:, level - 1]
        found: NDArray[np.object_] = names[np.where(ids == _UNKNOWN, len(names) - 1, ids)]
        return found

    def _at(self, level: int) -> dict[str, Any]:
        means: dict[str, Any] = self._means["overall"] if level == 0 else self._means["levels"][level - 1]
        return means

    def _level(self, level: str | int) -> int:
        """The number of a level, 0 … L."""
        if isinstance(level, str) and level in self.levels:
            return self.levels.index(level) + 1
        if isinstance(level, int | np.integer) and 0 <= level <= len(self.levels):
            return int(level)
        raise ConfigError(f"there is no level {level!r}", f"the levels are {', '.join(self.levels)}")

    def _by_class(self, level: str | int | None) -> dict[str, Any]:
        number = self._level(len(self.levels) if level is None else level)
        if number == 0:
            raise ConfigError("classes belong to one level", f"the levels are {', '.join(self.levels)}")
        classes = self._ids[:, number - 1]
        different, first = np.unique(classes, return_index=True)
        known = different != _UNKNOWN
        paths = {
            int(number_of_class): self._taxonomy.path([int(a) for a in self._ids[row]])[:number]
            for number_of_class, row in zip(different[known], first[known], strict=True)
        }
        alone = [path[-1] for path in paths.values()]
        # Only a name that several classes have needs its path.
        names = {
            number_of_class: path[-1] if alone.count(path[-1]) == 1 else " > ".join(path)
            for number_of_class, path in paths.items()
        }
        by_class: dict[str, Any] = json.loads(self._core.by_class(number, classes.tolist(), names))
        return by_class

    def _same_classes(self, other: Report) -> bool:
        levels = range(1, len(self.levels) + 1)
        return self.levels == other.levels and all(
            self._taxonomy.classes(level) == other._taxonomy.classes(level) for level in levels
        )


def merge(reports: Sequence[Report]) -> Report:
    """The report of all queries, from the reports of one part of them after the other: digit for digit that of all at once.

    Machines can share an evaluation: each gives `evaluate` its own queries, and the same gallery and settings.

    Parameters
    ----------
    reports : sequence of Report
        In the order of the queries. They can be pickled, to bring them together.

    Returns
    -------
    Report
    """
    reports = list(reports)
    core = _akin.Report.merge([report._core for report in reports])
    columns = {}
    for level, name in enumerate(reports[0].levels, start=1):
        columns[name] = np.concatenate([report._names(level) for report in reports])
    # Each part numbers its classes by itself.
    labelled = number([("labels", columns)], None, qualify=True)
    return Report(core, labelled.taxonomy, labelled.ids[0])


def _read(text: str, levels: list[str], tree: list[tuple[list[str], list[int]]], ids: Ids) -> Report:
    taxonomy = _akin.Taxonomy.from_tree(levels, [classes for classes, _ in tree], [parents for _, parents in tree])
    return Report(_akin.Report.from_json(text), taxonomy, ids)


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _cell(value: float, unit: str) -> str:
    if np.isnan(value):
        return NOTHING
    return f"{100 * value:.2f}" if unit == "share" else f"{value:.3f}"
