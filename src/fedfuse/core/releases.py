"""What leaves a client as a draw of the Gaussian mechanism, in the numbers that an accountant of privacy needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

AUTO: Final = "auto"
"""Left to fedfuse, which takes as much noise as the budget needs."""
Multiplier = Annotated[float, Field(gt=0)] | Literal["auto"]
"""Noise in units of what one example, or one client, can change."""


@dataclass(frozen=True, order=True)
class Release:
    """Noise of a standard deviation of ``multiplier`` times what one example, or one client, can change.

    ``rate`` is the probability with which the example was in it at all (Poisson sampling; 1: it was), and ``times`` how
    often the same was done.
    """

    multiplier: float
    rate: float = 1.0
    times: int = 1


def of_gaussian(epsilon: float, delta: float) -> Release:
    """What noise of sqrt(2 ln(1.25 / delta)) / epsilon times the sensitivity is: the classical Gaussian mechanism."""
    return Release(math.sqrt(2 * math.log(1.25 / delta)) / epsilon)


def check_one_measure(deviation: float | None, multiplier: float | str | None) -> None:
    """Noise is told in one way, and not in two or none."""
    if (deviation is None) == (multiplier is None):
        raise ValueError("noise has a deviation, or a multiplier of the clip norm; give one of them")
