"""What several tests need."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

GOLDEN = Path(__file__).parents[3] / "tests" / "golden"


def golden(name: str) -> list[dict[str, Any]]:
    """The cases of a file of golden vectors."""
    cases: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text())["cases"]
    return cases


class Creatures:
    """Embeddings of a small tree: 3 families, 3 genera each, 2 species each."""

    def __init__(self, count: int, seed: int, dimension: int = 16) -> None:
        rng = np.random.default_rng(seed)
        species = rng.integers(0, 18, count)
        self.labels = {
            "family": np.array([f"family {number // 6}" for number in species]),
            "genus": np.array([f"genus {number // 2}" for number in species]),
            "species": np.array([f"species {number}" for number in species]),
        }
        trees = [np.random.default_rng(level).normal(size=(18 // size, dimension)) for level, size in ((1, 6), (2, 2), (3, 1))]
        centres = trees[0][species // 6] + trees[1][species // 2] + trees[2][species]
        noise = rng.normal(size=(count, dimension))
        self.embeddings: NDArray[np.float32] = (centres + 1.5 * noise).astype(np.float32)

    @property
    def rows(self) -> NDArray[Any]:
        """The labels as one array."""
        return np.stack(list(self.labels.values()), axis=1)


@pytest.fixture(scope="session")
def creatures() -> Creatures:
    """A set of items."""
    return Creatures(300, seed=0)


@pytest.fixture(scope="session")
def queries() -> Creatures:
    """Another set of the same species."""
    return Creatures(60, seed=1)
