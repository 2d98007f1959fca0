"""Runs akin on a Ray cluster: the shards of an evaluation, the trainings of a comparison, or the parts of a gallery.

    python cluster.py eval --shards 16 --parts DIR -- OPTIONS OF akin eval
    python cluster.py compare -- CONFIG --out DIR AND OTHER OPTIONS OF akin compare
    python cluster.py index --count 16 --parts DIR --out GALLERY -- MODEL TABLE.csv OPTIONS OF akin index

Every machine of the cluster needs `akin` (or AKIN, the path of the program) and the folders of the command line.
The README beside this file has examples.
"""

import argparse
import csv
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ray

AKIN = os.environ.get("AKIN", "akin")


@ray.remote(max_retries=2)  # after the loss of a machine
def run(command: list[str], folder: str) -> subprocess.CompletedProcess:
    """Runs a command on some machine of the cluster."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


class Cluster:
    def __init__(self, cpus: float, gpus: float):
        self.task = run.options(num_cpus=cpus, num_gpus=gpus)

    def one(self, command: list[str]) -> str:
        """What a command prints. Ends the program if it fails."""
        answer = ray.get(self.task.remote(command, os.getcwd()))
        sys.stderr.write(answer.stderr)
        if answer.returncode != 0:
            sys.exit(answer.returncode)
        return answer.stdout

    def all(self, commands: list[list[str]]) -> int:
        """Runs commands at the same time. Returns how many failed."""
        running = {self.task.remote(command, os.getcwd()): command for command in commands}
        failed = 0
        while running:
            [done], _ = ray.wait(list(running), num_returns=1)
            command, answer = running.pop(done), ray.get(done)
            failed += answer.returncode != 0
            words = "done" if answer.returncode == 0 else "FAILED"
            print(f"{words}: {shlex.join(command)}; {len(running)} left", file=sys.stderr)
            if answer.returncode != 0:
                sys.stderr.write(answer.stderr)
        return failed


def evaluate(cluster: Cluster, shards: int, parts: Path, options: list[str]) -> None:
    """Scores the shards, and prints the report of all as JSON. akin keeps parts of the same evaluation that are there."""
    parts.mkdir(parents=True, exist_ok=True)
    files = [parts / f"part-{number}.json" for number in range(1, shards + 1)]
    commands = [
        [AKIN, "eval", *options, "--shard", f"{number}/{shards}", "--out", str(file)]
        for number, file in enumerate(files, start=1)
    ]
    if failed := cluster.all(commands):
        sys.exit(f"{failed} of {shards} shards failed; the same command scores them again")
    print(cluster.one([AKIN, "eval", "--json", "--merge", *map(str, files)]), end="")


def compare(cluster: Cluster, options: list[str]) -> None:
    """Trains every cell of a comparison once, and prints the table."""
    tried: set[str] = set()
    while True:
        # Settings are tuned one after another: when these cells are done, there may be others.
        listed = cluster.one([AKIN, "compare", *options, "--cells"]).splitlines()
        lines = [line for line in listed if line not in tried]
        if not lines:
            break
        tried.update(lines)
        cluster.all([[AKIN, *shlex.split(line)[1:]] for line in lines])
    # Tries once more what has failed.
    print(cluster.one([AKIN, "compare", *options]), end="")


def index(cluster: Cluster, count: int, parts: Path, out: Path, options: list[str]) -> None:
    """Embeds the pictures of a table in parts, and joins these. A part that is there is kept."""
    if out.exists():
        sys.exit(f"{out} exists; `akin index {out} --add` adds to a gallery")
    model, table, *others = options
    parts.mkdir(parents=True, exist_ok=True)
    with open(table, newline="") as file:
        header, *rows = csv.reader(file)
    folders, commands, tables = [], [], []
    for number in range(count):
        folders.append(parts / f"part-{number + 1}.gallery")
        if (folders[-1] / "segments").is_dir():
            continue
        # Beside the table, so that paths begin in the same folder.
        tables.append(Path(table).with_suffix(f".part-{number + 1}-of-{count}.csv"))
        with open(tables[-1], "w", newline="") as file:
            part = rows[len(rows) * number // count : len(rows) * (number + 1) // count]
            csv.writer(file, lineterminator="\n").writerows([header, *part])
        commands.append([AKIN, "index", model, str(tables[-1]), "--out", str(folders[-1]), *others])
    failed = cluster.all(commands)
    for file in tables:
        file.unlink()
    if failed:
        sys.exit(f"{failed} of {count} parts failed; the same command makes them again")
    shutil.copytree(folders[0], out)
    if count > 1:
        print(cluster.one([AKIN, "index", str(out), "--collect", *map(str, folders[1:])]), end="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(dest="what", required=True)
    for name in ["eval", "compare", "index"]:
        command = what.add_parser(name)
        command.add_argument("--cpus", type=float, default=1, help="CPUs for each process")
        command.add_argument("--gpus", type=float, default=0, help="GPUs for each process")
        if name == "eval":
            command.add_argument("--shards", type=int, required=True)
        if name == "index":
            command.add_argument("--count", type=int, required=True, help="the number of parts")
            command.add_argument("--out", type=Path, required=True, help="the gallery to make")
        if name != "compare":
            command.add_argument("--parts", type=Path, required=True, help="a shared folder")
        command.add_argument("options", nargs="+", help="options of akin, after --")
    args = parser.parse_args()
    ray.init()  # the cluster of RAY_ADDRESS, or this machine alone
    cluster = Cluster(args.cpus, args.gpus)
    if args.what == "eval":
        evaluate(cluster, args.shards, args.parts, args.options)
    elif args.what == "index":
        index(cluster, args.count, args.parts, args.out, args.options)
    else:
        compare(cluster, args.options)


if __name__ == "__main__":
    main()
