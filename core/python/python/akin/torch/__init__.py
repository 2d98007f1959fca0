"""Losses for labels of several levels, for a training loop in torch, which has to be installed.

```python
import akin.torch

loss = akin.torch.Happier(num_classes=1000, embedding_size=512)
optimizer = torch.optim.AdamW([*network.parameters(), *loss.parameters()])
for images, labels in loader:                 # labels [B, 3]: order, family, species
    optimizer.zero_grad()
    loss(network(images), labels).backward()
    optimizer.step()
```

| loss | what it makes larger |
|---|---|
| `HapSurrogate`, `SmoothHap` | H-AP on all levels (HAPPIER; SupRank) |
| `Happier` | the same, with compact fine classes |
| `SupAP`, `SmoothAP` | AP on the fine classes (ROADMAP; Smooth-AP) |
| `Calibration`, `Roadmap` | the same score for a pair in every batch; with SupAP |
| `SupNDCG`, `SmoothNDCG` | NDCG on all levels (SupRank) |
| `SupRecall`, `SmoothRecall` | recall at k on the fine classes (SupRank) |
| `NormSoftmax`, `CSL` | the cosine to a proxy of the class; with a margin per level |
| `Hier` | nearness to learned common ancestors, on top of another loss (HIER); `Poincare` maps features into its ball |
| `Levels` | any losses, one for each level |

`CrossBatchMemory` compares a batch with earlier ones, and `Gathered` with those of other processes.

Each is a `torch.nn.Module` that is called as the losses of pytorch-metric-learning are: `loss(embeddings, labels,
ref_emb=…, ref_labels=…)`. Labels are [B, L], coarse to fine, or [B] for a single level. Embeddings are [B, d] and are
scaled to unit length unless `normalise` is off. The value is that of the loss of the same name in `akin train`.
"""

from __future__ import annotations

from .._errors import ConfigError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ConfigError("akin.torch needs torch, which is not installed", "install it with `pip install torch`") from error

from ._hier import Hier, Poincare
from ._proxies import CSL, Happier, NormSoftmax
from ._ranking import (
    Calibration,
    HapSurrogate,
    Roadmap,
    SmoothAP,
    SmoothHap,
    SmoothNDCG,
    SmoothRecall,
    SupAP,
    SupNDCG,
    SupRecall,
)
from ._relevance import HierarchicalRelevance, PlainRelevance, WeightedRelevance
from ._steps import LowerStep, UpperStep
from ._wrappers import CrossBatchMemory, Gathered, Levels

__all__ = [
    "CSL",
    "Calibration",
    "CrossBatchMemory",
    "Gathered",
    "HapSurrogate",
    "Happier",
    "Hier",
    "HierarchicalRelevance",
    "Levels",
    "LowerStep",
    "NormSoftmax",
    "PlainRelevance",
    "Poincare",
    "Roadmap",
    "SmoothAP",
    "SmoothHap",
    "SmoothNDCG",
    "SmoothRecall",
    "SupAP",
    "SupNDCG",
    "SupRecall",
    "UpperStep",
    "WeightedRelevance",
]
