"""Epsilon of what a party has released, by the accountants of opacus (Yousefpour et al., 2021).

    rdp   Renyi differential privacy of the sampled Gaussian mechanism (Mironov, Talwar and Zhang, 2019)
    prv   numerical composition of privacy loss random variables (Gopi, Lee and Wutschitz, 2021): an upper bound that is
          at most 0.01 above

Both take releases whose examples were drawn by Poisson sampling, each by itself. Gaussian releases without sampling
compose exactly: multipliers z_1, z_2, ... are one of (sum 1 / z_i^2)^(-1/2).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import MissingExtraError
from fedfuse.core.releases import Release

Name = Literal["rdp", "prv"]
HIGH_ORDERS = (64, 72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024)
"""Beyond those of opacus, for much noise: without them small epsilons would be told too large."""
LEAST_NOISE, MOST_NOISE, LEAST_RATE = 1e-4, 1e5, 1e-7
"""Beyond these the arithmetic of orders fails. Less noise is none; more, and rarer draws, count as just this."""
MOST_BY_PRV, MOST_STEPS = 60.0, 20_000
"""Of epsilon and of releases: above them tightness is worth little, and the numbers that prv works on become many."""


def epsilon_of(releases: Sequence[Release], delta: float, accountant: Name) -> float:
    """What they come to together; infinite if one of them had no noise."""
    composed = tuple(sorted(merged(releases)))
    if not composed:
        return 0.0
    if any(release.multiplier == 0 for release in composed):
        return math.inf
    by_orders = _by_orders(composed, delta)
    is_much = by_orders > MOST_BY_PRV or sum(release.times for release in composed) > MOST_STEPS
    return by_orders if accountant == "rdp" or is_much else min(by_orders, _by_numbers(composed, delta))


def merged(releases: Sequence[Release]) -> list[Release]:
    """The same in fewer: equal ones together, and of those that were not sampled one alone."""
    times: dict[tuple[float, float], int] = {}
    whole = 0.0
    for release in releases:
        multiplier, rate = min(release.multiplier, MOST_NOISE), max(release.rate, LEAST_RATE)
        if rate == 1 and multiplier >= LEAST_NOISE:
            whole += release.times / multiplier**2
        else:
            key = multiplier if multiplier >= LEAST_NOISE else 0.0, rate
            times[key] = times.get(key, 0) + release.times
    sampled = [Release(multiplier, rate, number) for (multiplier, rate), number in times.items()]
    return [*sampled, *([Release(1 / math.sqrt(whole))] if whole else [])]


def check_accountants() -> None:
    """Refuse to promise anything where nobody can count it."""
    _opacus()


@lru_cache(maxsize=65536)
def _by_orders(releases: tuple[Release, ...], delta: float) -> float:
    analysis, orders = _opacus().analysis.rdp, _orders()
    curve = sum(release.times * _curve(release.multiplier, release.rate) for release in releases)
    with _quietly():
        epsilon, _ = analysis.get_privacy_spent(orders=list(orders), rdp=curve, delta=delta)
    return max(0.0, float(epsilon))


@lru_cache(maxsize=65536)
def _curve(multiplier: float, rate: float) -> NDArray[np.float64]:
    """The Renyi divergence of one release at all orders."""
    with _quietly():
        found = _opacus().analysis.rdp.compute_rdp(q=rate, noise_multiplier=multiplier, steps=1, orders=list(_orders()))
    return np.maximum(np.asarray(found, dtype=np.float64), 0.0)


@lru_cache(maxsize=4096)
def _by_numbers(releases: tuple[Release, ...], delta: float) -> float:
    accountant = _opacus().PRVAccountant()
    accountant.history = [(release.multiplier, release.rate, release.times) for release in releases]
    try:
        with _quietly():
            return max(0.0, float(accountant.get_epsilon(delta)))
    except (ValueError, RuntimeError):  # a delta or a mixture that its grid cannot resolve
        return math.inf


@lru_cache(maxsize=1)
def _orders() -> tuple[float, ...]:
    return (*_opacus().RDPAccountant.DEFAULT_ALPHAS, *HIGH_ORDERS)


@lru_cache(maxsize=1)
def _opacus() -> Any:
    try:
        with _quietly():
            import opacus.accountants
            import opacus.accountants.analysis.rdp
    except ImportError as error:
        raise MissingExtraError("a promise of privacy has to be counted, which", "privacy") from error
    return opacus.accountants


@contextmanager
def _quietly() -> Iterator[None]:
    """It warns of logarithms of zero that it means, and of orders that could be finer."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
