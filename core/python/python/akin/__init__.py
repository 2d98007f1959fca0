"""Hierarchical evaluation of embeddings: H-AP and its relatives, exact, fast, and in bounded memory.

>>> import akin
>>> report = akin.evaluate(embeddings, labels[["order", "family", "species"]])  # doctest: +SKIP

| what | for |
|---|---|
| `evaluate` | every query ranks the gallery: a `Report` of all metrics |
| `merge` | the report of all queries, from reports of parts |
| `nearest` | the nearest items of each query |
| `classify`, `Classifier` | what a gallery takes queries for, and how far that holds |
| `Encoder` | pictures to embeddings, with the encoder of a run, a bundle or a gallery |
| `metrics` | the metrics of one ranking, their catalogue, and `curve` |
| `Taxonomy` | the tree of classes that labels form |
| `show`, `playground`, `map` | widgets for notebooks |
| `pml`, `torchmetrics`, `oml`, `runs` | the interfaces of other libraries to the same evaluation |

All take arrays of numpy and torch, and frames of pandas, polars and pyarrow. What they refuse is an `akin.Error`, with a
hint.
"""

from . import metrics
from ._classify import Answer, Classifier, classify
from ._encoder import Encoder
from ._errors import ConfigError, EmbeddingsError, Error, TaxonomyError
from ._evaluate import evaluate
from ._frame import Frame
from ._notebook import map as map
from ._notebook import playground, show
from ._report import Report, merge
from ._search import Nearest, nearest
from ._taxonomy import Taxonomy
from .metrics import curve

# `map` is left out, so that `from akin import *` keeps Python's own.
__all__ = [
    "Answer",
    "Classifier",
    "ConfigError",
    "EmbeddingsError",
    "Encoder",
    "Error",
    "Frame",
    "Nearest",
    "Report",
    "Taxonomy",
    "TaxonomyError",
    "classify",
    "curve",
    "evaluate",
    "merge",
    "metrics",
    "nearest",
    "playground",
    "show",
]
