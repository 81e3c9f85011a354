"""Parquet files, read a few rows at a time so that encoded images never lie in memory all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Contents, Reading, join
from fedfuse.data.readers.table import BATCH, contents_of_rows, find_label_column, without_ignored


class FileRows:
    """An open parquet file as rows; as many as it says, or a ValueError."""

    def __init__(self, file: Any, schema: Any) -> None:
        self.schema, self.num_rows, self._file = schema, file.metadata.num_rows, file

    def column(self, name: str) -> Any:
        column = self._file.read([name])[name]
        self._check(len(column))
        return column

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
    return join([_read_file(path, reading) for path in paths], [path.name for path in paths])


def _read_file(path: Path, reading: Reading) -> Contents:
    try:
        with pq.ParquetFile(path) as file:
            # A value like the one before takes no room in a file, but four bytes at least in memory.
            check_fits(4 * file.metadata.num_rows * file.metadata.num_columns, path.name)
            rows = FileRows(file, without_ignored(file.schema_arrow, reading, path.name))
            names = class_names(rows.schema, find_label_column(rows.schema, reading, path.name))
            return contents_of_rows(rows, names, reading, path.name, path.parent)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as parquet; it may be cut off, so fetch it again") from error


def class_names(schema: Any, label_column: str | None) -> tuple[str, ...] | None:
    """What the Hugging Face metadata of a table call its classes, if they do."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label_column]["names"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
