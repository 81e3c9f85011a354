"""What lies between people and a network: raw inputs on the one side, names of classes on the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedfuse.core.part import Settings
from fedfuse.data import Dataset, DataSettings
from fedfuse.data.raw import AnyRawInputs, raw_inputs_of

SHOWN = 10
"""Classes that are named where there is little room."""


class Interface(Settings):
    """Enough to ask a network about raw inputs and to understand its answer."""

    inputs: AnyRawInputs
    class_names: tuple[str, ...] = Field(min_length=1)
    batch_statistics: int | None = Field(
        None, ge=1, description="of a BatchNorm that normalises by each batch: how many inputs a batch has"
    )

    @staticmethod
    def of(dataset: Dataset, settings: DataSettings, batch_statistics: int | None = None) -> Interface:
        return Interface(
            inputs=raw_inputs_of(dataset, settings),
            class_names=dataset.class_names,
            batch_statistics=batch_statistics,
        )

    @property
    def classes(self) -> NDArray[Any]:
        """The names; or plain numbers where the names are nothing but numbers from 0."""
        numbers = np.arange(len(self.class_names))
        return numbers if self.class_names == tuple(map(str, numbers)) else np.array(self.class_names)

    def in_words(self, shape: tuple[int, ...]) -> str:
        shown = ", ".join(self.class_names[:SHOWN]) + (", ..." if len(self.class_names) > SHOWN else "")
        return f"reads {self.inputs.in_words(shape)}; {len(self.class_names)} classes: {shown}"
