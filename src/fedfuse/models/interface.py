"""What lies between people and a network: raw inputs on the one side, names of classes on the other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from fedfuse.core.part import Settings
from fedfuse.data import Dataset, DataSettings
from fedfuse.data.raw import AnyRawInputs, RawTable, raw_inputs_of
from fedfuse.data.readers.labels import WHOLE, LabelKind

SHOWN = 10
"""Classes that are named where there is little room."""


class Interface(Settings):
    """Enough to ask a network about raw inputs and to understand its answer."""

    inputs: AnyRawInputs
    class_names: tuple[str, ...] = Field(min_length=1)
    label_kind: LabelKind = Field("words", description="what the labels of the data are that the names stand for")
    batch_statistics: int | None = Field(
        None, ge=1, description="of a BatchNorm that normalises by each batch: how many inputs a batch has"
    )

    @staticmethod
    def of(dataset: Dataset, settings: DataSettings, batch_statistics: int | None = None) -> Interface:
        return Interface(
            inputs=raw_inputs_of(dataset, settings),
            class_names=dataset.class_names,
            label_kind=dataset.label_kind,
            batch_statistics=batch_statistics,
        )

    @property
    def is_as_before(self) -> bool:
        """Whether there is nothing in it that format 2 of model files has no word for."""
        return self.label_kind == "words" and not isinstance(self.inputs, RawTable)

    @property
    def classes(self) -> NDArray[Any]:
        """The names; numbers and truth values where the labels were such, as numbers from 0 always are."""
        if self.label_kind == "truth values":
            return np.array([name == "True" for name in self.class_names])
        if self.label_kind == "numbers":
            return np.array(list(map(int, self.class_names)))
        numbers = np.arange(len(self.class_names))
        return numbers if self.class_names == tuple(map(str, numbers)) else np.array(self.class_names)

    @model_validator(mode="after")
    def _names_are_labels(self) -> Self:
        if self.label_kind == "numbers" and not all(map(WHOLE.fullmatch, self.class_names)):
            raise ValueError("the classes are said to be numbers, but some of their names are none")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, dumped: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Files say nothing of labels that earlier versions knew, and so can be read by them."""
        values: dict[str, Any] = dumped(self)
        return {key: value for key, value in values.items() if key != "label_kind" or value != "words"}

    def in_words(self, shape: tuple[int, ...]) -> str:
        shown = ", ".join(self.class_names[:SHOWN]) + (", ..." if len(self.class_names) > SHOWN else "")
        return f"reads {self.inputs.in_words(shape)}; {len(self.class_names)} classes: {shown}"
