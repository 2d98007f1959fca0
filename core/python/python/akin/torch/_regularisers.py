"""Regularisers of embeddings, which any loss can have beside it: `loss(…, embedding_regularizer=…)`.

Both have the names, arguments and defaults of pytorch-metric-learning.
"""

from __future__ import annotations

from typing import Any

import torch

from .._errors import ConfigError
from ._steps import check


class LpRegularizer(torch.nn.Module):
    """The mean length of the embeddings, before a loss scales them: (Σ_k |x_k|^p)^(power / p).

    Parameters
    ----------
    p : float
        At least 1.
    power : float
        Above 0.
    """

    def __init__(self, p: float = 2.0, power: float = 1.0) -> None:
        super().__init__()
        check("the p of LpRegularizer", p, least=1.0)
        check("the power of LpRegularizer", power, above=True)
        self.p, self.power = p, power

    def forward(self, embeddings: Any) -> Any:
        """The value for embeddings [B, d]."""
        lengths = torch.linalg.vector_norm(_rows(embeddings), self.p, dim=1)
        return (lengths**self.power).mean()


class ZeroMeanRegularizer(torch.nn.Module):
    """The mean of |Σ_k x_k| over the embeddings: how far the numbers of each are from adding up to 0."""

    def forward(self, embeddings: Any) -> Any:
        """The value for embeddings [B, d]."""
        return _rows(embeddings).sum(1).abs().mean()


def _rows(embeddings: Any) -> Any:
    if embeddings.ndim != 2 or len(embeddings) == 0:
        raise ConfigError(f"embeddings have the shape {list(embeddings.shape)}", "give at least one row, [B, d]")
    # Half precision has too few digits for sums.
    return embeddings if embeddings.dtype == torch.float64 else embeddings.float()
