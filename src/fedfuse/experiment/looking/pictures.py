"""Pictures of runs that are there: curves over what was spent, who had which examples, what is taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.views import BANDS, PICTURES, Band, Picture, Spent
from fedfuse.experiment.looking.curves import check_measured, check_spent, seeds_of
from fedfuse.experiment.looking.grouping import Line
from fedfuse.experiment.looking.labels import ENSEMBLE, labels_of
from fedfuse.experiment.looking.stored_run import StoredRun
from fedfuse.experiment.provenance import data_called

if TYPE_CHECKING:
    from fedfuse.experiment.looking.comparison import Comparison
    from fedfuse.report.style import Scale

Size = str | tuple[float, float]
SIZES: Mapping[str, tuple[float, float]] = {"wide": (8.0, 4.5), "column": (3.4, 3.6), "page": (6.9, 3.6)}
"""In inches: on a screen, in one column of a paper, across a page."""
SMALLEST, LARGEST = 1.0, 40.0
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
WORDS = {"accuracy": "test accuracy", "loss": "test loss", "before_fusion": "accuracy before fusion"}


def size_of(given: Size) -> tuple[float, float]:
    """``column``, ``page``, ``wide``, ``3.4x2.5`` or a pair, in inches."""
    if isinstance(given, str) and given not in SIZES:
        words = given.lower().split("x")
        try:
            width, height = map(float, words)
        except ValueError:
            known = ", ".join(SIZES)
            raise ConfigError(f"size '{given}': write {known}, or inches such as 3.4x2.5") from None
        given = (width, height)
    pair = SIZES[given] if isinstance(given, str) else given
    if not all(SMALLEST <= side <= LARGEST for side in pair):
        raise ConfigError(f"size {pair[0]:g}x{pair[1]:g}: a side has {SMALLEST:g} to {LARGEST:g} inches")
    return pair


def draw(
    comparison: Comparison,
    path: Path,
    x: Spent,
    y: str,
    title: str | None,
    band: Band,
    size: Size | None,
    picture: Picture,
    model: str | None,
) -> None:
    """Write one picture of these runs, or of one of their models."""
    from fedfuse.report.saving import check_ending

    check_ending(path)
    if picture not in PICTURES:
        raise ConfigError(unknown("picture", picture, PICTURES))
    inches = None if size is None else size_of(size)
    if picture == "curves":
        _curves(comparison, _of_model(comparison.lines, model), path, x, y, title, band, inches)
        return
    if inches is not None:
        raise ConfigError(f"the picture {picture} chooses its own size; leave the size away")
    if (x, y, band) != ("rounds", "accuracy", "range"):
        raise ConfigError(f"--x, --y and --band are of curves; leave them away for the picture {picture}")
    if len(comparison.runs) > 1:
        raise ConfigError(f"the picture {picture} is of one run, and here are {len(comparison.runs)}; give its folder")
    if picture == "partition":
        if model is not None:
            raise ConfigError("a partition is the same for every model; leave --model away")
        _partition(comparison.runs[0], path, title)
    else:
        _confusion(comparison.runs[0], path, title, model)


def _of_model(lines: Sequence[Line], model: str | None) -> Sequence[Line]:
    if model is None:
        return lines
    known = [line.prototype or ENSEMBLE for line in lines]
    if model not in known:
        raise ConfigError(unknown("model", model, known))
    return [line for line, name in zip(lines, known, strict=True) if name == model]


def _curves(
    comparison: Comparison,
    lines: Sequence[Line],
    path: Path,
    x: Spent,
    y: str,
    title: str | None,
    band: Band,
    size: tuple[float, float] | None,
) -> None:
    from fedfuse.report.comparison import draw_comparison

    check_spent(x)
    if band not in BANDS:
        raise ConfigError(unknown("band", band, BANDS))
    check_measured(y, lines)
    seeds = [seeds_of(line, x, y) for line in lines]
    if not any(seeds):
        raise ConfigError("no run has a clock (federation.clock), so there are no simulated seconds to draw over")
    labels = labels_of(lines)
    curves = {
        label: [list(zip(one.rounds, one.spent, one.values, strict=True)) for one in own]
        for label, own in zip(labels, seeds, strict=True)
    }
    largest = max((one.spent[-1] for own in seeds for one in own if one.spent), default=0)
    draw_comparison(
        path,
        curves,
        comparison.target if y == "accuracy" else None,
        title or f"{about(lines)}: {WORDS.get(y, y)}",
        x=_along(x, largest),
        y=_up(y, comparison),
        band=band,
        size=size,
    )


def about(lines: Sequence[Line]) -> str:
    """Of which experiment and data a picture is."""
    experiments = list(dict.fromkeys(line.experiment for line in lines))
    data = list(dict.fromkeys(data_called(run.summary) for line in lines for run in line.runs))
    name = experiments[0] if len(experiments) == 1 else f"{len(experiments)} experiments"
    others = [one for one in data if one and one != name]
    return f"{name} on {', '.join(others)}" if others else name


def _along(x: Spent, largest: float) -> Scale:
    from fedfuse.report.style import ROUND, Scale

    if x == "rounds":
        return ROUND
    if x == "bytes":
        unit, size = next((unit, size) for unit, size in UNITS if largest >= size or size == 1)
        return Scale(f"Sent and received ({unit})", 1 / size)
    return Scale("Simulated time (s)" if x == "simulated" else "Time (s)")


def _up(y: str, comparison: Comparison) -> Scale:
    from fedfuse.report.style import ACCURACY, Scale

    if y == "accuracy":
        return ACCURACY
    if y in ("before_fusion", "ensemble"):
        return Scale(f"{'Accuracy before fusion' if y == 'before_fusion' else 'Ensemble accuracy'} (%)", 100.0, "%")
    units = {own.unit for row in comparison.rows for name, own in row.metrics.items() if name == y}
    return Scale(f"{y} (%)", 100.0, "%") if units == {"percent"} else Scale(WORDS.get(y, y).capitalize())


def _partition(run: StoredRun, path: Path, title: str | None) -> None:
    from fedfuse.report.partition import draw_partition

    if run.partition is None:
        raise ConfigError(f"{run.folder.partition} cannot be read; there is no partition to draw")
    draw_partition(path, run.partition, title or f"{data_called(run.summary)}, seed {run.seed}")


def _confusion(run: StoredRun, path: Path, title: str | None, model: str | None) -> None:
    from fedfuse.report.confusion import draw_confusion

    tables = {name: own.matrix for name, own in run.confusions.items() if own.matrix is not None}
    if not tables:
        raise ConfigError(
            f"{run.folder.path} does not say what its models take each class for; that is written at the end of a run, "
            "for models of the server and up to 100 classes"
        )
    if model is None and len(tables) > 1:
        raise ConfigError(f"{run.folder.path} has the models {', '.join(tables)}; choose one")
    if model not in (None, *tables):
        raise ConfigError(unknown("model", str(model), tables))
    name = model or next(iter(tables))
    draw_confusion(path, tables[name], run.class_names(len(tables[name])), title or f"{run.label}, {name}")
