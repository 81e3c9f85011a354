"""Columns to arrays: images in the Hugging Face convention (struct<bytes, path>), texts or numbers; labels, clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedfuse.core.errors import DataError, listed, shortened
from fedfuse.data.readers.arrow_types import is_image, is_list, is_number, is_plain, is_text
from fedfuse.data.readers.bounds import beside, check_fits
from fedfuse.data.readers.columns import find_input_column, find_label_column, input_fields
from fedfuse.data.readers.contents import Array, Columns, Contents, Reading, checked_features, join
from fedfuse.data.readers.encoding import Cells, Encoding, encoded
from fedfuse.data.readers.images import decode_images
from fedfuse.data.readers.labels import check_range, label_numbers

BATCH = 1024
"""Rows of encoded images in memory at a time."""
IF_EMPTY = "set data.empty_cells of the experiment to fill, or remove the row"


class Rows(Protocol):
    """A table that need not be in memory."""

    schema: Any
    num_rows: int

    def column(self, name: str) -> Any:
        """A whole column."""

    def batches(self, name: str) -> Iterator[Any]:
        """A column, a few rows at a time."""


class TableRows:
    """An Arrow table as rows."""

    def __init__(self, table: Any) -> None:
        self.schema, self.num_rows, self._table = table.schema, table.num_rows, table

    def column(self, name: str) -> Any:
        return decoded(self._table[name])

    def batches(self, name: str) -> Iterator[Any]:
        for batch in self._table.select([name]).to_batches(max_chunksize=BATCH):
            yield batch.column(0)


@dataclass(frozen=True)
class Table:
    """Somewhere to find rows, perhaps more than once, and what there is to say about them."""

    name: str
    opened: Callable[[], AbstractContextManager[Rows]]
    folder: Path | None = None
    """Where images lie that the table only names; anywhere, if that is None."""
    class_names: tuple[str, ...] | None = None
    """What it calls the classes whose numbers its labels are."""
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns that it calls categories itself, and those of them that it knows."""
    notes: tuple[str, ...] = ()

    @staticmethod
    def of(table: Any, name: str, folder: Path | None = None, **about: Any) -> Table:
        """An Arrow table in memory."""
        return Table(name, lambda: nullcontext(TableRows(table)), folder, **about)


def contents_of_tables(tables: Sequence[Table], reading: Reading) -> Contents:
    """All rows, in the order of the tables."""
    parts = []
    for table in tables:
        with table.opened() as rows:
            parts.append(contents_of_rows(rows, table, reading))
    return join(parts, [table.name for table in tables])


def contents_of_rows(rows: Rows, table: Table, reading: Reading) -> Contents:
    """Inputs, labels and clients."""
    where = table.name
    if rows.num_rows == 0:
        raise DataError(f"{where} is empty; it must hold at least one example")
    label_column = find_label_column(rows.schema, reading, where)
    files = _Beside(table.folder, where)
    inputs, columns = _inputs(rows, label_column, reading, where, files)
    if not reading.labelled or label_column is None:
        return Contents(inputs, np.zeros(len(inputs), np.int64), columns=columns, is_whole=not files.were_read)
    values = _label_values(rows.column(label_column), where)
    names = table.class_names if reading.classes is None else reading.classes.names
    return Contents(
        inputs,
        _labels(values, table, reading, f"{where}, column '{shortened(label_column)}'"),
        names,
        _clients(rows, reading, where),
        columns,
        not files.were_read,
        reading.classes,
        (*table.notes, *_not_read(rows, label_column, reading, where)),
    )


def _not_read(rows: Rows, label_column: str, reading: Reading, where: str) -> list[str]:
    """Columns beside one of images, texts or lists are lost, which their owner may not expect."""
    column = find_input_column(rows.schema, label_column, reading, where)
    names = [field.name for field in input_fields(rows.schema, label_column, reading) if field.name != column]
    if column is None or reading.input_column is not None or not names:
        return []
    return [f"{where}: column '{shortened(column)}' is the input; not read: {listed(names)}"]


def _labels(values: Array, table: Table, reading: Reading, where: str) -> Array:
    """As numbers of the classes, which the reading knows, or else the table."""
    if table.class_names is None or reading.labels or values.dtype.kind not in "iu":
        labels = label_numbers(values, reading.words, where)
        if table.class_names is not None and reading.classes is None:
            check_range(labels, len(table.class_names), table.name)
        return labels
    labels = label_numbers(values, (), where)
    check_range(labels, len(table.class_names), table.name)
    return (
        labels if reading.classes is None else label_numbers(np.array(table.class_names)[labels], reading.words, where)
    )


