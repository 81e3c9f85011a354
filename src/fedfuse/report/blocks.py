"""What a command shows beside tables: lines under a heading, and facts by name; as text of any width, or in ASCII."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fedfuse.core.plain_text import printable
from fedfuse.report.sheet import Sheet

NAME_WIDTH = 9
"""Letters from the beginning of a fact's name to its value."""


@dataclass(frozen=True)
class Lines:
    """Lines that depend on how wide they may be and on whether they are in ASCII."""

    title: str
    make: Callable[[int, bool], Sequence[str]]


@dataclass(frozen=True)
class Facts:
    """A value by each name, or several; those of the names in ``unbroken`` stay in one line of any length."""

    entries: Mapping[str, str | Sequence[str]]
    unbroken: Collection[str] = ()

    def lines(self, width: int) -> Iterator[str]:
        for name, said in self.entries.items():
            for place, value in enumerate([said] if isinstance(said, str) else said):
                room = len(value) + NAME_WIDTH if name in self.unbroken else width
                yield from _hanging(name if place == 0 else "", printable(value), room)


Block = Sheet | Lines | Facts


def _hanging(name: str, value: str, width: int) -> list[str]:
    """Words are kept whole, because paths and commands are."""
    head = f"{name:{NAME_WIDTH - 1}} "
    wrapper = textwrap.TextWrapper(
        max(width, 2 * NAME_WIDTH),
        initial_indent=head,
        subsequent_indent=" " * NAME_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(value) or [head.rstrip()]


def text_of(blocks: Iterable[Block], width: int = 80, ascii_only: bool = False) -> str:
    """All blocks one below the other."""
    return "\n\n".join("\n".join(lines_of(block, width, ascii_only)).rstrip() for block in blocks)


def lines_of(block: Block, width: int, ascii_only: bool) -> list[str]:
    if isinstance(block, Sheet):
        return [line.plain for line in block.lines(width)]
    if isinstance(block, Facts):
        return list(block.lines(width))
    return [block.title, "", *block.make(width, ascii_only)]
