"""Losses of akin beside their equations in torch, written as the published codes write them: with tensors [B, B, B].

    pip install -r tests/peers/requirements.txt
    cargo build --release
    python tests/peers/losses.py target/release/akin [--batch 256,512] [--json]

Each loss runs forward and backward on the same number of threads, in turns with akin; times are medians, and memory is
the peak of a process that computes one loss. First the equations are checked against recorded values of the published
codes (`tests/golden`), so that what is timed is what they compute.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

GOLDEN = Path(__file__).parent.parent / "golden"


def smooth_ap(embeddings, classes, temperature=0.01):
    """1 − AP with sigmoids for steps: every pair of items is compared for every query."""
    scores = embeddings @ embeddings.T
    steps = torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / temperature)
    own = torch.eye(len(scores), dtype=steps.dtype)
    steps = steps * (1 - own)
    positive = (classes[:, None] == classes[None, :]).to(scores.dtype)
    rank = 1 + steps.sum(-1)
    above = 1 + (steps * positive[:, None, :]).sum(-1)
    return 1 - ((above / rank * positive).sum(-1) / positive.sum(-1)).mean()


def upper_step(t, temperature=0.01, slope=100.0, threshold=0.05, offset=1.44, start=0.5):
    """H⁻ with the offset of the published code."""
    sigmoid = torch.sigmoid(t / temperature)
    near = torch.where(t > 0, sigmoid + start, sigmoid)
    return torch.where(t > threshold, slope * (t - threshold) + offset, near)


def lower_step(t, slope=25.0, start=0.5, leak=10.0):
    """H⁺ with the settings of the published code."""
    return torch.where(t > 0, torch.clamp(slope * t + start, max=1.0), leak * t)


def hap_surrogate(embeddings, levels, relevances, smooth_rank):
    """1 − H-AP, smoothed, from the shared level and the relevance of each pair."""
    scores = embeddings @ embeddings.T
    t = scores[:, None, :] - scores[:, :, None]
    hard = (t >= 0).to(scores.dtype)
    below = levels[:, None, :] < levels[:, :, None]
    above = levels[:, None, :] > levels[:, :, None]
    rank = torch.where(below, upper_step(t), hard).sum(-1)
    shared = torch.minimum(relevances[:, None, :], relevances[:, :, None])
    steps = torch.where(above, lower_step(t), hard) if smooth_rank else hard
    h_rank = (steps * shared).sum(-1)
    counted = (levels > 0).to(scores.dtype)
    return 1 - ((h_rank / rank * counted).sum(-1) / (relevances * counted).sum(-1)).mean()


def shared_levels(labels):
    """The finest level at which two items agree, for labels [B, L], coarse to fine."""
    same = (labels[:, None, :] == labels[None, :, :]).to(torch.int64)
    return same.cumprod(-1).sum(-1)


def hierarchical_relevances(levels):
    """HAPPIER's eq. 4: (l/L) divided by the number of items at that level, for each query."""
    depth = int(levels.max())
    relevances = torch.zeros(levels.shape)
    for level in range(1, depth + 1):
        there = levels == level
        relevances += there * (level / depth) / there.sum(-1, keepdim=True).clamp(min=1)
    return relevances


def poincare_distances(x, y, c=0.1):
    """d of every row of x and y in the ball, from the Möbius difference as the published code writes it."""
    xx, yy, xy = (x * x).sum(-1)[:, None], (y * y).sum(-1)[None, :], x @ y.T
    a, b = 1 - 2 * c * xy + c * yy, 1 - c * xx
    squared = a * a * xx + b * b * yy - 2 * a * b * xy
    length = squared.clamp(min=1e-15).sqrt() / (1 - 2 * c * xy + c * c * xx * yy + 1e-5)
    return 2 / c**0.5 * torch.atanh((c**0.5 * length).clamp(max=1 - 1e-5))


def straight_through(logits, noise):
    """A one-hot choice with the gradient of its softmax."""
    soft = torch.softmax(logits + noise, -1)
    hard = F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft.dtype)
    return hard + soft - soft.detach()


