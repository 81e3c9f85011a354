"""How a CSV file is written: its encoding and its separator, which its first bytes and lines tell if nobody does."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from pathlib import Path

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Dialect

SEPARATORS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
"""Those that are looked for, and what they are called; where it is not clear, the first."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Bytes that some programs begin a text with, and that say how it is encoded."""
OTHERS = {
    b"PAR1": "a parquet file; set data.name to parquet",
    b"PK\x03\x04": "a spreadsheet or a zip archive; save the table as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save the table as CSV",
    b"\x1f\x8b": "compressed; unpack it",
    b"BZh": "compressed; unpack it",
    b"\xfd7zX": "compressed; unpack it",
    b"\x28\xb5\x2f\xfd": "compressed; unpack it",
}
"""What is often given instead, by its first bytes."""
LOOKED_AT = 2_000_000
"""Characters from whose first rows the separator is told; the header must be among them."""
ROWS = 200
MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Written:
    """A CSV file as UTF-8, and how it is to be understood."""

    source: Path | bytes
    """The file itself where it is UTF-8 already."""
    separator: str
    columns: int
    longest: int
    """Bytes of a line."""
    notes: tuple[str, ...]
    """What the file told, in words."""

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Every row, the header included, and the line at which it begins; for sentences about them."""
        if isinstance(self.source, bytes):
            yield from _records(StringIO(self.source.decode(), newline=""), self.separator)
        else:
            with self.source.open(encoding="utf-8-sig", newline="") as file:
                yield from _records(file, self.separator)


def look_at(path: Path, dialect: Dialect) -> Written:
    """Find out how a file is encoded and what separates its cells."""
    _check_is_text(path)
    marked = _mark(path)
    encoding = marked or dialect.encoding or "utf-8"
    source: Path | bytes = path
    notes = [encoding.upper()] if marked not in (None, "utf-8", dialect.encoding) else []
    if encoding == "utf-8":
        head, longest = _checked_utf8(path)
    else:
        text = _decoded(path, encoding)
        source, head = text.encode(), text[:LOOKED_AT]
        longest = max(map(len, source.split(b"\n")))
    separator = dialect.separator or _separator(head)
    if dialect.separator is None and separator != ",":
        notes.insert(0, f"separator {SEPARATORS[separator]}")
    columns = len(_first_record(head, separator, path.name))
    if columns > MOST_COLUMNS:
        raise DataError(f"{path.name} has more than {MOST_COLUMNS:,} columns; is '{separator}' what separates them?")
    return Written(source, separator, columns, longest, tuple(notes))


def _check_is_text(path: Path) -> None:
    """What is something else by its first bytes is not asked about its encoding."""
    with path.open("rb") as file:
        beginning = file.read(4)
    found = next((what for mark, what in OTHERS.items() if beginning.startswith(mark)), None)
    if found is not None:
        raise DataError(f"{path.name} is not a CSV file but {found}")


def _mark(path: Path) -> str | None:
    with path.open("rb") as file:
        beginning = file.read(4)
    return next((encoding for mark, encoding in MARKS if beginning.startswith(mark)), None)


def _decoded(path: Path, encoding: str) -> str:
    check_fits(4 * path.stat().st_size, path.name)
    try:
        return path.read_bytes().decode(encoding).removeprefix("\ufeff")
    except UnicodeError:
        raise DataError(f"{path.name}: the text is not {encoding}; set data.encoding to what it is") from None


def _checked_utf8(path: Path) -> tuple[str, int]:
    """The first lines of a file that is UTF-8 from its first to its last, and the length of the longest."""
    head, room, longest = [], LOOKED_AT, 0
    with path.open("rb") as file:
        for row, line in enumerate(file, start=-1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise DataError(_not_utf8(path, row, line, error.start)) from None
            longest = max(longest, len(line))
            if room > 0:
                head.append(text[:room])
                room -= len(text)
    return "".join(head).removeprefix("\ufeff"), longest


def _not_utf8(path: Path, row: int, line: bytes, at: int) -> str:
    """With a few letters as Windows would read them, by which people see whether that is right."""
    where = "the header" if row < 0 else f"row {row}"
    shown = line[max(0, at - 10) : at + 10].decode("cp1252", "replace").strip()
    return (
        f"{path.name}, {where}: the text is not UTF-8; save it as UTF-8, or set data.encoding to what it is (cp1252 or "
        f"latin-1 if '{shortened(shown)}' is what should stand there)"
    )


def _records(lines: Iterator[str] | StringIO, separator: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=separator)
    begins = 1
    for record in reader:
        if record:
            yield begins, record
        begins = reader.line_num + 1


def _separator(head: str) -> str:
    """The one that makes several columns of the header and as many of every row; a comma if that does."""
    counts = {separator: _counts(head, separator) for separator in SEPARATORS}
    several = [separator for separator, count in counts.items() if count and count[0] > 1]
    even = [separator for separator in several if len(set(counts[separator])) == 1]
    if "," in even:
        return ","
    return max(even or several, key=lambda separator: counts[separator][0], default=",")


def _counts(head: str, separator: str) -> list[int]:
    """Cells of the first rows; the last row of a head that was cut off does not count."""
    try:
        counts = [len(record) for _, record in islice(_records(StringIO(head, newline=""), separator), ROWS + 1)]
    except csv.Error:
        return []
    return counts[:-1] if len(counts) > 1 and (len(counts) > ROWS or len(head) >= LOOKED_AT) else counts


def _first_record(head: str, separator: str, where: str) -> list[str]:
    try:
        record = next((record for _, record in _records(StringIO(head, newline=""), separator)), [])
    except csv.Error as error:
        raise DataError(f"{where}: the first row cannot be read ({error}); is it a CSV file?") from None
    if len(separator.join(record)) >= LOOKED_AT:
        raise DataError(f"{where}: the first row is longer than {LOOKED_AT:,} characters; is it a CSV file?")
    return record
