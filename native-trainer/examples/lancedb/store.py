"""Keeps a gallery of akin in LanceDB, on a disk or in an object store, and searches there.

    python store.py import pictures.gallery s3://bucket/pictures
    python store.py search pictures.gallery s3://bucket/pictures owl.jpg -k 5 --where "family = 'Strigidae'"
    python store.py cost pictures.gallery s3://bucket/pictures

`import` writes the rows and embeddings of the gallery, a column for each level. From a million rows on, or with `--index`, it
makes an IVF-PQ index. `search` embeds the picture with the gallery's encoder, and filters before it searches. What the answers of
the index cost is measured with each import, and by `cost`.

Needs the program `akin` (or AKIN, its path) and the packages lancedb, numpy and pyarrow.
"""

import argparse
import json
import os
import subprocess
import tempfile

import lancedb
import numpy as np
import pyarrow.parquet
from lancedb.index import IvfPq

AKIN = os.environ.get("AKIN", "akin")
INDEXED = 1_000_000
DISTANCES = {"cosine": "cosine", "dot": "dot", "euclidean": "l2"}
QUERIES = 1000


def manifest(gallery):
    with open(os.path.join(gallery, "gallery.json")) as file:
        return json.load(file)


def distance(gallery):
    similarity = manifest(gallery)["similarity"]
    if similarity not in DISTANCES:
        raise SystemExit(f"LanceDB has no distance that orders as {similarity} does")
    return DISTANCES[similarity]


def open_table(place):
    return lancedb.connect(place).open_table("items")


def import_gallery(gallery, place, index):
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "all.parquet")
        subprocess.run([AKIN, "embed", gallery, "--out", file], check=True)
        parquet = pyarrow.parquet.ParquetFile(file)
        dimension = manifest(gallery)["dimension"]
        schema = parquet.schema_arrow
        vectors = pyarrow.list_(pyarrow.float32(), dimension)
        schema = schema.set(schema.get_field_index("embedding"), pyarrow.field("embedding", vectors))
        batches = (batch.cast(schema) for batch in parquet.iter_batches(65_536))
        reader = pyarrow.RecordBatchReader.from_batches(schema, batches)
        table = lancedb.connect(place).create_table("items", reader, mode="overwrite")
    rows = table.count_rows()
    print(f"imported {rows:,} rows")
    if rows >= INDEXED or index:
        parts = next(parts for parts in range(max(1, dimension // 8), 0, -1) if dimension % parts == 0)
        table.create_index("embedding", config=IvfPq(distance_type=distance(gallery), num_sub_vectors=parts))
        print("made an IVF-PQ index")
        cost(gallery, place)


def find(table, gallery, embedding, k, exact=False, where=None):
    search = table.search(embedding, vector_column_name="embedding").distance_type(distance(gallery)).limit(k)
    search = search.bypass_vector_index() if exact else search.nprobes(20).refine_factor(10)
    return search.where(where, prefilter=True) if where else search


def search(gallery, place, picture, k, where):
    line = subprocess.run(
        [AKIN, "embed", gallery, picture, "--out", "-", "--progress", "none"], check=True, capture_output=True, text=True
    ).stdout
    table, levels = open_table(place), manifest(gallery)["levels"]
    found = find(table, gallery, json.loads(line)["embedding"], k, where=where)
    for row in found.select(["path", *levels, "_distance"]).to_list():
        print(f"{row['_distance']:.4f}  {row['path']}  {' > '.join(row[level] for level in levels if row[level])}")
    if table.list_indices():
        print("an index found them, which may miss some: `cost` says how many")


def h_ap(relevances, best):
    """H-AP of a list with these relevances, against the sum of the best list: Σ H-rank(i) / rank(i) / Σ rel(i)."""
    ranks = [np.minimum(relevances[: i + 1], relevances[i]).sum() / (i + 1) for i in range(len(relevances))]
    return sum(ranks) / best if best else 0.0


def cost(gallery, place, k=10, depth=100):
    """1,000 of the gallery's own items search exactly and by the index."""
    table, levels = open_table(place), manifest(gallery)["levels"]
    if not table.list_indices():
        print("there is no index, so every answer is exact")
        return
    count = table.count_rows()
    generator = np.random.default_rng(0)
    chosen = np.sort(generator.choice(count, min(QUERIES, count), replace=False))
    queries = table.take_offsets(chosen.tolist()).select(["path", *levels, "embedding"]).to_list()
    recalls, exact_scores, scores = [], [], []
    for query in queries:
        lists = []
        for exact in [True, False]:
            rows = find(table, gallery, query["embedding"], depth + 1, exact).select(["path", *levels, "_distance"]).to_list()
            lists.append([row for row in rows if row["path"] != query["path"]][:depth])
        # The share of levels that are the same, from the coarsest on.
        shared = [
            np.array([next((i for i, name in enumerate(levels) if row[name] != query[name]), len(levels)) for row in rows])
            / len(levels)
            for rows in lists
        ]
        recalls.append(len({row["path"] for row in lists[0][:k]} & {row["path"] for row in lists[1][:k]}) / k)
        exact_scores.append(h_ap(shared[0], shared[0].sum()))
        scores.append(h_ap(shared[1], shared[0].sum()))
    print(f"{len(queries):,} queries             exact    index")
    print(f"recall@{k:<3}             100.00  {100 * np.mean(recalls):7.2f}")
    print(f"H-AP of the first {depth}  {100 * np.mean(exact_scores):6.2f}  {100 * np.mean(scores):7.2f}")


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
commands = parser.add_subparsers(dest="command", required=True)
for name in ["import", "search", "cost"]:
    command = commands.add_parser(name)
    command.add_argument("gallery", help="the folder that `akin index` wrote")
    command.add_argument("place", help="a folder or an address that LanceDB takes")
    if name == "import":
        command.add_argument("--index", action="store_true", help="make an index, also for fewer than a million rows")
    if name == "search":
        command.add_argument("picture")
        command.add_argument("-k", type=int, default=10)
        command.add_argument("--where", help="a condition on the columns, as in SQL")
arguments = parser.parse_args()
if arguments.command == "import":
    import_gallery(arguments.gallery, arguments.place, arguments.index)
elif arguments.command == "search":
    search(arguments.gallery, arguments.place, arguments.picture, arguments.k, arguments.where)
else:
    cost(arguments.gallery, arguments.place)
