"""Who is drawn when not everybody is there: absent clients are passed over, as by a server that knows who is there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fedfuse.core.randomness import Key
from fedfuse.federation.clock.devices import Devices
from fedfuse.federation.sampling import sample


@dataclass(frozen=True)
class Present:
    """The clients of a round, in ascending order, after the server has waited for the first of them to be there."""

    clients: list[int]
    waited: float = 0.0
    absent: int = 0


def draw_present(devices: Devices, clients: int, number: int, key: Key, now: float) -> Present:
    """So many clients that are there, or all that are, if they are fewer. If all are there, it is the usual draw."""
    chosen, absent, soonest = [], 0, math.inf
    for client in _in_random_order(clients, sample(clients, number, key), key.child("others")):
        comes_in = devices[client].comes_in(now)
        soonest = min(soonest, comes_in)
        absent += comes_in > 0
        if comes_in == 0:
            chosen.append(client)
        if len(chosen) == number:
            break
    if chosen:
        return Present(sorted(chosen), absent=absent)
    later = draw_present(devices, clients, number, key, _moment(now, soonest))
    return Present(later.clients, _moment(now, soonest) - now + later.waited, absent)


def _moment(now: float, wait: float) -> float:
    """A later one, however short the wait is beside the time that has passed."""
    return max(now + wait, math.nextafter(now, math.inf))


def _in_random_order(clients: int, first: Sequence[int], key: Key) -> Iterator[int]:
    """Some clients, and then all others, drawn one by one as they are asked for."""
    yield from first
    seen, random = set(first), key.numpy()
    while 2 * len(seen) < clients:
        client = int(random.integers(clients))
        if client not in seen:
            seen.add(client)
            yield client
    yield from random.permutation([client for client in range(clients) if client not in seen]).tolist()
