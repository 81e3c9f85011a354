"""What an experiment file may say of a table: names of columns and classes, and how a CSV file is written."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from fedfuse.core.errors import shortened, unknown

SIGNS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t"}
"""Separators by their names."""
ENCODINGS = (
    *("utf-8", "utf-16", "utf-32", "latin-1", "ascii", "mac-roman", "koi8-r", "cp437", "cp850", "cp852", "cp866"),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16)),
    *(f"cp125{part}" for part in range(9)),
    *("shift_jis", "cp932", "euc_jp", "gbk", "gb18030", "big5", "euc_kr", "cp949"),
)
"""Encodings of texts, and none of those codecs of Python that are something else."""
_KNOWN = {codecs.lookup(name).name: name for name in ENCODINGS}


def _column(value: Any) -> Any:
    """A column without a name is called by its place."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _separator(value: str) -> str:
    sign = SIGNS.get(value, value)
    if len(sign) != 1 or not sign.isascii() or sign.isalnum() or sign in '"\r\n\0':
        raise ValueError(f"'{shortened(value)}' does not separate cells; give one sign, such as ';', or tab")
    return sign


def _encoding(value: str) -> str:
    try:
        return _KNOWN[codecs.lookup(value).name]
    except (LookupError, ValueError):
        raise ValueError(unknown("encoding", value, ENCODINGS)) from None


def _texts(value: Any) -> Any:
    """Labels and names that are numbers or truth values, by their text."""
    if not isinstance(value, Mapping):
        return value
    return {_text(label): _text(name) for label, name in value.items()}


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, bool | int) else value


def _at_least_two(labels: dict[str, str]) -> dict[str, str]:
    if labels and len(set(labels.values())) < 2:
        raise ValueError("all labels are one class; name two classes at least")
    return labels


ColumnName = Annotated[str, BeforeValidator(_column)]
Separator = Annotated[str, AfterValidator(_separator)]
Decimal = Literal[".", ","]
TextEncoding = Annotated[str, AfterValidator(_encoding)]
LabelNames = Annotated[dict[str, str], BeforeValidator(_texts), AfterValidator(_at_least_two)]
