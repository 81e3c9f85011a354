"""Labels as numbers: what the classes of a dataset are called, and which number each label has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import DataError, shortened, unknown

Array = NDArray[Any]
LabelKind = Literal["words", "numbers", "truth values"]
"""What the labels of the data are, so that an answer can be given in kind."""
Words = tuple[tuple[str, int], ...]
"""What labels stand for, by their text."""
TRUTH = {"true": "True", "false": "False"}
"""Truth values as Python writes them, which people may write otherwise."""
WHOLE = re.compile(r"-?[0-9]{1,18}")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_KINDS: Mapping[str, LabelKind] = {"U": "words", "b": "truth values", "i": "numbers", "u": "numbers", "f": "numbers"}
MOST_CLASSES = 1000
"""Different words as labels; more are no classes, but names or numbers of rows."""
USABLE: tuple[Literal["C"], Literal["W"]] = ("C", "W")
"""What torch asks of arrays. Others are copied, such as the read-only memory that Arrow lends."""


@dataclass(frozen=True)
class Classes:
    """The classes of a dataset, in the order of their numbers, and the labels that stand for them."""

    names: tuple[str, ...]
    kind: LabelKind
    words: Words


@dataclass(frozen=True)
class Labels:
    """The different labels that were found in one place, by their texts."""

    kind: LabelKind
    texts: frozenset[str]

    @staticmethod
    def of(values: Array) -> Labels | None:
        """None where something is wrong with them, which their reader says better."""
        kind = _KINDS.get(values.dtype.kind)
        if kind is None or values.ndim != 1:
            return None
        different = np.unique(values)
        if kind == "numbers" and len(different) > MOST_CLASSES:
            return Labels(kind, frozenset({"too many"}))
        known = different[different == different]
        return Labels(kind, frozenset(map(str, whole_numbers(known).tolist())) - {""})


def classes_of(found: Sequence[Labels | None], told: Mapping[str, str]) -> Classes | None:
    """The classes of the labels of several files together; None where they are numbers from 0, which need no names.

    ``told`` says which class each label is. Classes are in the order of their labels: numbers by size, words by
    letters.
    """
    if told:
        names = tuple(dict.fromkeys(told[label] for label in _in_order(told)))
        return Classes(names, "words", tuple((label, names.index(name)) for label, name in told.items()))
    known = [labels for labels in found if labels is not None]
    if len(known) < len(found) or len({labels.kind for labels in known}) != 1:
        return None
    kind, texts = known[0].kind, frozenset().union(*(labels.texts for labels in known))
    if kind == "words" and len(texts) > MOST_CLASSES:
        raise DataError(
            f"there are more than {MOST_CLASSES} different words as labels, such as '{shortened(min(texts))}'"
        )
    there = sorted(texts) if kind == "words" else _in_order(texts)
    if not there or (kind == "numbers" and not _counts_from_1(there)):
        return None
    return Classes(tuple(there), kind, tuple((label, number) for number, label in enumerate(there)))


def whole_numbers(values: Array) -> Array:
    """Floating-point numbers as the whole numbers that they are, if they all are, as pandas makes them of gaps."""
    if values.dtype.kind == "f" and values.size and np.isfinite(values).all() and (values == np.rint(values)).all():
        return values.astype(np.int64) if np.abs(values).max() < 2**53 else values
    return values


def label_numbers(values: Array, words: Words, where: str) -> NDArray[np.int64]:
    """Labels as checked numbers; those that are words, or numbers that are names, stand for what ``words`` says."""
    known, values = dict(words), whole_numbers(values)
    if values.dtype.kind == "b":
        known = {TRUTH.get(word.lower(), word): number for word, number in known.items()}
    named = values.dtype.kind in "UOb" or (values.dtype.kind in "iu" and any(map(WHOLE.fullmatch, known)))
    if not known or not named or values.ndim != 1 or not len(values):
        return checked_labels(values, where)
    numbers = _by_text(values, known)
    strange = np.flatnonzero(numbers < 0)
    if len(strange):
        row = int(strange[0])
        if _is_missing(values[row]):
            raise DataError(f"{where}, row {row}: the label is missing; every example needs one")
        raise DataError(f"{where}, row {row}: {unknown('class', str(values[row]), known)}")
    return checked_labels(numbers, where)


def _by_text(values: Array, known: Mapping[str, int]) -> Array:
    """The number of each label, -1 where there is none."""
    if _is_text(values):
        return np.array([-1 if text is None else known.get(str(text), -1) for text in values.tolist()])
    different, places = np.unique(values, return_inverse=True)
    return np.array([known.get(str(value), -1) for value in different.tolist()])[places]


def checked_labels(values: Array, where: str) -> NDArray[np.int64]:
    """Whole numbers, one per example, none missing."""
    if values.size == 0:
        raise DataError(f"{where} is empty; it must hold at least one example")
    if values.dtype.kind == "f" and np.isnan(values).any():
        row = int(np.flatnonzero(np.isnan(values))[0])
        raise DataError(f"{where}, row {row}: the label is missing; every example needs a whole number from 0")
    if _is_text(values) and values.ndim == 1:
        _refuse_words(values, where)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise DataError(
            f"{where}: the labels are {values.dtype} of shape {values.shape}; they must be one whole number per example"
        )
    labels = np.require(values, np.int64, USABLE)
    below = np.flatnonzero(labels < 0)  # or above what int64 holds
    if len(below):
        row = int(below[0])
        raise DataError(f"{where}, row {row}: label {values[row]} is out of range; labels are whole numbers from 0")
    return labels


def check_range(labels: Array, classes: int, where: str, first: int = 0) -> None:
    """Every label names one of the classes, which are counted from ``first``."""
    last = first + classes - 1
    bad = np.flatnonzero((labels < first) | (labels > last))
    if len(bad):
        row = int(bad[0])
        raise DataError(
            f"{where}, row {row}: label {labels[row]} is out of range; {classes} classes are {first}..{last}"
        )


def is_a_number(text: str) -> bool:
    return NUMBER.fullmatch(text.strip()) is not None


def _in_order(labels: Iterable[str]) -> list[str]:
    there = set(labels)
    return sorted(there, key=int) if there and all(map(WHOLE.fullmatch, there)) else sorted(there)


def _counts_from_1(labels: list[str]) -> bool:
    """1, 2, 3, ... as surveys have them, or -1 and 1; others may have gaps by mistake, or be no classes at all."""
    return labels == ["-1", "1"] or (len(labels) > 1 and labels == [str(number + 1) for number in range(len(labels))])


def _is_text(values: Array) -> bool:
    return values.dtype.kind in "UO"


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _refuse_words(values: Array, where: str) -> None:
    """The first that is no number is what was hardly meant."""
    for row, value in enumerate(values.tolist()):
        if _is_missing(value):
            raise DataError(f"{where}, row {row}: the label is missing; every example needs one")
        if isinstance(value, str) and not is_a_number(value):
            raise DataError(
                f"{where}, row {row}: '{shortened(value)}' is not a number; labels are whole numbers from 0 or words, "
                "not both, unless data.labels says which class each of them is"
            )
    if all(isinstance(value, str) for value in values.tolist()):
        raise DataError(f"{where}: the labels are numbers written as words; make whole numbers of them")
