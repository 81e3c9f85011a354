"""What single clients bring, within bounds that the round's others set: what they claim, and how they move.

Bounds come before the method's own ``screen``, and are no substitute for one: they contain a single client that is
nothing like the others, and leave a round in which nobody is as it was, bit for bit (docs/robustness.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fedfuse.core.messages import Task, Update
from fedfuse.federation.asking import Asked
from fedfuse.federation.claims import Claims
from fedfuse.federation.events import EventLog
from fedfuse.federation.memories import Memories
from fedfuse.federation.moves import ANSWERS, MOVES, Judged, Known, Moves
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.settings import FederationSettings
from fedfuse.federation.state import History
from fedfuse.parts.context import ServerView
from fedfuse.parts.screen import Screened


class Bounds:
    """One round's. Of each kind, ``claims_bounded`` and ``moves_bounded`` are the clients that counted for less."""

    def __init__(
        self, recipe: Recipe, settings: FederationSettings, tasks: Sequence[Task], view: ServerView, memories: Memories
    ) -> None:
        self.memories = memories
        self.tasks = {task.client: task for task in tasks}
        self.claims = Claims(recipe, settings.claims)
        key = view.common.child(MOVES)
        is_asked = settings.moves == "bounded" and recipe.fuse.reads == "weights" and view.source is not None
        asked = Asked(view, len(tasks), key.child(ANSWERS)) if is_asked else None
        self.moves = Moves(self.tasks, recipe.local, key, settings.moves, asked)
        self.judged = Judged()

    @property
    def claims_bounded(self) -> tuple[int, ...]:
        return tuple(sorted(self.claims.reasons))

    @property
    def moves_bounded(self) -> tuple[int, ...]:
        return tuple(sorted(self.judged.shortened))

    def judge(self, updates: Sequence[Update]) -> bool:
        """Look at the moves of those that are left; whether any of them is not to count as it came."""
        known = Known.of(self.memories, {task.prototype for task in self.tasks.values()})
        self.judged = self.moves.judged({update.client for update in updates}, known)
        return bool(self.judged)

    def counted(self, updates: Sequence[Update], hold: Callable[[Update], Update]) -> Screened:
        """The updates as they count; ``hold`` takes those that are new."""
        claimed = self.claims.within_bounds(updates)
        moved = [self._moved(update, hold) for update in claimed]
        against = {**self.claims.unlike_the_others(claimed), **self.judged.against}
        rest = [update for update in moved if update.client not in against] if against else moved
        return Screened(rest, rest, against)

    def _moved(self, update: Update, hold: Callable[[Update], Update]) -> Update:
        moved = self.judged.within_bounds(update, self.tasks[update.client].weights)
        return update if moved is update else hold(moved)

    def remember(self) -> None:
        """Where to clients went, and how far, for the next round."""
        self.judged.known.keep(self.memories)

    def tell(self, log: EventLog, number: int, history: History) -> None:
        """A client that stands out in every round is told of once."""
        _tell(log, number, "claim_bounded", self.claims.reasons, history.claims_bounded)
        _tell(log, number, "move_bounded", self.judged.shortened, history.moves_bounded)


def _tell(log: EventLog, number: int, event: str, reasons: Mapping[int, str], known: set[int]) -> None:
    for client, reason in sorted(reasons.items()):
        if client not in known:
            log.emit(event, round=number, client=client, reason=reason)
