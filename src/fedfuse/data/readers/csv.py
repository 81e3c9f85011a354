"""CSV files with a header: a label column, and a column of texts or numbers in every column but the client's; UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Contents, Reading, join
from fedfuse.data.readers.table import (
    TableRows,
    contents_of_rows,
    find_input_column,
    find_label_column,
    is_text,
    without_ignored,
)


def read_csv(paths: Sequence[Path], reading: Reading) -> Contents:
    """All rows of the files, in the order of the files; row 0 is the line after the header."""
    return join([_read_file(path, reading) for path in paths], [path.name for path in paths])


def _read_file(path: Path, reading: Reading) -> Contents:
    _check_encoding(path)
    try:
        table = csv.read_csv(path, parse_options=csv.ParseOptions(newlines_in_values=True))
    except (OSError, pa.ArrowException) as error:
        reason = str(error).removeprefix("CSV parse error: ").splitlines()[0]
        raise DataError(
            f"{path} cannot be read as CSV ({reason}); every row needs the columns of the header"
        ) from error
    table = table.select(without_ignored(table.schema, reading, path.name).names)
    for name in _number_columns(table.schema, reading, path.name):
        _check_numbers(table[name], f"{path.name}, column '{name}'")
    return contents_of_rows(TableRows(table), None, reading, path.name, path.parent)


def _number_columns(schema: Any, reading: Reading, where: str) -> list[str]:
    """Beside a column of texts only the labels must be numbers."""
    label = find_label_column(schema, reading, where)
    inputs = find_input_column(schema, label, reading, where)
    if inputs is not None and is_text(schema.field(inputs).type):
        return [label] if label is not None and reading.labelled and not reading.words else []
    words = label if reading.words else None
    return [name for name in schema.names if name not in (reading.client_column, words)]


def _check_encoding(path: Path) -> None:
    with path.open("rb") as file:
        for row, line in enumerate(file, start=-1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                where = "the header" if row < 0 else f"row {row}"
                raise DataError(f"{path.name}, {where}: the text is not UTF-8; save the file as UTF-8") from error


def _check_numbers(column: Any, where: str) -> None:
    """A single word makes the whole column text, so the row of the first word is what helps."""
    if not pa.types.is_string(column.type):
        return
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except ValueError:
            raise DataError(f"{where}, row {row}: '{value}' is not a number") from None
