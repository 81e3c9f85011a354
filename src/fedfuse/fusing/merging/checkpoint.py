"""Anybody's safetensors, in one file or in several with an index, of which nothing is read but what is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from fedfuse.core.errors import DataError, shortened
from fedfuse.core.hashes import sha256_of_file
from fedfuse.core.tensor_files import DamagedError, Like, Place, read_numbers, read_places
from fedfuse.core.text import is_utf8

ONE, INDEX = "model.safetensors", "model.safetensors.index.json"
"""What a folder may hold, as Hugging Face has it."""
LONGEST_INDEX = 100_000_000
"""Bytes."""


@dataclass(frozen=True)
class Held:
    """Where a tensor lies."""

    path: Path
    data: int
    place: Place

    @property
    def like(self) -> Like:
        return Like(self.place.dtype, self.place.shape)


@dataclass(frozen=True)
class Checkpoint:
    """A model's tensors in its files."""

    path: Path
    files: tuple[Path, ...]
    tensors: Mapping[str, Held]
    """In the order of the files."""

    @staticmethod
    def at(path: Path) -> Checkpoint:
        """Of a safetensors file, of an index of several, or of a folder with one of the two."""
        path = Path(path)
        found = _in_folder(path) if path.is_dir() else path
        if found.name.endswith(".index.json"):
            return _sharded(path, found)
        held = _tensors(found)
        if not held:
            raise DataError(f"{found} holds no tensors")
        return Checkpoint(path, (found,), held)

    def read(self, name: str, begin: int, end: int) -> Tensor:
        """Some numbers of a tensor, flat."""
        held = self.tensors[name]
        try:
            return read_numbers(held.path, held.data, held.place, begin, end)
        except (OSError, DamagedError) as error:
            raise DataError(f"{held.path} cannot be read: {error}") from None

    @cached_property
    def sha256(self) -> dict[str, str]:
        """Of each file, by its name."""
        return {file.name: sha256_of_file(file) for file in self.files}


def _in_folder(folder: Path) -> Path:
    for name in (INDEX, ONE):
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder} holds neither {ONE} nor {INDEX}; name the file itself")


def _sharded(path: Path, index: Path) -> Checkpoint:
    named = _weight_map(index)
    files = tuple(index.parent / name for name in sorted(set(named.values())))
    inside = {file.name: _tensors(file) for file in files}
    for tensor, file in named.items():
        if tensor not in inside[file]:
            raise DataError(f"{index} says that {shortened(tensor)!a} lies in {file}, which does not hold it")
    tensors = {name: held for file in files for name, held in inside[file.name].items() if named.get(name) == file.name}
    return Checkpoint(path, files, tensors)


def _weight_map(index: Path) -> dict[str, str]:
    """Which tensor lies in which file; files lie beside the index and nowhere else."""
    try:
        if index.stat().st_size > LONGEST_INDEX:
            raise DataError(f"{index} is too large for an index")
        content: Any = json.loads(index.read_bytes())
        named = content["weight_map"]
        files = {str(tensor): Path(str(file)) for tensor, file in named.items()}
    except OSError as error:
        raise DataError(f"{index} cannot be read: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{index} is no index of safetensors files; it should have a weight_map") from None
    for tensor, file in files.items():
        if file.name != str(named[tensor]) or file.suffix != ".safetensors":
            raise DataError(f"{index} names {shortened(str(file))!a}, which is no safetensors file beside it")
    if not files:
        raise DataError(f"{index} names no tensors")
    return {tensor: file.name for tensor, file in files.items()}


def _tensors(path: Path) -> dict[str, Held]:
    try:
        data, places = read_places(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    except DamagedError as error:
        raise DataError(f"{path} is no safetensors file, or a damaged one: {error}") from None
    if not all(map(is_utf8, places)):
        raise DataError(f"{path} has names of tensors that cannot be written")
    return {name: Held(path, data, place) for name, place in places.items()}
