"""What `akin.evaluate` takes, and what it refuses."""

import pickle
import signal
import threading
import time
from typing import Any

import akin
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import Creatures, golden


def means(report: akin.Report) -> dict[str, Any]:
    return report.to_dict()


def test_golden_values_of_hyperbolicity() -> None:
    for case in golden("delta_hyperbolicity"):
        rows, outputs = np.array(case["inputs"]["x"]), case["outputs"]
        distances = np.linalg.norm(rows[:, None] - rows, axis=2)
        relative = []
        for base in distances:
            products = (base[:, None] + base - distances) / 2
            delta = (np.minimum(products[:, :, None], products).max(1) - products).max()
            relative.append(2 * delta / distances.max())
        assert relative[0] == pytest.approx(outputs["rel_delta"])
        # An evaluation draws its base points, ten times.
        report = akin.evaluate(rows, np.arange(len(rows)) // 2, similarity="euclidean", hyperbolicity=len(rows))
        found = means(report)["hyperbolicity"]
        assert found["draws"] == 10 and found["points"] == len(rows)
        assert min(relative) <= found["relative"] <= max(relative)
        assert found["deviation"] <= max(relative) - min(relative)
        assert found["curvature"] == pytest.approx((0.144 / found["relative"]) ** 2)


def test_golden_values_of_happier() -> None:
    names = {"H-AP": "h_ap", "NDCG": "ndcg", "ASI": "asi"}
    checked = 0
    for case in golden("metrics_happier"):
        scores = case["outputs"]["per_query_repo"]
        # The others have ties, in an order of torch's: `test_metrics` has all of them.
        if case["case"] not in ("L3_alpha1", "L3_alpha2", "L3_alpha0.5", "L2_alpha1", "L4_alpha1"):
            continue
        checked += 1
        # Their first column is the finest level.
        labels = np.array(case["inputs"]["labels"])[:, ::-1]
        report = akin.evaluate(
            case["inputs"]["embeddings"],
            labels,
            relevance=f"hierarchical_ap:{case['params']['alpha']}",
            count_query=True,
        )
        for theirs, ours in names.items():
            assert report.per_query[ours] == pytest.approx(scores[theirs], abs=2e-6), (case["case"], ours)
    assert checked == 5


def test_golden_values_of_recall() -> None:
    for case in golden("metrics_recall_proxy_anchor"):
        ks = [1, 2, 4, 8, 16, 32]
        report = akin.evaluate(
            case["inputs"]["embeddings"], case["inputs"]["labels"], metrics=[f"recall@{k}" for k in ks]
        )
        # They count a query without a positive as missed.
        share = report.per_level["queries"][1] / report.queries
        found = [(report[f"recall@{k}", "class"] or 0) * share for k in ks]
        assert found == pytest.approx(case["outputs"]["R@1,2,4,8,16,32 (same set)"])


def test_golden_values_of_recall_in_the_ball() -> None:
    for case in golden("metrics_recall_hyperbolic"):
        curvature = case["params"]["hyp_c"]
        report = akin.evaluate(
            case["inputs"]["z"], case["inputs"]["labels"], metrics=[f"recall@{k}" for k in (1, 2, 4, 8)],
            similarity=f"poincare:{curvature}" if curvature else "dot",
        )  # fmt: skip
        share = report.per_level["queries"][1] / report.queries
        found = [(report[f"recall@{k}", "class"] or 0) * share for k in (1, 2, 4, 8)]
        assert found == pytest.approx(case["outputs"]["R@1,2,4,8"])


def test_every_kind_of_labels_gives_the_same_report(creatures: Creatures) -> None:
    expected = means(akin.evaluate(creatures.embeddings, creatures.labels))
    levels = list(creatures.labels)
    structured = np.array(
        list(zip(*creatures.labels.values(), strict=True)), dtype=[(level, "U16") for level in levels]
    )
    kinds = [
        pd.DataFrame(creatures.labels),
        pd.DataFrame(creatures.labels).astype("category"),
        pl.DataFrame(creatures.labels),
        pl.DataFrame(creatures.labels).with_columns(pl.all().cast(pl.Categorical)),
        pa.table(creatures.labels),
        pa.table({level: pa.array(column).dictionary_encode() for level, column in creatures.labels.items()}),
        structured,
        {level: column.tolist() for level, column in creatures.labels.items()},
    ]
    for labels in kinds:
        assert means(akin.evaluate(creatures.embeddings, labels)) == expected, type(labels)
    # Columns in another order, with one that is no level.
    shuffled = pd.DataFrame({"path": "x", **dict(reversed(creatures.labels.items()))})
    assert means(akin.evaluate(creatures.embeddings, shuffled, levels=levels)) == expected
    for rows in (creatures.rows, creatures.rows.tolist(), [tuple(row) for row in creatures.rows.tolist()]):
        assert means(akin.evaluate(creatures.embeddings, rows, levels=levels)) == expected
    assert akin.evaluate(creatures.embeddings, creatures.rows).levels == ["level 1", "level 2", "level 3"]


def test_missing_labels_are_unknown_in_every_kind_of_table(creatures: Creatures) -> None:
    numbers: list[int | None] = [int(name.split()[1]) for name in creatures.labels["species"]]
    numbers[0] = numbers[5] = None
    families = [name.split()[1] for name in creatures.labels["family"]]
    kinds = [
        {"family": families, "species": numbers},
        pd.DataFrame({"family": families, "species": numbers}),
        pd.DataFrame({"family": families, "species": pd.array(numbers, dtype="Int64")}),
        pl.DataFrame({"family": families, "species": numbers}),
        pa.table({"family": families, "species": numbers}),
        {"family": families, "species": [-1 if number is None else number for number in numbers]},
    ]
    reports = [means(akin.evaluate(creatures.embeddings, labels, unknown=-1)) for labels in kinds]
    assert reports[0]["levels"][1]["open"]["unknown_queries"] == 2
    for report in reports:
        assert report == reports[0]


def test_large_ids_do_not_collide() -> None:
    # As float32 they would be one class, and as float64 two of them.
    ids = [2**24, 2**24 + 1, 2**53, 2**53 + 1] * 2
    rng = np.random.default_rng(0)
    report = akin.evaluate(rng.normal(size=(8, 4)), np.array(ids))
    assert report.per_class().height == 4


def test_embeddings_are_not_copied_if_they_need_not_be(creatures: Creatures) -> None:
    from akin._arrays import embeddings

    assert embeddings(creatures.embeddings, "query") is creatures.embeddings
    read_only = creatures.embeddings.view()
    read_only.flags.writeable = False
    expected = means(akin.evaluate(creatures.embeddings, creatures.labels))
    wide = np.zeros((600, 32), dtype=np.float32)
    wide[::2, ::2] = creatures.embeddings
    kinds = [
        read_only,
        np.asfortranarray(creatures.embeddings),
        wide[::2, ::2],
        creatures.embeddings[::-1][::-1],
        creatures.embeddings.astype(np.float64),
        creatures.embeddings.astype(">f4"),
        creatures.embeddings.tolist(),
        pl.DataFrame(creatures.embeddings),
        pd.DataFrame(creatures.embeddings),
        pd.Series(list(creatures.embeddings)),
    ]
    for array in kinds:
        assert means(akin.evaluate(array, creatures.labels)) == expected, type(array)


def test_a_memory_map(creatures: Creatures, tmp_path: Any) -> None:
    np.save(tmp_path / "embeddings.npy", creatures.embeddings)
    mapped = np.load(tmp_path / "embeddings.npy", mmap_mode="r")
    assert means(akin.evaluate(mapped, creatures.labels)) == means(akin.evaluate(creatures.embeddings, creatures.labels))


def test_packed_bits_are_codes(creatures: Creatures) -> None:
    packed = np.packbits(creatures.embeddings > 0, axis=1)
    report = akin.evaluate(packed, creatures.labels, similarity="hamming")
    assert means(report) == means(akin.evaluate(creatures.embeddings, creatures.labels, similarity="hamming"))


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        ({"embeddings": np.zeros((0, 4))}, akin.EmbeddingsError, "shape [0, 4]"),
        ({"embeddings": np.zeros(12)}, akin.EmbeddingsError, "shape [12]"),
        ({"embeddings": np.zeros((12, 4))}, akin.EmbeddingsError, "all zero"),
        ({"embeddings": np.full((12, 4), np.nan)}, akin.EmbeddingsError, "NaN"),
        ({"embeddings": np.full((12, 4), 1e300)}, akin.EmbeddingsError, "inf"),
        ({"embeddings": np.ones((12, 4), dtype=complex)}, akin.EmbeddingsError, "complex"),
        ({"embeddings": [["a", "b"]] * 12}, akin.EmbeddingsError, "type"),
        ({"embeddings": [[1], [1, 2]]}, akin.EmbeddingsError, "inhomogeneous"),
        ({"embeddings": None}, akin.EmbeddingsError, "shape []"),
        ({"embeddings": np.ones((3, 4))}, akin.TaxonomyError, "3 query embeddings and 12 rows"),
        ({"labels": None}, akin.TaxonomyError, "shape []"),
        ({"labels": [[0, 0], [1]] * 6}, akin.TaxonomyError, "different lengths"),
        ({"labels": [[0, 1], [1, 1]] * 6}, akin.TaxonomyError, "two parents"),
        ({"labels": [None] * 12}, akin.TaxonomyError, "label"),
        ({"labels": {}}, akin.TaxonomyError, "lengths"),
        ({"labels": {"a": [0] * 12, "b": [0]}}, akin.TaxonomyError, "lengths"),
        ({"labels": range(12)}, akin.TaxonomyError, "none of the 12 queries"),
        ({"levels": ["a", "b"]}, akin.TaxonomyError, "`levels` names 2"),
        ({"metrics": ["recal@1"]}, akin.ConfigError, "recal@1"),
        ({"metrics": ["h_ap", "h_ap"]}, akin.ConfigError, "twice"),
        ({"similarity": "cosinus"}, akin.ConfigError, "cosinus"),
        ({"similarity": "poincare:1"}, akin.EmbeddingsError, "outside"),
        ({"relevance": "plane"}, akin.ConfigError, "plane"),
        ({"relevance": [1.0, 2.0]}, akin.ConfigError, "2 weights for 1 level"),
        ({"relevance": "plain:-1"}, akin.ConfigError, "alpha"),
        ({"ties": "random"}, akin.ConfigError, "random"),
        ({"bootstrap": 0}, akin.ConfigError, "0 resamples"),
        ({"bootstrap": -1}, akin.ConfigError, "bootstrap"),
        ({"bootstrap": 10**9}, akin.ConfigError, "too long"),
        ({"decomposability_gap": 500}, akin.ConfigError, "500"),
        ({"hyperbolicity": 1}, akin.ConfigError, "1"),
        ({"gallery": np.ones((12, 4))}, akin.TaxonomyError, "no labels"),
        ({"gallery": np.ones((12, 5)), "gallery_labels": [0] * 12}, akin.EmbeddingsError, "4 numbers"),
        ({"gallery_labels": [0] * 12}, akin.ConfigError, "without `gallery`"),
        ({"places": [0] * 12}, akin.ConfigError, "without `gallery`"),
        ({"groups": [0] * 3}, akin.ConfigError, "group"),
        ({"groups": [None] * 12}, akin.ConfigError, "`groups` is empty in row 0"),
        ({"groups": [0] * 12}, akin.TaxonomyError, "no query has a positive"),
    ],
)
def test_what_is_refused_says_what_to_do(arguments: dict[str, Any], kind: type[akin.Error], says: str) -> None:
    given: dict[str, Any] = {"embeddings": np.eye(12, 4) + 1, "labels": [0, 1, 2] * 4, **arguments}
    with pytest.raises(kind) as raised:
        akin.evaluate(given.pop("embeddings"), given.pop("labels"), **given)
    assert says in raised.value.message, raised.value.message
    assert raised.value.hint
    assert str(raised.value) == f"{raised.value.message}; {raised.value.hint}"


