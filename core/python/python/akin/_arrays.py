"""Embeddings of any library as arrays of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import EmbeddingsError


# What numpy and other libraries raise for what they cannot convert.
_REFUSALS = (ValueError, TypeError, RuntimeError, OverflowError)


def to_numpy(values: Any) -> NDArray[Any]:
    """Values as an array of numpy: without a copy where their library can do that."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise EmbeddingsError("some numbers are masked", "fill them, or leave out their rows")
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        # A tensor of torch. numpy has no bfloat16.
        tensor = values.detach().cpu()
        values = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    try:
        return np.asarray(values)
    except _REFUSALS as error:
        raise EmbeddingsError(f"this is no array: {error}", "give numbers in rows of one length") from error


def embeddings(values: Any, name: str, similarity: str = "cosine") -> NDArray[np.float32]:
    """Embeddings [N, d] as float32, one row behind the other. They are copied only if they are not yet so."""
    array = to_numpy(values)
    if array.dtype == object and array.ndim == 1 and len(array) > 0:
        # A column of lists.
        try:
            array = np.stack([np.asarray(row) for row in array])
        except _REFUSALS as error:
            raise EmbeddingsError(f"the {name} embeddings are no matrix: {error}", "give rows of one length") from error
    if array.ndim != 2 or 0 in array.shape:
        raise EmbeddingsError(
            f"the {name} embeddings have the shape {list(array.shape)}", "give a matrix with one embedding per row"
        )
    if array.dtype == np.uint8 and similarity == "hamming":
        # Eight bits each, as numpy.packbits writes them.
        array = np.unpackbits(array, axis=1).astype(np.float32) * 2 - 1
    if array.dtype.kind not in "biuf" and array.dtype != object:
        raise EmbeddingsError(f"the {name} embeddings are of type {array.dtype}", "give real numbers")
    try:
        # What is too large becomes infinite, which is refused with its row.
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(array, dtype=np.float32)
    except _REFUSALS as error:
        raise EmbeddingsError(f"the {name} embeddings are no numbers: {error}", "give real numbers") from error
