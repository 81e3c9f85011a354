"""From an entry to experiments: one per cell and seed. Cells that differ only in what they read share their runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedfuse.core.errors import ConfigError
from fedfuse.data import DataSettings
from fedfuse.experiment.config import ExperimentConfig, Raw, validate
from fedfuse.experiment.config.schema import as_mapping, overlay
from fedfuse.parts.fuse import OtherDataset
from fedfuse.reproduce.entry import Entry, Labels, Reading, ScaleName, agrees, checked

READ = "read"
"""The one key of an axis' changes that is not about the experiment."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    entry: str
    labels: Labels
    reading: Reading
    raw: Raw

    @property
    def title(self) -> str:
        return f"{self.entry} {' '.join(self.labels.values())}"

    def config(self, seed: int) -> ExperimentConfig:
        """The experiment with this seed. Its name says who asked for it; its content decides which run it is."""
        return self._validated.model_copy(update={"seed": seed})

    @property
    def is_possible(self) -> bool:
        """Whether this version has the datasets and networks that the cell names."""
        try:
            return bool(self._validated)
        except ConfigError:
            return False

    @cached_property
    def _validated(self) -> ExperimentConfig:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.title).strip("-.")
        return validate({**self.raw, "name": name}, self.title)


def data_of(config: ExperimentConfig) -> list[DataSettings]:
    """The datasets that a run reads."""
    reads_source = config.recipe.needs_source or config.federation.batch_norm == "reestimate"
    source = config.source
    return [config.data, source.data] if reads_source and isinstance(source, OtherDataset) else [config.data]


Wanted = Mapping[str, Sequence[str]]
"""For some axes, the labels that are asked for."""


def cells_of(name: str, entry: Entry, scale: ScaleName, wanted: Wanted | None = None) -> list[Cell]:
    """The cells of an entry at a scale, or those whose labels are among the ``wanted`` ones of each axis."""
    for axis, labels in (wanted or {}).items():
        for label in labels:
            try:
                entry.check({axis: label}, "--cells")
            except ValueError as error:
                raise ConfigError(str(error)) from None
    combinations = [
        labels
        for labels in entry.combinations(scale)
        if all(labels[axis] in choice for axis, choice in (wanted or {}).items())
    ]
    if not combinations:
        raise ConfigError(f"{name} has no such cell at scale {scale}; ask for other --cells or another --scale")
    return [_cell(name, entry, scale, labels) for labels in combinations]


def _cell(name: str, entry: Entry, scale: ScaleName, labels: Labels) -> Cell:
    size = entry.scales[scale]
    own = [entry.axes[axis][label] for axis, label in labels.items()]
    shared = [one.changes for one in entry.together if agrees(labels, one.cells)]
    scaled = [size.axes.get(axis, {}).get(label, {}) for axis, label in labels.items()]
    raw, read = _merged(entry.experiment, {}), entry.read.model_dump()
    for changes in (*own, *shared, size.changes, *scaled):
        raw = _merged(raw, {key: value for key, value in changes.items() if key != READ})
        read = {**read, **changes.get(READ, {})}
    return Cell(name, labels, checked(Reading, read, f"{name}: read"), raw)


def _merged(raw: Raw, changes: Raw) -> Raw:
    merged = overlay(raw, changes)
    return {**merged, "method": as_mapping(merged.get("method", "fedavg"))}
