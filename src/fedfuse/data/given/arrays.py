"""Inputs and labels as NumPy arrays, tensors or lists."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.data.given.labels import ORIGIN, numbered
from fedfuse.data.readers import Contents, Found, Reading
from fedfuse.data.readers.contents import Array, unlabelled
from fedfuse.data.readers.npz import Archive, contents_of_arrays, inputs_of_array

TRUTH = (["False"], ["True"], ["False", "True"])
CLASSES = "classes"


@dataclass(frozen=True)
class Arrays:
    """``x_train``, ``y_train`` and so on for each split, ``clients``, and the names of classes that were words."""

    arrays: Mapping[str, Array]

    @staticmethod
    def of(splits: Mapping[str, Any], clients: Any) -> Arrays:
        """From a pair of inputs and labels for each split; public inputs may come without labels."""
        pairs = {split: _pair(value, split) for split, value in splits.items()}
        labels = {split: labels for split, (_, labels) in pairs.items() if labels is not None}
        numbers, classes = numbered(labels)
        arrays = {f"x_{split}": inputs for split, (inputs, _) in pairs.items()}
        arrays |= {f"y_{split}": array for split, array in numbers.items()}
        if clients is not None:
            arrays["clients"] = as_array(clients, "data.clients")
        return Arrays(arrays if classes is None else {**arrays, CLASSES: np.array(classes)})

    @staticmethod
    def at(folder: Path) -> Arrays:
        return Arrays(dict(Archive(folder / "arrays.npz")))

    def write(self, folder: Path) -> None:
        folder.mkdir()
        np.savez(folder / "arrays.npz", **self.arrays)  # type: ignore[arg-type]

    def sha256(self) -> str:
        digest = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
        return digest.hexdigest()

    def read(self, reading: Reading) -> Found:
        others = [name.removeprefix("x_") for name in self.arrays if name.startswith("x_") and name != "x_train"]
        train = self._contents("train", reading)
        told = replace(reading, classes=train.classes)
        return Found.by_split({"train": train, **{split: self._contents(split, told) for split in others}}, ORIGIN)

    def _contents(self, split: str, reading: Reading) -> Contents:
        where, inputs = f"data.{split}", self.arrays[f"x_{split}"]
        if f"y_{split}" not in self.arrays:
            return unlabelled(inputs_of_array(inputs, where, reading))
        clients = {"clients": self.arrays["clients"]} if split == "train" and "clients" in self.arrays else {}
        return contents_of_arrays({"x": inputs, "y": self._labels(split), **clients}, where, reading)[0]

    def _labels(self, split: str) -> Array:
        """As they were given, by their names where they have any."""
        names, numbers = self.arrays.get(CLASSES), self.arrays[f"y_{split}"]
        if names is None:
            return numbers
        return numbers.astype(bool) if names.tolist() in TRUTH else names[numbers]


def as_array(value: Any, where: str) -> Array:
    """A plain NumPy array; objects, which are pointers to anything, are refused."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().to_dense()
        value = (value.float() if value.is_floating_point() else value).numpy()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        raise DataError(f"{where} cannot be made an array: its rows differ in length") from None
    if array.dtype.kind == "O" and all(isinstance(item, str) for item in array.flat):
        array = array.astype(np.str_)
    if array.dtype.kind not in "biufU":
        raise DataError(f"{where} is an array of {array.dtype}; it must hold numbers or texts, none of them missing")
    return array


def _pair(value: Any, split: str) -> tuple[Array, Array | None]:
    where = f"data.{split}"
    if isinstance(value, tuple | list) and len(value) == 2 and not isinstance(value[0], int | float | str):
        return as_array(value[0], f"{where}, inputs"), as_array(value[1], f"{where}, labels")
    if split == "public":
        return as_array(value, f"{where}, inputs"), None
    raise DataError(f"{where} is {type(value).__name__}; give (inputs, labels) or a table")
