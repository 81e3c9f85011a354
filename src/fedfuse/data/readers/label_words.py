"""Labels of a table that are words: its classes, numbered in alphabetical order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.contents import Reading
from fedfuse.data.readers.table import find_label_column, is_text, without_ignored

MOST = 1000
"""Different words; more are no classes, but names or numbers of rows."""


def label_words(name: str, files: Sequence[Path], reading: Reading) -> tuple[str, ...]:
    """The words in the label column of csv or parquet files; none where labels are numbers, or numbers among words.

    Nor where something is wrong, which the reader of the whole file says better.
    """
    words: set[str] = set()
    try:
        for file in files:
            for batch in _labels(name, file, reading):
                if not is_text(batch.type):
                    return ()
                words.update(word for word in batch.unique().to_pylist() if word)
                if len(words) > MOST:
                    raise DataError(
                        f"{file.name} has more than {MOST} different words as labels, such as "
                        f"'{shortened(min(words))}'; set data.label_column to the column of the classes"
                    )
    except (OSError, ValueError, pa.ArrowException):
        return ()
    return () if any(_is_number(word) for word in words) else tuple(sorted(words))


def _labels(name: str, file: Path, reading: Reading) -> Iterator[Any]:
    """The label column, some rows at a time."""
    if name == "csv":
        with csv.open_csv(file) as head:
            column = find_label_column(without_ignored(head.schema, reading, file.name), reading, file.name)
        only = csv.ConvertOptions(include_columns=[column])
        with csv.open_csv(file, parse_options=csv.ParseOptions(newlines_in_values=True), convert_options=only) as rows:
            yield from (batch.column(0) for batch in rows)
    else:
        with pq.ParquetFile(file) as table:
            schema = without_ignored(table.schema_arrow, reading, file.name)
            column = find_label_column(schema, reading, file.name)
            if is_text(schema.field(column).type):
                yield from (batch.column(0) for batch in table.iter_batches(columns=[column]))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
