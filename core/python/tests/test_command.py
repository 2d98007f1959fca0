"""`akin.evaluate` reports the digits of `akin eval`. AKIN is the binary."""

import csv
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import akin
import numpy as np
import pytest
from conftest import Creatures

AKIN = os.environ.get("AKIN")

pytestmark = pytest.mark.skipif(AKIN is None, reason="AKIN does not name the binary of akin to compare with")

LEVELS = "family,genus,species"


def command(*options: str) -> dict[str, Any]:
    """The report that the command prints."""
    assert AKIN is not None
    done = subprocess.run([AKIN, "eval", "--json", "--levels", LEVELS, *options], capture_output=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def write(folder: Path, name: str, creatures: Creatures, **more: Any) -> list[str]:
    """Writes a set, and returns its files."""
    embeddings, labels = folder / f"{name}.npy", folder / f"{name}.csv"
    np.save(embeddings, creatures.embeddings)
    columns = {**creatures.labels, **more}
    with labels.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
    return [str(embeddings), str(labels)]


METRICS = "h_ap,ndcg,asi,ap,map_at_r,recall@1,recall@10,true_recall@10,precision@5,mrr,h_precision@10,mahp@20"


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        ([], {}),
        (["--metrics", METRICS], {"metrics": METRICS.split(",")}),
        (["--similarity", "euclidean", "--ties", "pessimistic"], {"similarity": "euclidean", "ties": "pessimistic"}),
        (["--similarity", "hamming", "--ties", "shared"], {"similarity": "hamming", "ties": "shared"}),
        (["--relevance", "plain:2", "--count-query"], {"relevance": "plain:2", "count_query": True}),
        (["--relevance", "weighted_ap:0.2,0.3,0.5"], {"relevance": [0.2, 0.3, 0.5]}),
        (["--bootstrap", "200"], {"bootstrap": 200}),
        (["--decomposability-gap", "50", "--hyperbolicity", "40"], {"decomposability_gap": 50, "hyperbolicity": 40}),
        (["--qualify"], {"qualify": True}),
    ],
)
def test_a_set_that_ranks_itself(
    creatures: Creatures, tmp_path: Path, options: list[str], arguments: dict[str, Any]
) -> None:
    embeddings, labels = write(tmp_path, "all", creatures)
    expected = command("--queries", embeddings, "--query-labels", labels, *options)
    report = akin.evaluate(creatures.embeddings, creatures.labels, **arguments)
    assert report.to_dict() == expected


def test_a_gallery(creatures: Creatures, queries: Creatures, tmp_path: Path) -> None:
    files = [*write(tmp_path, "queries", queries), *write(tmp_path, "gallery", creatures)]
    options = zip(["--queries", "--query-labels", "--gallery", "--gallery-labels"], files, strict=True)
    expected = command(*[word for pair in options for word in pair])
    report = akin.evaluate(
        queries.embeddings, queries.labels, gallery=creatures.embeddings, gallery_labels=creatures.labels
    )
    assert report.to_dict() == expected


def test_unknown_labels(creatures: Creatures, tmp_path: Path) -> None:
    labels = {level: column.astype(object) for level, column in creatures.labels.items()}
    labels["species"][::7] = ""
    labels["genus"][::14] = ""
    cut = Creatures(300, seed=0)
    cut.labels = labels
    embeddings, file = write(tmp_path, "cut", cut)
    expected = command("--queries", embeddings, "--query-labels", file)
    assert akin.evaluate(creatures.embeddings, labels).to_dict() == expected
    named = {level: np.where(column == "", "?", column) for level, column in labels.items()}
    assert akin.evaluate(creatures.embeddings, named, unknown="?").to_dict() == expected


def test_groups(creatures: Creatures, tmp_path: Path) -> None:
    bursts = np.arange(300) // 4
    embeddings, labels = write(tmp_path, "all", creatures, burst=bursts)
    expected = command("--queries", embeddings, "--query-labels", labels, "--group-column", "burst")
    assert akin.evaluate(creatures.embeddings, creatures.labels, groups=bursts).to_dict() == expected


def test_junk(creatures: Creatures, queries: Creatures, tmp_path: Path) -> None:
    junk = [["species 1", "species 4"] if item % 5 == 0 else [] for item in range(300)]
    files = [
        *write(tmp_path, "queries", queries),
        *write(tmp_path, "gallery", creatures, junk=[";".join(names) for names in junk]),
    ]
    options = zip(["--queries", "--query-labels", "--gallery", "--gallery-labels"], files, strict=True)
    expected = command(*[word for pair in options for word in pair], "--junk-column", "junk")
    report = akin.evaluate(
        queries.embeddings, queries.labels, gallery=creatures.embeddings, gallery_labels=creatures.labels, junk=junk
    )
    assert report.to_dict() == expected


def test_queries_in_the_gallery(creatures: Creatures, tmp_path: Path) -> None:
    places = np.arange(0, 300, 9)
    some = Creatures(300, seed=0)
    some.embeddings = creatures.embeddings[places]
    some.labels = {level: column[places] for level, column in creatures.labels.items()}
    files = [*write(tmp_path, "queries", some, path=places), *write(tmp_path, "gallery", creatures, path=np.arange(300))]
    options = zip(["--queries", "--query-labels", "--gallery", "--gallery-labels"], files, strict=True)
    expected = command(*[word for pair in options for word in pair], "--path-column", "path")
    report = akin.evaluate(
        some.embeddings, some.labels, gallery=creatures.embeddings, gallery_labels=creatures.labels, places=places
    )
    assert report.to_dict() == expected


def test_classes_and_queries(creatures: Creatures, tmp_path: Path) -> None:
    embeddings, labels = write(tmp_path, "all", creatures)
    files = ["--queries", embeddings, "--query-labels", labels]
    expected = command(*files, "--by-class", "genus")["by_class"]
    report = akin.evaluate(creatures.embeddings, creatures.labels)
    rows = report.per_class("genus").rows()
    assert rows == [
        {"genus": row["name"], "queries": row["queries"], **{metric: row[metric] for metric in report.metrics}}
        for row in expected["classes"]
    ]
    assert report.macro_average("genus") == {metric: expected["macro_average"][metric] for metric in report.metrics}

    file = tmp_path / "queries.csv"
    command(*files, "--per-query", str(file))
    written = list(csv.DictReader(file.open()))
    table = report.per_query
    for column in written[0]:
        assert [float(row[column] or "nan") for row in written] == pytest.approx(table[column].tolist(), nan_ok=True, abs=0)
