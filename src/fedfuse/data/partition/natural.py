"""The clients that the data comes with: a column of client ids, or one file or folder per client."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data.dataset import Owners
from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import Partition


class Natural(Partition):
    """The clients that the data comes with, each with its own examples; those of clients left out belong to nobody."""

    kind: Literal["natural"] = "natural"
    clients: int | None = Field(
        None, ge=1, le=1_000_000, description="Keep this many clients, drawn at random; all if not given."
    )
    min_examples: int = Field(
        1, ge=1, description="Leave out clients with fewer training examples, counted after the splits."
    )

    def assign(
        self,
        labels: Tensor | Indices,
        classes: int,
        key: Key,
        owners: Owners | None = None,
    ) -> Assignment:
        if owners is None:
            raise ConfigError(
                "partition natural needs data that says whose each example is; set data.client_column or "
                "data.client_files, or choose another partition"
            )
        numbers = np.asarray(owners.numbers)
        sizes = np.bincount(numbers, minlength=len(owners.names))
        eligible = np.flatnonzero(sizes >= self.min_examples)
        self._check(eligible, sizes)
        if self.clients is not None:
            eligible = np.sort(key.numpy().choice(eligible, size=self.clients, replace=False))
        order = np.argsort(numbers, kind="stable")
        kept = np.zeros(len(sizes), dtype=np.bool_)
        kept[eligible] = True
        return Assignment(order[kept[numbers[order]]], np.cumsum(sizes[eligible]))

    def names(self, assignment: Assignment, owners: Owners | None) -> list[str]:
        assert owners is not None
        first = assignment.positions[assignment.ends - assignment.sizes]
        return [owners.names[number] for number in np.asarray(owners.numbers)[first].tolist()]

    def _check(self, eligible: Indices, sizes: Indices) -> None:
        if len(eligible) < (self.clients or 1):
            raise ConfigError(
                f"partition.clients = {self.clients or 'all'} with min_examples = {self.min_examples}: only "
                f"{len(eligible)} of the data's {len(sizes)} clients have that many examples; lower one of them"
            )
