"""Where commands print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.console import Console

from fedfuse.core.plain_json import dumps
from fedfuse.core.plain_text import printable

if TYPE_CHECKING:
    from fedfuse.experiment.estimate import Estimate
    from fedfuse.federation.events import Event
    from fedfuse.report.blocks import Block
    from fedfuse.report.sheet import Sheet

console = Console()


def print_sheet(sheet: Sheet) -> None:
    """Names and numbers, whole."""
    for line in sheet.lines(console.width):
        console.print(line, soft_wrap=True)


def print_blocks(blocks: Iterable[Block]) -> None:
    """Tables, curves and facts one below the other."""
    from fedfuse.report.blocks import lines_of
    from fedfuse.report.sheet import Sheet

    for block in blocks:
        if isinstance(block, Sheet):
            print_sheet(block)
        else:
            ascii_only = not console.encoding.lower().startswith("utf")
            print_lines([*lines_of(block, console.width, ascii_only), ""])


def print_lines(lines: Iterable[str], style: str | None = None) -> None:
    """Lines as they are, however wide the terminal is."""
    for line in lines:
        console.print(line, style=style, highlight=False, markup=False, soft_wrap=True)


def print_facts(**facts: object) -> None:
    """One line per fact, name first."""
    for name, value in facts.items():
        console.print(f"{name:8} {value}", highlight=False, markup=False, soft_wrap=True)


def print_estimate(estimate: Callable[..., Estimate], *of: object) -> None:
    """What something would cost, found while one waits."""
    with console.status("playing a few rounds in miniature"):
        found = estimate(*of)
    print_facts(**found.facts())


def say(remarks: Iterable[str]) -> None:
    """What somebody should know, a line each."""
    for remark in remarks:
        console.print(remark, style="yellow", highlight=False, markup=False, soft_wrap=True)


def say_aside(remarks: Iterable[str]) -> None:
    """The same beside what is printed for a program or a file."""
    errors = Console(stderr=True)
    for remark in remarks:
        errors.print(printable(remark), style="yellow", highlight=False, markup=False, soft_wrap=True)


def print_event(event: Event) -> None:
    """One line of JSON at once, as the log has it; what has no time, such as a tick, is not in the log."""
    if "time" in event:
        sys.stdout.write(f"{dumps(event)}\n")
        sys.stdout.flush()