def hier_triplets(distances, triplets, noise, temperature=0.1, margin=0.1):
    """HIER of triplets, given the distances [n, P] of all items to the proxies and Gumbel noise [T, P] for each ancestor."""
    i, j, k = (distances[items] for items in triplets)
    low = straight_through(-torch.maximum(i, j) / temperature, noise[0])
    high = straight_through(-torch.maximum(torch.maximum(i, j), k) / temperature, noise[1])
    to = lambda rows, ancestor: (rows * ancestor).sum(-1)
    hinge = torch.relu(to(i, low) - to(i, high) + margin)
    hinge = hinge + torch.relu(to(j, low) - to(j, high) + margin)
    hinge = hinge + torch.relu(to(k, high) - to(k, low) + margin)
    return (hinge * (low.argmax(-1) != high.argmax(-1))).mean()


def draw_triplets(distances, neighbours, count):
    """Triplets of mutual neighbours, `count` for each anchor with at least two."""
    near = torch.zeros_like(distances).scatter_(1, distances.topk(neighbours, largest=False).indices, 1.0)
    mutual = (near * near.T > 0) & ~torch.eye(len(near), dtype=torch.bool)
    anchors = torch.nonzero((mutual.sum(-1) >= 2) & ((~mutual).sum(-1) > 0)).flatten()
    related = torch.multinomial(mutual[anchors].float(), count, replacement=True).flatten()
    unrelated = torch.multinomial((~mutual[anchors]).float(), count, replacement=True).flatten()
    return anchors.repeat_interleave(count), related, unrelated


def hier(points, proxies):
    """The term of the batch and that of the proxies, with the settings of the published code."""
    total = 0.0
    for items in (points, proxies):
        with torch.no_grad():
            triplets = draw_triplets(poincare_distances(items, items), 20, 50)
            shape = (len(triplets[0]), len(proxies))
            noise = [-(-torch.rand(shape).clamp(1e-7, 1 - 1e-7).log()).log() for _ in range(2)]
        total = total + hier_triplets(poincare_distances(items, proxies), triplets, noise)
    return total


def check():
    """Compares the equations with recorded values of the published codes."""
    cases = lambda name: json.loads((GOLDEN / f"{name}.json").read_text())["cases"]
    for case in cases("smooth_ap"):
        if "official" not in case["case"] or "loss" not in case["outputs"]:
            continue
        embeddings = torch.tensor(case["inputs"]["embeddings"], dtype=torch.float64)
        classes = torch.tensor(case["inputs"]["labels"])
        agree(case, smooth_ap(embeddings, classes, case["params"]["tau"]), case["outputs"]["loss"])
    for case in cases("happier_hap_surrogate"):
        config = case["params"]["config"]
        usual = config["offset"] == 1.44 and config["delta"] == 0.05 and config["start"] == 0.5
        if case["params"]["relevance_type"] != "pop" or case["params"]["hierarchy_level"] != "MULTI" or not usual:
            continue
        embeddings = torch.tensor(case["inputs"]["embeddings"], dtype=torch.float64)
        levels = torch.tensor(case["outputs"]["level_matrix"])
        if levels.shape != (len(embeddings), len(embeddings)):
            continue
        table = torch.tensor(case["outputs"]["relevance_table_per_query"], dtype=torch.float64)
        loss = hap_surrogate(embeddings, levels, table.gather(1, levels), config["with_hrank"])
        agree(case, loss, case["outputs"]["loss"])
    for case in cases("hier_loss"):
        inputs, params = case["inputs"], case["params"]
        if params["hyp_c"] == 0:
            continue  # on the sphere
        points = torch.tensor(case["outputs"]["z"], dtype=torch.float64)
        proxies = ball(torch.tensor(inputs["lcas_euclidean"], dtype=torch.float64), params["hyp_c"], params["clip_r"])
        for name, items in (("samples", points), ("lcas", proxies)):
            triplets = [torch.tensor(inputs[f"triplets_{name}"][item]) for item in "ijk"]
            noise = [torch.tensor(inputs[f"gumbel_{item}_{name}"], dtype=torch.float64) for item in ("ij", "ijk")]
            distances = poincare_distances(items, proxies, params["hyp_c"])
            loss = hier_triplets(distances, triplets, noise, params["tau"], params["mrg"])
            agree(case, loss, case["outputs"][f"loss_{name}"], 1e-4)


