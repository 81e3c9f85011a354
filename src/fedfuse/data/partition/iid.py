"""Every client gets a random, equally large share: independent and identically distributed."""

from __future__ import annotations

from typing import Literal

import numpy as np

from fedfuse.data.partition.assignment import Assignment, Indices
from fedfuse.data.partition.base import DrawnPartition


class Iid(DrawnPartition):
    """Equal random parts; sizes differ by at most one."""

    kind: Literal["iid"] = "iid"

    def draw(self, labels: Indices, classes: int, random: np.random.Generator) -> Assignment:
        return Assignment.evenly(random.permutation(len(labels)), self.clients)
