"""Values out of records that anybody may have written: of their type and a bounded size, or a sentence why not.

The sentences name what was looked for and nothing that was found, because they go into the log of another party.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from flwr.app import Array, ArrayRecord, RecordDict
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.flower.npy import read_npy

Record = TypeVar("Record")

LONGEST_WORD, LONGEST_NAME, MOST_NAMES = 100, 500, 20_000
LARGEST_NUMBER = 2**53
"""Beyond it, not every whole number is a float."""


def record_of(content: RecordDict, name: str, kind: type[Record]) -> Record:
    """The record of this name and kind."""
    found = content.get(name) if isinstance(content, RecordDict) else None
    if found is None:
        raise DataError(f"'{name}' is missing")
    if not isinstance(found, kind):
        raise DataError(f"'{name}' is no {kind.__name__}")
    if len(found) > MOST_NAMES or any(len(key) > LONGEST_NAME for key in found):  # type: ignore[arg-type, attr-defined]
        raise DataError(f"'{name}' has too many or too long names")
    return found


def number_of(record: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number, from 0."""
    found = _found(record, name, default)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= LARGEST_NUMBER:
        raise DataError(f"'{name}' is no whole number from 0 to {LARGEST_NUMBER}")
    return found


def word_of(record: Mapping[str, Any], name: str) -> str:
    """A name that can be printed."""
    found = _found(record, name)
    if not isinstance(found, str) or len(found) > LONGEST_WORD or not found.isprintable():
        raise DataError(f"'{name}' is no name")
    return found


def names_of(record: Mapping[str, Any], name: str, default: list[str] | None = None) -> list[str]:
    """A list of names."""
    found = _found(record, name, default)
    is_list = isinstance(found, list) and len(found) <= MOST_NAMES
    if not is_list or not all(isinstance(one, str) and len(one) <= LONGEST_NAME for one in found):
        raise DataError(f"'{name}' is no list of names")
    return list(found)


def switch_of(record: Mapping[str, Any], name: str, default: bool) -> bool:
    """Yes or no."""
    found = _found(record, name, default)
    if not isinstance(found, bool):
        raise DataError(f"'{name}' is neither true nor false")
    return found


def tensors_of(record: ArrayRecord) -> dict[str, Tensor]:
    """All arrays of a record, by name."""
    return {name: tensor_of(array) for name, array in record.items()}


def tensor_of(array: Array) -> Tensor:
    """An array in numpy's own format."""
    if not isinstance(array, Array) or array.stype != "numpy.ndarray" or not isinstance(array.data, bytes):
        raise DataError("an array is not in numpy's own format")
    try:
        return torch.from_numpy(read_npy(array.data))
    except ValueError as error:
        raise DataError(str(error)) from None


def _found(record: Mapping[str, Any], name: str, default: object = None) -> Any:
    found = record.get(name, default)
    if found is None:
        raise DataError(f"'{name}' is missing")
    return found
