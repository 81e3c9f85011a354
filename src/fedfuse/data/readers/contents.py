"""What every reader returns, and the checks that every format needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import DataError
from fedfuse.data.readers.encoding import Encoding
from fedfuse.data.readers.labels import USABLE, Classes, Words
from fedfuse.data.tokens import Tokenizer

Array = NDArray[Any]
BLOCK = 4096
"""Rows that are looked at together, so that a check takes no memory to speak of."""
UNLABELLED = -1
"""In the place of a label that is not there."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; None is for the file to tell."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool = True


@dataclass(frozen=True)
class Reading:
    """How to read: which columns, what they become, and what to make of the images."""

    input_column: str | None = None
    label_column: str | None = None
    client_column: str | None = None
    resize: int | None = None
    channels: int | None = None
    labelled: bool = True
    """Whether the labels are wanted; zeros stand in for those that are not."""
    tokenizer: Tokenizer | None = None
    """What makes numbers of texts; None where texts are not expected."""
    ignored: tuple[str, ...] = ()
    """Columns that are treated as if they were not there; they must be."""
    passed_over: tuple[str, ...] = ()
    """Others that are, if they are there."""
    classes: Classes | None = None
    """What labels stand for, once that is known; without, they are numbers from 0."""
    labels: tuple[tuple[str, str], ...] = ()
    """Which class each label is, where the experiment says so."""
    dialect: Dialect = Dialect()
    categories: tuple[str, ...] = ()
    """Columns that are categories, whatever their cells look like."""
    may_be_empty: bool = False
    """Whether cells of input columns may be empty."""
    empty_values: tuple[str, ...] = ()
    """Texts that stand for an empty cell."""
    encoding: Encoding | None = None
    """What the input columns of a table become, once that is known."""

    @property
    def words(self) -> Words:
        return () if self.classes is None else self.classes.words

    def tokens(self, texts: Sequence[str | None], where: str) -> Array:
        """The texts as numbers."""
        if self.tokenizer is None:
            raise DataError(f"{where} holds texts, but images or numbers are needed here")
        return self.tokenizer(checked_texts(texts, where))


@dataclass(frozen=True)
class Columns:
    """The columns of a table that are its inputs, in this order, and all the others."""

    inputs: tuple[str, ...]
    beside: tuple[str, ...]
    encoding: Encoding | None = None
    """What the inputs become; None where they are all numbers and stay so."""

    @property
    def as_encoding(self) -> Encoding:
        """What they become in any case."""
        return self.encoding or Encoding.of_numbers(self.inputs)


@dataclass(frozen=True)
class Contents:
    """Checked arrays: uint8 images N x C x H x W, int32 tokens N x length or float32 features N x D; int64 labels.

    ``clients`` names the client that each example belongs to, where the data says so; ``columns`` those of a table.
    """

    inputs: Array
    labels: Array
    class_names: tuple[str, ...] | None = None
    clients: Array | None = None
    columns: Columns | None = None
    is_whole: bool = True
    """Whether all of it was in the files that were read, and not in others that these only name."""
    classes: Classes | None = None
    """What labels in the files stand for, where they are no numbers from 0."""
    notes: tuple[str, ...] = ()
    """What was done with the files that nobody had asked for, a line each."""

    @property
    def is_labelled(self) -> bool:
        return UNLABELLED not in self.labels[:1]


def unlabelled(inputs: Array) -> Contents:
    """Inputs without labels."""
    return Contents(inputs, np.full(len(inputs), UNLABELLED))


@dataclass(frozen=True)
class Found:
    """A dataset's training examples, its official test examples if it has any, and where they came from."""

    train: Contents
    test: Contents | None
    origin: str
    validation: Contents | None = None
    """The official validation split, if it was asked for."""
    public: Contents | None = None
    """The public examples, where they are not taken from the training examples."""

    @staticmethod
    def by_split(splits: Mapping[str, Contents], origin: str) -> Found:
        return Found(splits["train"], splits.get("test"), origin, splits.get("validation"), splits.get("public"))

    @property
    def parts(self) -> dict[str, Contents]:
        """What there is, by what it is called."""
        every = {"training": self.train, "test": self.test, "validation": self.validation, "public": self.public}
        return {part: contents for part, contents in every.items() if contents is not None}

    @property
    def counts(self) -> dict[str, int]:
        return {part: len(contents.labels) for part, contents in self.parts.items()}


def join(parts: Sequence[Contents], names: Sequence[str]) -> Contents:
    """One dataset from the files it is spread over."""
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.inputs.shape[1:] != first.inputs.shape[1:] or part.inputs.dtype != first.inputs.dtype:
            raise DataError(
                f"{name} holds inputs of {describe(part.inputs)} and {names[0]} of {describe(first.inputs)}; "
                "set data.resize and data.channels, or keep one kind of input"
            )
        check_columns(part, first, f"{name} and {names[0]}")
        if (part.clients is None) != (first.clients is None):
            raise DataError(f"{name} and {names[0]} do not both name the clients of their examples; both must, or none")
        if part.class_names != first.class_names:
            raise DataError(f"{name} and {names[0]} name different classes; the files of one dataset must agree")
    if len(parts) == 1:
        return first
    return Contents(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        first.class_names,
        None if first.clients is None else np.concatenate([part.clients for part in parts if part.clients is not None]),
        first.columns,
        all(part.is_whole for part in parts),
        first.classes,
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def check_columns(one: Contents, other: Contents, where: str) -> None:
    """The same input columns in the same order, because a network knows them by their places."""
    if one.columns is None or other.columns is None or one.columns.inputs == other.columns.inputs:
        return
    pairs = zip_longest(one.columns.inputs, other.columns.inputs, fillvalue="nothing")
    mine, theirs = next(pair for pair in pairs if pair[0] != pair[1])
    raise DataError(
        f"{where} have different input columns ({mine} where the other has {theirs}); give them the same columns in "
        "the same order"
    )


def describe(inputs: Array) -> str:
    return f"shape {'x'.join(str(size) for size in inputs.shape[1:])} ({inputs.dtype})"


def checked_texts(texts: Sequence[str | None], where: str, what: str = "text") -> list[str]:
    """Texts, none missing."""
    missing = next((row for row, text in enumerate(texts) if text is None), None)
    if missing is not None:
        raise DataError(f"{where}, row {missing}: the {what} is missing; remove the row or fill it in")
    return [text for text in texts if text is not None]


def checked_features(values: Array, where: str) -> NDArray[np.float32]:
    """Finite float32 numbers, at least one per example."""
    if values.dtype.kind not in "iuf":
        raise DataError(f"{where}: the inputs are {values.dtype}; they must be numbers or uint8 images")
    features = np.require(values, np.float32, USABLE)
    for start in range(0, len(features), BLOCK):
        block = features[start : start + BLOCK]
        finite = np.isfinite(block.reshape(len(block), -1)).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            raise DataError(f"{where}, row {row}: an input is NaN or infinite; remove the row or fill in the number")
    return features
