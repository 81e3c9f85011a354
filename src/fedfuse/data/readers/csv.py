"""CSV files: a label column, and texts, or numbers, words and truth values in the other columns."""

from __future__ import annotations

import csv as plain_csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.arrow_types import is_text
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.columns import find_input_column, find_label_column, input_fields, without_ignored
from fedfuse.data.readers.contents import Contents, Reading
from fedfuse.data.readers.decimals import check_alike, has_decimal_commas
from fedfuse.data.readers.dialect import Written, look_at
from fedfuse.data.readers.encoding import with_empty_cells
from fedfuse.data.readers.table import Rows, Table, TableRows, contents_of_tables

NOTHING = tuple(csv.ConvertOptions().null_values)
"""What an empty cell may say: NA, n/a, nan, null, ... as in pandas."""
BLOCK = 1 << 20
"""Bytes that Arrow reads at a time, in which a line must have room."""
CUT = "columns without a name and with nothing in them are left out"
TRIMMED = "blanks around names and words are left out"
ROW = re.compile(r"\brow ([0-9]+)\b")


def read_csv(paths: Sequence[Path], reading: Reading) -> Contents:
    """All rows of the files, in the order of the files; row 0 is the one after the header."""
    return contents_of_tables([csv_table(path, reading) for path in paths], reading)


def csv_table(path: Path, reading: Reading) -> Table:
    """The file in memory; errors that name a row of it name the line as well."""
    check_fits(path.stat().st_size, path.name)
    file = CsvFile(path, look_at(path, reading.dialect), reading)
    table, notes = file.read()

    @contextmanager
    def opened() -> Iterator[Rows]:
        try:
            yield TableRows(table)
        except DataError as error:
            raise DataError(file.with_line(str(error))) from error

    return Table(path.name, opened, path.parent, notes=(f"{path.name}: {', '.join(notes)}",) if notes else ())


@dataclass(frozen=True)
class CsvFile:
    """A file, how it is written, and how it is to be read."""

    path: Path
    written: Written
    reading: Reading

    def read(self) -> tuple[Any, list[str]]:
        """The table, and what the file told that nobody had said."""
        decimal, notes = self.reading.dialect.decimal, list(self.written.notes)
        table, told = self._table(decimal or ".")
        if decimal is None and (column := has_decimal_commas(table, self._inputs(table), self.path.name)):
            with_points = table
            table, told = self._table(",")
            check_alike(with_points, table, column, self._inputs(table), self.path.name)
            notes.append("decimal commas")
        return table, [*notes, *told]

    def with_line(self, sentence: str) -> str:
        """Rows are counted from 0, below the header; editors count lines."""
        found = ROW.search(sentence)
        if found is None:
            return sentence
        wanted = int(found[1]) + self.reading.dialect.header
        try:
            line = next((line for row, (line, _) in enumerate(self.written.records()) if row == wanted), None)
        except (plain_csv.Error, OSError, UnicodeError):
            return sentence
        return sentence if line is None else f"{sentence[: found.end()]} (line {line}){sentence[found.end() :]}"

    def _with_gaps(self, table: Any, inputs: set[str]) -> Any:
        """The same with nothing in cells of words that say that they are empty."""
        nothing, names = (*NOTHING, *self.reading.empty_values), table.schema.names
        columns = [
            with_empty_cells(column, nothing) if name in inputs else column
            for name, column in zip(names, table.columns, strict=True)
        ]
        return pa.table(columns, names)

    def _table(self, decimal: str) -> tuple[Any, list[str]]:
        """What is to be read of the file, and what was left out of it."""
        parsed = self._parsed(decimal)
        names = [name.strip() for name in parsed.schema.names]
        table = parsed.rename_columns(names)
        told = [TRIMMED] if names != parsed.schema.names else []
        kept = [place for place, one in enumerate(table.schema) if one.name or not pa.types.is_null(one.type)]
        if len(kept) < table.num_columns and "" not in self.reading.ignored:
            table, told = table.select(kept), [CUT, *told]
        table = table.select(without_ignored(table.schema, self.reading, self.path.name).names)
        trimmed = self._without_blanks(table)
        told += [TRIMMED] * (TRIMMED not in told and not trimmed.equals(table))
        return self._with_gaps(trimmed, set(self._inputs(trimmed))), told

    def _without_blanks(self, table: Any) -> Any:
        """Words as they are meant, in all columns but that of texts: blanks around them were typed unseen."""
        label = find_label_column(table.schema, self.reading, self.path.name)
        text = find_input_column(table.schema, label, self.reading, self.path.name)
        names = table.schema.names
        columns = [
            pc.utf8_trim_whitespace(own) if is_text(own.type) and name != text else own
            for name, own in zip(names, table.columns, strict=True)
        ]
        return pa.table(columns, names)

    def _inputs(self, table: Any) -> list[str]:
        """The columns whose cells may be empty, or numbers; none where one column holds texts."""
        label = find_label_column(table.schema, self.reading, self.path.name)
        if find_input_column(table.schema, label, self.reading, self.path.name) is not None:
            return []
        return [one.name for one in input_fields(table.schema, label, self.reading)]

    def _parsed(self, decimal: str) -> Any:
        source, dialect = self.written.source, self.reading.dialect
        names = None if dialect.header else [str(place + 1) for place in range(self.written.columns)]
        empty = [*NOTHING, *self.reading.empty_values]
        try:
            return csv.read_csv(
                pa.BufferReader(source) if isinstance(source, bytes) else source,
                read_options=csv.ReadOptions(column_names=names, block_size=max(BLOCK, 4 * self.written.longest)),
                parse_options=csv.ParseOptions(delimiter=self.written.separator, newlines_in_values=True),
                convert_options=csv.ConvertOptions(decimal_point=decimal, null_values=empty),
            )
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.path} cannot be read as CSV: {self._trouble(error)}") from error

    def _trouble(self, error: Exception) -> str:
        """The first row that has not as many cells as the first, if that is what is wrong."""
        expected, separator = self.written.columns, self.written.separator
        try:
            records = self.written.records()
            line, cells = next((line, len(cells)) for line, cells in records if len(cells) != expected)
        except (StopIteration, plain_csv.Error, OSError, UnicodeError):
            return shortened((str(error).removeprefix("CSV parse error: ").splitlines() or [""])[0])
        if expected == 1:
            return f"line {line} has {cells} cells where the first has 1; the first row must name the columns"
        return (
            f"line {line} has {cells} cell{'s'[: cells != 1]} where the first has {expected}; put a cell that holds a "
            f"'{separator}' into quotes, or set data.separator if that does not separate the cells"
        )
