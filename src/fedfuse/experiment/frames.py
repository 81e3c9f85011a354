"""Rows of plain values as pandas data frames, for those who have pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedfuse.core.errors import MissingExtraError


def frame_of(records: Sequence[dict[str, Any]]) -> Any:
    """A data frame with a column for every key that some record has."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("to_frame()", "pandas") from error
    return pandas.DataFrame.from_records(records)
