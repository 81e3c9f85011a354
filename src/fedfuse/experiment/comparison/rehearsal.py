"""Before the first run of a comparison starts: whatever would stop a later one, found without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from fedfuse.core.errors import FedfuseError
from fedfuse.engines import LocalEngineSettings
from fedfuse.experiment.assembly import Loaded, build, load_examples
from fedfuse.experiment.comparison.plan import Cell
from fedfuse.experiment.earlier import has_other_origin, other_data, other_experiment, refusal, unusable
from fedfuse.experiment.tracking import check_trackers
from fedfuse.federation.events import EventLog

SILENCE = EventLog()


def rehearse(cells: Sequence[Cell], overwrite: bool) -> list[Cell]:
    """The same runs, each found possible, with a decision about what its folder holds.

    This very run goes on, or is read if it is finished. Anything else (another experiment, other data, another version
    of the code, a damaged run) is replaced with ``overwrite``, and so nothing is lost if the same command is given
    again. Without it, all but another version are mistakes. If every run is finished, no data is needed to read them.
    """
    for cell in cells:
        check_trackers(cell.experiment.config)
    decided = [_decided(cell, _another_run(cell, overwrite), overwrite) for cell in cells]
    if all(cell.is_finished and (cell.is_given or not overwrite) for cell in decided):
        return decided
    tried = {
        cell.folder.path: cell
        for _, group in groupby(sorted(decided, key=_examples), key=_examples)
        for cell in _tried(list(group), overwrite)
    }
    return [tried[cell.folder.path] for cell in cells]


def _examples(cell: Cell) -> tuple[str, int]:
    """Runs for which this is the same share their examples."""
    return cell.experiment.config.data.model_dump_json(), cell.experiment.config.seed


def _tried(cells: Sequence[Cell], overwrite: bool) -> Iterator[Cell]:
    loaded = load_examples(cells[0].experiment.config, SILENCE)
    for cell in cells:
        yield _decided(cell, _fault(cell, loaded, overwrite), overwrite)


def _fault(cell: Cell, loaded: Loaded, overwrite: bool) -> str | None:
    """Build the federation, in this process whatever its engine is, and look at what it would go on with."""
    config = cell.experiment.config.model_copy(update={"engine": LocalEngineSettings()})
    try:
        built = build(config, SILENCE, loaded=loaded)
    except FedfuseError as error:
        raise FedfuseError(f"{cell.label}: {error}") from error
    if not cell.keep or not cell.folder.holds_a_run():
        return None
    if overwrite and not cell.is_given and has_other_origin(cell.folder):
        return "was made by another version"
    return other_data(built.facts, cell.folder)


def _another_run(cell: Cell, overwrite: bool) -> str | None:
    if not cell.folder.path.exists():
        return None
    found = unusable if overwrite and not cell.is_given else other_experiment
    with cell.folder.opened():  # refuses a folder of other files, and one in use
        return found(cell.experiment.config, cell.folder) if cell.folder.holds_a_run() else None


def _decided(cell: Cell, fault: str | None, overwrite: bool) -> Cell:
    if fault and (cell.is_given or not overwrite):
        raise refusal(cell.folder, fault)
    return replace(cell, keep=cell.keep and not fault)
