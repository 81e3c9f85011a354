"""A ledger in the terminal: what cells or claims have in common is said once, above them, so that 80 columns do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.markup import escape
from rich.table import Table

from fedfuse.plugins import table
from fedfuse_papers.entry import Labels, in_words
from fedfuse_papers.ledger import Ledger
from fedfuse_papers.output import NUMBERS, claim_lines, header, lines, pair

ANSWER_STYLES = {"holds": "green", "does not hold": "red", "not enough seeds": "dim"}


def cell_table(ledger: Ledger) -> Table:
    """Theirs and ours: a line per label of the innermost axis, below the labels of the others."""
    columns, inner, axes = header(ledger), _innermost(ledger), len(ledger.rows[0].labels)
    title = f"{ledger.title} (scale {ledger.scale}, {ledger.unit}, mean ± std)"
    result = table(columns[inner], *columns[axes:], title=title, numbers=NUMBERS, first_may_wrap=True)
    result.padding = (0, 1, 0, 0)
    cells = zip(ledger.rows, lines(ledger), strict=True)
    for outer, group in groupby(cells, key=lambda cell: _without(inner, cell[0].labels)):
        if outer:
            result.add_row(f"[bold]{escape(outer)}[/]")
        for _, line in group:
            result.add_row("  " * bool(outer) + escape(line[inner]), *line[axes:])
    return result


def claim_text(ledger: Ledger) -> Iterator[str]:
    """The paper's claims, line by line: a sentence, and below it what became of it in each pair of cells."""
    yield "[italic]What the paper says: differences, with 95 % intervals[/]\n"
    judged = zip(ledger.verdicts, claim_lines(ledger), strict=True)
    for claim, group in groupby(judged, key=lambda one: one[0].claim):
        yield f"[bold]{escape(claim)}[/]"
        for verdict, (answer, printed, ours, interval, seeds, _) in group:
            yield f"  {escape(pair(verdict))}"
            known = f"seeds: {seeds}" if interval == "-" else f"{interval}; seeds: {seeds}"
            yield f"    [{ANSWER_STYLES[answer]}]{answer}[/]: {ours} ({known}), printed {printed}"
    yield ""


def _innermost(ledger: Ledger) -> int:
    """The last axis along which the rows differ."""
    axes = zip(*(row.labels.values() for row in ledger.rows), strict=True)
    return max((index for index, labels in enumerate(axes) if len(set(labels)) > 1), default=0)


def _without(inner: int, labels: Labels) -> str:
    """A cell's labels on the other axes, in words."""
    return ", ".join(in_words(*one) for index, one in enumerate(labels.items()) if index != inner)
