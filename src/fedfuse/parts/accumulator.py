"""Parts that take a round's updates one by one, so that nobody has to hold them all.

A part that works on all updates of a round at once (``Merge.merge``, ``Objective.after_round``) may also say how it
takes them one by one: ``accumulator``. The round then forgets each update when it was taken. Whoever overrides what is
done with all updates, and not the accumulator, is given all of them at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from fedfuse.core.messages import Update
from fedfuse.parts.base import MethodPart


class Accumulator(ABC):
    """What one round's updates come to, in one part."""

    @abstractmethod
    def add(self, update: Update) -> None:
        """Take the next update; they come in client order."""


def takes_one_by_one(part: MethodPart, *all_at_once: str) -> bool:
    """Whether no class has changed what is done with all updates since the part's accumulator was written."""
    for base in type(part).__mro__:
        if "accumulator" in vars(base):
            return True
        if any(method in vars(base) for method in all_at_once):
            return False
    return False
