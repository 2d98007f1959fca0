"""Times the evaluation of `akin` beside what Python has for it, on the same data, in turns, in one sitting:

- numpy's matrix product alone, the floor of any exact evaluation;
- faiss's exact index, the 100 nearest items of every query (its answer is part of what a metric of the whole list needs);
- the naive way in torch: scores, a sort of every list, and AP at every level.

    python3 -m venv venv && venv/bin/pip install -r tests/peers/requirements.txt
    venv/bin/python tests/peers/evaluate.py --akin target/release/akin --items 20000

Nothing in akin needs this file. Every library gets the same number of threads.
"""

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--akin", required=True, help="the program")
parser.add_argument("--items", type=int, default=20_000)
parser.add_argument("--queries", type=int, default=0, help="items of a query set of its own; 0: all rank each other")
parser.add_argument("--dimension", type=int, default=512)
parser.add_argument("--threads", type=int, default=os.cpu_count())
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--only", default="akin,product,faiss,torch", help="what to measure")
parser.add_argument("--memory", type=int, help="`akin eval --memory`; by default that of akin")
parser.add_argument("--folder", help="where the embeddings are written; otherwise a temporary folder")
arguments = parser.parse_args()

for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"]:
    os.environ[variable] = str(arguments.threads)

# After the numbers of threads are set.
import numpy  # noqa: E402

LEVELS = ["coarse", "middle", "fine"]


def write_set(folder, name, count, random, classes):
    """Writes random embeddings and labels in pieces, so that memory stays small; returns the labels."""
    numbers = numpy.lib.format.open_memmap(
        os.path.join(folder, name + ".npy"), "w+", numpy.float32, (count, arguments.dimension)
    )
    for first in range(0, count, 65_536):
        rows = min(65_536, count - first)
        numbers[first : first + rows] = random.random((rows, arguments.dimension), numpy.float32) - 0.5
    numbers.flush()
    del numbers
    fine = random.integers(0, classes, count)
    labels = numpy.stack([fine % 200 % 12, fine % 200, fine])
    with open(os.path.join(folder, name + ".csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(LEVELS)
        table.writerows(labels.T.tolist())
    return labels


def processor_time(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def peak_memory(process):
    """The largest resident memory of a process so far, in KiB; none when it has ended."""
    with open(f"/proc/{process}/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), None)


def product(queries, gallery):
    """All scores, some rows at a time."""
    block = 1024
    out = numpy.empty((block, len(gallery)), numpy.float32)
    for first in range(0, len(queries), block):
        rows = queries[first : first + block]
        numpy.dot(rows, gallery.T, out=out[: len(rows)])


def nearest(queries, gallery):
    """The 100 nearest by the exact index of faiss."""
    import faiss

    faiss.omp_set_num_threads(arguments.threads)
    index = faiss.IndexFlatIP(gallery.shape[1])
    index.add(gallery)
    index.search(queries, 100)


def ranking(queries, gallery, query_labels, labels, same):
    """The mean AP at every level, from a sort of every list."""
    import torch

    torch.set_num_threads(arguments.threads)
    queries, gallery = torch.from_numpy(queries), torch.from_numpy(gallery)
    query_labels, labels = torch.from_numpy(query_labels), torch.from_numpy(labels)
    queries = torch.nn.functional.normalize(queries)
    gallery = torch.nn.functional.normalize(gallery)
    ranks = torch.arange(1, len(gallery) + 1)
    sums, counts = torch.zeros(len(labels), dtype=torch.float64), torch.zeros(len(labels))
    block = 64
    for first in range(0, len(queries), block):
        scores = queries[first : first + block] @ gallery.T
        if same:
            own = torch.arange(first, first + len(scores))
            scores[torch.arange(len(scores)), own] = -torch.inf
        order = scores.argsort(dim=1, descending=True, stable=True)
        for level, (query_level, gallery_level) in enumerate(zip(query_labels, labels)):
            positive = gallery_level[order] == query_level[first : first + block, None]
            if same:
                positive[:, -1] = False
            found = positive.cumsum(1)
            precision = (found / ranks * positive).sum(1, dtype=torch.float64)
            has = found[:, -1] > 0
            sums[level] += (precision[has] / found[has, -1]).sum()
            counts[level] += has.sum()
    return (sums / counts).tolist()


def main():
    random = numpy.random.default_rng(0)
    classes = max(1, arguments.items // 5)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or temporary
        os.makedirs(folder, exist_ok=True)
        labels = write_set(folder, "gallery", arguments.items, random, classes)
        path = lambda name: os.path.join(folder, name)
        command = [arguments.akin, "eval", "--levels", ",".join(LEVELS), "--json"]
        command += ["--memory", str(arguments.memory)] if arguments.memory else []
        query_labels = labels
        if arguments.queries:
            query_labels = write_set(folder, "queries", arguments.queries, random, classes)
            command += ["--gallery", path("gallery.npy"), "--gallery-labels", path("gallery.csv")]
            command += ["--queries", path("queries.npy"), "--query-labels", path("queries.csv")]
        else:
            command += ["--queries", path("gallery.npy"), "--query-labels", path("gallery.csv")]
        results = {}

        def load():
            gallery = numpy.load(path("gallery.npy"))
            return (numpy.load(path("queries.npy")) if arguments.queries else gallery), gallery

        def akin():
            with tempfile.TemporaryFile() as output:
                process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
                # What `wait4` reports begins at the memory of this program.
                while process.poll() is None:
                    results["memory"] = peak_memory(process.pid) or results["memory"]
                    time.sleep(0.05)
                if process.returncode != 0:
                    sys.exit("akin failed")
                output.seek(0)
                results["ap"] = [level["ap"] for level in json.load(output)["levels"]]

        def torch_ranking():
            results["torch"] = ranking(*load(), query_labels, labels, not arguments.queries)

        work = {
            "akin": akin,
            "product": lambda: product(*load()),
            "faiss": lambda: nearest(*load()),
            "torch": torch_ranking,
        }
        chosen = arguments.only.split(",")
        seconds = {name: [] for name in chosen}
        processor = {name: [] for name in chosen}
        for round in range(arguments.rounds):
            for name in chosen:
                who = resource.RUSAGE_CHILDREN if name == "akin" else resource.RUSAGE_SELF
                start, before = time.perf_counter(), processor_time(who)
                work[name]()
                seconds[name].append(time.perf_counter() - start)
                processor[name].append(processor_time(who) - before)
        queries = arguments.queries or arguments.items
        print(
            f"{queries:,} queries, {arguments.items:,} items, {arguments.dimension} dimensions, "
            f"{arguments.threads} threads, load {os.getloadavg()[0]:.1f}, median of {arguments.rounds}"
        )
        print(f"{'':10}{'seconds':>10}{'processor':>12}{'÷ product':>12}")
        floor = statistics.median(processor.get("product", [float("nan")]))
        for name in chosen:
            time_, cpu = statistics.median(seconds[name]), statistics.median(processor[name])
            print(f"{name:10}{time_:>10.2f}{cpu:>12.2f}{cpu / floor:>12.2f}")
        if "memory" in results:
            print(f"peak memory of akin {results['memory'] / 1024:,.0f} MiB, with reading and checking the files")
        if "torch" in results and "ap" in results:
            difference = max(abs(a - b) for a, b in zip(results["torch"], results["ap"]))
            print(f"mean AP of torch and akin differ by {difference:.0e}")


main()
