"""One round's sums: each summand is added as it comes and forgotten; sums of too few are never looked at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fedfuse.core.messages import Task, Update
from fedfuse.federation.engine import Engine, Residues, WithheldError
from fedfuse.federation.sums.summation import (
    ACROSS,
    SUMMAND,
    Summation,
    UnsoundSumError,
    residues,
)
from fedfuse.parts.context import ServerView


@dataclass
class Sum:
    """What clients of one group came to so far."""

    total: Residues
    members: list[int] = field(default_factory=list)


class Summing:
    """The sums of the answers to these tasks; ``protocol`` is what that part sees."""

    def __init__(self, summation: Summation, tasks: Sequence[Task], protocol: ServerView) -> None:
        self.summation, self.protocol = summation, protocol
        self.tasks = {task.client: task for task in tasks}
        self.sums: dict[str, Sum] = {}

    def take(self, update: Update) -> Update:
        """Add it; what is left of it are numbers about it."""
        own, group = residues(update.extras[SUMMAND]), self.summation.group_of(update.prototype)
        if group in self.sums:
            self.sums[group].total += own
        else:
            self.sums[group] = Sum(own.copy())
        self.sums[group].members.append(update.client)
        return replace(update, extras={})

    @property
    def members(self) -> set[int]:
        """Everybody who is in a sum."""
        return {client for one in self.sums.values() for client in one.members}

    def drop(self) -> None:
        """Nothing is made of them."""
        self.sums = {}

    def without_small_ones(self, absent: Collection[int]) -> Iterator[str]:
        """Forget sums in which too few are hidden; why each was."""
        settings, groups = self.summation.settings, [self.summation.group_of(t.prototype) for t in self._asked(absent)]
        for group, one in list(self.sums.items()):
            asked, here = groups.count(group), len(one.members)
            if here < settings.needed(asked):
                del self.sums[group]
                yield (
                    f"only {here} of {asked} clients are in the sum{_of(group)}, and federation.secure_sums asks for "
                    f"{settings.needed(asked)}"
                )

    def _asked(self, absent: Collection[int]) -> Iterator[Task]:
        missing = set(absent)
        return (task for task in self.tasks.values() if task.client not in missing)

    def opened(self, engine: Engine, updates: list[Update]) -> Iterator[str]:
        """Look at the sums: put one update for each into ``updates``; why others could not be looked at."""
        for group, one in list(self.sums.items()):
            try:
                if (masks := engine.masks_of(one.members, one.total)) is not None:
                    one.total -= masks
                updates.append(self._together(one))
            except (WithheldError, UnsoundSumError) as error:
                del self.sums[group]
                yield f"the sum{_of(group)} of {len(one.members)} clients: {error}"

    def _together(self, one: Sum) -> Update:
        task = self.tasks[one.members[0]]
        expected = self.summation.recipe.protocol.expects(self.protocol, task)
        return self.summation.together(one.total, one.members, task, expected, self.protocol.bank)


def _of(group: str) -> str:
    return "" if group == ACROSS else f" of model '{group}'"
