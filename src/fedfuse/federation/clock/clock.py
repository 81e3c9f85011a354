"""The clock of a run. It depends on the experiment alone, never on how long anything really takes.

A round begins when somebody is there; it lasts until the server has the answers that it waits for, and has merged and
fused them. The server waits for each client that it invited until that one has answered or has gone away, until it has
as many answers as it wants, or until the deadline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fedfuse.core.messages import Task, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING
from fedfuse.federation.claims import examples_within_bounds
from fedfuse.federation.clock.availability import Present, draw_present
from fedfuse.federation.clock.devices import Device, Devices, DrawnDevices, SameDevice
from fedfuse.federation.clock.record import ClockRecord
from fedfuse.federation.clock.settings import ClockSettings
from fedfuse.federation.clock.trace import read_trace
from fedfuse.federation.clock.work import RoundWork
from fedfuse.federation.inspection import unsound_number
from fedfuse.federation.settings import Trust
from fedfuse.federation.state import RoundRecord
from fedfuse.parts.screen import Screened
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Clock:
    """Everybody's device, the server, and how to count work."""

    settings: ClockSettings
    devices: Devices
    work: RoundWork

    @staticmethod
    def of(settings: ClockSettings, work: RoundWork, key: Key) -> Clock:
        """A party that has everybody's examples computes where the server is."""
        if work.recipe.pooled:
            return Clock(settings, SameDevice(Device(settings.server.speed, math.inf, math.inf)), work)
        if settings.trace is not None:
            return Clock(settings, read_trace(Path(settings.trace), settings.period), work)
        return Clock(settings, DrawnDevices(settings.devices, settings.period, key.child("clock", "device")), work)

    def draw(self, clients: int, wanted: int, key: Key, now: float) -> Present:
        """Who is invited to a round that begins now."""
        invited = min(clients, math.ceil(wanted * self.settings.invite))
        return draw_present(self.devices, clients, invited, key, now)


class RoundClock:
    """The clock in one round. It lives as long as the round."""

    def __init__(self, clock: Clock, history: Sequence[RoundRecord], wanted: int, claims: Trust = "bounded") -> None:
        """After these rounds; so many clients are wanted in each."""
        self.clock, self.history, self.wanted, self.claims = clock, history, wanted, claims
        self.present = Present([])
        self.waiting = 0.0
        self.missed: dict[int, str] = {}
        self._arrived: dict[int, tuple[Update, int]] = {}

    @property
    def now(self) -> float:
        """When the clients of this round begin."""
        return self._began(len(self.history) + 1) + self.present.waited

    def _began(self, number: int) -> float:
        """The time at the end of the round before."""
        before = self.history[number - 2].clock if number > 1 else None
        return before.total if before else 0.0

    def draw(self, number: int, clients: int, key: Key) -> list[int]:
        """Who was invited to a round, this one or an earlier one."""
        present = self.clock.draw(clients, self.wanted, key, self._began(number))
        if number == len(self.history) + 1:
            self.present = present
        return present.clients

    def arrived(self, update: Update) -> None:
        """An answer is there as it was sent, whatever it is worth; of it, the numbers are kept."""
        examples = 0 if unsound_number(update.examples) else update.examples
        light = replace(update, weights=NOTHING, examples=examples, extras={}, test_outputs={})
        self._arrived.setdefault(update.client, (light, update.nbytes))

    def _needs(self, task: Task, examples: int, public: Source | None) -> float:
        """How long a client took for its answer, with so many examples."""
        update, size = self._arrived[task.client]
        update = replace(update, examples=examples)
        operations = self.clock.work.of_client(task, update, public)
        return self.clock.devices[task.client].seconds(task.nbytes, operations, size)

    def wait(self, tasks: Sequence[Task], public: Source | None) -> Mapping[int, str]:
        """Wait for the clients, and say who does not count and why; ``public`` are the round's public inputs."""
        answered = [task for task in tasks if task.client in self._arrived]
        claimed = [self._arrived[task.client][0].examples for task in answered]
        examples = examples_within_bounds(claimed) if self.claims == "bounded" else claimed
        needed = {task.client: self._needs(task, own, public) for task, own in zip(answered, examples, strict=True)}
        latest = self.clock.settings.deadline or math.inf
        stays = {client: self.clock.devices[client].leaves_in(self.now) for client in needed}
        ready = [client for client in needed if needed[client] <= min(stays[client], latest)]
        counted = sorted(ready, key=lambda client: (needed[client], client))[: self.wanted]
        gone_or_ready = max((min(needed[client], stays[client]) for client in needed), default=0.0)
        self.waiting = needed[counted[-1]] if len(counted) == self.wanted else min(latest, gone_or_ready)
        self.missed = {c: self._reason(needed[c], stays[c]) for c in sorted(needed.keys() - set(counted))}
        return self.missed

    def _reason(self, needed: float, stays: float) -> str:
        if stays < needed and stays <= self.waiting:
            return f"left after {stays:.6g} of the {needed:.6g} s that it needed"
        return f"late: needed {needed:.6g} s, the server went on after {self.waiting:.6g} s"

    def record(
        self, screened: Screened, report: Mapping[str, Mapping[str, float]], public: Source | None
    ) -> ClockRecord:
        """The whole round; ``report`` is the fusion's."""
        server = self.clock.work.of_server(screened, report, public) / self.clock.settings.server.speed
        left = tuple(client for client, reason in self.missed.items() if reason.startswith("left"))
        return ClockRecord(
            total=self.now + self.waiting + server,
            seconds=self.present.waited + self.waiting + server,
            waited=self.present.waited,
            clients=self.waiting,
            server=server,
            absent=self.present.absent,
            late=tuple(client for client in self.missed if client not in left),
            left=left,
        )
