"""`akin.Encoder` embeds as `akin embed`. AKIN is the binary, and the package was built with the feature `encoder`."""

import csv
import os
import subprocess
from pathlib import Path

import akin
import numpy as np
import pytest
from akin import _akin

AKIN = os.environ.get("AKIN")
EXAMPLES = Path(__file__).parents[3] / "native-trainer" / "examples"

has_encoder = pytest.mark.skipif(
    AKIN is None or not hasattr(_akin, "Encoder"), reason="AKIN names no binary, or the package has no encoders"
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, its bundle and a gallery of drawn creatures."""
    folder = tmp_path_factory.mktemp("encoder")

    def run(*command: str) -> None:
        assert AKIN is not None
        subprocess.run([AKIN, *command], cwd=folder, check=True, capture_output=True)

    run("biomorphs", "data", "--branching", "2,2,3", "--images-per-class", "4", "--side", "16")
    (folder / "tiny.toml").write_text((EXAMPLES / "tiny.toml").read_text())
    run("train", "tiny.toml", "--out", "run")
    run("export", "run", "--out", "bundle")
    run("index", "run", "data/labels.csv", "--levels", "order,family,species", "--out", "g")
    run("embed", "g", "--out", "all.npy")
    return folder


@has_encoder
def test_embeddings_are_those_of_the_command(work: Path) -> None:
    with (work / "all.csv").open(newline="") as file:
        paths = [str(work / "data" / row["path"]) for row in csv.DictReader(file)]
    expected = np.load(work / "all.npy")
    for folder in ("run", "g", "bundle"):
        encoder = akin.Encoder.load(work / folder)
        assert (encoder.dimension, encoder.side) == (8, 16)
        found = encoder(paths, batch=7, progress=False)
        # A bundle has weights of half precision.
        np.testing.assert_allclose(found, expected, atol=5e-3 if folder == "bundle" else 1e-6)
        files = [Path(path).read_bytes() for path in paths]
        np.testing.assert_array_equal(encoder(files, batch=48, progress=False), encoder(paths, batch=48, progress=False))
        assert encoder(paths[0]).shape == (1, 8) and encoder([]).shape == (0, 8)
    assert akin.Encoder.load(work / "run").name == "run"
    grey = np.full((20, 30, 3), 128, dtype=np.uint8)
    assert encoder(grey).shape == (1, 8) and encoder(np.stack([grey, grey])).shape == (2, 8)


@has_encoder
def test_what_is_no_encoder_or_picture_is_refused(work: Path, tmp_path: Path) -> None:
    for folder, name in [(tmp_path, None), (work / "data", None), (work / "bundle", "none"), (tmp_path / "none", None)]:
        with pytest.raises(akin.Error):
            akin.Encoder.load(folder, name)
    encoder = akin.Encoder.load(work / "g")
    for wrong in ["none.jpg", b"", b"GIF", np.zeros((4, 4)), np.zeros((4, 4, 4), np.uint8), 7, None, [None], object()]:
        with pytest.raises(akin.Error):
            encoder(wrong)
    with pytest.raises(akin.Error):
        encoder(b"", batch=0)
    for name, weights in [("g", next((work / "g").rglob("weights.bpk"))), ("run", work / "run" / "encoder.bpk")]:
        whole = weights.read_bytes()
        weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(akin.Error, match="damaged"):
            akin.Encoder.load(work / name)
        weights.write_bytes(whole)


def test_a_build_without_encoders_says_so() -> None:
    if not hasattr(_akin, "Encoder"):
        with pytest.raises(akin.ConfigError, match="no encoders"):
            akin.Encoder.load("bundle")
