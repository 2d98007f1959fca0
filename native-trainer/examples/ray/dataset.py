"""Evaluates a Parquet data set of embeddings with Ray Data: every worker ranks the whole set for a part of its rows.

    akin embed photos.gallery --out all.parquet
    python dataset.py all.parquet --levels family,species --workers 8 --parts 64 --out report.json

Writes the report as JSON. It is that of a single machine, digit for digit. A part whose worker is lost is scored again.
"""

import argparse
import json
import pickle
from pathlib import Path

import akin
import pyarrow.parquet
import ray


class Evaluate:
    """The state of a worker: the whole set."""

    def __init__(self, path: str, levels: list[str], metrics: str, bootstrap: int | None):
        table = pyarrow.parquet.read_table(path, columns=["embedding", *levels])
        values = table["embedding"].combine_chunks().flatten().to_numpy()
        self.embeddings = values.reshape(len(table), -1)
        self.labels = {level: table[level].to_numpy() for level in levels}
        self.settings = {"metrics": metrics, "bootstrap": bootstrap, "progress": False}

    def __call__(self, batch: dict) -> dict:
        rows = batch["id"]
        report = akin.evaluate(
            self.embeddings[rows],
            {level: names[rows] for level, names in self.labels.items()},
            gallery=self.embeddings,
            gallery_labels=self.labels,
            places=rows,
            **self.settings,
        )
        return {"first": [rows[0]], "report": [pickle.dumps(report)]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="a Parquet file with the column embedding, and a column per level")
    parser.add_argument("--levels", required=True, help="the columns of the levels, coarse to fine")
    parser.add_argument("--out", required=True, help="where the report is written")
    parser.add_argument("--metrics", default="h_ap,ap,recall@1")
    parser.add_argument("--bootstrap", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=1, help="CPUs for each worker; Ray needs a part of one to read")
    parser.add_argument("--parts", type=int, default=8)
    args = parser.parse_args()
    ray.init()  # the cluster of RAY_ADDRESS, or this machine alone
    count = pyarrow.parquet.read_metadata(args.path).num_rows
    parts = ray.data.range(count, override_num_blocks=args.parts).map_batches(
        Evaluate,
        fn_constructor_args=(args.path, args.levels.split(","), args.metrics, args.bootstrap),
        batch_size=None,
        compute=ray.data.ActorPoolStrategy(size=args.workers),
        num_cpus=args.cpus,
        max_restarts=-1,
        max_task_retries=-1,
    )
    found = sorted(parts.take_all(), key=lambda part: part["first"])
    report = akin.merge([pickle.loads(part["report"]) for part in found])
    Path(args.out).write_text(json.dumps(report.to_dict(), indent=2) + "\n")
    print(report)


if __name__ == "__main__":
    main()
