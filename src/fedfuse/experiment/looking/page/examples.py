"""What a page shows by class: who had which examples, how often each class was recognised, what it was taken for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fedfuse.core.plain_text import one_line
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.shares import shares_of_report
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.federation.confusion import Confusion
from fedfuse.report.page.data import Classes, Shares, Square

MOST_CLASSES = 200
"""That are listed; of more, the worst."""
MOST_SQUARE = 30
"""Classes of a square."""


def shares_of(run: StoredRun) -> Shares | None:
    """Who had which examples in a run; None if that is not known."""
    report = run.partition
    if report is None or not len(report.assignment):
        return None
    return shares_of_report(report, f"Seed {run.seed}: {report.in_words()}.")


def together(line: Line) -> Confusion | None:
    """What the models of all seeds take each class for, added up; None if some seed has no such table."""
    if line.prototype is None:
        return None
    tables = [run.confusions.get(line.prototype) for run in line.runs]
    names = {tuple(run.class_names(len(own.examples))) for run, own in zip(line.runs, tables, strict=True) if own}
    there = [own for own in tables if own is not None]
    if len(there) < len(tables) or len(names) != 1:
        return None
    return Confusion(_sum([own.examples for own in there]), _sum([own.right for own in there]), _sum_of_squares(there))


def _sum(several: Sequence[Sequence[int]]) -> tuple[int, ...]:
    return tuple(sum(numbers) for numbers in zip(*several, strict=True))


def _sum_of_squares(tables: Sequence[Confusion]) -> tuple[tuple[int, ...], ...] | None:
    found = [own.matrix for own in tables if own.matrix is not None]
    return tuple(map(_sum, zip(*found, strict=True))) if len(found) == len(tables) else None


def class_tables(lines: Sequence[Line], labels: Sequence[str]) -> Iterator[Classes]:
    """A table for each set of classes, with a column for every row that was measured on it."""
    found: dict[tuple[str, ...], list[tuple[str, Confusion]]] = {}
    for line, label in zip(lines, labels, strict=True):
        own = together(line)
        if own is not None:
            names = tuple(line.runs[0].class_names(len(own.examples)))
            found.setdefault(names, []).append((label, own))
    for names, several in found.items():
        yield _class_table(names, several)


def _class_table(names: Sequence[str], several: Sequence[tuple[str, Confusion]]) -> Classes:
    accuracies = [own.accuracies for _, own in several]
    shown = list(range(len(names)))
    title = "how often each class was recognised, in percent of its test examples, all seeds together"
    if len(names) > MOST_CLASSES:
        worst = sorted(shown, key=lambda place: min(own[place] or 0.0 for own in accuracies))
        shown = sorted(worst[:MOST_CLASSES])
        title = f"{title}; the worst {MOST_CLASSES} of {len(names)} classes"
    return Classes(
        title,
        [one_line(names[place]) for place in shown],
        [max(own.examples[place] for _, own in several) for place in shown],
        [label for label, _ in several],
        [[own[place] for own in accuracies] for place in shown],
    )


def squares(lines: Sequence[Line], labels: Sequence[str]) -> Iterator[Square]:
    """What each row takes each class for, where classes are few."""
    for line, label in zip(lines, labels, strict=True):
        own = together(line)
        if own is not None and own.matrix is not None and len(own.matrix) <= MOST_SQUARE:
            names = [one_line(name) for name in line.runs[0].class_names(len(own.matrix))]
            yield Square(label, names, own.matrix)
