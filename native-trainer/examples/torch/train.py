"""Trains a head on embeddings with a loss of akin, on one process or several.

    akin embed GALLERY --out all.npy
    torchrun --nproc-per-node 2 train.py all.npy all.csv --levels order,family,species --out head.pt

The processes share each batch. The loss compares all of it, so that the head is that of one process.
"""

import argparse
import csv
import itertools
import os

import akin
import akin.torch
import numpy as np
import torch
from torch import distributed

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("embeddings", help="embeddings, .npy")
parser.add_argument("labels", help="their labels, .csv")
parser.add_argument("--levels", required=True, help="the columns of the labels, coarse to fine")
parser.add_argument("--out", required=True, help="where the head is saved")
parser.add_argument("--steps", type=int, default=800)
parser.add_argument("--classes", type=int, default=16, help="classes in a batch")
parser.add_argument("--items", type=int, default=4, help="items of a class in a batch")
parser.add_argument("--dimension", type=int, default=128)
arguments = parser.parse_args()

processes = int(os.environ.get("WORLD_SIZE", "1"))
if processes > 1:
    distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank = distributed.get_rank() if processes > 1 else 0
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if torch.cuda.is_available() else "cpu"

with open(arguments.labels, newline="") as file:
    rows = list(csv.DictReader(file))
names = {level: [row[level] for row in rows] for level in arguments.levels.split(",")}
numbers = [np.unique(column, return_inverse=True)[1] for column in names.values()]
labels = torch.tensor(np.stack(numbers, 1), device=device)
features = torch.tensor(np.load(arguments.embeddings), device=device)
is_test = torch.arange(len(features), device=device) % 5 == 0
train = torch.arange(len(features), device=device)[~is_test]


def h_ap(embeddings):
    chosen = is_test.cpu().numpy()
    tested = {level: np.array(column)[chosen] for level, column in names.items()}
    return akin.evaluate(embeddings[is_test].cpu().numpy(), tested, metrics=["h_ap"], progress=False)["h_ap"]


# The same first weights in every process.
torch.manual_seed(0)
width = features.shape[1]
head = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.Linear(width, arguments.dimension)).to(device)
loss = akin.torch.Happier(int(labels[:, -1].max()) + 1, arguments.dimension).to(device)
network = torch.nn.parallel.DistributedDataParallel(head) if processes > 1 else head
together = akin.torch.Gathered(loss)
groups = [{"params": head.parameters()}, {"params": loss.parameters(), "lr": 1e-2}]
optimizer = torch.optim.AdamW(groups, lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)
sampler = akin.torch.ClassesSampler(
    labels[train].cpu(), arguments.classes, arguments.items, rank=rank, processes=processes
)
epochs = (sampler for _ in itertools.count())
for chosen in itertools.islice(itertools.chain.from_iterable(epochs), arguments.steps):
    batch = train[chosen]
    optimizer.zero_grad()
    together(network(features[batch]), labels[batch]).backward()
    optimizer.step()
    schedule.step()
if rank == 0:
    with torch.no_grad():
        print(f"H-AP before {h_ap(features):.2f}, after {h_ap(head(features)):.2f}")
    torch.save(head.state_dict(), arguments.out)
if processes > 1:
    distributed.destroy_process_group()
