"""Columns to arrays: images in the Hugging Face convention (struct<bytes, path>), texts or numbers; labels, clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedfuse.core.errors import DataError, suggest
from fedfuse.data.readers.contents import (
    Array,
    Columns,
    Contents,
    Reading,
    check_range,
    checked_features,
    label_numbers,
)
from fedfuse.data.readers.images import decode_images

LABEL_COLUMNS = ("label", "labels", "fine_label", "target", "y")
INPUT_COLUMNS = ("image", "img", "inputs", "features", "x")
TEXT_COLUMNS = ("text", "sentence", "content")
BATCH = 1024
"""Rows of encoded images in memory at a time."""


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
        return self._table[name]

    def batches(self, name: str) -> Iterator[Any]:
        for batch in self._table.select([name]).to_batches(max_chunksize=BATCH):
            yield batch.column(0)


def without_ignored(schema: Any, reading: Reading, where: str) -> Any:
    """The schema of what is read; a column that is to be ignored must be there, since it might be misspelt."""
    for name in reading.ignored:
        _known_column(schema, name, "data.ignore_columns", where)
    return pa.schema([field for field in schema if field.name not in reading.ignored], schema.metadata)


def contents_of_rows(
    rows: Rows, class_names: tuple[str, ...] | None, reading: Reading, where: str, folder: Path
) -> Contents:
    """Inputs, labels and clients; ``folder`` is where relative image paths start."""
    if rows.num_rows == 0:
        raise DataError(f"{where} is empty; it must hold at least one example")
    label_column = find_label_column(rows.schema, reading, where)
    inputs = _inputs(rows, label_column, reading, where, folder)
    if not reading.labelled or label_column is None:
        return Contents(inputs, np.zeros(len(inputs), np.int64))
    values = _numbers(rows.column(label_column), where)
    named = reading if class_names is None else replace(reading, words=())  # these labels are places in class_names
    labels = label_numbers(values, named, f"{where}, column '{label_column}'")
    if class_names is not None:
        check_range(labels, len(class_names), where)
    columns = _columns(rows.schema, label_column, reading, where)
    return Contents(inputs, labels, class_names, _clients(rows, reading, where), columns)


def find_label_column(schema: Any, reading: Reading, where: str) -> str | None:
    """The asked-for label column, or the first usual one; None where there is none and none is wanted."""
    if reading.label_column is not None:
        return _known_column(schema, reading.label_column, "data.label_column", where)
    for name in LABEL_COLUMNS:
        if name in schema.names:
            return name
    if not reading.labelled:
        return None
    columns = ", ".join(schema.names)
    raise DataError(f"{where} has no column {' or '.join(LABEL_COLUMNS)}; set data.label_column to one of: {columns}")


def _clients(rows: Rows, reading: Reading, where: str) -> Array | None:
    """None where the column is missing, as it may be in test files."""
    if reading.client_column is None or reading.client_column not in rows.schema.names:
        return None
    names = rows.column(reading.client_column).to_pylist()
    if None in names:
        raise DataError(f"{where}, row {names.index(None)}: the client is missing; every example needs one")
    return np.array([str(name) for name in names])


def _inputs(rows: Rows, label_column: str | None, reading: Reading, where: str, folder: Path) -> Array:
    column = find_input_column(rows.schema, label_column, reading, where)
    if column is None:
        names = _number_columns(rows.schema, label_column, reading)
        if not names:
            raise DataError(f"{where} has neither images nor texts nor number columns; set data.input_column")
        return checked_features(np.stack([_numbers(rows.column(name), where) for name in names], axis=1), where)
    kind = rows.schema.field(column).type
    if _is_image(kind):
        sources = (list(_sources(batch, folder)) for batch in rows.batches(column))
        return decode_images(sources, rows.num_rows, lambda row: f"{where}, row {row}", reading)
    if is_text(kind):
        return reading.tokens(rows.column(column).to_pylist(), f"{where}, column '{column}'")
    if _is_list(kind):
        return checked_features(_matrix(rows.column(column), where, column), where)
    if is_number(kind):
        return checked_features(_numbers(rows.column(column), where)[:, None], where)
    raise DataError(f"{where}: column '{column}' holds {kind}; data.input_column must hold images, texts or numbers")


def _columns(schema: Any, label_column: str | None, reading: Reading, where: str) -> Columns | None:
    """None where one column holds images, texts or lists."""
    column = find_input_column(schema, label_column, reading, where)
    if column is not None and not is_number(schema.field(column).type):
        return None
    inputs = _number_columns(schema, label_column, reading) if column is None else (column,)
    return Columns(inputs, tuple(name for name in (*schema.names, *reading.ignored) if name not in inputs))


def _number_columns(schema: Any, label_column: str | None, reading: Reading) -> tuple[str, ...]:
    return tuple(field.name for field in _input_fields(schema, label_column, reading) if is_number(field.type))


def find_input_column(schema: Any, label_column: str | None, reading: Reading, where: str) -> str | None:
    """The asked-for column of inputs, or the first usual one; None where the number columns are the inputs."""
    if reading.input_column is not None:
        return _known_column(schema, reading.input_column, "data.input_column", where)
    fields = _input_fields(schema, label_column, reading)
    named = [field.name for field in fields if field.name in INPUT_COLUMNS]
    typed = [field.name for field in fields if _is_image(field.type) or _is_list(field.type)]
    texts = [field.name for field in fields if field.name in TEXT_COLUMNS and is_text(field.type)]
    return next(iter(named + typed + (texts if reading.tokenizer else [])), None)


def _input_fields(schema: Any, label_column: str | None, reading: Reading) -> list[Any]:
    return [field for field in schema if field.name not in (label_column, reading.client_column)]


def _known_column(schema: Any, column: str, key: str, where: str) -> str:
    if column not in schema.names:
        raise DataError(f"{key}: {where} has no column '{column}'{suggest(column, schema.names)}")
    return column


def is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_image(kind: Any) -> bool:
    return _is_binary(kind) or (
        pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type)
    )


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: Any) -> bool:
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(listed and is_number(kind.value_type))


def is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _sources(column: Any, folder: Path) -> Iterator[bytes | Path | None]:
    """The encoded bytes, or the file beside the table where the bytes were left out."""
    for value in column.to_pylist():
        if not isinstance(value, dict):
            yield value
        elif value["bytes"] is not None:
            yield value["bytes"]
        else:
            yield folder / value["path"] if value.get("path") else None


def _numbers(column: Any, where: str) -> Array:
    try:
        return np.asarray(column.to_numpy())
    except pa.ArrowException as error:
        raise DataError(f"{where}: a column of {column.type} cannot be turned into numbers") from error


def _matrix(column: Any, where: str, name: str) -> Array:
    lengths = pc.list_value_length(column).to_numpy()
    odd = np.flatnonzero(lengths != lengths[0])
    if len(odd) or np.isnan(lengths[0]):
        row = int(odd[0]) if len(odd) else 0
        raise DataError(
            f"{where}, row {row}: column '{name}' holds {lengths[row]} numbers where row 0 holds {lengths[0]}; "
            "all rows must have the same length"
        )
    return _numbers(pc.list_flatten(column), where).reshape(len(lengths), -1)
