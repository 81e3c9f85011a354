"""What rows are called in pictures and on pages: no more than what tells them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fedfuse.experiment.looking.grouping import Line

ENSEMBLE = "ensemble"
"""What stands in the place of a prototype where the answer of a method is its ensemble's."""


def labels_of(lines: Sequence[Line]) -> list[str]:
    """By the methods' names in papers, or by their names here if two would be called alike."""
    for titles in (True, False):
        found = [_label(line, lines, titles) for line in lines]
        if len(set(found)) == len(found):
            return found
    return [f"{label} ({found[: place + 1].count(label)})" for place, label in enumerate(found)]


def _label(line: Line, lines: Sequence[Line], titles: bool) -> str:
    several = len({other.experiment for other in lines}) > 1
    models = Counter((other.experiment, other.method, other.variant) for other in lines)
    words = [line.experiment] * several + [line.title if titles else line.method]
    words += [line.variant] * bool(line.variant)
    words += [line.prototype or ENSEMBLE] * (models[line.experiment, line.method, line.variant] > 1)
    return " ".join(words)
