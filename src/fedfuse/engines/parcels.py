"""Tasks and updates on their way between processes: a small pickle, and beside it every tensor as raw bytes.

Tensors that several tasks of a round share (global weights, a generator, a control variate) travel once to each
process, however many clients it plays. Parcels go between processes of one run only; nothing of them is ever stored.
"""

from __future__ import annotations

import io
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.messages import Task
from fedfuse.federation.state import ClientStates

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


@dataclass(frozen=True)
class Parcel:
    """A pickled value without its tensors, and the tensors' bytes."""

    note: bytes
    tensors: Sequence[Bytes]


class Cargo:
    """A round's tasks with their clients' states, packed one by one when their turn comes."""

    def __init__(self, tasks: Sequence[Task], states: ClientStates) -> None:
        self._states = states
        everything = [tensor for task in tasks for tensor in _tensors(task)]
        uses = Counter(map(id, everything))
        self._common = list({id(tensor): tensor for tensor in everything if uses[id(tensor)] > 1}.values())

    def common(self) -> Sequence[Bytes]:
        """What more than one task needs."""
        return [_bytes(tensor) for tensor in self._common]

    def parcel(self, task: Task) -> Parcel:
        """One task and its client's state, without what is common."""
        return pack((task, self._states.get(task.client, {})), self._common)


def pack(value: Any, common: Sequence[Tensor] = ()) -> Parcel:
    """``value`` ready to travel; tensors that are among ``common`` stay behind."""
    file = io.BytesIO()
    pickler = _Pickler(file, common)
    pickler.dump(value)
    return Parcel(file.getvalue(), pickler.tensors)


def unpack(parcel: Parcel, common: Sequence[Bytes] = ()) -> Any:
    """The packed value; its tensors lie in the parcel's memory and that of ``common``."""
    return _Unpickler(io.BytesIO(parcel.note), {"own": parcel.tensors, "common": common}).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, common: Sequence[Tensor]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Bytes] = []
        self._places = {id(tensor): ("common", index) for index, tensor in enumerate(common)}

    def persistent_id(self, value: Any) -> tuple[str, int, torch.dtype, tuple[int, ...]] | None:
        if not isinstance(value, Tensor):
            return None
        if id(value) not in self._places:
            self._places[id(value)] = ("own", len(self.tensors))
            self.tensors.append(_bytes(value))
        return *self._places[id(value)], value.dtype, tuple(value.shape)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, tensors: Mapping[str, Sequence[Bytes]]) -> None:
        super().__init__(file)
        self._tensors = tensors

    def persistent_load(self, place: tuple[str, int, torch.dtype, tuple[int, ...]]) -> Tensor:
        where, index, dtype, shape = place
        flat = torch.from_numpy(self._tensors[where][index])
        return flat.view(dtype).view(shape) if len(flat) else torch.empty(shape, dtype=dtype)


def _tensors(task: Task) -> Iterator[Tensor]:
    yield task.weights.flat
    yield from task.extras.values()


def _bytes(tensor: Tensor) -> Bytes:
    flat: Bytes = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    return flat
