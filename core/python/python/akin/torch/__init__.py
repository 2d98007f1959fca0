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
| `SupNDCG`, `SmoothNDCG` | NDCG on all levels (SupRank) |
| `CSL`, `HierarchicalProxy` | the cosine to a proxy of the class, on all levels (CSL; HPL) |
| `Hier` | nearness to learned common ancestors, on top of another loss (HIER); `Poincare` maps features into its ball |
| `Levels` | any losses, one for each level |
| `SupAP`, `SmoothAPLoss`, `FastAPLoss`, `SoftbinAP`, `BlackboxAP` | AP on the fine classes |
| `Calibration`, `Roadmap` | the same score for a pair in every batch; with SupAP (ROADMAP) |
| `SupRecall`, `SmoothRecall` | recall at k on the fine classes (SupRank) |
| `NormalizedSoftmaxLoss`, `ArcFaceLoss`, `SubCenterArcFaceLoss`, `CosFaceLoss`, `SphereFaceLoss`, `ProxyAnchorLoss`, `ProxyNCALoss`, `SoftTripleLoss` | the cosine to a proxy of the fine class |
| `ContrastiveLoss`, `TripletMarginLoss`, `MarginLoss`, `MultiSimilarityLoss`, `CircleLoss`, `LiftedStructureLoss`, `AngularLoss`, `NPairsLoss`, `NTXentLoss`, `SupConLoss`, `PairLoss` | the order of pairs and triplets, which a miner can choose |
| `RankedListLoss` | the same, by two boundaries |
| `VICRegLoss` | the agreement of two views of an item, without labels |
| `HyperbolicCrossEntropy`, `HyperbolicMultiSimilarity` | the same by hyperbolic distance |
| `Hpdh` | the likelihood of codes around a centre for each class of every level (HPDH) |
| `Dpsh`, `Dtsh`, `Csq`, `Dcdh`, `Dcwh` | the likelihood of codes by pairs, triplets, and centres of the fine classes |

Any but `Hier` and the wrappers takes a `reducer`, which makes one number of the losses of items, pairs or triplets, and an
`embedding_regularizer` such as `LpRegularizer` or `ZeroMeanRegularizer`: see `Loss`.

`ClassesSampler` draws batches of a few classes, `ClassPairsSampler` those of two coarse classes. `CrossBatchMemory` compares a batch with earlier ones, and `Gathered` with those of other processes.

Each is called as the losses of pytorch-metric-learning are: `loss(embeddings, labels, indices_tuple, ref_emb, ref_labels)`.
Labels are [B, L], coarse to fine, or [B] for a single level. Embeddings are [B, d] and are scaled to unit length unless
`normalise` is off. The losses that pytorch-metric-learning has, too, have its names, arguments and defaults; the others
have the value of the loss of the same name in `akin train`. Where that library is installed, its
`DistributedLossWrapper` takes all of them, and its miners choose for the losses of pairs and triplets.
"""

from __future__ import annotations

from .._errors import ConfigError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ConfigError(
        "akin.torch needs torch, which is not installed", "install it with `pip install torch`"
    ) from error

from ._average_precision import BlackboxAP, FastAPLoss, SoftbinAP
from ._hashing import Csq, Dcdh, Dcwh, Dpsh, Dtsh, Hpdh
from ._hier import Hier, Poincare
from ._hyperbolic import HyperbolicCrossEntropy, HyperbolicMultiSimilarity
from ._loss import Loss
from ._pairs import (
    AngularLoss,
    CircleLoss,
    ContrastiveLoss,
    LiftedStructureLoss,
    MarginLoss,
    MultiSimilarityLoss,
    NPairsLoss,
    NTXentLoss,
    PairLoss,
    RankedListLoss,
    SupConLoss,
    TripletMarginLoss,
    VICRegLoss,
)
from ._proxies import (
    CSL,
    ArcFaceLoss,
    CosFaceLoss,
    Happier,
    HierarchicalProxy,
    NormalizedSoftmaxLoss,
    ProxyAnchorLoss,
    ProxyNCALoss,
    SoftTripleLoss,
    SphereFaceLoss,
    SubCenterArcFaceLoss,
)
from ._ranking import (
    Calibration,
    HapSurrogate,
    Roadmap,
    SmoothAPLoss,
    SmoothHap,
    SmoothNDCG,
    SmoothRecall,
    SupAP,
    SupNDCG,
    SupRecall,
)
from ._regularisers import LpRegularizer, ZeroMeanRegularizer
from ._relevance import HierarchicalRelevance, PlainRelevance, WeightedRelevance
from ._sampler import ClassesSampler, ClassPairsSampler
from ._steps import LowerStep, UpperStep
from ._wrappers import CrossBatchMemory, Gathered, Levels

__all__ = [
    "AngularLoss",
    "ArcFaceLoss",
    "BlackboxAP",
    "CSL",
    "Calibration",
    "CircleLoss",
    "ClassPairsSampler",
    "ClassesSampler",
    "ContrastiveLoss",
    "CosFaceLoss",
    "CrossBatchMemory",
    "Csq",
    "Dcdh",
    "Dcwh",
    "Dpsh",
    "Dtsh",
    "FastAPLoss",
    "Gathered",
    "HapSurrogate",
    "Happier",
    "Hier",
    "HierarchicalProxy",
    "HierarchicalRelevance",
    "Hpdh",
    "HyperbolicCrossEntropy",
    "HyperbolicMultiSimilarity",
    "Levels",
    "LiftedStructureLoss",
    "Loss",
    "LowerStep",
    "LpRegularizer",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NPairsLoss",
    "NTXentLoss",
    "NormalizedSoftmaxLoss",
    "PairLoss",
    "PlainRelevance",
    "Poincare",
    "ProxyAnchorLoss",
    "ProxyNCALoss",
    "RankedListLoss",
    "Roadmap",
    "SmoothAPLoss",
    "SmoothHap",
    "SmoothNDCG",
    "SmoothRecall",
    "SoftTripleLoss",
    "SoftbinAP",
    "SphereFaceLoss",
    "SubCenterArcFaceLoss",
    "SupAP",
    "SupConLoss",
    "SupNDCG",
    "SupRecall",
    "TripletMarginLoss",
    "UpperStep",
    "VICRegLoss",
    "WeightedRelevance",
    "ZeroMeanRegularizer",
]
