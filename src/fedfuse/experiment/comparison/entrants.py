"""Who takes part in a comparison: every file with every method and every combination of what is varied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from fedfuse.catalogue.misspelt import misfit
from fedfuse.core.errors import ConfigError, UnknownKeyError
from fedfuse.experiment.config import ExperimentConfig, Raw, validate
from fedfuse.experiment.config.changes import Change, apply
from fedfuse.experiment.variants import Axis, named

MOST_VARIANTS = 10_000


@dataclass(frozen=True)
class Entrant:
    """One file with one of its methods in one variant, for any seed."""

    file: str
    raw: Raw
    config: ExperimentConfig
    unfit: dict[str, UnknownKeyError]
    """By how they were said, the changes that there is no key for."""
    varied: tuple[Change, ...] = ()
    """What is varied, as far as this one has the keys."""

    def with_seed(self, seed: int, axes: Sequence[Axis]) -> ExperimentConfig:
        config = validate({**self.raw, "seed": seed}, self.file)
        return named(config, self.varied, [axis.address for axis in axes]) if self.varied else config


def entrants_of(
    files: Sequence[tuple[str, Raw]], methods: Sequence[Any], changes: Sequence[Change], axes: Sequence[Axis]
) -> list[Entrant]:
    """All of them; variants that come to the same, because what tells them apart is no key of theirs, count once.

    Variants of the experiment come one after another with all methods, and variants of a method beside each other.
    """
    number = prod(len(axis.values) for axis in axes)
    if number > MOST_VARIANTS:
        raise ConfigError(f"these are {number:,} combinations, but at most {MOST_VARIANTS:,} are compared; vary less")
    of_methods = [axis for axis in axes if axis.address[0] in ("method", "methods")]
    of_others = [axis for axis in axes if axis not in of_methods]
    found: dict[tuple[Any, ...], Entrant] = {}
    for place, (file, raw) in enumerate(files):
        for outer in variants(of_others):
            for number, method in enumerate(methods or [None]):
                for inner in variants(of_methods):
                    one = entrant(file, raw, method, changes, (*outer, *inner))
                    found.setdefault((place, number, *(change.said for change in one.varied)), one)
    return list(found.values())


def variants(axes: Sequence[Axis]) -> Iterator[tuple[Change, ...]]:
    """Every combination of their values, the last key's value changing first."""
    return product(*([axis.change(value) for value in axis.values] for axis in axes))


def entrant(file: str, raw: Raw, method: Any, changes: Sequence[Change], varied: Sequence[Change] = ()) -> Entrant:
    """A file with a method and with all changes, but those that it has no key for.

    That may be of parts of methods, since not every method has them, and of what is varied, since a key may belong to
    one of the parts that are tried only.
    """
    if method is not None:
        raw = apply(raw, [Change.of("--methods", ("method",), method)])
    kept, unfit = [*varied, *changes], dict[str, UnknownKeyError]()
    while True:
        changed = apply(raw, kept)
        try:
            config = validate(changed, file)
        except UnknownKeyError as error:
            loose = [change for change in kept if change.address[0] == "method" or change in varied]
            guilty = [change for change in loose if _made(change, error)]
            if not guilty:
                raise
            nearest = max(guilty, key=lambda change: len(change.address))
            unfit[nearest.said] = error
            kept.remove(nearest)
        else:
            own = tuple(change for change in varied if change in kept and _concerns(change, config))
            return Entrant(file, changed, config, unfit, own)


def remark(said: str, entrants: Sequence[Entrant]) -> str | None:
    """Whom a change does not reach; if that is everybody, it is a mistake."""
    unfit = [one for one in entrants if said in one.unfit]
    if not unfit:
        return None
    if len(unfit) == len(entrants):
        raise misfit(f"{said} fits no method of this comparison", [one.unfit[said] for one in unfit])
    several = len({one.config.name for one in entrants}) > 1
    names = [f"{one.config.name} {one.config.method.called}" if several else one.config.method.called for one in unfit]
    return f"{said} changes nothing in {', '.join(dict.fromkeys(names))}: no such key there"


def check_axes(axes: Sequence[Axis], entrants: Sequence[Entrant]) -> None:
    """Every key that is varied is a key of somebody."""
    for axis in axes:
        if not any(change.address == axis.address for one in entrants for change in one.varied):
            said = axis.change(axis.values[0]).said.rpartition("=")[0]
            errors = [error for one in entrants for text, error in one.unfit.items() if text.startswith(said)]
            if errors:
                raise misfit(f"{axis.said} fits nothing here", errors)
            raise ConfigError(f"{axis.said}: method '{axis.address[1]}' is not among those that are run")


def _made(change: Change, error: UnknownKeyError) -> bool:
    """Whether a change wrote the unknown key, something below it, or a mapping that holds it."""
    return all(one == other for one, other in zip(change.address, (*error.at, error.key), strict=False))


def _concerns(change: Change, config: ExperimentConfig) -> bool:
    """What is said about another method than the one that runs changes nothing."""
    return change.address[0] != "methods" or change.address[1:2] == (config.method.name,)


def said_twice(changes: Sequence[Change], methods: Sequence[Any], seeds: Sequence[int], axes: Sequence[Axis]) -> None:
    """Refuse what two options say."""
    names = [method for method in methods if isinstance(method, str)]
    if len(set(names)) < len(names):
        raise ConfigError(f"--methods {','.join(names)}: write different methods separated by commas")
    for change in changes:
        if methods and change.address in (("method",), ("method", "name")):
            raise ConfigError(f"{change.said} and --methods both say which method is run; keep one of them")
        if seeds and change.address == ("seed",):
            raise ConfigError(f"{change.said} and --seeds both say which seed is run; keep one of them")
        for axis in axes:
            if change.address == axis.address:
                raise ConfigError(f"{change.said} and {axis.said} both say what it is; keep one of them")
