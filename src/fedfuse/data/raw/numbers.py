"""Raw numbers: rows of a table, by their columns' names or places; or arrays of any shape."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.raw.base import Normalised, array_of, sizes
from fedfuse.data.raw.rows import CELLS, are_named, by_name
from fedfuse.data.readers.contents import Array, checked_features
from fedfuse.data.readers.encoding import Encoding, encoded


class RawNumbers(Normalised):
    """Any numbers; ``columns`` are the names of a table's inputs, ``beside`` those of its other columns."""

    kind: Literal["numbers"] = "numbers"
    columns: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()

    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        if are_named(raw):
            return torch.from_numpy(self._by_name(raw))
        values = array_of(raw)
        if values.shape == shape:
            values = values[None]
        if values.shape[1:] != shape:
            raise DataError(
                f"an array of shape {sizes(values.shape)} holds no inputs of {sizes(shape)}; give N x {sizes(shape)}"
            )
        if values.dtype == np.uint8 and len(shape) > 1:
            raise DataError(
                "the model was trained on floating-point images, and these are uint8; scale them as its data was"
            )
        return torch.from_numpy(checked_features(values, "the inputs"))

    def made_up(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        mean, std = (torch.tensor(values).reshape(-1, *[1] * (len(shape) - 1)) for values in (self.mean, self.std))
        return mean + std * torch.randn(count, *shape, generator=random)

    def in_words(self, shape: tuple[int, ...]) -> str:
        if self.columns is not None:
            return shortened(f"the columns {', '.join(self.columns)}", 500)
        return f"rows of {shape[0]} numbers" if len(shape) == 1 else f"numbers {sizes(shape)}"

    def check(self, shape: tuple[int, ...]) -> None:
        super().check(shape)
        if self.columns is not None and (len(self.columns),) != shape:
            raise ValueError(f"{len(self.columns)} names of columns do not fit inputs of shape {shape}")

    @property
    def about(self) -> dict[str, Any]:
        return {} if self.columns is None else {"columns": [{"name": name} for name in self.columns]}

    def _by_name(self, raw: Any) -> Array:
        if self.columns is None:
            raise DataError("the model does not know its columns by name; give an array, with the columns in order")
        encoding = Encoding.of_numbers(self.columns)
        return encoded(encoding, by_name(raw, self.columns, self.beside), CELLS)
