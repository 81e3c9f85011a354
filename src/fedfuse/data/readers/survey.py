"""A first look at the training tables: what their labels and columns are, and what they become.

Whoever reads them, and whatever is read later, goes by what was found here: test files, parties, sources, raw rows.
Files of one dataset are looked at together, because one client may lack a class or a category that another one has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.arrow_types import is_date, is_plain, is_text, is_truth
from fedfuse.data.readers.columns import find_input_column, find_label_column, input_fields, known_column
from fedfuse.data.readers.contents import Reading
from fedfuse.data.readers.encoding import MOST_CATEGORIES, Column, Encoding, as_words, with_empty_cells
from fedfuse.data.readers.labels import Classes, Labels, classes_of, is_a_number
from fedfuse.data.readers.table import Rows, Table

MOST_BY_THEMSELVES = 50
"""Different words in a column that become categories without being asked to."""
FEW = 10
"""Different words that are categories even if hardly one occurs twice, as in a table of a few rows."""
ODD_NUMBER = re.compile(r"[$€£¥]? ?[+-]?[0-9][0-9.,'\u2019 \u00a0\u202f]*[%‰$€£¥]?")
"""Thousands that are marked, a percentage, a price, a date without letters: nothing that should become a category."""


@dataclass
class Survey:
    """What was seen so far."""

    reading: Reading
    labels: list[Labels | None] = field(default_factory=list)
    """Those of each table."""
    named: tuple[str, ...] | None = None
    """What the tables themselves call their classes."""
    columns: dict[str, _Seen] | None = None
    """Of the first table; None where one column holds images, texts or lists."""
    rows: int = 0
    where: str = ""

    def add(self, table: Table, rows: Rows) -> None:
        if rows.num_rows == 0:
            raise DataError(f"{table.name} is empty; it must hold at least one example")
        self.where, self.rows = self.where or table.name, self.rows + rows.num_rows
        label = find_label_column(rows.schema, self.reading, table.name)
        if self.reading.client_column is not None:
            known_column(rows.schema, self.reading.client_column, "data.client_column", table.name)
        if self.reading.classes is not None:
            return  # whoever knows the classes already knows the inputs, too
        if label is not None and self.reading.labelled and rows.num_rows:
            self._add_labels(table, rows, label)
        if self.reading.encoding is not None:
            return
        column = find_input_column(rows.schema, label, self.reading, table.name)
        fields = input_fields(rows.schema, label, self.reading)
        if column is None or is_plain(rows.schema.field(column).type):
            self._add_columns(table, rows, [one for one in fields if column in (None, one.name)])

    def found(self) -> Reading:
        """The reading with what was found."""
        classes = self._classes() if self.reading.classes is None else self.reading.classes
        return replace(self.reading, classes=classes, encoding=self.reading.encoding or self._encoding())

    def _add_labels(self, table: Table, rows: Rows, label: str) -> None:
        self.named, column = table.class_names, rows.column(label)
        if is_text(column.type):
            self.labels.append(Labels("words", frozenset(pc.unique(column).to_pylist()) - {None, ""}))
        elif is_plain(column.type):
            different = pc.unique(pc.drop_null(column)).to_numpy(zero_copy_only=False)
            self.labels.append(Labels.of(different))
        else:
            self.labels.append(None)

    def _classes(self) -> Classes | None:
        if self.named is not None and not self.reading.labels:
            return None
        words = (text for labels in self.labels if labels and labels.kind == "words" for text in labels.texts)
        if not self.reading.labels and len(set(map(is_a_number, words))) > 1:
            return None  # a word among numbers, which the reader of the labels names by its row
        try:
            return classes_of(self.labels, dict(self.reading.labels))
        except DataError as error:
            raise DataError(f"{self.where}: {error}; set data.label_column to the column of the classes") from None

    def _add_columns(self, table: Table, rows: Rows, fields: Sequence[Any]) -> None:
        for name in self.reading.categories:
            known_column(pa.schema(fields), name, "data.categories", table.name)
        if self.columns is None:
            self.columns = {field.name: _Seen(field.name) for field in fields}
        _check_same(self.columns, [field.name for field in fields], table.name, self.where)
        for one in fields:
            is_category = one.name in self.reading.categories or one.name in table.categories
            known = table.categories.get(one.name, ())
            self.columns[one.name].add(rows.column(one.name), is_category, known, self.reading, table.name)

    def _encoding(self) -> Encoding | None:
        if self.columns is None:
            return None
        if not self.columns:
            raise DataError(f"{self.where} has no inputs beside the label; a table needs at least one other column")
        columns = tuple(column.become(self.rows, self.where) for column in self.columns.values())
        return Encoding(columns=columns, fills=self.reading.may_be_empty, empty_values=self.reading.empty_values)


@dataclass
class _Seen:
    """What was seen in one column."""

    name: str
    kinds: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)

    def add(self, values: Any, is_category: bool, known: Iterable[str], reading: Reading, where: str) -> None:
        if is_category or is_text(values.type):
            self._add_words(with_empty_cells(values, reading.empty_values), is_category, known, where)
        elif is_truth(values.type):
            self.kinds.add("truth")
        elif pa.types.is_null(values.type):
            pass
        elif is_plain(values.type):
            self.kinds.add("number")
        else:
            raise DataError(_no_input(self.name, values.type, where))

    def _add_words(self, values: Any, is_category: bool, known: Iterable[str], where: str) -> None:
        self.kinds.add("category" if is_category else "words")
        try:
            words = set(pc.unique(as_words(values)).to_pylist()) - {None}
        except pa.ArrowException:
            raise DataError(_no_input(self.name, values.type, where)) from None
        if not is_category:
            _check_no_numbers(self.name, values, words, where)
        self.words |= words | set(known)
        if len(self.words) > MOST_CATEGORIES:
            raise DataError(self._too_many(where))

    def become(self, rows: int, where: str) -> Column:
        if not self.kinds or (not self.words and self.kinds & {"words", "category"}):
            raise DataError(
                f"{where}: column '{shortened(self.name)}' is empty in every row; leave it out with "
                f"data.ignore_columns: [{in_a_list(self.name)}]"
            )
        if "category" in self.kinds:
            return Column(name=self.name, kind="category", categories=tuple(sorted(self.words)))
        if "words" in self.kinds:
            return self._category(rows, where)
        return Column(name=self.name, kind="number" if "number" in self.kinds else "truth")

    def _category(self, rows: int, where: str) -> Column:
        if len(self.kinds) > 1:
            other = "numbers" if "number" in self.kinds else "true and false"
            raise DataError(
                f"{where} and the files beside it: column '{shortened(self.name)}' holds words in one, such as "
                f"'{shortened(min(self.words))}', and {other} in another; make them alike, or name it in "
                "data.categories"
            )
        count = len(self.words)
        if count > MOST_BY_THEMSELVES or (count > FEW and 2 * count > rows):
            raise DataError(self._too_many(where))
        return Column(name=self.name, kind="category", categories=tuple(sorted(self.words)))

    def _too_many(self, where: str) -> str:
        name, count = in_a_list(self.name), len(self.words)
        many = f"more than {MOST_CATEGORIES}" if count > MOST_CATEGORIES else str(count)
        remedy = f"leave it out with data.ignore_columns: [{name}]"
        if count <= MOST_CATEGORIES:
            remedy += f", or make a 0/1 column of each with data.categories: [{name}]"
        return (
            f"{where}: column '{shortened(self.name)}' holds {many} different words, such as "
            f"'{shortened(min(self.words))}'; {remedy}; if it is the text to learn from, name it in data.input_column"
        )


def surveyed(tables: Sequence[Table], reading: Reading) -> Reading:
    """The reading with the classes and the encoding that these tables call for."""
    survey = Survey(reading)
    for table in tables:
        with table.opened() as rows:
            survey.add(table, rows)
    return survey.found()


def _check_same(columns: Mapping[str, Any], names: Sequence[str], where: str, first: str) -> None:
    there = set(names)
    for name in columns:
        if name not in there:
            raise DataError(f"{where} has no column '{shortened(name)}', which {first} has; give both the same columns")
    for name in names:
        if name not in columns:
            raise DataError(f"{where} has a column '{shortened(name)}', which {first} lacks; make them alike")


def _check_no_numbers(name: str, values: Any, words: set[str], where: str) -> None:
    """A word among numbers is a mistake or a gap, and makes no category of the numbers."""
    column = f"{where}, column '{shortened(name)}'"
    odd = sorted(word for word in words if ODD_NUMBER.fullmatch(word) and not is_a_number(word))
    if odd:
        raise DataError(
            f"{column} holds '{shortened(odd[0])}', which is no number as it is written; take out signs and what marks "
            "thousands, or set data.decimal, or name the column in data.categories or data.ignore_columns"
        )
    numbers = {word for word in words if is_a_number(word)}
    if not numbers:
        return
    if numbers == words:
        raise DataError(
            f"{column} holds numbers that are written as words, such as '{shortened(min(words))}'; make numbers of "
            "them, or name it in data.categories"
        )
    others = words - numbers
    row, word = next((row, word) for row, word in enumerate(values.to_pylist()) if word in others)
    raise DataError(
        f"{column}, row {row}: '{shortened(word)}' is not a number; if it stands for an empty cell, set "
        f"data.empty_values: [{in_a_list(word)}], and if the column holds categories, set "
        f"data.categories: [{in_a_list(name)}]"
    )


def _no_input(name: str, kind: Any, where: str) -> str:
    what = "dates or times" if is_date(kind) else str(kind)
    remedy = ", such as a number of days," if is_date(kind) else ""
    return (
        f"{where}, column '{shortened(name)}' holds {what}, which cannot be learnt from as they are; make a number of "
        f"them{remedy} or leave the column out with data.ignore_columns: [{in_a_list(name)}]"
    )


def in_a_list(name: str) -> str:
    """As it can stand in a list of YAML."""
    short = shortened(name)
    return short if short.isidentifier() else f'"{short}"'
