"""Runs that are there already, named by their folders: which they are, and what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedfuse.core.errors import RunFolderError
from fedfuse.core.files import is_there, names_in
from fedfuse.experiment.config import ExperimentConfig, Raw
from fedfuse.experiment.config.changes import Address, Change
from fedfuse.experiment.run import Given
from fedfuse.experiment.variants import differences, named
from fedfuse.federation.folder import RunFolder


def is_run(given: Given) -> bool:
    """Whether it is the folder of a run."""
    return isinstance(given, str | Path) and Path(given).is_dir() and is_there(RunFolder(Path(given)).config)


def runs_in(given: Given) -> list[Given]:
    """What is named; a folder of runs stands for all of them."""
    if not isinstance(given, str | Path) or not Path(given).is_dir() or is_run(given):
        return [given]
    found: list[Given] = [Path(given) / name for name in names_in(Path(given)) if is_run(Path(given) / name)]
    if not found:
        raise RunFolderError(f"{given} is a folder without any run; give a run folder, a folder of runs, or a file")
    return found


def told_apart(configs: Sequence[ExperimentConfig]) -> list[ExperimentConfig]:
    """The same experiments; where some have one name and method and yet differ, their names say in what."""
    groups: dict[tuple[str, str], list[ExperimentConfig]] = {}
    for config in configs:
        groups.setdefault((config.name, config.method.called), []).append(config)
    different = {names: _different_keys(list(map(_but_for_seed, group))) for names, group in groups.items()}
    return [_with_name_of(config, different[config.name, config.method.called]) for config in configs]


def _but_for_seed(config: ExperimentConfig) -> Raw:
    return {key: value for key, value in config.identity().items() if key != "seed"}


def _different_keys(identities: Sequence[Raw]) -> list[Address]:
    first, *others = identities
    return sorted({address for other in others for address in differences(first, other)})


def _with_name_of(config: ExperimentConfig, different: Sequence[Address]) -> ExperimentConfig:
    if not different:
        return config
    identity = config.identity()
    return named(config, [Change("", address, _value(identity, address)) for address in different], different)


def _value(node: object, address: Address) -> object:
    """What an identity has there; None if it has no such key."""
    for key in address:
        node = node.get(key) if isinstance(node, dict) else None
    return node
