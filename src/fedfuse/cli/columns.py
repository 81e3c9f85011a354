"""Words in columns: none is ever cut, and where a line is too short they go on below their column."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from unicodedata import east_asian_width

GAP = "  "
LEAST = 16
"""How narrow a column of sentences may become before lines grow wider than the terminal."""


def in_columns(
    rows: Sequence[Sequence[str]],
    width: int,
    wrapping: Collection[int] = (-1,),
    right: Collection[int] = (),
    indent: str = "",
) -> list[str]:
    """Lines with each row's words in columns: those of ``wrapping`` may go on below, those of ``right`` are numbers."""
    return [line for lines in by_row(rows, width, wrapping, right, indent) for line in lines]


def by_row(
    rows: Sequence[Sequence[str]],
    width: int,
    wrapping: Collection[int] = (-1,),
    right: Collection[int] = (),
    indent: str = "",
) -> list[list[str]]:
    """The same, the lines of each row by themselves."""
    if not rows:
        return []
    columns = range(len(rows[0]))
    wanted = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    soft = [column % len(columns) for column in wrapping]
    hard = sum(wanted[column] for column in columns if column not in soft)
    room = width - len(indent) - len(GAP) * (len(columns) - 1) - hard
    given = _shared_out({column: wanted[column] for column in soft}, room)
    widths = [given.get(column, wanted[column]) for column in columns]
    numbers = [column % len(columns) for column in right]
    return [[f"{indent}{line}".rstrip() for line in _lines(row, widths, numbers)] for row in rows]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A sentence over as many lines as it takes, between words; what is longer than a line stays whole."""
    lines = textwrap.wrap(text, max(width - len(indent), LEAST), break_long_words=False, break_on_hyphens=False)
    return [f"{indent}{line}" for line in lines]


def cells(text: str) -> int:
    """How wide a text is in a terminal."""
    return max(sum(2 if east_asian_width(letter) in "WF" else 1 for letter in line) for line in text.split("\n"))


def _shared_out(wanted: dict[int, int], room: int) -> dict[int, int]:
    """The widths of columns that may wrap: what each wants if there is room, else narrow ones first, then fairly."""
    given: dict[int, int] = {}
    for number, (column, want) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        fair = (room - sum(given.values())) // (len(wanted) - number)
        given[column] = min(want, max(fair, LEAST))
    return given


def _lines(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> list[str]:
    """One row, as high as its highest cell."""
    stacked = [
        [line for part in word.split("\n") for line in wrapped(part, width) or [""]]
        for word, width in zip(row, widths, strict=True)
    ]
    height = max(map(len, stacked))
    lines = zip(*(cell + [""] * (height - len(cell)) for cell in stacked), strict=True)
    return [GAP.join(_padded(word, widths[at], at in right) for at, word in enumerate(line)) for line in lines]


def _padded(word: str, width: int, is_number: bool) -> str:
    blank = " " * (width - cells(word))
    return blank + word if is_number else word + blank
