"""What a screen (client filtering, robust aggregation) is: the round's updates into the updates that count."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

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
    """Client filtering: updates to the updates that count. The validity check is not a screen: it is always on.

    Small clients are merged, but do not teach:

    >>> class LargeTeachers(fedfuse.Screen):
    ...     examples: int = 50
    ...
    ...     def screen(self, view, updates):
    ...         small = {u.client: "few examples" for u in updates.teachers if u.examples < self.examples}
    ...         teachers = [u for u in updates.teachers if u.client not in small]
    ...         reasons = {**updates.reasons, **small}
    ...         return fedfuse.Screened(updates.counted, teachers, reasons) if teachers else updates
    """

    compares_weights: ClassVar[bool] = False
    """Whether it compares clients' weights with each other or with what they were sent, number by number."""

    @abstractmethod
    def screen(self, view: ServerView, updates: Screened) -> Screened:
        """Narrow down; never to nobody."""


def without(updates: Screened, reasons: Mapping[int, str]) -> Screened:
    """The updates of all clients but these, who are neither merged nor teach."""
    return Screened(
        [update for update in updates.counted if update.client not in reasons],
        [update for update in updates.teachers if update.client not in reasons],
        {**updates.reasons, **reasons},
    )
