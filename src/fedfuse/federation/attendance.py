"""Which of a round's clients are missing in it, and the one word that fits each: absent, late or refused.

Absent clients were not there and were sent nothing. Late ones did not answer in time. A refused update came and was not
sound. (Who is screened was heard, and counts for nothing by the method's own choice.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fedfuse.core.messages import Task, Update
from fedfuse.federation.engine import Engine, Missed, QuorumError
from fedfuse.federation.events import EventLog

SILENT = Missed("late", "no answer came")


class Attendance:
    """One round's; the log hears of everybody who is missing, with the reason."""

    def __init__(self, number: int, log: EventLog) -> None:
        self.number, self.log = number, log
        self.missing: dict[int, Missed] = {}

    def refuse(self, client: int, reason: str, bytes_up: int = 0) -> None:
        """An update is not sound; ``bytes_up`` is its size, where that was not counted before."""
        self.missing.setdefault(client, Missed("refused", reason))
        self.log.emit("update_refused", round=self.number, client=client, reason=reason, bytes_up=bytes_up)

    def late(self, client: int, reason: str) -> None:
        """A client needed too long, or went away before it was ready, whatever its update was like."""
        self.missing[client] = Missed("late", reason)
        self.log.emit("client_late", round=self.number, client=client, reason=reason)

    def close(self, asked: Collection[int], heard: Collection[int], missed: Mapping[int, Missed]) -> None:
        """Everybody who was ``asked`` was ``heard`` or is missing; ``missed`` is what the engine knows about them."""
        known = self.missing
        self.missing = {}
        for client in sorted(set(asked) - set(heard)):
            if client in known:
                self.missing[client] = known[client]
                continue
            why = missed.get(client, SILENT)
            if why.word == "refused":
                self.refuse(client, why.reason)
                continue
            self.missing[client] = why
            self.log.emit(f"client_{why.word}", round=self.number, client=client, reason=why.reason)

    def call_the_roll(self, engine: Engine, tasks: Sequence[Task], updates: Sequence[Update]) -> None:
        """Say who is missing of those with a task; with too few left, the run stops."""
        for event, fields in engine.news():
            self.log.emit(event, round=self.number, **fields)
        self.close({task.client for task in tasks}, {update.client for update in updates}, engine.missed())
        asked, why = len(tasks), self.in_words()
        if len(updates) < engine.quorum * asked:
            raise QuorumError(
                f"round {self.number}: {len(updates)} of {asked} updates count ({why}), engine.quorum asks for "
                f"{engine.quorum:.0%}; finished rounds are kept, start the app again to go on"
            )
        if not updates:
            self.log.emit("nobody_counted", round=self.number, asked=asked, reason=why)
        elif (refused := len(self.who("refused"))) > len(updates):
            self.log.emit("mostly_refused", round=self.number, refused=refused, answers=refused + len(updates))

    def who(self, word: str) -> tuple[int, ...]:
        """The clients for whom a word fits."""
        return tuple(sorted(client for client, why in self.missing.items() if why.word == word))

    def in_words(self) -> str:
        """How many are missing, by word."""
        counts = {word: len(self.who(word)) for word in ("absent", "late", "refused")}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count)
