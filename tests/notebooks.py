"""Runs the notebooks of the package for Python, each in a folder of its own, and checks that no cell fails.

Usage: python tests/notebooks.py AKIN

AKIN is the binary. Cells with the tag `torch` run where Python has torch. Needs nbclient, ipykernel, and what the
notebooks need.
"""

import importlib.util
import os
import sys
import tempfile
import time
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[1] / "core" / "python" / "notebooks"
# How many widgets each notebook shows.
WIDGETS = {"evaluate": 1, "look-into-a-model": 2, "teach": 3, "train": 0}


def run(path: Path, has_torch: bool) -> None:
    """Runs a notebook, and says how long it took."""
    book = nbformat.read(path, as_version=4)
    left_out = [cell for cell in book.cells if not has_torch and "torch" in cell.metadata.get("tags", [])]
    book.cells = [cell for cell in book.cells if cell not in left_out]
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": folder}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    shown = [output for output in outputs if "application/vnd.jupyter.widget-view+json" in output.get("data", {})]
    assert len(shown) == WIDGETS[path.stem], f"{path.name} shows {len(shown)} widgets"
    # `!command` does not fail with its command.
    said = "".join(output.get("text", "") for output in outputs)
    assert "error: " not in said, f"{path.name}: {said}"
    without = f", without its {len(left_out)} cells for torch" if left_out else ""
    print(f"{path.name}: {time.monotonic() - started:.0f} s{without}", flush=True)


def main() -> None:
    """Runs all of them."""
    os.environ["PATH"] = f"{Path(sys.argv[1]).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    paths = sorted(FOLDER.glob("*.ipynb"))
    assert [path.stem for path in paths] == sorted(WIDGETS)
    for path in paths:
        run(path, has_torch=importlib.util.find_spec("torch") is not None)


main()
