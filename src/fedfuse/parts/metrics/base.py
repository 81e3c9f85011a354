"""What a metric is: the predictions on the test split and their true labels into one number, or into several."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fedfuse.core.part import Part

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Array = TypeVar("Array", Floats, Integers)
Computed = float | Mapping[str, float | None] | None
"""A number, or several by name; None where the metric is not defined."""
Better = Literal["higher", "lower"]
Unit = Literal["percent", "number"]


@dataclass(frozen=True)
class Predictions:
    """What a model, or an ensemble, says about N test examples of C classes, beside the truth."""

    logits: Floats
    """N x C; some methods' ensembles give log-probabilities instead."""
    labels: Integers
    """N numbers of classes."""
    class_names: tuple[str, ...]

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @cached_property
    def log_probabilities(self) -> Floats:
        """N x C."""
        with np.errstate(invalid="ignore"):  # a model that diverged may say infinity
            shifted = self.logits - self.logits.max(axis=1, keepdims=True)
        return read_only(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))

    @cached_property
    def probabilities(self) -> Floats:
        """N x C."""
        return read_only(np.exp(self.log_probabilities))

    @cached_property
    def predicted(self) -> Integers:
        """The most probable class of each example, the first of several."""
        return read_only(self.logits.argmax(axis=1))

    @cached_property
    def missing_classes(self) -> frozenset[int]:
        """Classes that no example has."""
        return frozenset(range(self.classes)) - frozenset(self.labels.tolist())


def read_only(array: Array) -> Array:
    """All metrics look at the same arrays."""
    array.setflags(write=False)
    return array


class Metric(Part):
    """A number that says how good predictions are. Five lines make one: see docs/metrics.md."""

    kind: str
    label: str | None = Field(
        None,
        pattern=r"^[A-Za-z0-9_-]+$",
        description="what records and tables call it, to tell variants of a metric apart; its kind if not given",
    )

    better: ClassVar[Better] = "higher"
    """Which of two values is the better one."""

    unit: ClassVar[Unit] = "number"
    """How tables show it; a share from 0 to 1 may be shown in percent."""

    @property
    def called(self) -> str:
        """Its name in records and tables; of a class from outside, the name of the class."""
        return self.label or self.kind.rpartition(":")[2].rpartition(".")[2]

    @abstractmethod
    def compute(self, predictions: Predictions) -> Computed:
        """The value for at least one example."""
