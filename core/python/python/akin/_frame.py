"""Columns of equal length, as a table."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What a cell without a value shows.
NOTHING = "–"


class Frame(dict[str, NDArray[Any]]):
    """A table: a dict of columns, which are arrays of one length.

    `pandas.DataFrame(frame)` and `polars.DataFrame(frame)` take it as it is.
    """

    def to_pandas(self) -> Any:
        """The table as a `pandas.DataFrame`. Needs pandas."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> Any:
        """The table as a `polars.DataFrame`. Needs polars."""
        import polars

        return polars.DataFrame(dict(self))

    @property
    def height(self) -> int:
        """The number of rows."""
        return len(next(iter(self.values()), ()))

    def rows(self) -> list[dict[str, Any]]:
        """The table row by row."""
        columns = {name: column.tolist() for name, column in self.items()}
        return [{name: column[row] for name, column in columns.items()} for row in range(self.height)]

    def __repr__(self) -> str:
        most = 20
        cells = self._cells(most)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [column.dtype.kind in "fiu" for column in self.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if is_number else cell.ljust(width)
                for cell, width, is_number in zip(row, widths, right, strict=True)
            ).rstrip()
            for row in cells
        ]
        if self.height > most:
            lines.append(f"… {self.height - most} more rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        most = 50
        header, *rows = self._cells(most)
        right = [column.dtype.kind in "fiu" for column in self.values()]

        def line(cells: list[str], tag: str) -> str:
            return "".join(
                f'<{tag} style="text-align:{"right" if is_number else "left"}">{html.escape(cell)}</{tag}>'
                for cell, is_number in zip(cells, right, strict=True)
            )

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
        more = f"<p>… {self.height - most} more rows</p>" if self.height > most else ""
        return f"<table><thead><tr>{line(header, 'th')}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_latex(self) -> str:
        """The table for LaTeX, with the package `booktabs`."""
        header, *rows = self._cells(self.height)
        columns = "".join("r" if column.dtype.kind in "fiu" else "l" for column in self.values())
        lines = [" & ".join(map(_latex, row)) + r" \\" for row in rows]
        top = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(_latex, header)) + r" \\", r"\midrule"]
        return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}"])

    def _cells(self, most: int) -> list[list[str]]:
        """The header and the first rows, as text."""
        columns = [[_text(value) for value in column[:most].tolist()] for column in self.values()]
        return [list(self), *map(list, zip(*columns, strict=True))]


def _text(value: Any) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return NOTHING
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", NOTHING: "--"}
    special |= {character: "\\" + character for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
