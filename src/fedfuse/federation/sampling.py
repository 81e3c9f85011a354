"""Client sampling and participation: who takes part in a round, and who runs which architecture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedfuse.core.errors import ConfigError, unknown
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


def prototype_of(prototypes: Sequence[str], settings: FederationSettings, clients: int) -> list[str]:
    """Each client's prototype: as named one by one, or in blocks."""
    if not settings.assigned:
        return assign_prototypes(prototypes, settings.shares, clients)
    for name in settings.assigned:
        if name not in prototypes:
            raise ConfigError(f"federation.assigned: {unknown('model', name, prototypes)}")
    if len(settings.assigned) != clients:
        raise ConfigError(f"federation.assigned names {len(settings.assigned)} models for {clients} clients")
    return list(settings.assigned)


def assign_prototypes(prototypes: Sequence[str], shares: Mapping[str, int], clients: int) -> list[str]:
    """Each client's prototype, in contiguous blocks proportional to the shares (FedDF: 7 + 7 + 7)."""
    strangers = set(shares) - set(prototypes)
    if strangers:
        raise ConfigError(f"federation.shares names '{min(strangers)}', but models has {', '.join(prototypes)}")
    parts = [shares.get(name, 1) for name in prototypes]
    if not sum(parts):
        raise ConfigError("federation.shares leaves no model for the clients: every share is 0")
    if clients < len(prototypes) - parts.count(0):
        raise ConfigError(f"{len(prototypes)} models need at least as many clients, but the partition has {clients}")
    borders = [round(clients * sum(parts[: i + 1]) / sum(parts)) for i in range(len(parts))]
    blocks = [end - start for start, end in zip([0, *borders[:-1]], borders, strict=True)]
    for name, part, block in zip(prototypes, parts, blocks, strict=True):
        if part and not block:
            raise ConfigError(f"federation.shares leaves no client for model '{name}' among {clients} clients")
    return [name for name, block in zip(prototypes, blocks, strict=True) for _ in range(block)]
