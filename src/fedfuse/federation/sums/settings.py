"""What an experiment says about secure sums."""

from __future__ import annotations

import math

from pydantic import Field

from fedfuse.core.part import Settings


class SecureSums(Settings):
    """The server sees sums of what clients send, and nothing else of it (secure aggregation)."""

    range: float = Field(
        8.0,
        gt=0,
        le=1e6,
        description="how far a round can move one number; what a client has beyond it, either way, is cut off there",
    )
    bits: int = Field(
        24, ge=8, le=32, description="that range has 2^bits steps, to the nearest of which every number is rounded"
    )
    least: int = Field(3, ge=2, description="fewest clients of which a sum is made; with fewer nobody is hidden")
    share: float = Field(
        0.67,
        gt=0.5,
        le=1,
        description="share of the clients with a task that a sum needs, and that can open it together on Flower",
    )
    most_examples: int = Field(
        65536, ge=1, le=2**24, description="examples for which a client counts at most, where clients count by them"
    )
    neighbours: int = Field(
        64, ge=4, description="on Flower, others with whom a client agrees on masks; all of them where they are fewer"
    )

    @property
    def step(self) -> float:
        """From one whole number to the next."""
        return self.range / float(1 << (self.bits - 1))

    @property
    def largest(self) -> int:
        """The largest whole number that one value becomes."""
        return (1 << (self.bits - 1)) - 1

    def needed(self, asked: int) -> int:
        """Of so many clients with a task, how many have to be in the sum."""
        return max(self.least, math.ceil(self.share * asked))

    def shares_needed(self, neighbours: int) -> int:
        """Shares that give a secret of a client with so many neighbours; it has one itself."""
        return math.ceil(self.share * (neighbours + 1))
