"""A client's device: how long it takes for a task, and when it is there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fedfuse.core.randomness import Key
from fedfuse.federation.clock.settings import DeviceSettings

Interval = tuple[float, float]


@dataclass(frozen=True)
class Device:
    """Operations and bytes per second, and the parts of each period in which it is there; none: always.

    Intervals are in order, do not overlap and lie within the period; one that ends with the period goes on in the next
    if that begins with one.
    """

    speed: float
    down: float
    up: float
    latency: float = 0.0
    present: tuple[Interval, ...] = ()
    period: float = math.inf

    def seconds(self, bytes_down: float, operations: float, bytes_up: float) -> float:
        """From the moment at which the server has a task until it has the answer."""
        return 2 * self.latency + bytes_down / self.down + operations / self.speed + bytes_up / self.up

    def comes_in(self, now: float) -> float:
        """Seconds until it is there: 0 if it is."""
        if not self.present:
            return 0.0
        time = now % self.period
        waits = [max(0.0, begin - time) for begin, end in self.present if time < end]
        return min(waits, default=self.period - time + self.present[0][0])

    def leaves_in(self, now: float) -> float:
        """Seconds until it is gone, of one that is there."""
        if not self.present:
            return math.inf
        time = now % self.period
        for begin, end in self.present:
            if begin <= time < end:
                return end - time + self._goes_on(end)
        return 0.0

    def _goes_on(self, end: float) -> float:
        begins, ends = self.present[0]
        if end < self.period or begins > 0:
            return 0.0
        return math.inf if ends >= self.period else ends


class Devices(Protocol):
    """Every client's device, made when it is asked for, so that a million clients cost nothing."""

    def __getitem__(self, client: int) -> Device: ...


@dataclass(frozen=True)
class DrawnDevices:
    """Devices by the seed; a client has the same one in every round."""

    settings: DeviceSettings
    period: float
    key: Key

    def __getitem__(self, client: int) -> Device:
        speed, down, up, latency, share, phase = self.key.child(client).numpy().random(6).tolist()
        drawn = self.settings
        return Device(
            speed=drawn.speed.at(speed),
            down=drawn.down.at(down),
            up=drawn.up.at(up),
            latency=drawn.latency.at(latency),
            present=_one_stretch(drawn.present.at(share) * self.period, phase * self.period, self.period),
            period=self.period,
        )


@dataclass(frozen=True)
class ListedDevices:
    """Devices one after another; with more clients than devices, the first ones are had again."""

    devices: Sequence[Device]

    def __getitem__(self, client: int) -> Device:
        return self.devices[client % len(self.devices)]


@dataclass(frozen=True)
class SameDevice:
    """Everybody's device is this one."""

    device: Device

    def __getitem__(self, client: int) -> Device:
        return self.device


def _one_stretch(length: float, begin: float, period: float) -> tuple[Interval, ...]:
    """One stay of this length in each period, which may reach into the next one."""
    if length >= period:
        return ()
    end = begin + length
    return ((begin, end),) if end <= period else ((0.0, end - period), (begin, period))
