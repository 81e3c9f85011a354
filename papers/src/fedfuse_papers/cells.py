"""From an entry to experiments: one per cell and seed. Cells that differ only in what they read share their runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from fedfuse import ConfigError, Experiment
from fedfuse.plugins import Raw, checked, overlay
from fedfuse_papers.entry import Entry, Labels, Reading, ScaleName, agrees

READ = "read"
"""The one key of an axis' changes that is not about the experiment."""
AS_PRINTED: Raw = {"federation": {"claims": "taken", "moves": "taken"}}
"""The papers' equations know no bounds on what a client says or does."""


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

    def experiment(self, seed: int) -> Experiment:
        """The experiment with this seed. Its name says who asked for it; its content decides which run it is."""
        return Experiment(self._validated.config.model_copy(update={"seed": seed}))

    @property
    def is_possible(self) -> bool:
        """Whether this version has the datasets and networks that the cell names."""
        try:
            return bool(self._validated)
        except ConfigError:
            return False

    @cached_property
    def _validated(self) -> Experiment:
        name = re.sub(r"[^A-Za-z0-9.]+", "-", self.title).strip("-.")
        try:
            return Experiment(self.raw, name=name)
        except ConfigError as error:
            raise ConfigError(f"{self.title}: {error}") from None


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
    raw, read = _merged(AS_PRINTED, entry.experiment), entry.read.model_dump()
    for changes in (*own, *shared, size.changes, *scaled):
        raw = _merged(raw, {key: value for key, value in changes.items() if key != READ})
        read = {**read, **changes.get(READ, {})}
    return Cell(name, labels, checked(Reading, read, f"{name}: read"), raw)


def _merged(raw: Raw, changes: Raw) -> Raw:
    merged = overlay(raw, changes)
    method = merged.get("method", "fedavg")
    return {**merged, "method": {"name": method} if isinstance(method, str) else method}
