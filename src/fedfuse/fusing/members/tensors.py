"""Tensors in safetensors files of any origin, each read when it is asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.core.tensor_files import DamagedError, Place, is_ours, read_numbers, read_places
from fedfuse.core.text import is_utf8
from fedfuse.data.readers.bounds import check_is_file
from fedfuse.fusing.members.files import in_brief

PREFIXES = ("module.", "_orig_mod.")
"""What wrappers of torch put before every name."""


class FileTensors(Mapping[str, Tensor]):
    """All tensors of one or several files; nothing but their headers is read before a tensor is wanted."""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, torch.dtype] = {}
        self._where: dict[str, tuple[Path, int, Place]] = {}
        for path in self.files:
            self._note(path)
        for prefix in PREFIXES:
            if self._where and all(name.startswith(prefix) for name in self._where):
                self._without(prefix)

    def __getitem__(self, name: str) -> Tensor:
        path, data, place = self._where[name]
        with _sound(path):  # read, and not mapped: a mapped file counts as memory, and may change
            return read_numbers(path, data, place, 0, math.prod(place.shape)).view(place.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def __len__(self) -> int:
        return len(self._where)

    @cached_property
    def numbers(self) -> int:
        """How many there are in all tensors."""
        return sum(map(math.prod, self.shapes.values()))

    @property
    def dtype(self) -> str:
        """The type of most weights."""
        return common_dtype(self.dtypes, self.shapes)

    def _without(self, prefix: str) -> None:
        for names in (self._where, self.shapes, self.dtypes):
            for name in list(names):
                names[name.removeprefix(prefix)] = names.pop(name)  # type: ignore[assignment]

    def _note(self, path: Path) -> None:
        with _sound(path):
            data, places = read_places(path)
        if not all(map(is_utf8, places)):
            raise DataError(f"{path} has names of tensors that cannot be written")
        for name, place in places.items():
            if name in self._where:
                raise DataError(f"'{name}' lies both in {self._where[name][0].name} and in {path.name}; remove one")
            self._where[name] = path, data, place
            self.shapes[name], self.dtypes[name] = place.shape, place.dtype


def is_of_fedfuse(path: Path) -> bool:
    """Whether a file says of itself that it is a model of fedfuse."""
    with _sound(path):
        return is_ours(path)


def common_dtype(dtypes: Mapping[str, torch.dtype], shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The type of most floating numbers, as torch calls it."""
    counts: Counter[str] = Counter()
    for name, dtype in dtypes.items():
        if dtype.is_floating_point:
            counts[str(dtype).removeprefix("torch.")] += math.prod(shapes[name])
    return counts.most_common(1)[0][0] if counts else "none"


def check_finite(tensors: Mapping[str, Tensor], where: str) -> None:
    """Refuse weights that no network can answer with."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor.float()).all()):
            raise DataError(f"{where}: '{name}' holds what is not a finite number; its training has diverged")


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Whoever reads such a file finds it whole, or says that it is not."""
    check_is_file(path)
    try:
        yield
    except (DamagedError, OSError) as error:
        raise DataError(f"{path} is no whole safetensors file ({in_brief(error)}); fetch it again") from None
