"""What a screen is: the round's updates into the updates that count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from fedfuse.core.messages import Update
from fedfuse.core.part import Part
from fedfuse.runtime.view import ServerView


@dataclass(frozen=True)
class Screened:
    """Who is merged, who teaches, and why the others do not."""

    counted: Sequence[Update]
    teachers: Sequence[Update]
    reasons: Mapping[int, str] = field(default_factory=dict)


class Screen(Part):
    """Updates to the updates that count. The validity check is not a screen: it is always on."""

    needs_validation: ClassVar[bool] = False

    @abstractmethod
    def screen(self, view: ServerView, updates: Screened) -> Screened:
        """Narrow down; never to nobody."""
