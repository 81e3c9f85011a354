"""Parquet files, read a few rows at a time so that encoded images never lie in memory all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.columns import find_label_column, without_ignored
from fedfuse.data.readers.contents import Contents, Reading
from fedfuse.data.readers.table import BATCH, Rows, Table, contents_of_tables, decoded


class FileRows:
    """An open parquet file as rows; as many as it says, or a ValueError."""

    def __init__(self, file: Any, schema: Any) -> None:
        self.schema, self.num_rows, self._file = schema, file.metadata.num_rows, file

    def column(self, name: str) -> Any:
        column = self._file.read([name])[name]
        self._check(len(column))
        return decoded(column)

    def batches(self, name: str) -> Iterator[Any]:
        left = self.num_rows
        for batch in self._file.iter_batches(BATCH, columns=[name]):
            left -= len(batch)
            if left >= 0:
                yield batch.column(0)
        self._check(self.num_rows - left)

    def _check(self, rows: int) -> None:
        if rows != self.num_rows:
            raise ValueError(f"{rows} rows, but {self.num_rows} are announced")


def read_parquet(paths: Sequence[Path], reading: Reading) -> Contents:
    """All rows of the files, in the order of the files; class names are those of the Hugging Face metadata."""
    return contents_of_tables([parquet_table(path, reading) for path in paths], reading)


def parquet_table(path: Path, reading: Reading) -> Table:
    """The file, which is opened for as long as rows of it are asked for."""

    @contextmanager
    def opened() -> Iterator[Rows]:
        try:
            with pq.ParquetFile(path) as file:
                # A value like the one before takes no room in a file, but four bytes at least in memory.
                check_fits(4 * file.metadata.num_rows * file.metadata.num_columns, path.name)
                yield FileRows(file, without_ignored(file.schema_arrow, reading, path.name))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{path} cannot be read as parquet; it may be cut off, so fetch it again") from error

    with opened() as rows:
        names = class_names(rows.schema, find_label_column(rows.schema, reading, path.name))
        categories = [one.name for one in rows.schema if pa.types.is_dictionary(one.type)]
        categories += _categories_of_pandas(rows.schema)
    return Table(path.name, opened, path.parent, names, dict.fromkeys(categories, ()))


def _categories_of_pandas(schema: Any) -> list[str]:
    """Columns that pandas calls categorical: those of numbers are plain numbers to anybody else."""
    try:
        columns = json.loads((schema.metadata or {})[b"pandas"])["columns"]
        return [str(column["name"]) for column in columns if column["pandas_type"] == "categorical"]
    except (LookupError, TypeError, ValueError, RecursionError):
        return []


def class_names(schema: Any, label_column: str | None) -> tuple[str, ...] | None:
    """What the Hugging Face metadata of a table call its classes, if they do."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label_column]["names"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
