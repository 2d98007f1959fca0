"""What all losses share: how they are called, and the checks of what they get."""

from __future__ import annotations

from typing import Any

import torch

from .._errors import ConfigError, EmbeddingsError


class Loss(torch.nn.Module):
    """A loss of a batch, by itself or against a reference set.

    Parameters
    ----------
    normalise : bool
        Whether to scale embeddings to unit length first.
    """

    def __init__(self, *, normalise: bool = True) -> None:
        super().__init__()
        self.normalise = normalise

    def forward(
        self,
        embeddings: Any,
        labels: Any,
        indices_tuple: Any = None,
        ref_emb: Any = None,
        ref_labels: Any = None,
    ) -> Any:
        """The loss of embeddings [B, d] with labels [B, L], coarse to fine, or [B].

        With a reference set, the batch is compared with it and not with itself. `indices_tuple` must be None: these
        losses compare all pairs.
        """
        if indices_tuple is not None:
            raise ConfigError(
                f"{type(self).__name__} compares all pairs, and takes no `indices_tuple`", "call it without a miner"
            )
        if (ref_emb is None) != (ref_labels is None):
            raise ConfigError("a reference set has embeddings and labels", "give `ref_emb` and `ref_labels`, or neither")
        labels = self._labels(embeddings, labels)
        queries = self._rows(embeddings)
        if ref_emb is None:
            return self.compare(queries, labels, queries, labels, itself=True)
        ref_labels = self._labels(ref_emb, ref_labels).to(labels.device)
        if ref_labels.shape[1] != labels.shape[1] or ref_emb.shape[1] != embeddings.shape[1]:
            raise EmbeddingsError(
                "the reference set has another number of levels or another dimension than the batch",
                "give both the same columns of labels, and embeddings of one network",
            )
        return self.compare(queries, labels, self._rows(ref_emb).to(queries.dtype), ref_labels, itself=False)

    def compare(self, queries: Any, labels: Any, items: Any, item_labels: Any, *, itself: bool) -> Any:
        """The loss of queries [Q, d] that rank items [N, d], with labels [Q, L] and [N, L]. If `itself`, both are the batch."""
        raise NotImplementedError

    def _rows(self, embeddings: Any) -> Any:
        # Half precision has too few digits for differences of scores.
        rows = embeddings if embeddings.dtype == torch.float64 else embeddings.float()
        return torch.nn.functional.normalize(rows, dim=1) if self.normalise else rows

    def _labels(self, embeddings: Any, labels: Any) -> Any:
        if embeddings.ndim != 2 or not embeddings.is_floating_point():
            raise EmbeddingsError(
                f"embeddings have the shape {list(embeddings.shape)} and the type {embeddings.dtype}",
                "give floating-point numbers [B, d]",
            )
        labels = torch.as_tensor(labels, device=embeddings.device)
        labels = labels[:, None] if labels.ndim == 1 else labels
        if labels.ndim != 2 or len(labels) != len(embeddings) or labels.is_floating_point() or labels.shape[1] == 0:
            raise EmbeddingsError(
                f"labels have the shape {list(labels.shape)} and the type {labels.dtype} for {len(embeddings)} embeddings",
                "give whole numbers [B, L], coarse to fine, or [B]",
            )
        return labels


def scores(queries: Any, items: Any) -> Any:
    """The scores of unit rows, [Q, N], in the precision of the rows."""
    with torch.autocast(queries.device.type, enabled=False):
        return queries @ items.T
