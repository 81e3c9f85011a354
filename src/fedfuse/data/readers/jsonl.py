"""JSON Lines: one object per example, as some text sets of the Hugging Face hub are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.columns import without_ignored
from fedfuse.data.readers.contents import Contents, Reading
from fedfuse.data.readers.table import Table, contents_of_tables


def read_jsonl(paths: Sequence[Path], reading: Reading) -> Contents:
    """All lines of the files, in the order of the files."""
    return contents_of_tables([jsonl_table(path, reading) for path in paths], reading)


def jsonl_table(path: Path, reading: Reading) -> Table:
    """The file in memory."""
    check_fits(path.stat().st_size, path.name)
    try:
        table = _table(path.read_text(encoding="utf-8-sig"))
    except DataError as error:
        raise DataError(f"{path.name}: {error}") from None
    except (OSError, ValueError, RecursionError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as JSON Lines; it must hold one object per line") from error
    return Table.of(table.select(without_ignored(table.schema, reading, path.name).names), path.name, path.parent)


def _table(text: str) -> Any:
    """By Python's own parser: Arrow's crashes on deep nesting."""
    rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("a line is no object")
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column([row.get(name) for row in rows], name) for name in names})


def _column(values: list[Any], name: str) -> Any:
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        raise DataError(
            f"column '{shortened(name)}' holds values of different kinds; make them all numbers or all words"
        ) from None
