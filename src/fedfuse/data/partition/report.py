"""What a partition did, as the ``partition.json`` of a run folder: readable, and exact enough to be used again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, ValidationError
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.files import write_text
from fedfuse.core.part import Settings
from fedfuse.data.dataset import Owners
from fedfuse.data.partition.base import Indices, Partition


class ClientShare(Settings):
    """One client's part."""

    name: str = Field(description="The client's number, or the name it has in data that came separated.")
    size: int = Field(ge=0, description="Number of examples.")
    class_counts: tuple[int, ...] = Field(description="Number of examples of each class.")


class PartitionReport(Settings):
    """The settings, the resulting shares, and the assigned positions with their hash."""

    partition: dict[str, Any] = Field(description="Kind and settings of the partition.")
    examples: int = Field(ge=0, description="Examples that were to be divided.")
    unassigned: int = Field(ge=0, description="Examples that belong to no client.")
    sha256: str = Field(description="Hash of the assignment.")
    clients: tuple[ClientShare, ...] = Field(description="What each client got.")
    assignment: tuple[tuple[int, ...], ...] = Field(description="Positions of each client's examples.")

    @staticmethod
    def of(
        partition: Partition,
        assignment: Sequence[Indices],
        labels: Tensor | Indices,
        classes: int,
        owners: Owners | None = None,
    ) -> PartitionReport:
        known = np.asarray(labels)
        return PartitionReport(
            partition=partition.model_dump(mode="json"),
            examples=len(known),
            unassigned=len(known) - sum(len(part) for part in assignment),
            sha256=assignment_hash(assignment),
            clients=tuple(
                _share(name, known[part], classes)
                for name, part in zip(partition.names(assignment, owners), assignment, strict=True)
            ),
            assignment=tuple(tuple(part.tolist()) for part in assignment),
        )

    @property
    def indices(self) -> list[Indices]:
        """The assignment as :meth:`Partition.assign` returned it."""
        return [np.array(part, dtype=np.int64) for part in self.assignment]

    def in_words(self) -> str:
        """One line: how many clients, how large, how many classes each."""
        sizes = [client.size for client in self.clients]
        classes = [sum(count > 0 for count in client.class_counts) for client in self.clients]
        return f"{len(sizes)} clients with {_range(sizes)} examples of {_range(classes)} classes each"

    def save(self, path: Path) -> None:
        write_text(path, self.model_dump_json() + "\n")

    @staticmethod
    def load(path: Path) -> PartitionReport:
        """Read a saved report; one that was changed by hand or cut off is refused."""
        try:
            report = PartitionReport.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise DataError(f"{path} cannot be read as a partition; it may be cut off, so make it again") from error
        if assignment_hash(report.indices) != report.sha256:
            raise DataError(f"{path} holds an assignment that does not match its sha256 {report.sha256}; make it again")
        return report


def assignment_hash(assignment: Sequence[Indices]) -> str:
    """A hash of who got what; lengths go in first, so moving an example to the next client changes it."""
    digest = hashlib.sha256(np.array([len(part) for part in assignment], dtype="<i8").tobytes())
    for part in assignment:
        digest.update(np.asarray(part, dtype="<i8").tobytes())
    return digest.hexdigest()


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def _share(name: str, labels: Indices, classes: int) -> ClientShare:
    counts = np.bincount(labels, minlength=classes)
    return ClientShare(name=name, size=len(labels), class_counts=tuple(counts.tolist()))
