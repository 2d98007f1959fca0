"""A bar for work that takes its time."""

from __future__ import annotations

import sys
import time
from typing import Any

# Work that is done earlier shows no bar.
_DELAY = 0.5
_WIDTH = 30


class Bar:
    """A bar on the terminal or in a notebook. It is called with the numbers of what is done, and closed at the end."""

    def __init__(self, total: int, what: str) -> None:
        self.total = max(total, 1)
        self.what = what
        self.start = time.monotonic()
        self.notebook = _display() if "IPython" in sys.modules else None
        self.shown: Any = None

    def __call__(self, checked: int, done: int) -> None:
        seconds = time.monotonic() - self.start
        if seconds < _DELAY:
            return
        share = min(done / self.total, 1.0)
        left = f", {seconds * (1 - share) / share:.0f} s left" if share > 0.02 else ""
        text = f"{self.what}: {done:,} of {self.total:,}{left}"
        if self.notebook is None:
            filled = int(_WIDTH * share)
            print(f"\r\x1b[K{'━' * filled}{'─' * (_WIDTH - filled)} {text}", end="", file=sys.stderr, flush=True)
            self.shown = True
            return
        bundle = {"text/html": f'<progress value="{done}" max="{self.total}"></progress> {text}', "text/plain": text}
        if self.shown is None:
            self.shown = self.notebook(bundle, raw=True, display_id=True)
        elif self.shown is not None:
            self.shown.update(bundle, raw=True)

    def close(self) -> None:
        """Removes the bar."""
        if self.shown is None:
            return
        if self.notebook is None:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            self.shown.update({"text/html": "", "text/plain": ""}, raw=True)


def bar(wanted: bool | None, total: int, what: str) -> Bar | None:
    """A bar if it is wanted; by default where there is a terminal or a notebook that shows it."""
    if wanted is None:
        wanted = sys.stderr.isatty() or ("IPython" in sys.modules and _display() is not None)
    return Bar(total, what) if wanted else None


def _display() -> Any:
    """What shows HTML in a notebook; `None` elsewhere."""
    from IPython import get_ipython
    from IPython.display import display

    return display if type(get_ipython()).__name__ in ("ZMQInteractiveShell", "Shell") else None
