"""Parquet: images in the Hugging Face convention (struct<bytes, path>, class names in the metadata) or numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fedfuse.core.errors import DataError, suggest
from fedfuse.data.readers.contents import Array, Contents, Reading, check_range, checked_features, checked_labels, join
from fedfuse.data.readers.images import decode_images

LABEL_COLUMNS = ("label", "labels", "fine_label", "target", "y")
INPUT_COLUMNS = ("image", "img", "inputs", "features", "x")


def read_parquet(paths: Sequence[Path], reading: Reading) -> Contents:
    """All rows of the files, in the order of the files."""
    return join([_read_file(path, reading) for path in paths], [path.name for path in paths])


def contents_of_table(
    table: Any, class_names: tuple[str, ...] | None, reading: Reading, where: str, folder: Path
) -> Contents:
    """The rows of an Arrow table; ``folder`` is where relative image paths start."""
    if table.num_rows == 0:
        raise DataError(f"{where} is empty; it must hold at least one example")
    label_column = find_label_column(table.schema, reading, where)
    labels = checked_labels(_numbers(table[label_column], where), f"{where}, column '{label_column}'")
    if class_names is not None:
        check_range(labels, len(class_names), where)
    inputs = _inputs(table, label_column, reading, where, folder)
    return Contents(inputs, labels, class_names)


def find_label_column(schema: Any, reading: Reading, where: str) -> str:
    """The asked-for label column, or the first usual one."""
    if reading.label_column is not None:
        return _known_column(schema, reading.label_column, "data.label_column", where)
    for name in LABEL_COLUMNS:
        if name in schema.names:
            return name
    columns = ", ".join(schema.names)
    raise DataError(f"{where} has no column {' or '.join(LABEL_COLUMNS)}; set data.label_column to one of: {columns}")


def _read_file(path: Path, reading: Reading) -> Contents:
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as parquet; it may be cut off, so fetch it again") from error
    if not reading.labelled:
        return _without_labels(table, reading, path.name, path.parent)
    label_column = find_label_column(table.schema, reading, path.name)
    return contents_of_table(table, _class_names(table.schema, label_column), reading, path.name, path.parent)


def _without_labels(table: Any, reading: Reading, where: str, folder: Path) -> Contents:
    if table.num_rows == 0:
        raise DataError(f"{where} is empty; it must hold at least one input")
    usual = next((name for name in LABEL_COLUMNS if name in table.schema.names), None)
    inputs = _inputs(table, usual, reading, where, folder)
    return Contents(inputs, np.zeros(len(inputs), np.int64))


def _class_names(schema: Any, label_column: str) -> tuple[str, ...] | None:
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label_column]["names"])
    except (KeyError, TypeError, ValueError):
        return None


def _inputs(table: Any, label_column: str | None, reading: Reading, where: str, folder: Path) -> Array:
    column = _input_column(table.schema, label_column, reading, where)
    if column is None:
        names = [field.name for field in table.schema if field.name != label_column and _is_number(field.type)]
        if not names:
            raise DataError(f"{where} has neither an image column nor number columns; set data.input_column")
        return checked_features(np.stack([_numbers(table[name], where) for name in names], axis=1), where)
    kind = table.schema.field(column).type
    if _is_image(kind):
        return decode_images(list(_sources(table[column], folder)), lambda row: f"{where}, row {row}", reading)
    if _is_list(kind):
        return checked_features(_matrix(table[column], where, column), where)
    if _is_number(kind):
        return checked_features(_numbers(table[column], where)[:, None], where)
    raise DataError(f"{where}: column '{column}' holds {kind}; data.input_column must hold images or numbers")


def _input_column(schema: Any, label_column: str | None, reading: Reading, where: str) -> str | None:
    if reading.input_column is not None:
        return _known_column(schema, reading.input_column, "data.input_column", where)
    fields = [field for field in schema if field.name != label_column]
    named = [field.name for field in fields if field.name in INPUT_COLUMNS]
    typed = [field.name for field in fields if _is_image(field.type) or _is_list(field.type)]
    return next(iter(named + typed), None)


def _known_column(schema: Any, column: str, key: str, where: str) -> str:
    if column not in schema.names:
        raise DataError(f"{key}: {where} has no column '{column}'{suggest(column, schema.names)}")
    return column


def _is_image(kind: Any) -> bool:
    return _is_binary(kind) or (
        pa.types.is_struct(kind) and kind.get_field_index("bytes") >= 0 and _is_binary(kind.field("bytes").type)
    )


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_list(kind: Any) -> bool:
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(listed and _is_number(kind.value_type))


def _is_number(kind: Any) -> bool:
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
