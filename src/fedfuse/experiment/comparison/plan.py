"""Which runs a comparison has: every file with every method and every seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedfuse.core.errors import ConfigError, UnknownKeyError
from fedfuse.experiment.config import ExperimentConfig, Raw, merge, validate
from fedfuse.experiment.config.changes import Change, apply
from fedfuse.experiment.run import Experiment, Given, read_raw, where
from fedfuse.federation.folder import RunFolder

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Cell:
    """One run of a comparison."""

    experiment: Experiment
    folder: RunFolder
    keep: bool = True
    """Whether the run goes on with what its folder holds; else it replaces that."""

    @property
    def label(self) -> str:
        return self.experiment.config.label


@dataclass(frozen=True)
class Plan:
    """All runs, and what there is to say about how they came to be."""

    cells: list[Cell]
    remarks: list[str]


@dataclass(frozen=True)
class Entrant:
    """One file with one of its methods, for any seed; ``unfit`` are the changes that its method has no key for."""

    file: str
    raw: Raw
    config: ExperimentConfig
    unfit: dict[str, UnknownKeyError]


def plan(
    files: Sequence[Given],
    methods: Sequence[Any],
    seeds: Sequence[int],
    assignments: Sequence[str] = (),
    out: str | Path | None = None,
    sections: Mapping[str, Any] = NOTHING,
) -> Plan:
    """The runs of a comparison; without methods or seeds, those that the files name themselves.

    A method is a name, an address, a Method or a mapping. ``sections`` are laid over every file.
    """
    changes = [Change.read(assignment) for assignment in assignments]
    _check_nothing_is_said_twice(changes, methods, seeds)
    raws = [(where(file), merge(read_raw(file), sections)) for file in files]
    entrants = [entrant(name, raw, method, changes) for name, raw in raws for method in methods or [None]]
    remarks = list(filter(None, (_remark(change.said, entrants) for change in changes)))
    cells = []
    for one in entrants:
        for seed in seeds or [one.config.seed]:
            config = validate({**one.raw, "seed": seed}, one.file)
            base = out or Path("runs") / f"compare-{config.name}"
            folder = RunFolder(Path(base) / f"{config.name}-{config.method.called}-seed{seed}")
            cells.append(Cell(Experiment(config), folder))
    folders = [cell.folder.path for cell in cells]
    if len(set(folders)) < len(folders):
        raise ConfigError(
            "two runs of this comparison have the same name, method and seed; give the files other names, or variants "
            "of a method a label"
        )
    return Plan(cells, remarks)


def entrant(file: str, raw: Raw, method: Any, changes: Sequence[Change]) -> Entrant:
    """A file with a method and with all changes, but those of parts of methods that this one has no key for."""
    if method is not None:
        raw = apply(raw, [Change.of("--methods", ("method",), method)])
    kept, unfit = list(changes), dict[str, UnknownKeyError]()
    while True:
        changed = apply(raw, kept)
        try:
            return Entrant(file, changed, validate(changed, file), unfit)
        except UnknownKeyError as error:
            guilty = [change for change in kept if change.address[0] == "method" and _made(change, error)]
            if not guilty:
                raise
            nearest = max(guilty, key=lambda change: len(change.address))
            unfit[nearest.said] = error
            kept.remove(nearest)


def _made(change: Change, error: UnknownKeyError) -> bool:
    """Whether a change wrote the unknown key, something below it, or a mapping that holds it."""
    return all(one == other for one, other in zip(change.address, (*error.at, error.key), strict=False))


def _check_nothing_is_said_twice(changes: Sequence[Change], methods: Sequence[Any], seeds: Sequence[int]) -> None:
    names = [method for method in methods if isinstance(method, str)]
    if len(set(names)) < len(names):
        raise ConfigError(f"--methods {','.join(names)}: write different methods separated by commas")
    for change in changes:
        if methods and change.address in (("method",), ("method", "name")):
            raise ConfigError(f"{change.said} and --methods both say which method is run; keep one of them")
        if seeds and change.address == ("seed",):
            raise ConfigError(f"{change.said} and --seeds both say which seed is run; keep one of them")


def _remark(said: str, entrants: Sequence[Entrant]) -> str | None:
    """Whom a change does not reach; if that is everybody, it is a mistake."""
    unfit = [one for one in entrants if said in one.unfit]
    if not unfit:
        return None
    if len(unfit) == len(entrants):
        errors = [one.unfit[said] for one in unfit]
        nearest = max(errors, key=lambda error: len(error.at))
        known = {key for error in errors if error.at == nearest.at for key in error.known}
        raise UnknownKeyError(nearest.key, known, nearest.at, f"{said} fits no method of this comparison: ")
    several = len({one.config.name for one in entrants}) > 1
    names = [f"{one.config.name} {one.config.method.called}" if several else one.config.method.called for one in unfit]
    return f"{said} changes nothing in {', '.join(names)}: no such key there"
