"""Raw rows of a table with categories, truth values or empty cells: data frames, rows by name, or arrays by place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import pyarrow as pa
import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.raw.base import Normalised, array_of, sizes
from fedfuse.data.raw.rows import CELLS, WHERE, are_named, by_name
from fedfuse.data.readers.encoding import Column, Encoding, encoded


class Unpacking(nn.Module):
    """From a number for each column, where that of a category is its place among all, and NaN an empty cell."""

    column: Tensor
    place: Tensor
    fill: Tensor

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__()
        numbers = [(at, column, place) for at, column in enumerate(columns) for place in range(column.width)]
        self.register_buffer("column", torch.tensor([at for at, _, _ in numbers]))
        self.register_buffer(
            "place", torch.tensor([float(place) if one.kind == "category" else math.nan for _, one, place in numbers])
        )
        self.register_buffer(
            "fill", torch.tensor([math.nan if one.fill is None else one.fill for _, one, _ in numbers])
        )

    def forward(self, inputs: Tensor) -> Tensor:
        cells = inputs[:, self.column]
        numbers = torch.where(cells.isnan(), self.fill, cells)
        return torch.where(self.place.isnan(), numbers, (cells == self.place).to(numbers.dtype))


class RawTable(Normalised):
    """Rows that an encoding turns into numbers; ``beside`` are the columns of the training table that are no inputs."""

    kind: Literal["table"] = "table"
    encoding: Encoding
    beside: tuple[str, ...] = ()

    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        columns = by_name(raw, self.encoding.names, self.beside) if are_named(raw) else self._by_place(raw)
        return torch.from_numpy(encoded(self.encoding, columns, CELLS))

    def made_up(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        made_up: Tensor = self.unpacking()(self.packed(count, shape, random))
        return made_up

    def packed(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        """Numbers about as large as real ones, places of categories, and some empty cells if there may be any."""
        drawn = torch.rand(count, len(self.encoding.columns), generator=random)
        choices = torch.tensor([2 if column.kind == "truth" else column.width for column in self.encoding.columns])
        firsts = torch.tensor([0, *(column.width for column in self.encoding.columns)]).cumsum(0)[:-1]
        mean, std = torch.tensor(self.mean)[firsts], torch.tensor(self.std)[firsts]
        are_numbers = torch.tensor([column.kind == "number" for column in self.encoding.columns])
        cells = torch.where(are_numbers, mean + std * (4 * drawn - 2), (drawn * choices).floor())
        return torch.where(drawn < 0.1, torch.nan, cells) if self.encoding.fills else cells

    def unpacking(self) -> nn.Module:
        return Unpacking(self.encoding.columns)

    @property
    def about(self) -> dict[str, Any]:
        return {"columns": [column.model_dump(mode="json", exclude_defaults=True) for column in self.encoding.columns]}

    def in_words(self, shape: tuple[int, ...]) -> str:
        return shortened(f"the columns {', '.join(map(_in_words, self.encoding.columns))}", 500)

    def check(self, shape: tuple[int, ...]) -> None:
        super().check(shape)
        if (self.encoding.width,) != shape:
            raise ValueError(f"columns that become {self.encoding.width} numbers do not fit inputs of shape {shape}")

    def _by_place(self, raw: Any) -> dict[str, Any]:
        values = array_of(raw)
        values = values[None] if values.ndim == 1 else values
        names = self.encoding.names
        if values.ndim != 2 or values.shape[1] != len(names):
            raise DataError(
                f"an array of shape {sizes(values.shape)} holds no rows of {len(names)} columns; give a data frame, or "
                f"rows in the order {shortened(', '.join(names), 300)}"
            )
        try:
            return {name: _column(values[:, place]) for place, name in enumerate(names)}
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{WHERE} cannot be read as rows of a table: {shortened(str(error))}") from None


def _column(values: Any) -> Any:
    return pa.chunked_array([pa.array(values.tolist() if values.dtype.kind == "O" else values, from_pandas=True)])


def _in_words(column: Column) -> str:
    return f"{column.name} ({', '.join(column.categories)})" if column.categories else column.name
