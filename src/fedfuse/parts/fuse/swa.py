"""Stochastic weight averaging (Izmailov et al., 2018), as FedBE uses it to distil noisy targets."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.part import Settings
from fedfuse.core.weights import Weights
from fedfuse.runtime.batch_norm import reestimate
from fedfuse.runtime.source import Shown


class Swa(Settings):
    """Average the students that a cyclic rate passes through; FedBE's printed numbers are the defaults."""

    collect_after: int = Field(250, ge=0, description="no student is collected up to this step; the released code: 500")
    cycle: int = Field(25, ge=1, description="steps per cycle; the student at its end is collected")
    lowest: float = Field(
        0.4, gt=0, le=1, description="share of the rate at a cycle's end (1e-3 to 4e-4); the released code: 1"
    )

    def rate_fraction(self, step: int) -> float:
        """The rate falls on a line from 1 to ``lowest`` within each cycle; ``step`` counts from 0."""
        if self.cycle == 1:
            return self.lowest
        return 1 - (1 - self.lowest) * (step % self.cycle) / (self.cycle - 1)

    def collections(self, steps: int) -> int:
        """How many students go into the average in so many steps."""
        return max(steps // self.cycle - self.collect_after // self.cycle, 0)

    def collects(self, taken: int) -> bool:
        """Whether the student after ``taken`` steps goes into the average."""
        return taken > self.collect_after and taken % self.cycle == 0


class RunningAverage:
    """The mean of the collected students, in double precision."""

    def __init__(self, student: nn.Module) -> None:
        self.student = student
        self.total: Tensor | None = None
        self.count = 0

    def collect(self) -> None:
        weights = Weights.of(self.student)
        if weights.is_finite():  # one that is not would take all the others with it
            flat = weights.flat.double()
            self.total = flat if self.total is None else self.total + flat
            self.count += 1

    def install(self, source: Shown) -> None:
        """Put the average into the student, with BatchNorm statistics that belong to it; nothing if none came."""
        if self.total is None:
            return
        layout = Weights.of(self.student).layout
        Weights((self.total / self.count).to(torch.float32), layout).load_into(self.student)
        if layout.buffers:
            reestimate(self.student, source)
