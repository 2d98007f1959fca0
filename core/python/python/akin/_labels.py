"""Labels of any library as class ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _akin
from ._arrays import to_numpy
from ._errors import ConfigError, TaxonomyError

Ids = NDArray[np.uint32]


class LabelledSets(NamedTuple):
    """A taxonomy with the class ids of each of several sets."""

    taxonomy: _akin.Taxonomy
    ids: list[Ids]


class _Codes(NamedTuple):
    """A column of labels as numbers of names; -1 where a label is unknown."""

    codes: NDArray[np.int64]
    names: list[str]


def number(
    sets: Sequence[tuple[str, Any]], levels: Sequence[str] | None, unknown: Any = None, qualify: bool = False
) -> LabelledSets:
    """One taxonomy of all sets, each a name for errors and a table of labels; and the class ids [N, L] of each set."""
    tables = [(name, columns(labels, levels, name)) for name, labels in sets]
    names = list(tables[0][1])
    for name, table in tables:
        if list(table) != names:
            raise TaxonomyError(
                f"`{name}` has the levels {', '.join(table)}, and `{tables[0][0]}` has {', '.join(names)}",
                "name the levels of both with `levels`",
            )
    sizes = [_length(table, name) for name, table in tables]
    is_unknown = _names_of_unknown(unknown)
    by_level = [_merge([_codes(table[level], is_unknown) for _, table in tables]) for level in names]
    key = np.zeros(sum(sizes), dtype=np.int64)
    for codes, labels_of_level in by_level:
        # Below the number of rows times the number of labels, which fits.
        key = np.unique(key * (len(labels_of_level) + 1) + codes + 1, return_inverse=True)[1].reshape(-1)
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    # Classes are numbered in the order in which they first appear.
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    first = first[order]
    text = [
        ["" if code < 0 else labels_of_level[code] for code in codes[first].tolist()]
        for codes, labels_of_level in by_level
    ]
    starts = np.cumsum([0, *sizes])
    set_of = np.searchsorted(starts, first, side="right") - 1
    rows_named = [
        f"row {row - starts[number_of_set]} of `{tables[number_of_set][0]}`"
        for row, number_of_set in zip(first.tolist(), set_of.tolist(), strict=True)
    ]
    rows = [list(row) for row in zip(*text, strict=True)]
    taxonomy = _akin.Taxonomy(names, rows, rows_named, qualify)
    ids = taxonomy.ids()[place[inverse.reshape(-1)]]
    return LabelledSets(taxonomy, [ids[start : start + size] for start, size in zip(starts, sizes, strict=False)])


def columns(labels: Any, levels: Sequence[str] | None, name: str) -> dict[str, Any]:
    """The columns of a table of labels, coarse → fine."""
    if isinstance(levels, str):
        levels = [levels]
    table = _table(labels)
    if table is None:
        array = _array(labels, name)
        found = [array] if array.ndim == 1 else [array[:, level] for level in range(array.shape[1])]
        default = ["class"] if len(found) == 1 else [f"level {level + 1}" for level in range(len(found))]
        names = default if levels is None else [encodable(str(level)) for level in levels]
        if len(names) != len(found):
            raise TaxonomyError(
                f"`{name}` has {len(found)} columns, and `levels` names {len(names)}", "name each column, coarse to fine"
            )
        table = dict(zip(names, found, strict=True))
        if len(table) != len(found):
            raise TaxonomyError("`levels` names a level twice", "give each level its own name")
        return table
    if levels is None:
        return {encodable(str(column)): values for column, values in table.items()}
    missing = [str(level) for level in levels if level not in table]
    if missing:
        raise TaxonomyError(
            f"`{name}` has no column {', '.join(missing)}", f"its columns are {', '.join(map(str, table))}"
        )
    return {encodable(str(level)): table[level] for level in levels}


def codes_of(values: Any, name: str) -> list[str]:
    """A column as names, such as groups, none of which may be missing."""
    codes, names = _codes(values, frozenset())
    if (codes < 0).any():
        raise ConfigError(f"`{name}` is empty in row {int(np.argmax(codes < 0))}", "fill it in")
    return [names[code] for code in codes.tolist()]


def text_of(value: Any) -> str | None:
    """The name of a label; `None` if it is missing."""
    if value is None or isinstance(value, float | np.floating):
        if value is None or np.isnan(value):
            return None
        return str(int(value)) if float(value).is_integer() else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip() or None
    if isinstance(value, str):
        return encodable(value) if value.strip() else None
    # The missing values of pandas: NA and NaT.
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, np.datetime64) and np.isnat(value)):
        return None
    return text if (text := encodable(str(value))).strip() else None


def encodable(text: str) -> str:
    """Text that Rust can read: names of files can have bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _table(labels: Any) -> dict[Any, Any] | None:
    """The columns of a table; `None` for what is no table."""
    if isinstance(labels, Mapping):
        return dict(labels)
    if isinstance(labels, np.ndarray) and labels.dtype.names:
        return {column: labels[column] for column in labels.dtype.names}
    if isinstance(labels, np.ndarray):
        return None
    if hasattr(labels, "column_names") and hasattr(labels, "column"):
        # Of pyarrow.
        return {column: labels.column(place) for place, column in enumerate(labels.column_names)}
    if hasattr(labels, "columns") and hasattr(labels, "__getitem__"):
        # Of pandas or polars.
        return {column: labels[column] for column in labels.columns}
    if hasattr(labels, "to_frame") and getattr(labels, "name", None):
        # A column of pandas or polars.
        return {labels.name: labels}
    return None


