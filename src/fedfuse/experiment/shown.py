"""How results look where somebody types: a table and curves in a notebook, a line of bars at a prompt."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from fedfuse.data import PartitionReport
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.looking.shares import shares_of_report
from fedfuse.federation import RoundRecord
from fedfuse.report import notebook
from fedfuse.report.page.charts import Drawn
from fedfuse.report.sheet import Sheet
from fedfuse.report.terminal import sparkline

BARS = 20
"""Signs of a line of bars."""
Points = list[tuple[float, float]]


class ShownPartition(PartitionReport):
    """Who had which examples, with a picture for notebooks."""

    def _repr_html_(self) -> str:
        return notebook.partition_figure(shares_of_report(self, f"{self.in_words()}."))


def accuracies(history: Sequence[RoundRecord]) -> dict[str, Points]:
    """Of every model, and of the ensemble if there was one, the rounds that were measured."""
    names = dict.fromkeys(name for record in history for name in record.prototypes)
    found = {name: _sound([(one.round, _accuracy(one, name)) for one in history]) for name in names}
    found.setdefault("ensemble", _sound([(record.round, record.ensemble_accuracy) for record in history]))
    return {name: points for name, points in found.items() if points}


def _accuracy(record: RoundRecord, name: str) -> float | None:
    own = record.prototypes.get(name)
    return None if own is None else own.accuracy


def _sound(measured: Sequence[tuple[int, float | None]]) -> Points:
    """Without what was not measured, or cannot be: a log may be anybody's."""
    return [(number, value) for number, value in measured if value is not None and 0 <= value <= 1]


def curve_figure(history: Sequence[RoundRecord], target: float | None) -> str:
    """The curves of one run as inline SVG."""
    found = accuracies(history)
    lines = [Drawn(look, [(x, 100 * y) for x, y in points]) for look, points in enumerate(found.values())]
    return notebook.curves(list(found), lines, target)


def bars(values: Sequence[float]) -> str:
    """A line of bars with a blank behind it, in signs that the output has; nothing of a single value."""
    return f"{sparkline(values, BARS, not has_bars())} " if len(values) > 1 else ""


def has_bars() -> bool:
    """Whether the output can show them: a result is never the reason that a print fails."""
    try:
        "▁█".encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True


def experiment_table(config: ExperimentConfig, folder: Path) -> str:
    """What an experiment is, for a notebook."""
    facts = {
        "data": config.data.name,
        "partition": config.partition.kind,
        "models": ", ".join(f"{name} ({model.arch})" for name, model in config.models.items()),
        "method": config.method.called,
        "rounds": config.federation.rounds,
        "seed": config.seed,
        "identity": config.sha256()[:8],
        "folder": folder,
    }
    return Sheet(config.name, ("",), ("",), [((name,), (str(value),)) for name, value in facts.items()]).html()


def facts_below(facts: Mapping[str, object]) -> str:
    """What stands below a table in a notebook, a line each."""
    return f"<p>{'<br>'.join(escape(f'{name} {value}') for name, value in facts.items())}</p>"
