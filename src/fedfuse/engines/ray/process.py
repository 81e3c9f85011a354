"""What a Ray process does: it takes jobs as packages, and keeps clients and what jobs share between them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from fedfuse.engines.packing import Bytes, Packed, unpack
from fedfuse.engines.ray.progress import ProgressSender
from fedfuse.engines.worker import answer
from fedfuse.federation.client import Clients
from fedfuse.runtime.pool import silence


def work(clients: list[Any], common: list[Any], packed: Packed, ticks: Any | None) -> Packed:
    """The Ray task. References come in lists, because Ray replaces bare ones by what they stand for, every time."""
    everybody, lasting = _kept_clients(clients[0])
    progress = silence if ticks is None else ProgressSender(ticks)
    return answer(everybody, copied(packed), _kept_common(common[0]), lasting, progress)


def copied(packed: Packed) -> Packed:
    """A package out of the object store, whose memory cannot be written to."""
    return Packed(packed.note, _copies(packed.tensors))


@lru_cache(maxsize=1)
def _kept_clients(reference: Any) -> tuple[Clients, Sequence[Bytes]]:
    """The clients, and their tensors, which other jobs may need as well."""
    import ray

    torch.set_num_threads(1)
    packed = ray.get(reference)
    warnings.filterwarnings("ignore", message=".*not writable", category=UserWarning)  # nobody writes to examples
    return unpack(packed), packed.tensors


@lru_cache(maxsize=1)
def _kept_common(reference: Any) -> list[Bytes]:
    import ray

    return _copies(ray.get(reference))


def _copies(tensors: Sequence[Bytes]) -> list[Bytes]:
    return [tensor.copy() for tensor in tensors]
