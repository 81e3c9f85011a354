"""A column that numbers the rows of a table is numbers like any other, and so would be read as an input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyarrow import csv

from fedfuse.data.readers import Reading
from fedfuse.data.readers.table import find_input_column, find_label_column, without_ignored
from fedfuse.data.settings import DataSettings
from fedfuse.data.tokens import TextSettings, tokenizer_of

NAMES = re.compile(r"(?i:(.*[_ .-])?(id|idx|index|uuid)|unnamed: 0|)|.*[a-z0-9]I[Dd]")


def row_numbers(settings: DataSettings) -> list[str]:
    """The inputs among a table's columns whose names say that they number its rows, as far as names can tell."""
    if settings.name not in ("csv", "parquet"):
        return []
    columns = settings.input_column, settings.label_column, settings.client_column
    reading = Reading(*columns, tokenizer=tokenizer_of(TextSettings()), ignored=settings.ignore_columns)
    try:
        schema = without_ignored(_schema(Path(str(settings.path)).expanduser(), settings.name), reading, "")
        label = find_label_column(schema, reading, "")
        if find_input_column(schema, label, reading, "") is not None:
            return []
    except Exception:
        return []  # whoever reads the data will say what is wrong with it
    return [name for name in schema.names if NAMES.fullmatch(name) and name not in (label, settings.client_column)]


def _schema(path: Path, name: str) -> Any:
    """Of the file, or of the first one in a folder, without reading it."""
    file = min(path.glob(f"*.{name}"), default=path)
    if name == "parquet":
        return pq.read_schema(file)
    with csv.open_csv(file) as reader:
        return reader.schema