def test_the_report_reads_well(creatures: Creatures) -> None:
    report = akin.evaluate(creatures.embeddings, creatures.labels, metrics="h_ap,recall@1,mistake_severity", bootstrap=50)
    assert report["h_ap"] == report.per_level["h_ap"][0]
    assert report["recall@1", "species"] == report["recall@1", 3] == report.per_level["recall@1"][3]
    assert "all levels" in repr(report)
    assert "300 queries, each ranks 299 items by cosine" in repr(report)
    assert "<table>" in report._repr_html_()
    assert r"recall@1" in report.to_latex()
    assert (report.per_level["h_ap_low"][0] < report["h_ap"]) and (report["h_ap"] < report.per_level["h_ap_high"][0])
    assert list(report.per_query)[:5] == ["query", "closest", "family", "genus", "species"]
    assert report.per_query["species"].tolist() == creatures.labels["species"].tolist()
    assert report.per_query.to_pandas().shape == report.per_query.to_polars().shape == (300, 10)
    worst = report.worst(5)
    assert worst["h_ap"].tolist() == sorted(report.per_query["h_ap"].tolist())[:5]
    severity = report.worst(1, "mistake_severity")["mistake_severity"][0]
    assert severity == np.nanmax(report.per_query["mistake_severity"])
    assert report.worst(1, "recall@1")["species_recall@1"][0] == 0
    with pytest.raises(akin.ConfigError, match="recall@1 has a value at each level"):
        report["recall@1"]
    with pytest.raises(akin.ConfigError, match="no level"):
        report["recall@1", "kingdom"]


