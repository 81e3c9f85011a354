"""What every reader returns, and the checks that every format needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import DataError, unknown
from fedfuse.data.tokens import Tokenizer

Array = NDArray[Any]
BLOCK = 4096
"""Rows that are looked at together, so that a check takes no memory to speak of."""
USABLE: tuple[Literal["C"], Literal["W"]] = ("C", "W")
"""What torch asks of arrays. Others are copied, such as the read-only memory that Arrow lends."""
UNLABELLED = -1
"""In the place of a label that is not there."""


@dataclass(frozen=True)
class Reading:
    """How to read: which columns, and what to make of the images."""

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
    """Columns that are treated as if they were not there."""
    words: tuple[tuple[str, int], ...] = field(default=(), repr=False)
    """Names of classes and their numbers; without any, labels are numbers."""

    def tokens(self, texts: Sequence[str | None], where: str) -> Array:
        """The texts as numbers."""
        if self.tokenizer is None:
            raise DataError(f"{where} holds texts, but images or numbers are needed here")
        return self.tokenizer(checked_texts(texts, where))


@dataclass(frozen=True)
class Columns:
    """The number columns of a table that are its inputs, in this order, and all the others."""

    inputs: tuple[str, ...]
    beside: tuple[str, ...]


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


def label_numbers(values: Array, reading: Reading, where: str) -> NDArray[np.int64]:
    """Labels as checked numbers: words, and numbers that are names, stand for what the reading says."""
    known = dict(reading.words)
    named = values.dtype.kind in "UO" or (values.dtype.kind in "iu" and any(word.isdecimal() for word in known))
    if not known or not named or values.ndim != 1 or not len(values):
        return checked_labels(values, where)
    missing = [row for row, value in enumerate(values) if value is None] if values.dtype.kind == "O" else []
    if missing:
        raise DataError(f"{where}, row {missing[0]}: the label is missing; every example needs one")
    words, first, places = np.unique(values.astype(np.str_), return_index=True, return_inverse=True)
    strange = [int(row) for word, row in zip(words, first, strict=True) if str(word) not in known]
    if strange:
        row = min(strange)
        raise DataError(f"{where}, row {row}: {unknown('class', str(values[row]), known)}")
    return checked_labels(np.array([known[str(word)] for word in words])[places], where)


def checked_labels(values: Array, where: str) -> NDArray[np.int64]:
    """Whole numbers, one per example, none missing."""
    if values.size == 0:
        raise DataError(f"{where} is empty; it must hold at least one example")
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise DataError(f"{where}, row {row}: the label is missing; every example needs a whole number from 0")
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise DataError(
            f"{where}: the labels are {values.dtype} of shape {values.shape}; they must be one whole number per example"
        )
    return np.require(values, np.int64, USABLE)


def check_range(labels: Array, classes: int, where: str, first: int = 0) -> None:
    """Every label names one of the classes, which are counted from ``first``."""
    last = first + classes - 1
    bad = np.flatnonzero((labels < first) | (labels > last))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{where}, row {row}: label {labels[row]} is out of range; {classes} classes are {first}..{last}"
        )


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
