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
    """An open parquet file as rows."""

    def __init__(self, file: Any, schema: Any) -> None:
        self.schema, self.num_rows, self._file = schema, file.metadata.num_rows, file

    def column(self, name: str) -> Any:
        return self._file.read([name])[name]

    def batches(self, name: str) -> Iterator[Any]:
        for batch in self._file.iter_batches(BATCH, columns=[name]):
            yield batch.column(0)


def read_parquet(paths: Sequence[Path], reading: Reading) -> Contents:
    """All rows of the files, in the order of the files; class names are those of the Hugging Face metadata."""
    return join([_read_file(path, reading) for path in paths], [path.name for path in paths])


def _read_file(path: Path, reading: Reading) -> Contents:
    try:
        with pq.ParquetFile(path) as file:
            _check_size(file.metadata, path.name)
            rows = FileRows(file, without_ignored(file.schema_arrow, reading, path.name))
            names = class_names(rows.schema, find_label_column(rows.schema, reading, path.name))
            return contents_of_rows(rows, names, reading, path.name, path.parent)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as parquet; it may be cut off, so fetch it again") from error


def _check_size(metadata: Any, where: str) -> None:
    """A value takes no room in a file if it is the one before, but four bytes at least in memory."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = sum(group.column(place).num_values for group in groups for place in range(group.num_columns))
    check_fits(4 * values, where)


def class_names(schema: Any, label_column: str | None) -> tuple[str, ...] | None:
    """What the Hugging Face metadata of a table call its classes, if they do."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return tuple(str(name) for name in features[label_column]["names"])
    except (LookupError, TypeError, ValueError, RecursionError):
        return None
