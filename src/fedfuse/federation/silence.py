"""What clients leave unsaid where their data is promised to be private: all that no noise was added to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Silence:
    """What a client tells of itself with every update, beside what the method's parts send."""

    tells_examples: bool = True
    """How many examples it has; else every update stands for one."""
    tells_metrics: bool = True
    """Its loss, its number of steps, and whether it diverged."""
    answers_tests: bool = True
    """What its own model says about the test inputs, if it is asked."""


SPEAKS = Silence()
