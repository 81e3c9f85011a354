"""Jobs and results on their way between processes: a small pickle, and beside it every tensor as raw bytes.

Tensors that several jobs share (global weights, a generator, a control variate) travel once to each process, however
many of the jobs it does, and those that it has since its start (public inputs) not at all. Parcels go between processes
of one run only; nothing of them is ever stored.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.weights import DistantWeights
from fedfuse.engines.jobs import Job

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True)
class Packed:
    """A pickled value without its tensors, and the tensors' bytes."""

    note: bytes
    tensors: Sequence[Bytes]


class SharedTensors:
    """Jobs that are packed one by one when their turn comes.

    ``lasting`` are tensors that the processes have since their start, in this order.
    """

    def __init__(self, jobs: Sequence[Job], lasting: Sequence[Tensor] = ()) -> None:
        self._lasting = lasting
        known = set(map(id, lasting))
        everything = [tensor for job in jobs for tensor in tensors_in(job.common) if id(tensor) not in known]
        uses = Counter(map(id, everything))
        self._common = list({id(tensor): tensor for tensor in everything if uses[id(tensor)] > 1}.values())

    def common(self) -> list[Bytes]:
        """What more than one job needs."""
        return as_bytes(self._common)

    def packed(self, job: Job) -> Packed:
        """One job, without what is common and what lasts."""
        return pack(job, self._common, self._lasting)


def pack(value: Any, common: Sequence[Tensor] = (), lasting: Sequence[Tensor] = ()) -> Packed:
    """``value`` ready to travel; tensors that are among ``common`` and ``lasting`` stay behind."""
    file = io.BytesIO()
    pickler = _Pickler(file, {"common": common, "lasting": lasting})
    pickler.dump(value)
    return Packed(file.getvalue(), as_bytes(pickler.tensors))


def unpack(packed: Packed, common: Sequence[Bytes] = (), lasting: Sequence[Bytes] = ()) -> Any:
    """The packed value; its tensors lie in the memory of the package, of ``common`` and of ``lasting``."""
    tensors = {"own": packed.tensors, "common": common, "lasting": lasting}
    return _Unpickler(io.BytesIO(packed.note), tensors).load()


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors of a value, in the order in which ``pack`` puts them into a package; but for distant ones, which are
    brought when they are packed and are never the same as others."""
    pickler = _Lister(io.BytesIO(), {})
    pickler.dump(value)
    return pickler.tensors


def as_bytes(tensors: Sequence[Tensor]) -> list[Bytes]:
    """The memory of tensors, or of contiguous copies on the CPU."""
    return [tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for tensor in tensors]


class _Pickler(pickle.Pickler):
    """Leaves tensors out and collects those that are in none of the places ``elsewhere``."""

    def __init__(self, file: io.BytesIO, elsewhere: Mapping[str, Sequence[Tensor]]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Tensor] = []
        self._places = {
            id(tensor): (where, index) for where, tensors in elsewhere.items() for index, tensor in enumerate(tensors)
        }

    def persistent_id(self, value: Any) -> tuple[str, int, torch.dtype, tuple[int, ...]] | None:
        if not isinstance(value, Tensor):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = ("own", len(self.tensors))
            self.tensors.append(value)
        return *self._places[id(value)], value.dtype, tuple(value.shape)


class _Lister(_Pickler):
    """Looks for tensors only: what it writes is never read."""

    def persistent_id(self, value: Any) -> Any:
        return "distant" if isinstance(value, DistantWeights) else super().persistent_id(value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: Mapping[str, Sequence[Bytes]]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, place: tuple[str, int, torch.dtype, tuple[int, ...]]) -> Tensor:
        where, index, dtype, shape = place
        flat = torch.from_numpy(self._tensors[where][index])
        return flat.view(dtype).view(shape) if len(flat) else torch.empty(shape, dtype=dtype)
