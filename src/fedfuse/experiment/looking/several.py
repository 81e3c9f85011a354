"""Several runs in words: the table, differences from a reference, what differs in their configs, what to know."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from fedfuse.core.errors import ConfigError
from fedfuse.core.views import Width
from fedfuse.experiment.looking import variation
from fedfuse.experiment.looking.curves import seeds_of, together
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.labels import labels_of
from fedfuse.experiment.looking.metric_sheets import comparison_metric_sheets
from fedfuse.experiment.looking.one_run import describe
from fedfuse.experiment.looking.tables import comparison_facts, comparison_sheet, difference_sheet
from fedfuse.report.blocks import Block, Facts, Lines
from fedfuse.report.palette import shorten
from fedfuse.report.terminal import sparkline

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison

CURVES = "test accuracy round by round, mean over seeds"
LONGEST_CURVE = 40
"""Signs."""
DIFFERS = "what differs between the configs, besides the methods"
MOST_KEYS = 20
"""In which configs differ, that are listed."""


def described(comparison: Comparison, width: Width = "95", reference: str | None = None) -> Iterator[Block]:
    """One run in full, or several side by side."""
    if len(comparison.runs) == 1:
        if reference is not None:
            raise ConfigError(f"here is nothing but {comparison.runs[0].label}; a reference is for several runs")
        yield from describe(comparison.runs[0])
        return
    if comparison.rows:
        yield comparison_sheet(comparison, width)
        yield from filter(None, [difference_sheet(comparison, reference)])
        yield Lines(CURVES, lambda width, ascii_only: mean_curves(comparison.lines, width, ascii_only))
        yield from comparison_metric_sheets(comparison, width)
    if keys := varying_keys(comparison.lines):
        yield Lines(DIFFERS, lambda width, _: list(_differing(comparison.lines, keys, width)))
    facts = {name: str(value) for name, value in comparison_facts(comparison).items()}
    notes = {"note": list(comparison.remarks), "damaged": list(comparison.unreadable)}
    yield Facts({**{name: said for name, said in notes.items() if said}, **facts})


def mean_curves(lines: Sequence[Line], width: int, ascii_only: bool) -> list[str]:
    """A line of bars for each row, all on one scale, beside where it begins and ends."""
    means = [[sum(values) / len(values) for _, _, values in together(seeds_of(line))] for line in lines]
    names = [shorten(name, width // 3) for name in labels_of(lines)]
    low, high = (edge((value for own in means for value in own), default=0.0) for edge in (min, max))
    room, longest = min(LONGEST_CURVE, width - width // 3 - 20), max(map(cell_len, names), default=0)
    return [
        f" {name}{' ' * (longest - cell_len(name))}  {100 * own[0]:5.1f} % "
        f"{sparkline(own, room, ascii_only, (low, high))} {100 * own[-1]:.1f} %"
        for name, own in zip(names, means, strict=True)
        if own
    ]


def varying_keys(lines: Sequence[Line]) -> list[str]:
    """The keys beside the method in which configs differ, and those of methods that differ from their namesakes."""
    settings = [line.setting for line in lines]
    around = variation.varying([{key: own for key, own in one.items() if key != "method"} for one in settings])
    inside: list[str] = []
    for method in dict.fromkeys(line.method for line in lines):
        inside += variation.varying([{"method": line.setting["method"]} for line in lines if line.method == method])
    return list(dict.fromkeys([*around, *inside]))


def _differing(lines: Sequence[Line], keys: Sequence[str], width: int) -> Iterator[str]:
    for key in keys[:MOST_KEYS]:
        yield f" {key}"
        for value, called in who_has(lines, key).items():
            said = f"{value}: {', '.join(called)}"
            yield from textwrap.wrap(said, width, initial_indent="   ", subsequent_indent="     ")
    if len(keys) > MOST_KEYS:
        yield f" and {len(keys) - MOST_KEYS} other keys"


def who_has(lines: Sequence[Line], key: str) -> dict[str, list[str]]:
    """Every value of a key, and the rows that have it; all rows of an experiment are called by its name."""
    settings, names = [line.setting for line in lines], labels_of(lines)
    found = variation.by_value(settings, names, key)
    experiments: dict[str, list[str]] = {}
    for line, name in zip(lines, names, strict=True):
        experiments.setdefault(line.experiment, []).append(name)
    return {value: _together(called, experiments) for value, called in found.items()}


def _together(called: Sequence[str], experiments: Mapping[str, Sequence[str]]) -> list[str]:
    left, found = list(called), []
    for experiment, own in experiments.items() if len(experiments) > 1 else ():
        if set(own) <= set(left):
            found.append(experiment)
            left = [name for name in left if name not in own]
    return [*found, *left]
