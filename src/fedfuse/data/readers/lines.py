"""A text file of sentences, one per line, without labels; UTF-8."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Contents, Reading


def read_lines(path: Path, reading: Reading) -> Contents:
    """Every line that is not blank."""
    check_fits(path.stat().st_size, path.name)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name}: the text is not UTF-8; save the file as UTF-8") from error
    texts = [line for line in lines if line.strip()]
    if not texts:
        raise DataError(f"{path.name} is empty; it must hold at least one line of text")
    return Contents(reading.tokens(texts, path.name), np.zeros(len(texts), np.int64))
