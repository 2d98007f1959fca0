"""The widgets for notebooks: what they refuse, and what they give the page. tests/e2e/notebook.test.mjs shows them."""

import json
import sys
from pathlib import Path
from typing import Any

import akin
import numpy as np
import pytest
from akin import _notebook
from conftest import Creatures


@pytest.fixture
def report(creatures: Creatures) -> akin.Report:
    """A report with a query that has no positive at the finest level."""
    labels = {name: values.copy() for name, values in creatures.labels.items()}
    labels["species"][7] = "a species of its own"
    return akin.evaluate(creatures.embeddings, labels, metrics=["h_ap", "recall@1", "mistake_severity"])


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that holds a page, whose script does nothing."""
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "widget.js").write_text("export default { render() {} };")
    (folder / "akin-web.js.gz").write_bytes(b"engine")
    monkeypatch.setattr(_notebook, "PAGE", folder)
    monkeypatch.delitem(sys.modules, "akin._widgets", raising=False)
    monkeypatch.delattr(akin, "_widgets", raising=False)
    return folder


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """What the map reads of a bundle."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    manifest = {"encoders": [{"name": "one"}], "files": [{"path": "labels.u32"}, {"path": "lost.f32"}]}
    (folder / "bundle.json").write_text(json.dumps(manifest))
    (folder / "labels.u32").write_bytes(b"labels")
    (tmp_path / "secret").write_text("secret")
    return folder


def test_a_build_without_the_page_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bundle: Path) -> None:
    monkeypatch.setattr(_notebook, "PAGE", tmp_path / "nothing")
    for open_widget in (akin.playground, lambda: akin.map(bundle)):
        with pytest.raises(akin.ConfigError, match="does not hold the page") as raised:
            open_widget()
        assert "wheel of a release" in raised.value.hint


@pytest.mark.usefixtures("page")
def test_a_python_without_anywidget_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(akin.ConfigError, match="need anywidget") as raised:
        akin.playground()
    assert "pip install anywidget" in raised.value.hint


@pytest.mark.usefixtures("page")
def test_a_report_gives_the_page_its_scores(report: akin.Report) -> None:
    widget = akin.show(report, names=range(300))
    given = widget.report
    assert given["levels"] == ["family", "genus", "species"]
    assert given["columns"] == [
        {"metric": 0, "level": 0},
        {"metric": 2, "level": 0},
        {"metric": 1, "level": 1},
        {"metric": 1, "level": 2},
        {"metric": 1, "level": 3},
    ]
    assert given["means"][0] == [report["h_ap"], None, report["mistake_severity"]]
    scores = np.frombuffer(widget.scores, dtype="<f4").reshape(5, 300)
    for row, name in enumerate(["h_ap", "mistake_severity", "family_recall@1", "genus_recall@1", "species_recall@1"]):
        np.testing.assert_array_equal(scores[row], report.per_query[name].astype(np.float32))
    labels = np.frombuffer(widget.labels, dtype="<u4").reshape(300, 3)
    for level, name in enumerate(given["levels"]):
        names = np.array(given["classes"][level])[labels[:, level]]
        np.testing.assert_array_equal(names, report.per_query[name])
    np.testing.assert_array_equal(np.frombuffer(widget.rows, dtype="<u4"), np.arange(300))
    assert given["names"][299] == "299"


@pytest.mark.usefixtures("page")
def test_many_queries_are_shown_by_a_sample(report: akin.Report) -> None:
    akin.playground()
    widgets: Any = sys.modules["akin._widgets"]
    widgets._MOST_QUERIES = 100
    widget = akin.show(report)
    rows = np.frombuffer(widget.rows, dtype="<u4")
    assert (len(rows), rows[0], rows[-1]) == (100, 0, 299)
    assert "sample of 100 queries" in widget.report["measurement"]


@pytest.mark.usefixtures("page")
def test_names_must_reach_every_query(report: akin.Report) -> None:
    with pytest.raises(akin.ConfigError, match="there are 299 names, and a query in row 299"):
        akin.show(report, names=range(299))


@pytest.mark.usefixtures("page")
def test_a_playground_takes_a_ranking_or_a_state() -> None:
    assert akin.playground().state == ""
    assert akin.playground(np.array([2, 3, 0])).state == "ranking=230"
    assert akin.playground([4, 0], levels=["a", "b b", "c", "d"], hide=["tree"]).state == "levels=a,b+b,c,d&ranking=40"
    assert akin.playground(state="?ranking=12").state == "ranking=12"
    for wrong in ([4], [-1], [0.5], [[1]], "abc"):
        with pytest.raises(akin.Error):
            akin.playground(wrong)
    with pytest.raises(akin.ConfigError, match="a state and a ranking"):
        akin.playground([1], state="ranking=1")


@pytest.mark.usefixtures("page")
def test_a_map_sends_the_page_its_own_files_and_those_of_its_bundle_only(bundle: Path) -> None:
    widget = akin.map(bundle, colour=2)
    sent: list[tuple[dict[str, Any], list[bytes]]] = []
    widget.send = lambda content, buffers: sent.append((content, buffers))
    for file in (
        "akin-web.js.gz",
        "bundle/bundle.json",
        "bundle/labels.u32",
        "bundle/lost.f32",
        "bundle/../secret",
        "../bundle/../secret",
        "secret",
    ):
        widget._answer(widget, {"id": file, "file": file}, [])
    answers = {content["id"]: (content["reason"], buffers) for content, buffers in sent}
    assert answers["akin-web.js.gz"] == ("", [b"engine"])
    assert answers["bundle/labels.u32"] == ("", [b"labels"])
    assert answers["bundle/bundle.json"][1][0].startswith(b"{")
    for file, reason in {
        "bundle/lost.f32": "cannot be read",
        "bundle/../secret": "the bundle has no file",
        "../bundle/../secret": "cannot be read",
        "secret": "cannot be read",
    }.items():
        assert reason in answers[file][0] and answers[file][1] == [], file


def test_what_is_no_bundle_is_refused(tmp_path: Path, bundle: Path) -> None:
    with pytest.raises(akin.ConfigError, match="is not a bundle") as raised:
        akin.map(tmp_path)
    assert "akin export" in raised.value.hint
    with pytest.raises(akin.ConfigError, match="has no encoder two") as raised:
        akin.map(bundle, encoder="two")
    assert "one" in raised.value.hint
    for damaged in ("{", "[]", '{"encoders": 1}'):
        (bundle / "bundle.json").write_text(damaged)
        with pytest.raises(akin.ConfigError, match="is damaged"):
            akin.map(bundle)
