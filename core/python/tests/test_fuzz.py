"""No input makes the interpreter crash: every call gives a report or an `akin.Error`, and the process survives."""

import random
from collections.abc import Callable
from typing import Any

import akin
import numpy as np
import pytest
from akin import _akin

SHAPES = [(), (0,), (1,), (7,), (0, 0), (0, 4), (7, 0), (1, 1), (1, 4), (7, 1), (7, 4), (7, 4, 2), (300, 4)]
TYPES = ["f4", "f8", "f2", ">f4", "i1", "u1", "i8", "u8", "?", "c8", "U3", "S3", "O", "M8[D]"]


def array(draw: random.Random) -> Any:
    """Any array, of any type, shape and strides."""
    rng = np.random.default_rng(draw.getrandbits(32))
    shape, dtype = draw.choice(SHAPES), draw.choice(TYPES)
    values = rng.integers(-3, 4, size=shape) if draw.random() < 0.5 else rng.normal(size=shape) * 10.0 ** draw.choice([-40, 0, 38])
    with np.errstate(all="ignore"):
        made = np.asarray(values).astype(dtype if dtype != "M8[D]" else "i8").astype(dtype)
    if made.dtype.kind == "f" and made.size and draw.random() < 0.3:
        made.flat[draw.randrange(made.size)] = draw.choice([np.nan, np.inf, -np.inf, -0.0])
    match draw.randrange(8):
        case 0:
            made = made[::-1] if made.ndim else made
        case 1:
            made = made.T
        case 2:
            made = np.repeat(made, 2, axis=-1)[..., ::2] if made.ndim else made
        case 3:
            made = np.broadcast_to(made, (7, *made.shape[1:])) if made.ndim and made.shape[0] == 1 else made
        case 4:
            made.flags.writeable = False
        case 5:
            return made.tolist()
        case _:
            pass
    return made


def anything(draw: random.Random) -> Any:
    """What is mostly an array."""
    others = [None, 0, -1, 2**70, float("nan"), "", "é\ud800", b"\xff", [], [[]], [[1], [1, 2]], {}, {"": []}, object(), np, {"a": [1]}]
    return draw.choice(others) if draw.random() < 0.25 else array(draw)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore")
def test_any_arguments_give_a_report_or_an_error(seed: int) -> None:
    draw = random.Random(seed)
    names: dict[str, Callable[[random.Random], Any]] = {
        "gallery": anything,
        "gallery_labels": anything,
        "places": anything,
        "junk": lambda _: draw.choice([[[]] * 7, [[0]] * 7, [None] * 7, [[2**70]] * 7, "ab"]),
        "groups": anything,
        "gallery_groups": anything,
        "levels": lambda _: draw.choice([["a"], ["a", "b"], [], "a", ["a", "a"], [""]]),
        "metrics": lambda _: draw.choice(["recall@1", "recall@18446744073709551616", "x", [], ["ap", "ap"], "\ud800"]),
        "similarity": lambda _: draw.choice(["euclidean", "dot", "hamming", "poincare:0.1", "poincare:nan", "poincare:-1"]),
        "relevance": lambda _: draw.choice(["plain", "plain:nan", "plain:1e400", [1.0], [1.0, float("inf")], [], 3]),
        "ties": lambda _: draw.choice(["strict", "shared", "pessimistic", ""]),
        "bootstrap": lambda _: draw.choice([0, 1, 10, -1, 2**70, 1.5, True]),
        "decomposability_gap": lambda _: draw.choice([0, 1, 2, 5, 2**61]),
        "hyperbolicity": lambda _: draw.choice([0, 1, 4, 5, 2**61]),
        "unknown": anything,
        "qualify": lambda _: draw.random() < 0.5,
    }
    reports = 0
    for _ in range(400):
        sane = draw.random() < 0.4
        rng = np.random.default_rng(draw.getrandbits(32))
        embeddings = rng.normal(size=(7, 4)) if sane else anything(draw)
        labels = rng.integers(0, 3, size=(7, 1)) if sane else anything(draw)
        chosen = draw.sample(list(names), draw.choice([0, 1, 1, 2, 4]))
        try:
            report = akin.evaluate(embeddings, labels, **{name: names[name](draw) for name in chosen})
            reports += 1
            assert repr(report) and report.per_query.height == report.queries
            report.per_class()
        except akin.Error as error:
            assert error.message and error.hint
    assert reports > 20


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_search_metrics_and_classes_refuse_what_they_cannot_take(seed: int) -> None:
    draw = random.Random(seed)
    calls: list[Callable[[], object]] = [
        lambda: akin.nearest(anything(draw), draw.choice([None, anything(draw)]), k=draw.choice([0, 1, 5, 2**31, -1])),
        lambda: akin.Taxonomy(anything(draw)).shared_levels(0),
        lambda: akin.Classifier(anything(draw), anything(draw))(anything(draw)),
        lambda: akin.metrics.value("h_ap", anything(draw), scores=draw.choice([None, anything(draw)])),
        lambda: akin.curve(anything(draw)),
    ]
    for _ in range(400):
        try:
            draw.choice(calls)()
        except (akin.Error, IndexError):
            pass


def test_the_part_in_rust_checks_its_arguments_itself() -> None:
    """It can be called without the Python that prepares them: no call may do worse than raise."""
    rows = np.ones((3, 2), dtype=np.float32)
    ids = np.zeros((3, 1), dtype=np.uint32)
    taxonomy = _akin.Taxonomy(["class"], [["a"]], [], False)
    settings: Any = {
        "metrics": [],
        "similarity": "cosine",
        "relevance": "plain",
        "ties": "stable",
        "count_query": False,
        "bootstrap": None,
        "decomposability_gap": None,
        "hyperbolicity": None,
    }
    evaluate: Any = _akin.evaluate
    wrong: list[tuple[Any, ...]] = [
        (taxonomy, (rows, ids[:2]), None, None, None, settings, None),
        (taxonomy, (rows, ids + 7), (rows, ids), [0, 1, 9], None, settings, None),
        (taxonomy, (rows, np.zeros((3, 0), dtype=np.uint32)), None, None, None, settings, None),
        (taxonomy, (rows, ids), None, None, ([0], [0]), settings, None),
        (taxonomy, (rows, ids), None, None, [[5]], settings, None),
        (taxonomy, (rows[:, ::2], ids), None, None, None, settings, None),
        (taxonomy, (rows.astype(np.float64), ids), None, None, None, settings, None),
        (taxonomy, (rows, ids), None, None, None, {}, None),
        (None, None, None, None, None, None, None),
    ]
    for arguments in wrong:
        with pytest.raises((akin.Error, TypeError, ValueError, KeyError)):
            evaluate(*arguments)
    with pytest.raises(akin.Error):
        _akin.Report.from_json("{}")
    report = evaluate(taxonomy, (rows, ids), None, None, None, settings, None)
    calls: list[Callable[[], object]] = [
        lambda: report.scores("ap", 9),
        lambda: report.by_class(1, [0], {}),
        lambda: report.by_class(0, [0] * 3, {0: "a"}),
    ]
    for call in calls:
        with pytest.raises(akin.Error):
            call()
    with pytest.raises(akin.Error):
        taxonomy.path([5])
    assert taxonomy.classes(9) == []
