"""What comes in during a round: every answer is opened, its bytes are counted, and the log says what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import starmap

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.attendance import Attendance
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.clock.clock import RoundClock
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.inbox import Inbox
from fedfuse.federation.inspection import with_sound_metrics
from fedfuse.federation.views import Views

Answer = tuple[int, tuple[Update, Tensors] | None]
"""A client, its opened update and its new state; None if the update is refused."""


class Arrivals:
    """The answers to one round's tasks. ``bytes_up`` is what has travelled so far."""

    def __init__(
        self,
        engine: Engine,
        log: EventLog,
        views: Views,
        inbox: Inbox,
        attendance: Attendance,
        clock: RoundClock | None,
        has_wire: bool,
    ) -> None:
        self.engine, self.log, self.views, self.inbox = engine, log, views, inbox
        self.attendance, self.clock, self.has_wire = attendance, clock, has_wire
        self.bytes_up = 0
        self.turned_away: set[int] = set()
        """Who answered although nobody waited for it."""

    def in_time(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[Answer]:
        """The arrivals; where there is a clock, who was in time is known when all are there."""
        if self.clock is None:
            return self.all(tasks, states)
        arrived = dict(self.all(tasks, states))
        missed = self.clock.wait(tasks, self.views.public)
        for client, reason in missed.items():
            self.attendance.late(client, reason)
        return iter({**arrived, **dict.fromkeys(missed)}.items())

    def all(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[Answer]:
        """Each client's opened update and new state, as they come; None where it is refused."""
        open_tasks = {task.client: task for task in tasks}

        def open_one(update: Update, state: Tensors) -> Answer | None:
            task = open_tasks.pop(update.client, None) if isinstance(update.client, int) else None
            if task is None:
                self._turn_away(update)
                return None
            opened = self.inbox.opened(update, task)
            self._account(update, opened if isinstance(opened, str) else None)
            self.log.tick("clients", len(tasks) - len(open_tasks), len(tasks))
            return update.client, _if_sound(opened, state)

        self.log.tick("clients", 0, len(tasks))
        return filter(None, starmap(open_one, self._brought(tasks, states)))

    def again(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[Answer]:
        """The same, of tasks that were done before: nobody but the parts has to know, unless one fails now."""
        by_client = {task.client: task for task in tasks}

        def open_one(update: Update, state: Tensors) -> Answer | None:
            task = by_client.pop(update.client, None)
            if task is None:
                return None
            opened = self.inbox.opened(update, task)
            if isinstance(opened, str):
                self.attendance.refuse(update.client, opened)
            return update.client, _if_sound(opened, state)

        return filter(None, starmap(open_one, self._brought(tasks, states)))

    def _brought(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        """What the engine brings, with metrics that a log and a mean can take."""
        return starmap(lambda update, state: (with_sound_metrics(update), state), self.engine.train(tasks, states))

    def _turn_away(self, update: Update) -> None:
        """Nobody waits for this answer; the log says so once a round, however many come."""
        client = update.client if isinstance(update.client, int) else -1
        is_known = client in self.turned_away
        self.turned_away.add(client)
        self._account(replace(update, client=client), "answers a task that is not open", silently=is_known)

    def _account(self, update: Update, refused: str | None, silently: bool = False) -> None:
        """Whatever becomes of an update, it has travelled, and the log says what became of it."""
        size = update.nbytes if self.has_wire else 0
        self.bytes_up += size
        if self.clock:
            self.clock.arrived(update)
        if silently:
            return
        if refused is not None:
            self.attendance.refuse(update.client, refused, size)
            return
        self.log.emit(
            "client_finished", round=self.views.whole.round, client=update.client, prototype=update.prototype,
            examples=update.examples, bytes_up=size, metrics=dict(update.metrics),
        )  # fmt: skip


def _if_sound(opened: Update | str, state: Tensors) -> tuple[Update, Tensors] | None:
    return None if isinstance(opened, str) else (opened, state)
