"""What the parts of a server remember from round to round; what nobody could work with is not remembered."""

from __future__ import annotations

from collections.abc import Mapping

from fedfuse.core.messages import Tensors
from fedfuse.federation.absurd import unsound
from fedfuse.federation.events import EventLog


class Memories:
    """All of them in one round, by the part's address: each is as it was before until it is that part's turn."""

    def __init__(self, number: int, before: Mapping[str, Tensors], log: EventLog) -> None:
        self.number, self.log = number, log
        self.all = dict(before)

    def of(self, part: str) -> Tensors:
        return self.all.get(part, {})

    def remember(self, part: str, memory: Tensors, nan_is_no_value: bool = False) -> None:
        """For the next round, unless nobody could work with it: then what there was before stays."""
        if name := unsound(memory, self.of(part), nan_is_no_value):
            reason = f"'{name}' was not finite or far too large; kept: what it remembered before"
            self.log.emit("memory_diverged", round=self.number, part=part, reason=reason)
        else:
            self.keep(part, memory)

    def keep(self, part: str, memory: Tensors) -> None:
        self.all.pop(part, None)
        if memory:
            self.all[part] = memory