def _array(labels: Any, name: str) -> NDArray[Any]:
    if isinstance(labels, list | tuple):
        rows = [row for row in labels if isinstance(row, list | tuple | np.ndarray)]
        if rows and (len(rows) < len(labels) or len({len(row) for row in rows}) > 1):
            raise TaxonomyError(f"the rows of `{name}` have different lengths", "give each item one label per level")
        # Not as an array of one type, which makes text of numbers and the other way round.
        array = np.empty((len(labels), len(rows[0])) if rows else len(labels), dtype=object)
        for place, row in enumerate(labels):
            array[place] = row
    else:
        array = _values(labels)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise TaxonomyError(
            f"`{name}` has the shape {list(array.shape)}", "give one row per item, with one label per level"
        )
    return array


def _values(column: Any) -> NDArray[Any]:
    """A column as an array. One with missing values keeps its numbers as they are, and does not become float."""
    nulls = getattr(column, "null_count", 0)
    if (nulls() if callable(nulls) else nulls) > 0:
        # Of pyarrow or polars.
        listed = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        array = np.empty(len(listed), dtype=object)
        array[:] = listed
        return array
    return to_numpy(column)


def _names_of_unknown(unknown: Any) -> frozenset[str]:
    """The labels that mean that a label is not known, besides missing ones."""
    single = not isinstance(unknown, Iterable) or isinstance(unknown, str | bytes)
    try:
        values = [unknown] if single else list(unknown)
    except TypeError as error:
        # An array without dimensions says that it is iterable.
        raise ConfigError(f"`unknown` is {unknown!r}", "give a label, or a list of labels") from error
    return frozenset(name for value in values if (name := text_of(value)) is not None)


def _codes(values: Any, unknown: frozenset[str]) -> _Codes:
    array = _values(values)
    if array.ndim != 1:
        raise TaxonomyError(f"a column of labels has the shape {list(array.shape)}", "give one label per item")
    if array.dtype == object:
        numbers: dict[str | None, int] = {None: -1}
        codes = np.empty(len(array), dtype=np.int64)
        # Two values can have one name, as 1 and "1".
        for place, value in enumerate(array):
            name = text_of(value)
            if name not in numbers:
                numbers[name] = len(numbers) - 1
            codes[place] = numbers[name]
        names = [str(name) for name in numbers if name is not None]
    else:
        different, inverse = np.unique(array, return_inverse=True)
        texts = [text_of(value) for value in different.tolist()]
        names = [text for text in texts if text is not None]
        places = np.cumsum([text is not None for text in texts]) - 1
        numbered = np.where([text is None for text in texts], -1, places)
        codes = numbered[inverse.reshape(-1)].astype(np.int64) if len(different) else np.empty(0, dtype=np.int64)
    missing = [code for code, name in enumerate(names) if name in unknown]
    if missing:
        codes = np.where(np.isin(codes, missing), -1, codes)
    return _Codes(codes, names)


def _merge(columns_of_sets: list[_Codes]) -> _Codes:
    """The columns of several sets behind each other, numbered as one."""
    numbers: dict[str, int] = {}
    codes = []
    for column in columns_of_sets:
        places = np.array([numbers.setdefault(name, len(numbers)) for name in column.names] + [-1], dtype=np.int64)
        codes.append(places[column.codes])
    return _Codes(np.concatenate(codes), list(numbers))


def _length(table: dict[str, Any], name: str) -> int:
    lengths = {level: len(values) for level, values in table.items()}
    if len(set(lengths.values())) != 1:
        raise TaxonomyError(f"the columns of `{name}` have the lengths {lengths}", "give one label per item and level")
    return next(iter(lengths.values()))
