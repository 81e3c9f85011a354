"""What a partition did: who got what, in numbers and in words, and exact enough to be used again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.data.dataset import Owners
from fedfuse.data.partition import files
from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import Counts, Partition

SHOWN = 200
"""Clients whose shares stand in the file for people; the arrays beside it have everybody's."""


@dataclass(frozen=True)
class ClientShare:
    """One client's part; ``name`` is its number, or what data that came separated calls it."""

    name: str
    size: int
    class_counts: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class PartitionReport:
    """The settings, the assigned positions, and what follows from them.

    ``examples`` were to be divided. ``labels`` are the classes of what the clients got, client after client. ``names``
    are what the clients are called, ``class_names`` the classes; their numbers if None.
    """

    partition: Mapping[str, Any]
    examples: int
    classes: int
    assignment: Assignment
    labels: NDArray[Any]
    names: Sequence[str] | None = None
    class_names: Sequence[str] | None = None

    @staticmethod
    def of(
        partition: Partition,
        assignment: Sequence[Indices],
        labels: Tensor | Indices,
        classes: int | Sequence[str],
        owners: Owners | None = None,
    ) -> PartitionReport:
        """``classes`` are their names, or how many there are."""
        called = numbered(classes) if isinstance(classes, int) else list(classes)
        classes = len(called)
        together = Assignment.of(assignment)
        small = np.asarray(labels).astype(np.min_scalar_type(classes))
        names = partition.names(together, owners)
        settings = partition.model_dump(mode="json")
        own = None if called == numbered(classes) else called
        return PartitionReport(settings, len(small), classes, together, small[together.positions], names, own)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PartitionReport)
            and self._facts == other._facts
            and np.array_equal(self.labels, other.labels)
            and (self.names == other.names or list(self._names) == list(other._names))
            and list(self.called) == list(other.called)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PartitionReport({self.partition.get('kind', 'own')}: {self.in_words()})"

    @cached_property
    def sha256(self) -> str:
        """Hash of the assignment."""
        return self.assignment.sha256()

    @property
    def unassigned(self) -> int:
        """Examples that belong to no client."""
        return self.examples - len(self.assignment.positions)

    @property
    def called(self) -> Sequence[str]:
        """What each class is called."""
        return numbered(self.classes) if self.class_names is None else self.class_names

    @property
    def sizes(self) -> Counts:
        """How many examples each client has."""
        return self.assignment.sizes

    @property
    def clients(self) -> Sequence[ClientShare]:
        """What each client got."""
        return _Shares(self)

    def counts(self, groups: int | None = None) -> Counts:
        """Examples by client and class; by group of neighbours and class if clients are taken together."""
        ends = self.assignment.ends[borders(len(self.assignment), groups)[1:] - 1]
        return np.stack([np.bincount(own, minlength=self.classes) for own in np.split(self.labels, ends[:-1])])

    def in_words(self) -> str:
        """One line: how many clients, how large, how many classes each."""
        clients = len(self.assignment)
        return f"{clients} clients with {_range(self.sizes)} examples of {_range(self._classes_held())} classes each"

    def _classes_held(self) -> Counts:
        """How many classes each client has examples of."""
        clients = len(self.assignment)
        pairs = self.assignment.for_each_position(np.arange(clients) * self.classes) + self.labels
        pairs.sort()
        is_new = np.diff(pairs, prepend=-1) > 0
        return np.bincount(pairs[is_new] // self.classes, minlength=clients)

    def save(self, path: Path) -> None:
        """Write the files, unless they are there already."""
        if not self._lies_at(path):
            shown = [asdict(client) for client in self.clients[:SHOWN]]
            named = {} if self.class_names is None else {"class_names": list(self.class_names)}
            facts = {"in_words": self.in_words(), **self._facts, "unassigned": self.unassigned}
            about = {**facts, **named, "first_clients": shown}
            names = None if self.names is None else list(self.names)
            files.write(path, files.Stored(about, self.assignment, self.labels, names))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a saved report; one that was changed by hand or cut off is refused."""
        stored = files.read(path)
        about = stored.about
        report = cls(
            about["partition"],
            about["examples"],
            about["classes"],
            stored.assignment,
            stored.labels,
            stored.names,
            about.get("class_names"),
        )
        if report.sha256 != about["sha256"]:
            raise DataError(f"{path} holds an assignment that does not match its sha256; make it again")
        return report

    @property
    def _facts(self) -> dict[str, Any]:
        """What tells it from another one, but for the names and the labels."""
        return {
            "partition": self.partition,
            "examples": self.examples,
            "classes": self.classes,
            "clients": len(self.assignment),
            "sha256": self.sha256,
        }

    @property
    def _names(self) -> Sequence[str]:
        return numbered(len(self.assignment)) if self.names is None else self.names

    def _lies_at(self, path: Path) -> bool:
        try:
            return PartitionReport.load(path) == self
        except DataError:
            return False


class _Shares(Sequence[ClientShare]):
    """Every client's share, made when somebody looks at it."""

    def __init__(self, report: PartitionReport) -> None:
        self._report = report

    @overload
    def __getitem__(self, client: int) -> ClientShare: ...
    @overload
    def __getitem__(self, client: slice) -> list[ClientShare]: ...
    def __getitem__(self, client: int | slice) -> ClientShare | list[ClientShare]:
        if isinstance(client, slice):
            return [self[one] for one in range(len(self))[client]]
        report, number = self._report, range(len(self))[client]
        labels = report.labels[report.assignment.where(number)]
        counts = np.bincount(labels, minlength=report.classes)
        name = str(number) if report.names is None else report.names[number]
        return ClientShare(name, len(labels), tuple(counts.tolist()))

    def __len__(self) -> int:
        return len(self._report.assignment)


def numbered(count: int) -> list[str]:
    """What those are called who have no names."""
    return [str(number) for number in range(count)]


def borders(clients: int, groups: int | None) -> Counts:
    """Where groups of neighbours begin, and after them where the last one ends; as many groups as clients if None."""
    number = clients if groups is None else min(groups, clients)
    return -(-np.arange(number + 1) * clients // number)


def _range(values: Counts) -> str:
    low, high = values.min(), values.max()
    return str(low) if low == high else f"{low} to {high}"
