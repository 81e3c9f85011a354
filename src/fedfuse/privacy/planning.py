"""Before round 1: what a run would cost every client if all goes as planned, and how much noise a budget needs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from fedfuse.core.errors import ConfigError
from fedfuse.core.releases import Release
from fedfuse.privacy.accountants import epsilon_of, merged
from fedfuse.privacy.claim import Claim, Visit

LEAST, MOST = 0.01, 1e5
"""Multipliers between which one is looked for."""
DIGITS = 4
"""Of a multiplier that was found, rounded up."""


@dataclass(frozen=True)
class Plan:
    """How often each client will take part, and how many examples each has."""

    visits: Mapping[int, int]
    sizes: Callable[[int], int]

    def epsilons(self, claim: Claim, clients: Iterable[int] | None = None) -> dict[int, float]:
        """What every client, or some of them, will have given away at the end."""
        settings = claim.settings
        known: dict[tuple[Release, ...], float] = {}
        each = {}
        for client in self.visits if clients is None else clients:
            releases = tuple(merged(self._releases(claim, client)))
            if releases not in known:
                known[releases] = epsilon_of(releases, settings.delta, settings.accountant)
            each[client] = known[releases]
        return each

    def _releases(self, claim: Claim, client: int) -> list[Release]:
        """Of all visits, of which the first may say more."""
        visit, against = Visit(client, self.sizes(client), claim.training), claim.against[0]
        first, later = claim.of(visit)[against], claim.of(replace(visit, is_asked=False))[against]
        return [*first, *(replace(one, times=one.times * (self.visits[client] - 1)) for one in later)]


def planned_visits(draw: Callable[[int], Iterable[int]], rounds: int) -> Counter[int]:
    """How often each client is drawn in so many rounds."""
    return Counter(client for number in range(1, rounds + 1) for client in draw(number))


def least_noise(plan: Plan, with_multiplier: Callable[[float], Claim]) -> float:
    """The smallest multiplier with which nobody exceeds the budget, rounded up.

    Who would exceed it first depends on the noise; so it is looked for among the suspects, and everybody is asked then.
    """
    settings = with_multiplier(1.0).settings
    assert settings.budget is not None, "asked only where there is one"
    suspects = {_worst(plan, with_multiplier(1.0))[0]}
    while True:
        found = _least_noise_for(suspects, plan, with_multiplier)
        if found is None:
            raise ConfigError(
                f"privacy.budget is {settings.budget:g}, which no noise can keep at delta {settings.delta:g}; raise "
                "it, or let what has a fixed amount of noise have more"
            )
        client, epsilon = _worst(plan, with_multiplier(found))
        if epsilon <= settings.budget or client in suspects:
            return found
        suspects.add(client)


def _least_noise_for(clients: Iterable[int], plan: Plan, with_multiplier: Callable[[float], Claim]) -> float | None:
    """By bisection; None if the most is too little."""

    def keeps(multiplier: float) -> bool:
        claim = with_multiplier(multiplier)
        return _worst(plan, claim, clients)[1] <= (claim.settings.budget or 0)

    low, high = LEAST, MOST
    if not keeps(high):
        return None
    while high / low > 1 + 10.0**-DIGITS / 2:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return rounded_up(high)


def _worst(plan: Plan, claim: Claim, clients: Iterable[int] | None = None) -> tuple[int, float]:
    each = plan.epsilons(claim, clients)
    return max(each.items(), key=lambda entry: entry[1])


def rounded_up(value: float) -> float:
    unit = 10.0 ** (math.floor(math.log10(value)) - DIGITS + 1)
    return float(f"{math.ceil(value / unit) * unit:.{DIGITS}g}")
