"""A workload: who takes part, and which numbers are put in relation to which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Numbers = Mapping[str, float]
SizeName = Literal["full", "small", "quick", "tiny"]
"""As the page of results has it; a few minutes for all workloads; less than one; for tests."""

PLAIN_LOOP = "plain loop"


@dataclass(frozen=True)
class Setup:
    """What a contender is told when it is its turn."""

    size: SizeName
    folder: Path
    """Where examples lie, and whatever else may be used again."""
    assignments: Sequence[str] = ()
    """Keys of fedfuse's experiments that are not as the workload has them."""


@dataclass(frozen=True)
class Outcome:
    """Numbers by name, and what fedfuse chose by itself."""

    numbers: Numbers
    chosen: str = ""


@dataclass(frozen=True)
class Contender:
    """Whoever does the work, in a process of its own."""

    name: str
    play: Callable[[Setup], Outcome] | None = None
    """None for a peer, who is started by ``command``."""
    all_cores: bool = False
    """Else it is held on one core, where processor time is what counts."""
    sizes: tuple[SizeName, ...] = ("full", "small", "tiny")
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    unusable: str = ""
    """Why there is no turn for it, in one sentence."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a number of one contender, divided by one of another in the same turn."""

    label: str
    contender: str
    number: str
    base: str | None = None
    """Whose number it is divided by; None: it stands by itself."""
    base_number: str | None = None
    """If it is another one."""
    unit: str = ""


@dataclass(frozen=True)
class Workload:
    """Contenders that do the same."""

    code: str
    title: str
    meaning: str
    """One sentence for whoever reads the ratios."""
    contenders: tuple[Contender, ...]
    rows: tuple[Row, ...]
    seconds: int = 300
    """After which a turn is given up."""

    def contender(self, name: str) -> Contender:
        return next(contender for contender in self.contenders if contender.name == name)
