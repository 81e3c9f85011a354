"""Who runs which architecture: blocks of neighbouring clients, so that a million of them take no more room than ten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.federation.settings import FederationSettings

Block = tuple[str, int]
"""A prototype, and how many clients in a row run it."""


class Prototypes(Sequence[str]):
    """The prototype that each client runs."""

    def __init__(self, blocks: Iterable[Block]) -> None:
        names, sizes = zip(*((name, size) for name, size in blocks if size), strict=True)
        self._names = np.array(names)
        self._ends = np.cumsum(sizes)
        counts = Counter[str]()
        for name, size in zip(names, sizes, strict=True):
            counts[name] += size
        self.clients_of: Mapping[str, int] = MappingProxyType(counts)
        """How many clients run each of them."""

    def but(self, changed: Mapping[int, str]) -> Prototypes:
        """The same, with some clients that run another one."""
        if not changed:
            return self
        names = (changed.get(client, name) for client, name in enumerate(self[:]))
        return Prototypes((name, len(list(own))) for name, own in groupby(names))

    def of(self, clients: NDArray[Any]) -> NDArray[np.str_]:
        """The prototypes of some clients."""
        return self._names[np.searchsorted(self._ends, clients, side="right")]

    @overload
    def __getitem__(self, client: int) -> str: ...
    @overload
    def __getitem__(self, client: slice) -> list[str]: ...
    def __getitem__(self, client: int | slice) -> str | list[str]:
        found: str | list[str] = self.of(np.asarray(range(len(self))[client])).tolist()
        return found

    def __len__(self) -> int:
        return int(self._ends[-1])


def prototypes_of(prototypes: Sequence[str], settings: FederationSettings, clients: int) -> Prototypes:
    """Each client's prototype: as named one by one, or in blocks proportional to the shares (FedDF: 7 + 7 + 7)."""
    if not settings.assigned:
        return Prototypes(zip(prototypes, _sizes(prototypes, settings, clients), strict=True))
    for name in settings.assigned:
        if name not in prototypes:
            raise ConfigError(f"federation.assigned: {unknown('model', name, prototypes)}")
    if len(settings.assigned) != clients:
        raise ConfigError(f"federation.assigned names {len(settings.assigned)} models for {clients} clients")
    return Prototypes((name, len(list(own))) for name, own in groupby(settings.assigned))


def _sizes(prototypes: Sequence[str], settings: FederationSettings, clients: int) -> list[int]:
    """How many clients run each prototype."""
    strangers = set(settings.shares) - set(prototypes)
    if strangers:
        raise ConfigError(f"federation.shares names '{min(strangers)}', but models has {', '.join(prototypes)}")
    parts = [settings.shares.get(name, 1) for name in prototypes]
    if not sum(parts):
        raise ConfigError("federation.shares leaves no model for the clients: every share is 0")
    if clients < len(prototypes) - parts.count(0):
        raise ConfigError(f"{len(prototypes)} models need at least as many clients, but the partition has {clients}")
    borders = [round(clients * sum(parts[: i + 1]) / sum(parts)) for i in range(len(parts))]
    sizes = [end - start for start, end in zip([0, *borders[:-1]], borders, strict=True)]
    for name, part, size in zip(prototypes, parts, sizes, strict=True):
        if part and not size:
            raise ConfigError(f"federation.shares leaves no client for model '{name}' among {clients} clients")
    return sizes
