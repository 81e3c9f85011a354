"""What reading own data came to, in lines: what was done unasked, and what its owner may not have had in mind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from fedfuse.core.copies import BLOCK, copies
from fedfuse.core.errors import did_you_mean, listed, shortened
from fedfuse.data.readers import Contents, Found
from fedfuse.data.readers.columns import LABEL_COLUMNS
from fedfuse.data.readers.encoding import Column
from fedfuse.data.readers.survey import in_a_list

LINES = 8
"""Columns of a kind that get a line each; more of them share one."""
MANY = 0.1
"""The share of test examples that may be copies by chance: in tables of few columns some are."""
NO_LABEL = frozenset(["na", "n/a", "#n/a", "nan", "null", "none", "-", "?", "unknown", "missing"])
NUMBERS_ROWS = re.compile(r"(?i:(.*[_ .-])?(id|idx|index|uuid)|unnamed: 0|)|.*[a-z0-9]I[Dd]|__index_level_\d+__")
"""Names of columns that number the rows of a table."""


def notes_on(found: Found) -> list[str]:
    """What the files told, and what became of labels and columns that are no numbers."""
    told = dict.fromkeys(note for part in found.parts.values() for note in part.notes)
    return [*told, *_on_labels(found.train), *_on_columns(found.train)]


def cautions_on(found: Found, names: Sequence[str]) -> list[str]:
    """What can be read but hardly was meant."""
    train = found.train
    said = [*_on_row_numbers(train), *_on_other_labels(train), *_on_constants(train)]
    said += [*_on_copies(found), *_on_spellings(train), *_on_missing(train, names)]
    return [*said, *_on_single_examples(train, names)]


def _on_labels(train: Contents) -> Iterator[str]:
    if train.classes is not None:
        kind = "numbers" if train.classes.kind == "numbers" else train.classes.kind
        yield f"labels: {kind}, {len(train.classes.names)} classes: {listed(train.classes.names)}"


def _on_columns(train: Contents) -> Iterator[str]:
    columns = train.columns.as_encoding.columns if train.columns is not None else ()
    truth = [column.name for column in columns if column.kind == "truth"]
    if truth:
        yield f"{listed(truth)}: true and false as 1 and 0"
    categories = [column for column in columns if column.kind == "category"]
    if len(categories) > LINES:
        width = sum(column.width for column in categories)
        yield f"{listed([column.name for column in categories])}: categories as {width:,} columns of 0 and 1"
    else:
        yield from map(_on_categories, categories)


def _on_categories(column: Column) -> str:
    return f"{shortened(column.name)}: {column.width} categories as columns of 0 and 1: {listed(column.categories)}"


def _on_row_numbers(train: Contents) -> Iterator[str]:
    """A column that numbers the rows is numbers like any other, and so is read as an input."""
    columns = train.columns.as_encoding.columns if train.columns is not None else ()
    found = [column.name for column in columns if NUMBERS_ROWS.fullmatch(column.name)]
    if found and len(columns) > 1:
        names = ", ".join(map(in_a_list, found[:8]))
        called = listed([name or "a column without a name" for name in found])
        yield f"read as inputs like any other: {called}; data.ignore_columns: [{names}] leaves them out"


def _on_other_labels(train: Contents) -> Iterator[str]:
    """A second label among the inputs may give the first one away."""
    columns = train.columns.as_encoding.columns if train.columns is not None else ()
    found = [column.name for column in columns if column.name in LABEL_COLUMNS and column.name != "y"]
    if found and len(columns) > 1:
        names = ", ".join(found)
        leave_out = f"data.ignore_columns: [{names}] leaves them out"
        yield f"read as inputs, though by their names they are labels: {names}; {leave_out}"


def _on_copies(found: Found) -> Iterator[str]:
    """Test examples of a file of their own that are training examples, too: often one file is a part of the other."""
    if found.test is None:
        return
    learnt, asked = found.train.inputs, found.test.inputs
    there = copies(asked, (learnt[start : start + BLOCK] for start in range(0, len(learnt), BLOCK)))
    if there > MANY * len(asked):
        yield f"{there:,} of {len(asked):,} test examples have the very inputs of training examples"


def _on_spellings(train: Contents) -> Iterator[str]:
    """Words that differ in nothing but capitals and blanks are different ones, which may not be meant."""
    if train.classes is not None and (pair := _spelt_alike(train.classes.names)):
        one, other = map(shortened, pair)
        yield f"classes '{one}' and '{other}' are two; data.labels can make one of them"
    for column in train.columns.as_encoding.columns if train.columns is not None else ():
        if pair := _spelt_alike(column.categories):
            one, other = map(shortened, pair)
            words = f"the categories '{one}' and '{other}' are two; make them alike if they are one"
            yield f"{shortened(column.name)}: {words}"


def _spelt_alike(words: Sequence[str]) -> tuple[str, str] | None:
    first: dict[str, str] = {}
    for word in words:
        other = first.setdefault(" ".join(word.casefold().split()), word)
        if other != word:
            return other, word
    return None


def _on_missing(train: Contents, names: Sequence[str]) -> Iterator[str]:
    """A label that says that there is none is a class like any other."""
    if train.classes is None or train.classes.kind != "words":
        return
    for name in names:
        if name.casefold() in NO_LABEL:
            yield f"class '{name}' is learnt like any other; if it says that the label is missing, remove these rows"


def _on_constants(train: Contents) -> Iterator[str]:
    if train.columns is None or len(train.labels) < 2:
        return
    varies = (train.inputs != train.inputs[:1]).any(axis=0)
    place, found = 0, []
    for column in train.columns.as_encoding.columns:
        if not varies[place : place + column.width].any():
            found.append(column.name)
        place += column.width
    if found:
        word = "columns" if len(found) > 1 else "column"
        yield f"{word} {listed(found)}: the same in every row, so that nothing can be learnt; see data.ignore_columns"


def _on_single_examples(train: Contents, names: Sequence[str]) -> Iterator[str]:
    """Often a word that was misspelt."""
    single = np.flatnonzero(np.bincount(train.labels, minlength=len(names)) == 1)
    for label in single[:3]:
        row, name = int(np.flatnonzero(train.labels == label)[0]), names[label]
        meant = did_you_mean(name, [other for other in names if other != name])
        yield (
            f"class '{shortened(name)}' has one example (row {row}){meant}, which cannot be both learnt from and "
            "tested; correct the label, or add examples"
        )
    if len(single) > 3:
        yield f"{len(single) - 3:,} more classes have one example each"
