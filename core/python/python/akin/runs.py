"""Runs of other search engines, as trec_eval and ranx have them.

A run says what each query found, with scores; qrels say what it should find, with grades. Both are dicts of dicts, such as
`{"query 1": {"document 7": 0.9}}`, or files in TREC's format.

>>> from akin import runs
>>> found = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
>>> runs.evaluate(found, {"q": {"a": 1, "c": 1}}, ["ap", "recall@1", "ndcg_linear@10"]).rows()[0]["ap"] == (1 + 2 / 3) / 2
True
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import metrics as _metrics
from ._errors import ConfigError
from ._frame import Frame

Run = Mapping[str, Mapping[str, float]]
_CUT = ("ap", "ndcg", "ndcg_linear", "recall", "true_recall", "precision", "h_recall")


def evaluate(run: Run | str | os.PathLike[str], qrels: Run | str | os.PathLike[str], metrics: Sequence[str]) -> Frame:
    """The scores of each query of a run.

    Items that a query should find and did not find count as missed, wherever they would be. Equal scores are ranked by the
    name of the item, the last first, as trec_eval ranks them. Grades above 0 are shared levels: with grades 0 and 1 there is
    one level, and `ap` is the average precision.

    Parameters
    ----------
    run : dict of dicts, or a file
        `{query: {item: score}}`, or lines of `query Q0 item rank score name`.
    qrels : dict of dicts, or a file
        `{query: {item: grade}}`, or lines of `query 0 item grade`.
    metrics : sequence of str
        ap, mrr, ndcg, ndcg_linear (that of trec_eval and ranx), recall (the hit rate), true_recall (their recall),
        precision, h_recall; each but mrr also with @k. A metric per level is measured at level 1: every grade above 0.

    Returns
    -------
    Frame
        `query` and a column for each metric, for the queries with something to find. A query that is not in the run found
        nothing. `frame["ap"].mean()` is the mean.
    """
    found = _read(run, 4) if isinstance(run, str | os.PathLike) else run
    wanted = _read(qrels, 3) if isinstance(qrels, str | os.PathLike) else qrels
    for name in metrics:
        if name != "mrr" and name.split("@")[0] not in _CUT:
            raise ConfigError(f"{name} is not defined for a run", f"the metrics are mrr, {', '.join(_CUT)}, also with @k")
    grades = {query: {item: _grade(grade) for item, grade in items.items()} for query, items in wanted.items()}
    depth = max((grade for items in grades.values() for grade in items.values()), default=0)
    rows = []
    for query, items in grades.items():
        if not any(items.values()):
            continue
        ranked = sorted(found.get(query, {}).items(), key=lambda entry: (float(entry[1]), entry[0]), reverse=True)
        levels = [items.get(item, 0) for item, _ in ranked]
        retrieved = {item for item, _ in ranked}
        # Behind the cut, which is where the run ends.
        missed = [grade for item, grade in items.items() if item not in retrieved]
        rows.append((query, [_value(name, levels, missed, depth) for name in metrics]))
    frame = Frame(query=np.array([query for query, _ in rows], dtype=object))
    for place, name in enumerate(metrics):
        frame[name] = np.array([values[place] for _, values in rows], dtype=np.float64)
    return frame


def _value(name: str, levels: list[int], missed: list[int], depth: int) -> float:
    if not levels:
        return 0.0
    length = len(levels)
    options: _metrics.Options = {"depth": depth, "level": 1}
    if name == "mrr":
        return (_metrics.mrr(levels, **options) or 0.0) if any(levels) else 0.0
    metric, _, k = name.partition("@")
    # Behind the end of the run there are as many strangers as it takes.
    cut = int(k) if k.isdigit() else length if not k else -1
    padding = [0] * max(cut - length, 0) if cut < 10**7 else []
    cut = cut if cut < 10**7 else length
    return _metrics.value(f"{metric}@{cut}", levels + padding + missed, **options) or 0.0


def _grade(grade: Any) -> int:
    number = int(grade)
    if number != grade or number > 1000:
        raise ConfigError(f"a grade is {grade!r}", "give whole numbers up to 1000")
    return max(number, 0)


def _read(file: str | os.PathLike[str], column: int) -> dict[str, dict[str, float]]:
    """A file in TREC's format: the query in column 0, the item in column 2, and a number in this column."""
    read: dict[str, dict[str, float]] = {}
    for place, line in enumerate(Path(file).read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
        cells = line.split()
        if not cells:
            continue
        try:
            query, item, number = cells[0], cells[2], float(cells[column])
        except (IndexError, ValueError) as error:
            columns = "query Q0 item rank score name" if column == 4 else "query 0 item grade"
            raise ConfigError(f"{os.fspath(file)}, line {place}: {line!r}", f"write {columns}") from error
        read.setdefault(query, {})[item] = number
    return read
