"""The section ``privacy`` of an experiment file: what is promised, and how it is counted."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedfuse.core.part import Settings

Unit = Literal["example", "client"]


class PrivacySettings(Settings):
    """A promise: whatever anybody makes of what clients send, it tells little about any one example, or any one client.

    Little is (epsilon, delta), between a client's data and the same without the example, or without all of it.
    """

    unit: Unit = Field(description="what is protected: every single example, or all that a client has")
    delta: float = Field(1e-5, gt=0, lt=1, description="of (epsilon, delta); at which epsilon is told")
    accountant: Literal["rdp", "prv"] = Field(
        "rdp",
        description="which of opacus's counts: rdp, by Renyi orders; prv, numerically, tighter and slower",
    )
    budget: float | None = Field(
        None, gt=0, description="epsilon that no client exceeds: before it would, it takes part no more"
    )

    @property
    def depends_on_rounds(self) -> bool:
        """It was planned, and noise was chosen, for as many rounds as the run has."""
        return True
