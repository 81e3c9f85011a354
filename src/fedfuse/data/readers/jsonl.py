"""JSON Lines: one object per example, as some text sets of the Hugging Face hub are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Contents, Reading, join
from fedfuse.data.readers.table import TableRows, contents_of_rows, without_ignored


def read_jsonl(paths: Sequence[Path], reading: Reading) -> Contents:
    """All lines of the files, in the order of the files."""
    return join([_read_file(path, reading) for path in paths], [path.name for path in paths])


def _read_file(path: Path, reading: Reading) -> Contents:
    check_fits(path.stat().st_size, path.name)
    try:
        table = _table(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, OverflowError, RecursionError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as JSON Lines; it must hold one object per line") from error
    table = table.select(without_ignored(table.schema, reading, path.name).names)
    return contents_of_rows(TableRows(table), None, reading, path.name, path.parent)


def _table(text: str) -> Any:
    """By Python's own parser: Arrow's crashes on deep nesting."""
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is no object")
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
