"""What the runs of a comparison say together, written beside them as a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from fedfuse.core.files import write_text
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.looking.comparison import Comparison, compared
from fedfuse.experiment.looking.pictures import about
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.experiment.result import RunResult
from fedfuse.experiment.stored_config import StoredConfig
from fedfuse.report.comparison import draw_comparison


def conclude(cells: Sequence[Cell], results: Mapping[Cell, RunResult], folder: Path) -> Comparison:
    """Put the finished runs of a plan together, and write the table and the picture beside them."""
    finished = [StoredRun(results[cell], StoredConfig.of(cell.experiment.config)) for cell in cells if cell in results]
    left = [cell.label for cell in cells if cell not in results]
    comparison = compared(finished, folder, len(cells), left)
    record = {
        "target_accuracy": comparison.target,
        "unfinished": comparison.unfinished,
        "rows": [asdict(row) for row in comparison.rows],
    }
    write_text(folder / "comparison.json", dumps(record, indent=2) + "\n")
    title = f"{about(comparison.lines)}: test accuracy"
    draw_comparison(comparison.picture, comparison.curves(), comparison.target, title)
    return comparison
