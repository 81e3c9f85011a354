"""Client sampling and participation: who takes part in a round."""

from __future__ import annotations

from collections.abc import Sequence

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.federation.settings import FederationSettings


def clients_per_round(settings: FederationSettings, clients: int) -> int:
    """The number of clients sampled in each round."""
    if settings.clients_per_round is None:
        return max(1, round(clients * settings.participation))
    if settings.clients_per_round > clients:
        raise ConfigError(
            f"federation.clients_per_round is {settings.clients_per_round}, but the partition has {clients} clients"
        )
    return settings.clients_per_round


def pooled(settings: FederationSettings, prototypes: Sequence[str]) -> FederationSettings:
    """One party per model, all of them in every round: what a federation without federation is."""
    parties = tuple(name for name in prototypes if settings.shares.get(name, 1))
    return settings.model_copy(
        update={"participation": 1.0, "clients_per_round": None, "shares": {}, "assigned": parties}
    )


def sample(clients: int, number: int, key: Key) -> list[int]:
    """Draw ``number`` clients without replacement, in ascending order."""
    return sorted(int(c) for c in key.numpy().choice(clients, size=number, replace=False))
