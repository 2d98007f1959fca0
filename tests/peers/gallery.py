"""Opens a gallery of `akin index` with pandas, polars, DuckDB and NumPy, and the table of `akin embed GALLERY` with LanceDB.

    venv/bin/python tests/peers/gallery.py --akin target/release/akin GALLERY

All have to have the same rows, labels and embeddings. Nothing in akin needs this file.
"""

import argparse
import json
import os
import subprocess
import tempfile

import duckdb
import lancedb
import numpy as np
import pandas
import polars
import pyarrow.parquet

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("gallery")
arguments = parser.parse_args()

manifest = json.load(open(os.path.join(arguments.gallery, "gallery.json")))
with tempfile.TemporaryDirectory() as work:
    table = os.path.join(work, "all.parquet")
    subprocess.run([arguments.akin, "embed", arguments.gallery, "--out", table, "--progress", "none"], check=True)
    whole = pyarrow.parquet.read_table(table)
    levels = manifest["levels"]
    assert whole.column_names == ["path", "source", "size", "modified", "sha256", *levels, "embedding"]
    paths, embeddings = whole["path"].to_pylist(), np.array(whole["embedding"].to_pylist(), dtype=np.float32)

    found, vectors = [], []
    for segment in manifest["segments"]:
        folder = os.path.join(arguments.gallery, "segments", f"{segment['number']:06}")
        file = os.path.join(folder, "rows.parquet")
        kept = np.setdiff1d(np.arange(segment["rows"]), segment.get("removed", []))
        rows = pandas.read_parquet(file).iloc[kept]
        assert rows["path"].to_list() == polars.read_parquet(file)[kept.tolist()]["path"].to_list()
        assert len(duckdb.sql(f"select path from '{file}'").fetchall()) == segment["rows"]
        found.append(rows)
        part = np.load(os.path.join(folder, "vectors.npy")).astype(np.float32)
        if manifest["numbers"] == "int8":
            part *= np.load(os.path.join(folder, "scales.npy"))
        vectors.append(part[kept])
    rows = pandas.concat(found)
    assert rows["path"].to_list() == paths
    for level in levels:
        assert rows[level].where(rows[level].notna(), None).to_list() == whole[level].to_pylist()
    assert np.array_equal(np.concatenate(vectors), embeddings)

    items = lancedb.connect(os.path.join(work, "lance")).create_table("items", whole)
    nearest = items.search(embeddings[0], vector_column_name="embedding").limit(1).to_list()
    assert nearest[0]["path"] == paths[0]
    print(f"{len(paths)} rows are the same for pandas, polars, DuckDB, NumPy and LanceDB")
