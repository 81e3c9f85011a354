"""The input columns of a table and the numbers that they become, the same for training, test, parties and raw rows.

A number stays a number, true and false are 1 and 0, and each category has a 0/1 column of its own. An empty cell is
refused, unless the experiment says that it may be: then a column's own number stands in its place, and a category is 0
in all of its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fedfuse.core.errors import DataError, shortened, unknown
from fedfuse.core.part import Settings
from fedfuse.data.readers.arrow_types import is_number, is_text, is_truth

Array = NDArray[Any]
MOST_CATEGORIES = 1000
"""Of one column; more are no categories, but names or texts."""


class Column(Settings):
    """One input column of a table."""

    name: str
    kind: Literal["number", "truth", "category"] = "number"
    categories: tuple[str, ...] = Field((), max_length=MOST_CATEGORIES)
    fill: float | None = Field(None, description="what stands in the place of an empty cell; a category needs nothing")

    @model_validator(mode="after")
    def _categories_are_of_a_category(self) -> Self:
        if (self.kind == "category") != bool(self.categories) or len(set(self.categories)) < len(self.categories):
            raise ValueError(f"column '{shortened(self.name)}' must have categories that differ, if it is of that kind")
        return self

    @property
    def width(self) -> int:
        """How many numbers it becomes."""
        return max(1, len(self.categories))

    @property
    def names(self) -> tuple[str, ...]:
        """What those are called."""
        return tuple(f"{self.name}={category}" for category in self.categories) or (self.name,)


class Encoding(Settings):
    """All input columns of a table, in their order."""

    columns: tuple[Column, ...] = Field(min_length=1)
    fills: bool = Field(False, description="whether cells may be empty")
    empty_values: tuple[str, ...] = Field((), description="what stands for an empty cell beside nothing at all")

    @staticmethod
    def of_numbers(names: Iterable[str]) -> Encoding:
        return Encoding(columns=tuple(Column(name=name) for name in names))

    @property
    def is_plain(self) -> bool:
        """Whether it says no more than the names of columns of numbers."""
        return not self.fills and not self.empty_values and all(column.kind == "number" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)


@dataclass(frozen=True)
class Cells:
    """Where the cells are that become numbers, for sentences about them."""

    where: str
    if_empty: str
    """What to do about one that is empty."""

    def error(self, column: str, row: int, what: str) -> DataError:
        return DataError(f"{self.where}, column '{shortened(column)}', row {row}: {what}")


def encoded(encoding: Encoding, columns: Mapping[str, Any], cells: Cells) -> NDArray[np.float32]:
    """A row of numbers for each row of Arrow columns; NaN in empty cells whose number is not known yet."""
    return expanded(
        encoding.columns, [_codes(column, columns[column.name], encoding, cells) for column in encoding.columns]
    )


def expanded(columns: Sequence[Column], codes: Sequence[Array]) -> NDArray[np.float32]:
    """Numbers as they are, and a 1 in the place of each category's number."""
    common = np.result_type(*codes)
    rows = np.zeros((len(codes[0]), sum(column.width for column in columns)), np.float32)
    place = 0
    for column, code in zip(columns, codes, strict=True):
        if column.kind == "category":
            there = np.flatnonzero(~np.isnan(code))
            rows[there, place + code[there].astype(np.int64)] = 1
        else:
            rows[:, place] = code.astype(common)  # rounded as if all columns had been one array
        place += column.width
    return rows


def with_empty_cells(values: Any, empty_values: Sequence[str]) -> Any:
    """The same column with nothing in cells whose text stands for nothing."""
    if not is_text(values.type):
        return values
    empty = pc.is_in(values, pa.array(["", *empty_values], values.type))
    return pc.if_else(empty, pa.scalar(None, values.type), values)


