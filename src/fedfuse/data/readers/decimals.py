"""Decimal commas in a CSV file: found where they cannot be anything else, and asked about where they can."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.arrow_types import is_number, is_text

COMMA = re.compile(r"[+-]?[0-9]+(,[0-9]+)?([eE][+-]?[0-9]+)?")
"""A number, perhaps with a decimal comma."""
THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+")
"""A number whose commas may as well mark thousands."""


def has_decimal_commas(table: Any, columns: Sequence[str], where: str) -> str | None:
    """A column of numbers with decimal commas, if there is one in a table that was read with decimal points."""
    doubtful = None
    for name in columns:
        texts = _texts_with_commas(table[name]) if is_text(table.schema.field(name).type) else []
        if any(not THOUSANDS.fullmatch(text) for text in texts):
            return name
        doubtful = (name, texts[0]) if texts else doubtful
    if doubtful is not None:
        raise DataError(
            f"{where}, column '{shortened(doubtful[0])}' holds numbers such as '{shortened(doubtful[1])}'; if that is "
            "a decimal comma, set data.decimal to ','; if it marks thousands, take it out"
        )
    return None


def check_alike(before: Any, after: Any, with_commas: str, columns: Sequence[str], where: str) -> None:
    """A file has decimal commas or points, not both: columns of numbers stay so with commas."""
    for name in columns:
        if is_number(before.schema.field(name).type) and not is_number(after.schema.field(name).type):
            raise DataError(
                f"{where}: column '{shortened(with_commas)}' has decimal commas and column '{shortened(name)}' decimal "
                "points; make them alike"
            )


def _texts_with_commas(column: Any) -> list[str]:
    """The different numbers with commas in a column that holds nothing but numbers and gaps."""
    texts = [text for text in pc.unique(column).to_pylist() if text]
    commas = [text for text in texts if "," in text]
    return commas if commas and all(map(COMMA.fullmatch, texts)) else []
