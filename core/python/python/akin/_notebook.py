"""Widgets for notebooks: a report, the playground, and the map of a bundle."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from ._arrays import to_numpy
from ._errors import ConfigError
from ._report import Report

if TYPE_CHECKING:
    from ._widgets import MapWidget, PlaygroundWidget, ReportWidget

PAGE = Path(__file__).parent / "page"


def show(report: Report, *, names: Sequence[object] | None = None) -> ReportWidget:
    """The scores of a report, to look into: by class, by range of scores and by query, the worst first.

    Needs anywidget and a notebook: JupyterLab, Jupyter Notebook, Colab, VS Code or marimo.

    Parameters
    ----------
    report : Report
        What `akin.evaluate` returns.
    names : sequence, optional
        What the queries are called, such as their files: one for each row of the embeddings.

    Returns
    -------
    ReportWidget
        `widget.query` is the row of the query that the reader has chosen, or `None`.

    >>> widget = akin.show(report, names=files)  # doctest: +SKIP
    """
    rows = report._core.queries()
    if names is not None and len(names) <= int(rows.max(initial=-1)):
        raise ConfigError(
            f"there are {len(names)} names, and a query in row {rows.max()}",
            "give one name for each row of the embeddings",
        )
    return _widgets().ReportWidget(report, names)  # type: ignore[no-any-return]


def playground(
    shared_levels: Any = None,
    *,
    levels: Sequence[str] | None = None,
    state: str | None = None,
    hide: Sequence[str] = (),
) -> PlaygroundWidget:
    """A ranked list that one moves by hand, and what AP, H-AP and other scores make of it.

    Needs anywidget and a notebook.

    Parameters
    ----------
    shared_levels : array_like of int, optional
        The ranking: how many levels each item shares with the query, best first. At most 200 items are shown.
    levels : sequence of str, optional
        The names of the levels, coarse to fine. By default three levels.
    state : str, optional
        In place of both: what follows the `?` in the address of the playground of the page.
    hide : sequence of str
        Parts that are not shown: `presets`, `query`, `tools`, `tree`, `bars`, `h-rank`, `scores`, `why`, `ap-equation`,
        `equation`, `curve`, `controls`, `relevance-kind`, `ties`, `tree-editor`, and scores by their names.

    Returns
    -------
    PlaygroundWidget
        `widget.state` follows the reader, and can be set; `widget.scores` are the scores of the list.

    >>> akin.playground([2, 3, 0, 1, 3], levels=["order", "family", "species"])  # doctest: +SKIP
    """
    if state is not None and (shared_levels is not None or levels is not None):
        raise ConfigError("a state and a ranking are given", "give one of them")
    if state is None:
        parameters = {}
        if levels is not None:
            parameters["levels"] = ",".join(levels)
        if shared_levels is not None:
            parameters["ranking"] = _digits(shared_levels, 3 if levels is None else len(levels))
        state = urlencode(parameters, safe=",")
    return _widgets().PlaygroundWidget(state.removeprefix("?"), hide)  # type: ignore[no-any-return]


def map(
    bundle: str | os.PathLike[str],
    *,
    encoder: str | None = None,
    map: str | None = None,
    means: bool = False,
    colour: int = 1,
    query: int | None = None,
    hide: Sequence[str] = (),
) -> MapWidget:
    """The gallery of a bundle as a map: near points are alike to its encoder.

    Needs anywidget and a notebook with a kernel, which reads the files of the bundle as they are needed.

    Parameters
    ----------
    bundle : path
        A folder that `akin export` wrote.
    encoder, map : str, optional
        Of several; by default the encoder with the best H-AP, and its first map.
    means : bool
        Whether points are the means of the finest classes, where the map has them.
    colour : int
        The level that colours show, from 1 on; 0 for the kinship to the query.
    query : int, optional
        The item whose nearest items are shown.
    hide : sequence of str
        Parts that are not shown: `controls`, `tree`, `lists`.

    Returns
    -------
    MapWidget
        `widget.query` and `widget.items` follow the reader: the query, and the items of the chosen class or lasso.

    >>> akin.map("bundle", colour=2)  # doctest: +SKIP
    """
    folder = Path(bundle)
    try:
        manifest = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
        encoders = [entry["name"] for entry in manifest["encoders"]]
        files = {entry["path"] for entry in manifest["files"]}
    except OSError as error:
        hint = "write a bundle with `akin export RUN --out FOLDER`"
        raise ConfigError(f"{folder} is not a bundle: {error}", hint) from error
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(
            f"{folder / 'bundle.json'} is damaged", "write the bundle again with `akin export`"
        ) from error
    if encoder is not None and encoder not in encoders:
        raise ConfigError(f"the bundle has no encoder {encoder}", f"its encoders are {', '.join(encoders)}")
    chosen = {"encoder": encoder or "", "map": map or "", "means": means, "colour": colour, "query": query}
    return _widgets().MapWidget(folder, files, chosen, hide)  # type: ignore[no-any-return]


def _digits(shared_levels: Any, depth: int) -> str:
    levels = to_numpy(shared_levels)
    if levels.ndim != 1 or levels.dtype.kind not in "iu" or not ((levels >= 0) & (levels <= depth)).all():
        raise ConfigError(
            f"the shared levels are of type {levels.dtype} and shape {list(levels.shape)}",
            f"give one whole number from 0 to {depth} per item, and the names of the levels if there are more than 3",
        )
    return "".join(np.base_repr(level, 36).lower() for level in levels.tolist())


def _widgets() -> ModuleType:
    if not (PAGE / "widget.js").exists():
        raise ConfigError(
            "this build of akin does not hold the page",
            "install the wheel of a release, or run `akin page && node www/scripts/notebook.mjs` in a clone and build again",
        )
    try:
        from . import _widgets
    except ImportError as error:
        raise ConfigError(f"widgets need anywidget: {error}", "install it with `pip install anywidget`") from error
    return _widgets
