"""What a screen (client filtering, robust aggregation) is: the round's updates into the updates that count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedfuse.core.messages import Update
from fedfuse.parts.base import MethodPart
from fedfuse.parts.context import ServerView


@dataclass(frozen=True)
class Screened:
    """Who is merged, who teaches, and why the others do not."""

    counted: Sequence[Update]
    teachers: Sequence[Update]
    reasons: Mapping[int, str] = field(default_factory=dict)


class Screen(MethodPart):
    """Client filtering: updates to the updates that count. The validity check is not a screen: it is always on."""

    @abstractmethod
    def screen(self, view: ServerView, updates: Screened) -> Screened:
        """Narrow down; never to nobody."""
