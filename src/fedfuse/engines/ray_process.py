"""What a Ray process does: it takes jobs as parcels, and keeps clients and what jobs share between them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fedfuse.engines.parcels import Bytes, Parcel, unpack
from fedfuse.engines.ray_ticks import Teller
from fedfuse.engines.worker import answer, warm_up
from fedfuse.local import Clients
from fedfuse.runtime.hands import silence


def work(clients: list[Any], common: list[Any], parcel: Parcel, ticks: Any | None) -> Parcel:
    """The Ray task. References come in lists, because Ray replaces bare ones by what they stand for, every time."""
    everybody, lasting = _kept_clients(clients[0])
    progress = silence if ticks is None else Teller(ticks)
    return answer(everybody, copied(parcel), _kept_common(common[0]), lasting, progress)


def copied(parcel: Parcel) -> Parcel:
    """A parcel out of the object store, whose memory cannot be written to."""
    return Parcel(parcel.note, _copies(parcel.tensors))


@lru_cache(maxsize=1)
def _kept_clients(reference: Any) -> tuple[Clients, Sequence[Bytes]]:
    """The clients, and their tensors, which other jobs may need as well."""
    import ray

    warm_up()
    parcel = ray.get(reference)
    warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)  # nobody writes to examples
    return unpack(parcel), parcel.tensors


@lru_cache(maxsize=1)
def _kept_common(reference: Any) -> list[Bytes]:
    import ray

    return _copies(ray.get(reference))


def _copies(tensors: Sequence[Bytes]) -> list[Bytes]:
    return [tensor.copy() for tensor in tensors]
