"""Rows of a table as people have them: a data frame, one row or several by the names of their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fedfuse.core.errors import DataError, did_you_mean, shortened
from fedfuse.data.given.tables import as_table, is_table
from fedfuse.data.readers.encoding import Cells

WHERE = "the inputs"
"""What errors call them."""
CELLS = Cells(WHERE, "the model knows no empty cells (data.empty_cells: refuse), so fill it in")


def are_named(raw: Any) -> bool:
    """Whether cells are known by the names of their columns, and not by their places."""
    return is_table(raw) or _is_row(raw) or (_is_list(raw) and all(map(_is_row, raw)))


def by_name(raw: Any, names: Sequence[str], beside: Sequence[str]) -> dict[str, Any]:
    """The Arrow columns that are asked for, whatever their order; others must be known to be no inputs."""
    is_frame = hasattr(raw, "iloc") and hasattr(raw, "columns")
    table = raw if is_frame else _of_rows(raw) if _is_row(raw) or _is_list(raw) else as_table(raw, WHERE)
    given = [str(name) for name in (raw.columns if is_frame else table.schema.names)]
    _check_names(given, names, beside)
    if is_frame:  # what is no input may hold anything
        wanted = set(names)
        table = as_table(raw.loc[:, [name in wanted for name in given]], WHERE)
    return {name: pa.chunked_array(table[name]) for name in names}


def _check_names(given: Sequence[str], names: Sequence[str], beside: Sequence[str]) -> None:
    there, known = set(given), {*names, *beside}
    missing = [name for name in names if name not in there]
    if missing:
        meant = did_you_mean(missing[0], there) if len(missing) == 1 else ""
        raise DataError(f"the table has no column {_quoted(missing)}{meant}; the model reads {_listed(names)}")
    surplus = [name for name in given if name not in known]
    if surplus:
        raise DataError(f"the model has never seen column {_quoted(surplus)}; leave out what it should not read")


def _of_rows(raw: Any) -> Any:
    rows = [_row(one) for one in (raw if _is_list(raw) else [raw])]
    names = dict.fromkeys(name for row in rows for name in row)
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows], from_pandas=True) for name in names})
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{WHERE} cannot be read as rows of a table: {shortened(str(error))}") from None


def _row(raw: Any) -> dict[str, Any]:
    return {str(name): value for name, value in dict(raw).items()}


def _is_row(raw: Any) -> bool:
    """One row: a mapping, or a row of a data frame."""
    return isinstance(raw, Mapping) or (
        hasattr(raw, "to_dict") and hasattr(raw, "index") and not hasattr(raw, "columns")
    )


def _is_list(raw: Any) -> bool:
    return isinstance(raw, list | tuple) and len(raw) > 0


def _quoted(names: Sequence[str]) -> str:
    return _listed([f"'{name}'" for name in names])


def _listed(names: Sequence[str]) -> str:
    return shortened(", ".join(names), 300)