def as_words(values: Any) -> Any:
    """Any column as texts; a number is known by its text, and 2.0 by that of 2, as pandas makes it of gaps."""
    if is_text(values.type):
        return pc.cast(values, pa.string())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        whole = pc.all(pc.equal(values, pc.round(values)), min_count=0).as_py()
        if whole and (pc.max(pc.abs(values)).as_py() or 0) < 2**53:
            values = pc.cast(values, pa.int64())
    return pc.cast(values, pa.string())


def _codes(column: Column, values: Any, encoding: Encoding, cells: Cells) -> Array:
    """A number for each cell, of a category its place among all; NaN where the cell is empty and stays so."""
    values = with_empty_cells(values, encoding.empty_values)
    try:
        code = _places(column, values, cells) if column.kind == "category" else _numbers(column, values, cells)
    except pa.ArrowException:
        raise DataError(
            f"{cells.where}, column '{shortened(column.name)}': the cells are {values.type}; this input is a "
            f"{column.kind}"
        ) from None
    empty = np.isnan(code) if code.dtype.kind == "f" else np.zeros(len(code), bool)
    if not empty.any():
        return code
    if not encoding.fills:
        others = int(empty.sum()) - 1
        more = f", and so are {others} others of the column" if others else ""
        raise cells.error(column.name, int(empty.argmax()), f"the cell is empty{more}; {cells.if_empty}")
    return code if column.fill is None else np.where(empty, column.fill, code)


def _numbers(column: Column, values: Any, cells: Cells) -> Array:
    values = _as_numbers(column, values, cells)
    numbers = np.asarray(values.to_numpy())
    with np.errstate(over="ignore"):
        infinite = np.isinf(numbers.astype(np.float32)) if numbers.dtype.kind == "f" else np.zeros(0, bool)
    if infinite.any():
        row = int(infinite.argmax())
        raise cells.error(column.name, row, f"{numbers[row]} is infinite, or nearly; mend it or remove the row")
    if column.kind == "truth":
        odd = ~(np.isnan(numbers.astype(np.float64)) | (numbers == 0) | (numbers == 1))
        if odd.any():
            row = int(odd.argmax())
            raise cells.error(column.name, row, f"{numbers[row]} is neither true nor false, nor 1 nor 0")
    return numbers


def _as_numbers(column: Column, values: Any, cells: Cells) -> Any:
    if is_text(values.type):
        return _parsed(column, values, cells)
    if is_truth(values.type) or pa.types.is_null(values.type) or pa.types.is_decimal(values.type):
        return pc.cast(values, pa.float64())
    if is_number(values.type):
        return values
    raise pa.ArrowTypeError(f"{values.type} is no number")


def _parsed(column: Column, values: Any, cells: Cells) -> Any:
    """Numbers or truth values that are written as texts."""
    wanted = pa.bool_() if column.kind == "truth" else pa.float64()
    try:
        return pc.cast(pc.cast(values, wanted), pa.float64())
    except pa.ArrowInvalid:
        row, text = next(_unlike(values, wanted))
        noun = "neither true nor false" if column.kind == "truth" else "not a number"
        raise cells.error(column.name, row, f"'{shortened(text)}' is {noun}") from None


def _unlike(values: Any, wanted: Any) -> Iterator[tuple[int, str]]:
    """The rows and texts that stand for no such value."""
    for row, text in enumerate(values.to_pylist()):
        try:
            pc.cast(pa.scalar(text, pa.string()), wanted)
        except pa.ArrowInvalid:
            yield row, text


def _places(column: Column, values: Any, cells: Cells) -> Array:
    """The number of each cell's category."""
    words = as_words(values)
    places = pc.index_in(words, pa.array(column.categories, pa.string()))
    lost = pc.and_(pc.is_null(places), pc.is_valid(words)).to_numpy(zero_copy_only=False)
    if lost.any():
        row = int(lost.argmax())
        raise cells.error(column.name, row, unknown("category", str(words[row].as_py()), column.categories))
    return np.asarray(pc.cast(places, pa.float64()).to_numpy())
