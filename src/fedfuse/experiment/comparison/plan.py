"""Which runs a comparison has: every file with every method, every variant and every seed, and runs that are there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.comparison.entrants import Entrant, check_axes, entrants_of, remark, said_twice
from fedfuse.experiment.comparison.there import is_run, runs_in, told_apart
from fedfuse.experiment.config import Raw, merge
from fedfuse.experiment.config.changes import Change, changes_of
from fedfuse.experiment.earlier import is_this_very
from fedfuse.experiment.run import Experiment, Given, read_raw, where
from fedfuse.experiment.tracking import grouped
from fedfuse.experiment.variants import Axis, axes_of, folder_words, words_of
from fedfuse.experiment.variants.axes import Overs
from fedfuse.experiment.variants.words import shortened_words
from fedfuse.federation.folder import RunFolder

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    experiment: Experiment
    folder: RunFolder
    keep: bool = True
    """Whether the run goes on with what its folder holds; else it replaces that."""
    is_given: bool = False
    """Whether the folder itself was named, so that nothing is ever replaced there."""

    @property
    def label(self) -> str:
        return self.experiment.config.label

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to run."""
        return self.keep and self.folder.is_complete() and is_this_very(self.experiment.config, self.folder)


@dataclass(frozen=True)
class Plan:
    """All runs, where what they say together is written, and what there is to say about how they came to be."""

    cells: list[Cell]
    folder: Path
    remarks: list[str]


def plan(
    files: Sequence[Given],
    methods: Sequence[Any],
    seeds: Sequence[int],
    assignments: Sequence[str] = (),
    out: str | Path | None = None,
    sections: Mapping[str, Any] = NOTHING,
    over: Sequence[str] | Overs = (),
) -> Plan:
    """The runs of a comparison; without methods or seeds, those that the files name themselves.

    A method is a name, an address, a Method or a mapping. ``sections`` are laid over every file, and ``over`` varies
    keys of it. A run folder stands for its run, unless something is changed in it: then it is a file like others, and
    of what that comes to, the run itself is not made again.
    """
    given = [run for file in files for run in runs_in(file)]
    there = [RunFolder(Path(str(file))) for file in given if is_run(file)]
    if methods or seeds or assignments or sections or over or not there:
        study = _planned(given, methods, seeds, assignments, out, sections, over)
        cells = [_found(cell, there) for cell in study.cells]
    else:
        others = [file for file in given if not is_run(file)]
        study = _planned(others, (), (), (), out, NOTHING, ()) if others else Plan([], Path(), [])
        cells = _told_apart([Cell(Experiment.load(run.path), run, is_given=True) for run in there] + study.cells)
    _check_names(cells)
    folder = study.folder if study.cells else Path(out) if out else _together(files, there)
    return Plan(cells, folder, study.remarks)


def _planned(
    files: Sequence[Given],
    methods: Sequence[Any],
    seeds: Sequence[int],
    assignments: Sequence[str],
    out: str | Path | None,
    sections: Mapping[str, Any],
    over: Sequence[str] | Overs,
) -> Plan:
    changes, axes = [Change.read(assignment) for assignment in assignments], axes_of(over)
    methods, axes = _methods(methods, axes)
    said_twice(changes, methods, seeds, axes)
    raws = [(where(file), read_raw(file)) for file in files]
    laid_over = changes_of(sections)
    entrants = entrants_of([(name, merge(raw, sections)) for name, raw in raws], methods, changes, axes)
    check_axes(axes, entrants)
    remarks = list(filter(None, (remark(change.said, entrants) for change in changes)))
    words = _words(dict(raws), [*laid_over, *changes], entrants)
    cells = []
    for one in entrants:
        base = Path(out) if out else _base(one.config.name, words)
        for seed in seeds or [one.config.seed]:
            config = one.with_seed(seed, axes)
            folder = RunFolder(base / f"{config.name}-{config.method.called}-seed{seed}")
            cells.append(Cell(Experiment(grouped(config, base.name)), folder))
    return Plan(cells, cells[0].folder.path.parent, remarks)


def _base(name: str, words: str) -> Path:
    """Where a comparison lies if nobody says: its folder is named by the experiment and by what is changed in it."""
    return Path("runs") / "-".join(filter(None, ["compare", name, shortened_words(words)]))


def _together(given: Sequence[Given], runs: Sequence[RunFolder]) -> Path:
    """Where it is written what runs say together that are there: in the folder that holds them, if that was named."""
    if len(given) == 1 and not is_run(given[0]):
        return Path(str(given[0]))
    return _base(Experiment.load(runs[0].path).config.name, "")


def _methods(methods: Sequence[Any], axes: list[Axis]) -> tuple[Sequence[Any], list[Axis]]:
    """Methods that are varied over are methods that are compared."""
    varied = [axis for axis in axes if axis.address == ("method", "name")]
    if varied and methods:
        raise ConfigError(f"{varied[0].said} and --methods both say which methods are run; keep one of them")
    return (varied[0].values if varied else methods), [axis for axis in axes if axis not in varied]


def _words(raws: Mapping[str, Raw], changes: Sequence[Change], entrants: Sequence[Entrant]) -> str:
    """What is changed in any of the files, as the name of the folder says it."""
    telling = [folder_words(raws[one.file], changes, one.config) for one in entrants]
    return words_of([change for change in changes if any(change in own for own in telling)])


def _found(cell: Cell, there: Sequence[RunFolder]) -> Cell:
    """The run among those that were named that is this very one, if any is."""
    for folder in there:
        if is_this_very(cell.experiment.config, folder):
            return replace(cell, folder=folder, is_given=True)
    return cell


def _told_apart(cells: Sequence[Cell]) -> list[Cell]:
    configs = told_apart([cell.experiment.config for cell in cells])
    return [replace(cell, experiment=Experiment(config)) for cell, config in zip(cells, configs, strict=True)]


def _check_names(cells: Sequence[Cell]) -> None:
    labels = [cell.label for cell in cells]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(
                f"two runs of this comparison are {label}; give the files other names, or variants of a method a label"
            )
