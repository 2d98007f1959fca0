"""Makes certainty.md and certainty.csv: whether `akin classify` keeps its promises.

    python3 certainty.py AKIN OMNIGLOT_RUN WORK

AKIN is the program, OMNIGLOT_RUN a run of `akin train omniglot` (or happier/seed-0 of `akin compare omniglot`), and WORK
a folder for embeddings and splits. $AKIN_DATA holds grocery/, omniglot/ and weights/. Only the standard library is used.

Five times, each data set is split at random: a tenth of the finest classes that have a sister is held out, of the other
images a fifth are queries and the rest is the gallery. `akin eval --certainty` then asks the gallery with the queries,
with the images of the classes held out, and with images of another data set.
"""

import csv
import json
import math
import os
import random
import subprocess
import sys
from array import array
from pathlib import Path

AKIN, OMNIGLOT_RUN, WORK = sys.argv[1], sys.argv[2], Path(sys.argv[3])
DATA = Path(os.environ["AKIN_DATA"])
HERE = Path(__file__).parent
SPLITS = 5
FOREIGN = 1000

IMAGENET = """
[data]
kind = "csv"
path = "{data}/grocery/labels.csv"
levels = ["department", "kind", "variety"]
[model]
backbone = {{ kind = "squeezenet" }}
weights = "{data}/weights/squeezenet1_1_imagenet_f16.safetensors"
preprocessing = {{ name = "caffe", crop = 128 }}
"""


