"""Rows as text, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def plain_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    texts = [[str(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for row in texts:
        first, *rest = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join([first, *rest]).rstrip()
