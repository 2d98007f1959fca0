"""The encoder of a run, a bundle or a gallery."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _akin
from ._errors import ConfigError, EmbeddingsError
from ._progress import bar


class Encoder:
    """An encoder that `akin train` trained: pictures to embeddings, on all processors.

    >>> encoder = akin.Encoder.load("photos.gallery")  # doctest: +SKIP
    >>> embeddings = encoder(["owl.jpg", "eagle.jpg"])  # doctest: +SKIP

    Pictures are decoded, resized and embedded by the code of the trainer and the page, with the same numbers.

    Attributes
    ----------
    name : str
        Its name in the bundle or the gallery, or that of the folder of a run.
    dimension : int
        d, the dimension of an embedding.
    side : int
        The side of the square of pixels that the network reads.
    """

    def __init__(self, core: _akin.Encoder) -> None:
        self._core = core
        self.name: str = core.name
        self.dimension: int = core.dimension
        self.side: int = core.side

    @classmethod
    def load(cls, folder: str | os.PathLike[str], name: str | None = None) -> Encoder:
        """The encoder of a run, a bundle or a gallery; of a bundle with several, the one of this name, or the first.

        These are the folders that `akin train`, `akin export` and `akin index` write. That of a run is its encoder after
        the last step.
        """
        made = getattr(_akin, "Encoder", None)
        if made is None:
            raise ConfigError(
                "this build of akin has no encoders",
                "install the wheel of a release, or `MATURIN_PEP517_ARGS='--features encoder' pip install ./core/python`",
            )
        return cls(made(os.fspath(folder), name))

    def __call__(self, pictures: Any, *, batch: int = 32, progress: bool | None = None) -> NDArray[np.float32]:
        """The embeddings of pictures, [N, d]: of unit length for a cosine, points of the ball, or outputs of codes.

        Parameters
        ----------
        pictures : picture or sequence of pictures
            A path, the bytes of a file (JPEG, PNG, WebP, GIF, BMP, TIFF), a picture of Pillow, or an array of uint8
            [H, W, 3]. EXIF orientation is followed in files.
        batch : int
            How many are embedded at a time.
        progress : bool, optional
            Show a bar. By default on terminals and in notebooks.
        """
        several = _several(pictures)
        if batch < 1:
            raise ConfigError(f"the batch is {batch}", "give at least 1")
        rows = np.empty((len(several), self.dimension), dtype=np.float32)
        shown = bar(progress, len(several), "embedded")
        try:
            for start in range(0, len(several), batch):
                part = [
                    _picture(picture, start + place) for place, picture in enumerate(several[start : start + batch])
                ]
                rows[start : start + len(part)] = self._core.embed(part)
                if shown is not None:
                    shown(0, start + len(part))
        finally:
            if shown is not None:
                shown.close()
        return rows


def _several(pictures: Any) -> list[Any]:
    """A list of pictures, of one or several."""
    is_file = isinstance(pictures, str | os.PathLike | bytes | bytearray | memoryview | io.IOBase)
    if is_file or hasattr(pictures, "convert") or (isinstance(pictures, np.ndarray) and pictures.ndim == 3):
        return [pictures]
    try:
        return list(pictures)
    except TypeError:
        return [pictures]


def _picture(picture: Any, place: int) -> bytes | NDArray[np.uint8]:
    """A picture as the bytes of a file, or as an array [H, W, 3]."""
    if isinstance(picture, str | os.PathLike):
        try:
            return Path(picture).read_bytes()
        except OSError as error:
            raise EmbeddingsError(f"picture {place}, {picture}, cannot be read: {error}", "check the path") from error
    if isinstance(picture, bytes | bytearray | memoryview):
        return bytes(picture)
    if isinstance(picture, io.IOBase):
        found: bytes = picture.read()
        return found
    if hasattr(picture, "convert"):
        picture = picture.convert("RGB")
    array = np.asarray(picture)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
        raise EmbeddingsError(
            f"picture {place} has the shape {list(array.shape)} and the type {array.dtype}",
            "give a path, the bytes of a file, a picture of Pillow, or an array of uint8 [H, W, 3]",
        )
    return array
