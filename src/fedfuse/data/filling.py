"""Empty cells of a table: what stands in their place is measured on training examples, never on test examples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers import Found
from fedfuse.data.readers.contents import Array
from fedfuse.data.readers.encoding import Column, Encoding


def filled(found: Found, rows: Array) -> tuple[Found, list[str]]:
    """The same without empty cells, and a line for each column that had some; ``rows`` are the training examples."""
    encoding = found.train.columns.encoding if found.train.columns is not None else None
    if found.train.columns is None or encoding is None or not encoding.fills:
        return found, []
    columns, notes = [], []
    for column, place in _placed(encoding):
        parts = [part.inputs[:, place : place + column.width] for part in found.parts.values()]
        known = column if column.fill is not None else _with_fill(column, parts[0][rows], found.origin)
        empty = sum(_fill(known, cells) for cells in parts)
        columns.append(known)
        notes += [_note(known, empty)] if empty else []
    kept = replace(found.train.columns, encoding=encoding.model_copy(update={"columns": tuple(columns)}))
    return replace(found, train=replace(found.train, columns=kept)), notes


def _placed(encoding: Encoding) -> Iterator[tuple[Column, int]]:
    """The columns, and where the numbers of each begin."""
    place = 0
    for column in encoding.columns:
        yield column, place
        place += column.width


def _with_fill(column: Column, cells: Array, where: str) -> Column:
    if column.kind == "category":
        return column
    there = cells[~np.isnan(cells)].astype(np.float64)
    if not len(there):
        raise DataError(
            f"{where}: column '{shortened(column.name)}' is empty in every training example; leave it out with "
            "data.ignore_columns"
        )
    value = np.median(there) if column.kind == "number" else there.mean() > 0.5
    return column.model_copy(update={"fill": float(np.float32(value))})


def _fill(column: Column, cells: Array) -> int:
    """How many cells were empty; ``cells`` are a part of the inputs, which is changed."""
    if column.kind == "category":
        return int((cells == 0).all(axis=1).sum())
    empty = np.isnan(cells)
    cells[empty] = column.fill
    return int(empty.sum())


def _note(column: Column, empty: int) -> str:
    cells = f"{shortened(column.name)}: {empty:,} empty cell{'s'[: empty != 1]}"
    if column.kind == "category":
        return f"{cells} as 0 in all its columns"
    if column.kind == "number":
        return f"{cells} filled with {column.fill:g}, the median of the training examples"
    return f"{cells} filled with {str(bool(column.fill)).lower()}, the more frequent one of the training examples"