def ball(features, c=0.1, radius=2.3):
    """Features clipped and mapped into the ball."""
    features = features * (radius / (features.norm(dim=-1, keepdim=True) + 1e-5)).clamp(max=1.0)
    length = features.norm(dim=-1, keepdim=True).clamp(min=1e-5) * c**0.5
    return features * torch.tanh(length) / length


def agree(case, loss, expected, tolerance=1e-6):
    if abs(float(loss) - expected) > tolerance * max(1.0, abs(expected)):
        sys.exit(f"{case['case']}: the equation gives {float(loss)}, the published code {expected}")


def work(name, batch):
    """A function that computes the loss of a batch and its gradient."""
    torch.manual_seed(0)
    classes = torch.arange(batch) % -(-batch // 4)
    labels = torch.stack([classes % 4, classes % 16, classes], 1)
    if name.startswith("HIER"):
        leaves = [torch.randn(rows, 128).requires_grad_() for rows in (batch, 512)]
        loss = lambda: hier(ball(F.normalize(leaves[0])), ball(leaves[1] * (0.9 * 2.3 / 128**0.5)))
    else:
        leaves = [F.normalize(torch.randn(batch, 512)).requires_grad_()]
        levels = shared_levels(labels)
        relevances = hierarchical_relevances(levels)
        loss = {
            "H-AP surrogate, constant H-rank": lambda: hap_surrogate(leaves[0], levels, relevances, False),
            "H-AP surrogate, smooth H-rank": lambda: hap_surrogate(leaves[0], levels, relevances, True),
            "Smooth-AP": lambda: smooth_ap(leaves[0], classes),
        }[name]
    return lambda: torch.autograd.grad(loss(), leaves)


def peak_memory():
    """Of this process, in bytes; None where the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("akin", help="the program, target/release/akin")
    parser.add_argument("--batch", default="256", help="sizes of the batches, with commas between")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--memory-of", nargs=2, metavar=("LOSS", "B"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory_of:
        work(args.memory_of[0], int(args.memory_of[1]))()
        return print(peak_memory())
    check()
    bench = [args.akin, "bench", "loss", "--tensors-up-to", "0", "--json"]
    batches = [int(batch) for batch in args.batch.split(",")]
    cases = {
        "H-AP surrogate, constant H-rank": batches,
        "H-AP surrogate, smooth H-rank": batches,
        "Smooth-AP": batches,
        "HIER": [180],
    }
    rows = []
    for name, sizes in cases.items():
        for batch in sizes:
            step = work(name, batch)
            step()
            ours, theirs = [], []
            for _ in range(args.rounds):
                start = time.perf_counter()
                step()
                theirs.append(time.perf_counter() - start)
                run = subprocess.run([*bench, "--only", name, "--batch", str(batch)], capture_output=True, text=True)
                if run.returncode:
                    sys.exit(run.stderr)
                (row,) = json.loads(run.stdout)["rows"]
                ours.append(row)
            command = [sys.executable, __file__, args.akin, "--memory-of", name, str(batch)]
            memory = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            akin = statistics.median(row["seconds"] for row in ours)
            torch_seconds = statistics.median(theirs)
            rows.append({
                "loss": name, "batch": batch, "akin_seconds": akin, "torch_seconds": torch_seconds,
                "ratio": torch_seconds / akin, "akin_memory": ours[0]["peak_memory"], "torch_memory": int(memory),
            })
            print(f"   measured {name}, {batch}", file=sys.stderr)
    if args.json:
        return print(json.dumps({"threads": torch.get_num_threads(), "rows": rows}, indent=2))
    print(f"{'loss':<34}{'B':>6}{'akin':>11}{'torch':>11}{'ratio':>8}{'akin':>9}{'torch':>9}")
    for row in rows:
        print(
            f"{row['loss']:<34}{row['batch']:>6}{1e3 * row['akin_seconds']:>8.1f} ms{1e3 * row['torch_seconds']:>8.0f} ms"
            f"{row['ratio']:>7.0f}×{row['akin_memory'] / 1e6:>6.0f} MB{row['torch_memory'] / 1e6:>6.0f} MB"
        )


if __name__ == "__main__":
    main()