def test_a_report_travels(creatures: Creatures) -> None:
    report = akin.evaluate(creatures.embeddings, creatures.labels)
    copy = pickle.loads(pickle.dumps(report))
    assert means(copy) == means(report)
    assert all(np.array_equal(copy.per_query[name], column) for name, column in report.per_query.items() if column.dtype == object)
    assert copy.per_class("genus").rows() == report.per_class("genus").rows()


def test_two_reports_are_compared(creatures: Creatures) -> None:
    report = akin.evaluate(creatures.embeddings, creatures.labels)
    noise = np.random.default_rng(3).normal(size=creatures.embeddings.shape)
    other = akin.evaluate(creatures.embeddings + noise, creatures.labels)
    first = report.compare(other).rows()[0]
    assert first["level"] == "all levels" and first["metric"] == "h_ap"
    assert first["difference"] == pytest.approx((report["h_ap"] or 0) - (other["h_ap"] or 0))
    assert first["p"] < 0.01
    with pytest.raises(akin.ConfigError, match="other labels"):
        report.compare(akin.evaluate(creatures.embeddings[::-1], {k: v[::-1] for k, v in creatures.labels.items()}))


def test_ctrl_c_works_within_a_second() -> None:
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(60_000, 512)).astype(np.float32)
    pressed = 0.0

    def press() -> None:
        nonlocal pressed
        time.sleep(1.0)
        pressed = time.monotonic()
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        akin.evaluate(embeddings, np.arange(60_000) % 500)
    assert time.monotonic() - pressed < 1.0


