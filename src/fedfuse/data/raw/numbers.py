"""Raw numbers: rows of a table, by their columns' names or places; or arrays of any shape."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.data.raw.base import Normalised, array_of, sizes
from fedfuse.data.readers.contents import Array, checked_features


class RawNumbers(Normalised):
    """Any numbers; ``columns`` are the names of a table's inputs, ``beside`` those of its other columns."""

    kind: Literal["numbers"] = "numbers"
    columns: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()

    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        values = self._by_name(raw) if hasattr(raw, "columns") else array_of(raw)
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
            return f"the columns {', '.join(self.columns)}"
        return f"rows of {shape[0]} numbers" if len(shape) == 1 else f"numbers {sizes(shape)}"

    def check(self, shape: tuple[int, ...]) -> None:
        super().check(shape)
        if self.columns is not None and (len(self.columns),) != shape:
            raise ValueError(f"{len(self.columns)} names of columns do not fit inputs of shape {shape}")

    def _by_name(self, frame: Any) -> Array:
        """The inputs of a data frame, whatever the order of its columns."""
        if self.columns is None:
            raise DataError("the model does not know its columns by name; give an array, with the columns in order")
        given = [str(name) for name in frame.columns]
        missing = [name for name in self.columns if name not in given]
        if missing:
            raise DataError(f"the table has no column {_quoted(missing)}; the model reads {', '.join(self.columns)}")
        surplus = [name for name in given if name not in (*self.columns, *self.beside)]
        if surplus:
            raise DataError(f"the model has never seen column {_quoted(surplus)}; leave out what it should not read")
        return np.asarray(frame[list(self.columns)].to_numpy())


def _quoted(names: list[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
