"""Times the search of `akin serve` beside faiss, usearch and LanceDB, on the same data, in turns, in one sitting.

    cargo build --release -p native-trainer -p akin-gallery --bin akin --example clusters
    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/search.py target/release --rows 1000000 --dimension 256

The data are embeddings in 100 clusters. Queries are rows with noise. akin answers over HTTP with all that a program gets: scores,
labels, the addresses of thumbnails. The others are called in this process. Each has the same number of threads.

- one, batch: milliseconds of one query, and of each of 100 that are asked together; the median and the 95th of 100;
- filter: one query among the rows of one cluster, 1 % of all; empty where the library has no filter before the search;
- cold: the first query after the index was opened, with the opening;
- add: seconds to add 10,000 rows;
- recall, H-AP: of the first 10, and of the first 100 against those of an exact search, in percent.

Nothing in akin needs this file.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
import urllib.request

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("programs", help="the folder with `akin` and `examples/clusters`")
parser.add_argument("--rows", type=int, default=100_000)
parser.add_argument("--dimension", type=int, default=512)
parser.add_argument("--numbers", default="float32", help="how the gallery stores numbers: float32, float16 or int8")
parser.add_argument("--only", default="akin,faiss flat,faiss HNSW,usearch,LanceDB")
parser.add_argument("--rounds", type=int, default=100, help="single queries of each, in turns")
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--folder", help="where the galleries are written; otherwise a temporary folder")
arguments = parser.parse_args()
for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "LANCE_CPU_THREADS"]:
    os.environ[variable] = str(arguments.threads)

# After the numbers of threads are set.
import numpy as np  # noqa: E402

N, D, CLASSES, ADDED, BATCH = arguments.rows, arguments.dimension, 100, 10_000, 100
work = arguments.folder or tempfile.mkdtemp(prefix="akin-search-")
gallery = os.path.join(work, f"gallery-{N}-{D}-{arguments.numbers}")


def clusters(rows, *more):
    program = os.path.join(arguments.programs, "examples", "clusters")
    subprocess.run([program, gallery, str(rows), str(D), arguments.numbers, str(CLASSES), *more], check=True)


def rows_of_gallery():
    """The embeddings as the gallery has them, of unit length."""
    parts = []
    for segment in sorted(os.listdir(os.path.join(gallery, "segments"))):
        folder = os.path.join(gallery, "segments", segment)
        part = np.load(os.path.join(folder, "vectors.npy")).astype(np.float32)
        if arguments.numbers == "int8":
            part *= np.load(os.path.join(folder, "scales.npy"))
        parts.append(part)
    rows = np.concatenate(parts)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


if not os.path.exists(gallery):
    clusters(N)
rows = rows_of_gallery()[:N]
classes = np.arange(N) * 7919 % CLASSES
generator = np.random.default_rng(0)
chosen = generator.integers(0, N, BATCH)
queries = rows[chosen] + generator.normal(0, 0.5 / np.sqrt(D), (BATCH, D)).astype(np.float32)
queries /= np.linalg.norm(queries, axis=1, keepdims=True)
query_classes = classes[chosen]


def resident():
    """The memory of this process, in MB."""
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6


class Akin:
    """`akin serve`, over HTTP."""

    def __init__(self):
        self.bytes_per_row = sum(
            os.path.getsize(os.path.join(folder, file))
            for folder, _, files in os.walk(os.path.join(gallery, "segments"))
            for file in files
        ) / N
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            [os.path.join(arguments.programs, "akin"), "serve", gallery, "--port", "0", "--device", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()

    def ask(self, queries, k, filtered=None):
        body = {"embeddings": queries.tolist(), "count": k}
        if filtered is not None:
            body["within"] = [f"cluster {filtered}"]
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            self.address + "search", data, {"Content-Type": "application/json"}
        )
        answer = json.load(urllib.request.urlopen(request))
        self.scored = [query["scored"] for query in answer["queries"]]
        return [[item["item"] for item in query["items"]] for query in answer["queries"]]

    def add(self, _):
        clusters(ADDED, "more")

    def memory(self):
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) / 1e3

    def end(self):
        self.process.kill()


class Faiss:
    """faiss, flat or HNSW (M = 32, efConstruction = 64, efSearch = 64)."""

    def __init__(self, kind):
        import faiss

        faiss.omp_set_num_threads(arguments.threads)
        before, self.begun = resident(), time.perf_counter()
        if kind == "flat":
            self.index = faiss.IndexFlatIP(D)
        else:
            self.index = faiss.IndexHNSWFlat(D, 32, faiss.METRIC_INNER_PRODUCT)
            self.index.hnsw.efConstruction = self.index.hnsw.efSearch = 64
        self.kind, self.faiss = kind, faiss
        self.index.add(rows)
        self.used = resident() - before
        self.bytes_per_row = self.used * 1e6 / N

    def ask(self, queries, k, filtered=None):
        parameters = None
        if filtered is not None:
            selector = self.faiss.IDSelectorBatch(np.flatnonzero(classes == filtered))
            make = self.faiss.SearchParametersHNSW if self.kind == "HNSW" else self.faiss.SearchParameters
            parameters = make(sel=selector)
        return self.index.search(queries, k, params=parameters)[1].tolist()

    def add(self, more):
        self.index.add(more)

    def memory(self):
        return self.used

    def end(self):
        del self.index


class Usearch:
    """usearch, HNSW in float32 with its defaults."""

    def __init__(self):
        from usearch.index import Index

        before, self.begun = resident(), time.perf_counter()
        self.index = Index(ndim=D, metric="ip", dtype="f32")
        self.index.add(np.arange(N), rows, threads=arguments.threads)
        self.used = resident() - before
        self.bytes_per_row = self.used * 1e6 / N

    def ask(self, queries, k, filtered=None):
        if filtered is not None:
            return None
        found = self.index.search(queries, k, threads=arguments.threads)
        keys = np.atleast_2d(found.keys)
        return keys.tolist()

    def add(self, more):
        self.index.add(np.arange(N, N + len(more)), more, threads=arguments.threads)

    def memory(self):
        return self.used

    def end(self):
        del self.index


class Lance:
    """LanceDB on disk: exact, and IVF-PQ from a million rows on."""

    def __init__(self):
        import lancedb.index
        import pyarrow as pa

        before, self.begun = resident(), time.perf_counter()
        self.pa, self.folder = pa, os.path.join(work, "lance")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.table = lancedb.connect(self.folder).create_table("items", self.rows(rows, np.arange(N), classes))
        if N >= 1_000_000:
            index = lancedb.index.IvfPq(distance_type="dot", num_partitions=1024, num_sub_vectors=D // 8)
            self.table.create_index("vector", config=index)
        self.used = resident() - before
        self.bytes_per_row = sum(
            os.path.getsize(os.path.join(folder, file)) for folder, _, files in os.walk(self.folder) for file in files
        ) / N

    def rows(self, rows, items, classes):
        pa = self.pa
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).reshape(-1)), D)
        return pa.table({"item": items, "cluster": classes, "vector": vectors})

    def ask(self, queries, k, filtered=None):
        found = []
        for query in queries:
            search = self.table.search(query).distance_type("dot").select(["item"]).limit(k)
            if N >= 1_000_000:
                search = search.nprobes(20).refine_factor(10)
            if filtered is not None:
                search = search.where(f"cluster = {filtered}", prefilter=True)
            found.append(search.to_arrow()["item"].to_pylist())
        return found

    def add(self, more):
        self.table.add(self.rows(more, np.arange(N, N + len(more)), np.zeros(len(more), dtype=np.int64)))

    def memory(self):
        return self.used

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)


MAKERS = {
    "akin": Akin,
    "faiss flat": lambda: Faiss("flat"),
    "faiss HNSW": lambda: Faiss("HNSW"),
    "usearch": Usearch,
    "LanceDB": Lance,
}


def h_ap(found, exact, own):
    """H-AP of the first 100 with levels `half` and `cluster`, against the relevance that an exact search has there."""

    def relevances(items):
        found = classes[np.array(items)]
        return 0.5 * (found % 2 == own % 2) + 0.5 * (found == own)

    relevance = relevances(found)
    ranks = [np.minimum(relevance[: i + 1], relevance[i]).sum() / (i + 1) for i in range(len(relevance))]
    return sum(ranks) / relevances(exact).sum()


def timed(call):
    begun = time.perf_counter()
    result = call()
    return 1e3 * (time.perf_counter() - begun), result


scores = queries @ rows.T
exact = np.argsort(-scores, axis=1, kind="stable")[:, :100]
del scores
more = rows[generator.integers(0, N, ADDED)].copy()

engines, times = {}, {}
for name in arguments.only.split(","):
    engine = engines[name] = MAKERS[name]()
    ready = time.perf_counter() - engine.begun
    first, _ = timed(lambda: engine.ask(queries[:1], 10))
    times[name] = {"ready": ready, "first": first, "one": [], "filter": [], "batch": []}
    print(f"{name}: ready after {ready:.1f} s, the first query {first:.0f} ms", flush=True)
for turn in range(arguments.rounds):
    at = turn % BATCH
    for name, engine in engines.items():
        times[name]["one"].append(timed(lambda: engine.ask(queries[at : at + 1], 10))[0])
        took, found = timed(lambda: engine.ask(queries[at : at + 1], 10, int(query_classes[at])))
        if found is not None:
            times[name]["filter"].append(took)
        if turn < 5:
            times[name]["batch"].append(timed(lambda: engine.ask(queries, 10))[0] / BATCH)

print(f"\n{N:,} x {D}, {arguments.numbers}, {arguments.threads} threads, {time.strftime('%Y-%m-%d')}; milliseconds, median and 95th\n")
print("| | ready s | one | batch of 100, each | filter 1 % | add 10,000 s | bytes a row | memory MB | recall@10 | H-AP@100 |")
print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
for name, engine in engines.items():
    t = times[name]
    first_100 = engine.ask(queries, 100)
    recall = np.mean([len(set(a[:10]) & set(b[:10])) / 10 for a, b in zip(first_100, exact)])
    score = np.mean([h_ap(a, b, own) for a, b, own in zip(first_100, exact, query_classes)])
    best = np.mean([h_ap(b, b, own) for b, own in zip(exact, query_classes)])
    cell = lambda values: f"{np.median(values):.1f} / {np.percentile(values, 95):.1f}" if values else ""  # noqa: E731
    memory = engine.memory()
    scored = f"akin scored {np.mean(engine.scored):.0f} rows a query for 100 items" if name == "akin" else ""
    add, _ = timed(lambda: engine.add(more))
    print(
        f"| {name} | {t['ready']:.1f} | {cell(t['one'])} | {cell(t['batch'])} | {cell(t['filter'])} | {add / 1e3:.2f} "
        f"| {engine.bytes_per_row:.0f} | {memory:.0f} | {100 * recall:.1f} | {100 * score / best:.2f} % |",
        flush=True,
    )
    if scored:
        print(scored, flush=True)
for engine in engines.values():
    engine.end()
if not arguments.folder:
    shutil.rmtree(work)
