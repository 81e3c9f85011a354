"""Several runs side by side: the value that Python users get, whether the runs were made just now or lay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_text
from fedfuse.core.views import Band, Format, Picture, Spent, Width
from fedfuse.experiment.frames import frame_of
from fedfuse.experiment.looking.budgets import standings
from fedfuse.experiment.looking.curves import seeds_of
from fedfuse.experiment.looking.grouping import Line, grouped
from fedfuse.experiment.looking.labels import labels_of
from fedfuse.experiment.looking.page import page_data
from fedfuse.experiment.looking.pictures import Size, draw
from fedfuse.experiment.looking.rows import Row, row_of
from fedfuse.experiment.looking.several import CURVES, described, mean_curves
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.experiment.looking.tables import comparison_facts, comparison_sheet, curve_records, written
from fedfuse.experiment.shown import facts_below, has_bars
from fedfuse.report import notebook
from fedfuse.report.blocks import text_of
from fedfuse.report.page import render
from fedfuse.report.page.data import Axis, Seed
from fedfuse.report.page.sections import over_seeds

ROUNDS = Axis("rounds", "Rounds", "")
PAGES = (".html", ".htm")


@dataclass(frozen=True, repr=False)
class Comparison:
    """All rows, and where their runs lie."""

    rows: tuple[Row, ...]
    target: float | None
    folder: Path
    planned: int
    unfinished: tuple[str, ...]
    """The labels of runs that are not finished."""
    lines: tuple[Line, ...] = field(default=(), compare=False)
    """The runs behind each row."""
    runs: tuple[StoredRun, ...] = field(default=(), compare=False)
    """All runs, in no row or in several."""
    remarks: tuple[str, ...] = ()
    """What a reader of the rows should know."""
    unreadable: tuple[str, ...] = ()
    """A sentence about each folder that cannot be read."""

    @property
    def picture(self) -> Path:
        return self.folder / "comparison.png"

    def records(self) -> list[dict[str, Any]]:
        """The numbers as plain rows, one for every experiment, method, model and seed."""
        return [record for row in self.rows for record in row.records()]

    def to_frame(self) -> Any:
        """The same as a pandas data frame."""
        return frame_of(self.records())

    def curve_records(self) -> list[dict[str, Any]]:
        """Round by round what every run measured and spent, as plain rows."""
        return list(curve_records(self.lines))

    def table(
        self,
        format: Format = "text",
        columns: Sequence[str] = (),
        digits: int | None = None,
        interval: Width | None = None,
        reference: str | None = None,
        curves: bool = False,
    ) -> str:
        """The table as text, Markdown (md), LaTeX, CSV or JSON, as ``fedfuse table`` prints it.

        ``interval`` is what stands behind ±: half of the 95 % interval of the mean (95, the default), the sample
        standard deviation (std), or none. ``reference`` is the method that the column ``difference`` is about. CSV has
        a line for every method, model and seed; with ``curves``, for every round.
        """
        chosen = [columns] if isinstance(columns, str) else columns
        return written(self, format, interval, chosen, digits, reference, curves)

    def describe(self, width: int = 80, interval: Width = "95", reference: str | None = None) -> str:
        """What ``fedfuse show`` prints: one run in full, or several side by side."""
        return text_of(described(self, interval, reference), width)

    def plot(
        self,
        path: str | Path,
        x: Spent = "rounds",
        y: str = "accuracy",
        *,
        title: str | None = None,
        band: Band = "range",
        size: Size | None = None,
        picture: Picture = "curves",
        model: str | None = None,
    ) -> Path:
        """Write a picture, PNG, SVG or PDF by the ending of its name, and return its path.

        ``x`` is rounds, bytes, seconds, or simulated seconds where there is a clock; ``y`` accuracy, loss,
        before_fusion, ensemble, or any metric that was measured. ``band`` is what is shaded: the range of the seeds,
        the 95 % interval of their mean (95), their standard deviation (std), or none. ``size`` is wide, page, column,
        or inches. The pictures ``partition`` and ``confusion`` are of a single run.
        """
        draw(self, Path(path), x, y, title, band, size, picture, model)
        return Path(path)

    def report(self, path: str | Path, *, title: str | None = None, reference: str | None = None) -> Path:
        """Write all there is to see as one page of HTML, which opens without a network, and return its path."""
        if Path(path).suffix.lower() not in PAGES:
            raise ConfigError(f"{path}: the name of a page ends with .html")
        write_text(Path(path), render(page_data(self, title, reference)))
        return Path(path)

    def within(self, spent: Spent, budget: float) -> list[dict[str, Any]]:
        """What each row had reached when so many rounds, bytes (up and down) or seconds were spent, the best first.

        The accuracy is that of the last round measured by then; rows that had not been measured in every seed are last.
        """
        stood = standings(self.lines, spent, budget)
        rows = [
            {"name": name, "accuracy": None, "low": None, "high": None, "rounds": None}
            if own is None
            else {"name": name, "accuracy": own.interval.mean, **own.ends, "rounds": own.rounds}
            for name, own in zip(self.names(), stood, strict=True)
        ]
        return sorted(rows, key=lambda row: -1 if row["accuracy"] is None else row["accuracy"], reverse=True)

    def names(self) -> list[str]:
        """What each row is called in a picture: no more than what tells it from the others."""
        return labels_of(self.lines)

    def curves(self) -> dict[str, list[list[tuple[int, float]]]]:
        """By these names, the accuracy of every seed in every round that was measured."""
        return {
            name: [[(int(x), y) for x, y in seed.points] for seed in seeds_of(line)]
            for name, line in zip(self.names(), self.lines, strict=True)
        }

    def __repr__(self) -> str:
        facts = (f"{name:8} {value}" for name, value in comparison_facts(self).items())
        drawn = mean_curves(self.lines, 80, not has_bars())
        curves = [CURVES, "", *drawn, ""] if drawn else []
        return "\n".join([comparison_sheet(self).text(), "", *curves, *facts])

    def _repr_html_(self) -> str:
        drawn = [over_seeds(look, _by_rounds(line), ROUNDS) for look, line in enumerate(self.lines)]
        curves = notebook.curves(self.names(), drawn, self.target)
        return f"{comparison_sheet(self).html()}{curves}{facts_below(comparison_facts(self))}"


def _by_rounds(line: Line) -> list[Seed]:
    return [Seed(one.seed, one.rounds, one.values, {"rounds": one.spent}) for one in seeds_of(line)]


def compared(
    runs: Sequence[StoredRun], folder: Path, planned: int, unfinished: Sequence[str], unreadable: Sequence[str] = ()
) -> Comparison:
    """Rows from runs."""
    found = grouped(runs)
    targets = {run.config.target for run in runs}
    return Comparison(
        tuple(map(row_of, found.lines)),
        targets.pop() if len(targets) == 1 else None,
        folder,
        planned,
        tuple(unfinished),
        found.lines,
        tuple(runs),
        found.remarks,
        tuple(unreadable),
    )
