"""Privacy in one round: who may take part in it, whether what came may be put together, and what it has cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from fedfuse.core.messages import Task, Update
from fedfuse.federation.accounting import BOOKS, Accounting, Attended, PrivacyRecord
from fedfuse.federation.events import EventLog
from fedfuse.federation.memories import Memories
from fedfuse.federation.recipe import SCORES, Recipe
from fedfuse.parts.screen import Screened


class Bookkeeping:
    """One round's; without an accountant, nothing is promised and nothing happens."""

    def __init__(
        self,
        number: int,
        recipe: Recipe,
        accounting: Accounting | None,
        memories: Memories,
        log: EventLog,
        is_last: bool,
    ) -> None:
        self.number, self.recipe, self.accounting, self.memories, self.log = number, recipe, accounting, memories, log
        self.is_last = is_last

    def with_budget(self, planned: Mapping[int, str]) -> Mapping[int, str]:
        """Of the clients that were drawn, those that can bear another round."""
        spent = self._spent(planned)
        return {client: prototype for client, prototype in planned.items() if client not in spent} if spent else planned

    def given(
        self, tasks: Sequence[Task], absent: Collection[int], updates: Sequence[Update], counted: Collection[int]
    ) -> list[Attended]:
        """Whose answers may have left them, whatever became of them here; ``counted`` are in what is made of them."""
        if self.accounting is None:
            return []
        said = {update.client: update.examples for update in updates}
        parties = Counter(task.prototype for task in tasks)  # absent ones were counted when it was said
        return [
            Attended(
                self.number, t.client, t.prototype, SCORES in t.asks, said.get(t.client), t.client in counted,
                parties[t.prototype],
            )
            for t in tasks
            if t.client not in absent
        ]  # fmt: skip

    def added(self, screened: Screened) -> set[int]:
        """Whose updates are in what the server makes of all of them."""
        added = screened.teachers if self.recipe.protocol.carries == "predictions" else screened.counted
        return {update.client for update in added}

    def objects_to(self, given: list[Attended]) -> bool:
        """Whether too few came for what they sent to be put together: then it is not, and the books say so."""
        reason = self.accounting.objection(self.memories.of(BOOKS), given) if self.accounting else None
        if reason is None:
            return False
        self.log.emit("sum_withheld", round=self.number, reason=reason)
        given[:] = [replace(one, is_counted=False) for one in given]
        return True

    def close(self, given: Sequence[Attended]) -> PrivacyRecord | None:
        """Enter the round into the books; the log hears of everybody who cannot bear another one."""
        if self.accounting is None:
            return None
        self.memories.keep(BOOKS, self.accounting.after(self.memories.of(BOOKS), given))
        for client in () if self.is_last else sorted(self._spent([one.client for one in given])):
            self.log.emit("client_spent", round=self.number, client=client)
        return self.accounting.record(self.memories.of(BOOKS))

    def _spent(self, clients: Collection[int]) -> set[int]:
        return self.accounting.spent(self.memories.of(BOOKS), clients) if self.accounting else set()