def test_other_threads_run_meanwhile() -> None:
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(8_000, 256)).astype(np.float32)
    ticks = 0
    done = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    thread = threading.Thread(target=count)
    thread.start()
    akin.evaluate(embeddings, np.arange(8_000) % 100)
    done.set()
    thread.join()
    assert ticks > 10


def test_reports_of_parts_make_that_of_the_whole(creatures: Creatures, queries: Creatures) -> None:
    settings: dict[str, Any] = {"metrics": ["h_ap", "ap", "recall@1"], "bootstrap": 50, "progress": False}
    gallery: dict[str, Any] = {"gallery": creatures.embeddings, "gallery_labels": creatures.labels}
    whole = akin.evaluate(queries.embeddings, queries.labels, **gallery, **settings)

    def part(rows: slice) -> akin.Report:
        labels = {name: column[rows] for name, column in queries.labels.items()}
        return akin.evaluate(queries.embeddings[rows], labels, **gallery, **settings)

    parts = [part(slice(0, 17)), part(slice(17, 18)), part(slice(18, 60))]
    merged = akin.merge(pickle.loads(pickle.dumps(parts)))
    assert merged.to_dict() == whole.to_dict()
    for name, column in whole.per_query.items():
        np.testing.assert_array_equal(merged.per_query[name], column)
    assert {*merged.per_class("species")["species"]} == {*whole.per_class("species")["species"]}
    # Queries that are in the gallery, too.
    rows = np.arange(300)
    among = [
        akin.evaluate(
            creatures.embeddings[some], creatures.rows[some], gallery=creatures.embeddings, gallery_labels=creatures.rows,
            places=rows[some], **settings,
        )
        for some in (slice(0, 100), slice(100, 300))
    ]  # fmt: skip
    assert akin.merge(among).to_dict() == akin.evaluate(creatures.embeddings, creatures.rows, **settings).to_dict()
    other = akin.evaluate(queries.embeddings, queries.labels, **gallery, metrics="ap", progress=False)
    for wrong in ([], [whole, other], [whole, among[0]]):
        with pytest.raises(akin.Error):
            akin.merge(wrong)