def akin(*arguments):
    return subprocess.run([AKIN, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


class Set:
    """Images with labels and their embeddings."""

    def __init__(self, name, model, folder, levels, keep=lambda row: True):
        self.name, self.model, self.levels = name, model, levels
        with open(folder / "labels.csv", newline="") as file:
            rows = [row for row in csv.DictReader(file) if keep(row)]
        # A class is named by its whole path, so that equal names under two parents stay two classes.
        self.labels = [["/".join(row[level] for level in levels[: i + 1]) for i in range(len(levels))] for row in rows]
        self.paths = [str(folder / row["path"]) for row in rows]
        self.vectors = embed(name, model, self.paths)


def embed(name, model, paths):
    """The embeddings, row by row."""
    out = WORK / f"{name}.npy"
    if not out.exists():
        # A command line holds only so many paths.
        folder = WORK / f"{name}-images"
        folder.mkdir(parents=True, exist_ok=True)
        for place, path in enumerate(paths):
            link = folder / f"{place:06}{Path(path).suffix}"
            link.unlink(missing_ok=True)
            link.symlink_to(path)
        akin("embed", model, folder, "--out", out, "--overwrite")
    data = out.read_bytes()
    header = 10 + int.from_bytes(data[8:10], "little")
    numbers = array("f")
    numbers.frombytes(data[header:])
    width = len(numbers) // len(paths)
    return [numbers[i * width : (i + 1) * width] for i in range(len(paths))]


def write(name, vectors, labels, levels):
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(vectors)}, {len(vectors[0])}), }}"
    text = shape.ljust(117) + "\n"
    with open(WORK / f"{name}.npy", "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode())
        for vector in vectors:
            vector.tofile(file)
    with open(WORK / f"{name}-labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([levels, *labels])


def measure(queries, levels):
    report = akin(
        "eval", "--queries", WORK / f"{queries}.npy", "--query-labels", WORK / f"{queries}-labels.csv",
        "--gallery", WORK / "gallery.npy", "--gallery-labels", WORK / "gallery-labels.csv",
        "--levels", ",".join(levels), "--certainty", "--json", "--progress", "none",
    )  # fmt: skip
    return json.loads(report)["certainty"]["rows"]


def split(data, seed):
    """The rows of the table for the queries, those of classes held out, and those of another data set."""
    draw = random.Random(seed)
    sisters = {}
    for path in data.labels:
        sisters.setdefault(path[-2], set()).add(path[-1])
    candidates = sorted(leaf for leaves in sisters.values() if len(leaves) > 1 for leaf in leaves)
    held = set()
    for leaf in draw.sample(candidates, len(candidates)):
        family = next(leaves for leaves in sisters.values() if leaf in leaves)
        if len(held) < len(candidates) // 10 and len(family - held) > 1:
            held.add(leaf)
    items = list(range(len(data.labels)))
    draw.shuffle(items)
    known = [item for item in items if data.labels[item][-1] not in held]
    parts = {
        "queries": known[: len(known) // 5],
        "gallery": known[len(known) // 5 :],
        "held-out": [item for item in items if data.labels[item][-1] in held],
    }
    for name, part in parts.items():
        write(name, [data.vectors[item] for item in part], [data.labels[item] for item in part], data.levels)
    # Images that share no class with the gallery cannot be evaluated alone, so they ask together with the queries.
    foreign = [[f"another data set {level}" for level in data.levels]] * len(data.foreign)
    vectors = [data.vectors[item] for item in parts["queries"]] + data.foreign
    write("both", vectors, [data.labels[item] for item in parts["queries"]] + foreign, data.levels)
    own, held_out, both = [measure(name, data.levels) for name in ["queries", "held-out", "both"]]
    return [own, held_out, [difference(*rows) for rows in zip(both, own)]]


def difference(both, own):
    """The answers to the images of another data set alone."""
    counts = {key: both[key] - own[key] for key in ["queries", "nothing_like_it"]}
    return counts | {"reached": [a - b for a, b in zip(both["reached"], own["reached"])]}


def mean_and_error(values):
    mean = sum(values) / len(values)
    if len(values) < 2:
        return mean, 0.0
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, deviation / math.sqrt(len(values))


def share(part, whole):
    return 100 * part / whole if whole else None


def numbers(own, held, foreign):
    """The numbers of one split, one method and one promise."""
    level = lambda row: sum(depth * count for depth, count in enumerate(row["reached"])) / row["queries"]
    answered = own["queries"] - own["reached"][0]
    # The fixed level was chosen on the images that ask.
    fixed = own["answers_by"].startswith(("always", "never"))
    return {
        "right": share(own["right"], own["judged"]),
        "answered": share(answered, own["queries"]),
        "finest level": share(own["reached"][-1], own["queries"]),
        "mean level": level(own),
        "told unlike": share(own["nothing_like_it"], own["queries"]),
        "held-out: rightly above": None if fixed else share(held["right"], held["queries"]),
        "held-out: too far": None if fixed else share(held["judged"] - held["right"], held["queries"]),
        "other data: unlike": None if fixed else share(foreign["nothing_like_it"], foreign["queries"]),
        "other data: answered": None if fixed else share(foreign["queries"] - foreign["reached"][0], foreign["queries"]),
    }


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    config = WORK / "imagenet.toml"
    config.write_text(IMAGENET.format(data=DATA))
    creatures = WORK / "creatures"
    if not creatures.exists():
        akin("biomorphs", creatures)
    sets = [
        Set("groceries", config, DATA / "grocery", ["department", "kind", "variety"]),
        Set("omniglot", OMNIGLOT_RUN, DATA / "omniglot", ["alphabet", "character"], lambda row: row["split"] == "test"),
        Set("creatures", config, creatures, ["order", "family", "species"]),
    ]
    for data, other in [(sets[0], sets[1]), (sets[1], sets[0]), (sets[2], sets[0])]:
        paths = random.Random(0).sample(other.paths, FOREIGN)
        data.foreign = embed(f"{other.name}-for-{data.name}", data.model, paths)

    table, records = [], []
    for data in sets:
        found = {}
        for seed in range(SPLITS):
            for own, held, foreign in zip(*split(data, seed)):
                by = "always" if own["answers_by"].startswith(("always", "never")) else own["answers_by"]
                found.setdefault((own["promise"], by), []).append(numbers(own, held, foreign))
        for (promise, by), splits in found.items():
            row = [data.name, f"{100 * promise:.0f}", by]
            record = {"data": data.name, "promise": promise, "answers by": by}
            for column in splits[0]:
                values = [one[column] for one in splits if one[column] is not None]
                mean, error = mean_and_error(values) if values else (math.nan, math.nan)
                digits = 2 if column in ("right", "mean level") else 1
                text = f"{mean:.{digits}f}"
                row.append("–" if not values else f"{text} ± {error:.2f}" if column == "right" else text)
                record |= {column: mean, f"{column}, standard error": error}
            if by == "certainty":
                right, error = record["right"], record["right, standard error"]
                record["kept"] = math.isnan(right) or right >= 100 * promise - 2 * error
            table.append(row)
            records.append(record)

    header = ["data", "promise", "answers by", *numbers_header(records)]
    with open(HERE / "certainty.md", "w") as file:
        file.write("Means of five splits, in percent except the mean level; after ± the standard error:\n\n")
        for number, row in enumerate([header, ["---"] * 3 + ["--:"] * (len(header) - 3), *table]):
            file.write("| " + " | ".join(row) + " |\n" if number != 1 else "|" + "|".join(row) + "|\n")
        file.write(NOTES)
    with open(HERE / "certainty.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(key for record in records for key in record)))
        writer.writeheader()
        writer.writerows(records)
    for record in records:
        if record.get("kept") is False:
            print(f"{record['data']} at {record['promise']}: {record['right']:.2f} breaks the promise", file=sys.stderr)


def numbers_header(records):
    skip = ("data", "promise", "answers by", "kept")
    return [key for key in records[0] if key not in skip and not key.endswith("standard error")]


NOTES = """
- Right: of the answers that say at least the coarsest level. Answered, finest level: of all queries. Mean level: no answer counts as 0
- Answers by certainty: `akin classify`; by votes: plain votes of the ten nearest, to the deepest level whose share of votes reaches the promise; always: plain votes at the finest level at which all answers together keep the promise, chosen on the queries
- Held-out: queries of classes that the gallery does not have; rightly above: their answer stops at a class that is theirs; too far: it says a class that is not
- Other data: 1,000 images of another data set (drawings of Omniglot for groceries, groceries for the others); unlike: they are told that nothing here is like them
"""

main()