def decoded(column: Any) -> Any:
    """The words themselves in the place of their numbers in a dictionary."""
    return pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _clients(rows: Rows, reading: Reading, where: str) -> Array | None:
    """None where the column is missing, as it may be in test files."""
    if reading.client_column is None or reading.client_column not in rows.schema.names:
        return None
    names = rows.column(reading.client_column).to_pylist()
    if None in names:
        raise DataError(f"{where}, row {names.index(None)}: the client is missing; every example needs one")
    return np.array([str(name) for name in names])


def _inputs(
    rows: Rows, label_column: str | None, reading: Reading, where: str, files: _Beside
) -> tuple[Array, Columns | None]:
    column = find_input_column(rows.schema, label_column, reading, where)
    if column is None:
        return _of_columns(rows, label_column, reading, where)
    kind = rows.schema.field(column).type
    if is_image(kind):
        sources = (list(_sources(batch, files)) for batch in rows.batches(column))
        return decode_images(sources, rows.num_rows, lambda row: f"{where}, row {row}", reading), None
    if is_text(kind):
        return reading.tokens(rows.column(column).to_pylist(), f"{where}, column '{column}'"), None
    if is_list(kind):
        return checked_features(_matrix(rows.column(column), where, column), where), None
    if is_plain(kind):
        encoding = reading.encoding or Encoding.of_numbers([column])
        return _encoded(rows, encoding, reading, where)
    raise DataError(f"{where}: column '{column}' holds {kind}; data.input_column must hold images, texts or numbers")


def _of_columns(rows: Rows, label_column: str | None, reading: Reading, where: str) -> tuple[Array, Columns]:
    """All columns that are inputs, as the experiment encodes them; where nothing is known of that, the numbers."""
    encoding = reading.encoding
    if encoding is None or (encoding.is_plain and not set(encoding.names) & set(rows.schema.names)):
        fields = input_fields(rows.schema, label_column, reading)
        if not any(is_number(field.type) for field in fields):
            raise DataError(f"{where} has neither images nor texts nor number columns; set data.input_column")
        encoding = Encoding.of_numbers(field.name for field in fields if reading.labelled or is_number(field.type))
    return _encoded(rows, encoding, reading, where)


def _encoded(rows: Rows, encoding: Encoding, reading: Reading, where: str) -> tuple[Array, Columns]:
    known, there = set(encoding.names), rows.schema.names
    if missing := known - set(there):
        name = next(name for name in encoding.names if name in missing)
        raise DataError(f"{where} has no column '{shortened(name)}', which is an input")
    check_fits(4 * rows.num_rows * encoding.width, where)
    columns = {name: rows.column(name) for name in encoding.names}
    others = tuple(name for name in (*there, *reading.ignored) if name not in known)
    kept = Columns(encoding.names, others, None if encoding.is_plain else encoding)
    return encoded(encoding, columns, Cells(where, IF_EMPTY)), kept


class _Beside:
    """Images that a table only names."""

    def __init__(self, folder: Path | None, where: str) -> None:
        self.folder, self.where, self.were_read = folder, where, False

    def __call__(self, name: object) -> Path | None:
        if not name or not isinstance(name, str):
            return None
        self.were_read = True
        return Path(name) if self.folder is None else beside(self.folder, name, self.where)


def _sources(column: Any, files: _Beside) -> Iterator[bytes | Path | None]:
    """The encoded bytes, or the file beside the table where the bytes were left out."""
    for value in column.to_pylist():
        if not isinstance(value, dict):
            yield value
        elif value["bytes"] is not None:
            yield value["bytes"]
        else:
            yield files(value.get("path"))


def _label_values(column: Any, where: str) -> Array:
    try:
        return np.asarray(column.to_numpy())
    except pa.ArrowException as error:
        raise DataError(f"{where}: a column of {column.type} cannot be turned into labels") from error


def _matrix(column: Any, where: str, name: str) -> Array:
    lengths = pc.list_value_length(column).to_numpy()
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd) or np.isnan(lengths[0]):
        row = int(odd[0]) if len(odd) else 0
        raise DataError(
            f"{where}, row {row}: column '{name}' holds {lengths[row]} numbers where row 0 holds {lengths[0]}; "
            "all rows must have the same length"
        )
    return np.asarray(pc.list_flatten(column).to_numpy()).reshape(len(lengths), -1)
