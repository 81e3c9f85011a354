"""Examples in memory: what a dataset is once it has been read, before anyone owns it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.text import PADDING, TextShape
from fedfuse.data.readers.contents import Columns
from fedfuse.data.readers.labels import LabelKind
from fedfuse.data.tokens import Tokenizer

BLOCK = 4096
InputKind = Literal["images", "texts", "numbers"]


@dataclass(frozen=True)
class Owners:
    """Whose each example is, in data that comes already separated by client: a number per example, and their names."""

    numbers: Tensor
    names: tuple[str, ...]

    def select(self, where: Tensor) -> Owners:
        return Owners(self.numbers[where], self.names)


@dataclass(frozen=True)
class Examples:
    """Inputs as they lie in memory, and int64 labels.

    Images are uint8, N x C x H x W; texts are int32 token numbers, N x length; features are float32, N x D.
    """

    inputs: Tensor
    labels: Tensor
    owners: Owners | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, indices: Tensor | Sequence[int]) -> Examples:
        """The examples at these positions, copied in this order."""
        where = torch.as_tensor(indices, dtype=torch.long)
        owners = None if self.owners is None else self.owners.select(where)
        return Examples(self.inputs[where], self.labels[where], owners)

    def label_counts(self, classes: int) -> Tensor:
        """How many examples there are of each class, as floats, because that is how they travel."""
        return torch.bincount(self.labels, minlength=classes).float()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return tuple(self.inputs.shape[1:])

    @property
    def kind(self) -> InputKind:
        return kind_of(self.inputs)

    @property
    def lengths(self) -> Tensor | None:
        return lengths(self.inputs)

    def blocks(self) -> Iterator[Tensor]:
        """All inputs, a few at a time."""
        yield from self.inputs.split(BLOCK)


@dataclass(frozen=True)
class Selection:
    """Some examples of a larger set, which are copied out only where somebody asks for them."""

    examples: Examples
    where: Tensor

    def __len__(self) -> int:
        return len(self.where)

    @property
    def inputs(self) -> Tensor:
        return self.examples.inputs[self.where]

    @property
    def labels(self) -> Tensor:
        return self.examples.labels[self.where]

    @property
    def owners(self) -> Owners | None:
        return None if self.examples.owners is None else self.examples.owners.select(self.where)

    def select(self, indices: Tensor) -> Examples:
        """The examples at these positions of the selection, copied in this order."""
        return self.examples.select(self.where[indices])

    @property
    def kind(self) -> InputKind:
        return self.examples.kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one input."""
        return self.examples.shape

    def blocks(self) -> Iterator[Tensor]:
        """All inputs, a few at a time, so that they need not all be copied at once."""
        for where in self.where.split(BLOCK):
            yield self.examples.inputs[where]


def kind_of(inputs: Tensor) -> InputKind:
    """What raw inputs are, which their type tells."""
    if inputs.dtype == torch.uint8:
        return "images"
    return "texts" if inputs.dtype == torch.int32 else "numbers"


def lengths(inputs: Tensor) -> Tensor | None:
    """How many tokens each text has; None for inputs that are no texts."""
    return (inputs != PADDING).sum(dim=1) if kind_of(inputs) == "texts" else None


@dataclass(frozen=True)
class Dataset:
    """A named dataset with its official split, if it has one, and the constants that go with it."""

    name: str
    train: Examples
    test: Examples | None
    class_names: tuple[str, ...]
    normalisation: Normalisation
    origin: str
    """Where it was read from, for the log: file names, or 'generated', or 'scikit-learn'."""
    tokenizer: Tokenizer | None = None
    """What made the numbers, if the inputs are texts."""
    validation: Examples | None = None
    """The official validation split, if it was asked for."""
    incomplete: str | None = None
    """One sentence if the files held something else than the whole dataset."""
    columns: Columns | None = None
    """Those of a table, and what they become."""
    public: Examples | None = None
    """Public examples that are no training examples, if there are any."""
    label_kind: LabelKind = "words"
    """What the labels of own data are, so that answers can be given in kind."""
    notes: tuple[str, ...] = ()
    """What was done with own data that nobody had asked for, a line each."""
    cautions: tuple[str, ...] = ()
    """What can be read but hardly was meant, a sentence each."""

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.train.shape

    @property
    def model_shape(self) -> tuple[int, ...]:
        """The shape as models are told it: that of a text includes the vocabulary."""
        return self.shape if self.tokenizer is None else TextShape(self.shape[0], self.tokenizer.vocabulary)
