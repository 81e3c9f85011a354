"""JSON Lines: one object per example, as some text sets of the Hugging Face hub are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyarrow import json

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
        table = json.read_json(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as JSON Lines; it must hold one object per line") from error
    table = table.select(without_ignored(table.schema, reading, path.name).names)
    return contents_of_rows(TableRows(table), None, reading, path.name, path.parent)
