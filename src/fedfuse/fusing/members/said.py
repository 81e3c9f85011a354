"""What the caller says of a trained model: what its files leave open, or what they have wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fedfuse.core.errors import ConfigError
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.class_names import telling
from fedfuse.fusing.members.inputs import Normalise
from fedfuse.models import Architecture

Gives = Literal["logits", "probabilities"]
Arch = str | Mapping[str, Any] | Architecture


@dataclass(frozen=True)
class Said:
    """None: what the file says, or else what its reader takes for granted and notes."""

    name: str
    """What tables and errors call it."""
    arch: Arch | None = None
    normalise: Normalise | None = None
    classes: Sequence[str] | int | None = None
    """Their names in the order of the outputs, or how many there are."""
    licence: str | None = None
    shape: tuple[int, ...] | None = None
    gives: Gives | None = None
    reads: InputKind | None = None
    trust_own_code: bool = False
    base: str | Path | None = None
    """Of an adapter: the folder of the model that it was trained from."""

    def __post_init__(self) -> None:
        if isinstance(self.classes, str) or (isinstance(self.classes, int) and self.classes < 2):
            raise ConfigError(f"{self.name}: classes should be a list of names, or how many there are, at least 2")
        shape = self.shape
        if shape is not None and (len(shape) not in (1, 3) or not all(type(n) is int and n > 0 for n in shape)):
            raise ConfigError(f"{self.name}: shape should be channels, height and width, or one number of columns")

    @property
    def class_count(self) -> int | None:
        """How many classes the caller counts."""
        return self.classes if isinstance(self.classes, int | None) else len(self.classes)

    def class_names(self, count: int, found: Sequence[str] | None = None) -> tuple[str, ...] | None:
        """What the caller calls the classes, or else the file; None for nothing but numbers and placeholders."""
        if self.class_count not in (None, count):
            raise ConfigError(f"{self.name} has {count} classes, and not {self.class_count}")
        if self.classes is None or isinstance(self.classes, int):
            return None if found is None else telling(found)
        names = tuple(map(str, self.classes))
        if len(set(names)) != len(names):
            raise ConfigError(f"{self.name}: classes names one class twice")
        return names
