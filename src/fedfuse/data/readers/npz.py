"""NumPy archives: ``inputs``/``labels``, ``x``/``y``, or ``x_train``/``y_train``/``x_test``/``y_test``.

A further array ``clients`` may say whose each training example is.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from fedfuse.core.errors import DataError, shortened
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Array, Contents, Reading, checked_features
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import Classes, Labels, classes_of, label_numbers

TRAIN_NAMES = (("inputs", "labels"), ("x", "y"), ("x_train", "y_train"))
TEST_NAMES = (("x_test", "y_test"),)


def read_npz(path: Path, reading: Reading) -> tuple[Contents, Contents | None]:
    """The training examples and, if the archive has them, the test examples."""
    return contents_of_arrays(Archive(path), path.name, reading)


def npz_classes(paths: Sequence[Path], reading: Reading) -> Classes | None:
    """The classes of several archives together, since one of them may lack some."""
    found = []
    for archive in map(Archive, paths):
        names = (labels for inputs, labels in TRAIN_NAMES if inputs in archive and labels in archive)
        found += [Labels.of(archive[name]) for name in islice(names, 1)]
    return classes_of(found, dict(reading.labels))


def contents_of_arrays(arrays: Mapping[str, Array], where: str, reading: Reading) -> tuple[Contents, Contents | None]:
    """The training examples and, if there are any, the test examples among named arrays."""
    train = _pair(arrays, TRAIN_NAMES)
    if train is None:
        found = shortened(", ".join(sorted(arrays))) or "nothing"
        raise DataError(f"{where} holds {found}; it must hold inputs and labels, x and y, or x_train and y_train")
    classes = reading.classes or classes_of([Labels.of(train[1])], dict(reading.labels))
    reading = replace(reading, classes=classes)
    contents = _contents(*train, where, reading)
    if "clients" in arrays:
        contents = replace(contents, clients=_clients(arrays["clients"], len(contents.labels), where))
    test = _pair(arrays, TEST_NAMES)
    return contents, None if test is None else _contents(*test, f"{where} (test)", reading)


def read_npz_inputs(path: Path, reading: Reading) -> Array:
    """The inputs alone: the array of a usual name, or the only one there is."""
    arrays = Archive(path)
    named = [name for name, _ in TRAIN_NAMES if name in arrays] or (list(arrays) if len(arrays) == 1 else [])
    if not named:
        found = shortened(", ".join(sorted(arrays))) or "nothing"
        raise DataError(f"{path.name} holds {found}; it must hold one array, or inputs, x or x_train")
    return inputs_of_array(arrays[named[0]], path.name, reading)


def inputs_of_array(inputs: Array, where: str, reading: Reading) -> Array:
    """Inputs that come without labels."""
    if (inputs.ndim < 2 and not _are_texts(inputs)) or not len(inputs):
        raise DataError(f"{where}: inputs of shape {inputs.shape} cannot be read; the first axis counts inputs")
    return _inputs(inputs, where, reading)


class Archive(Mapping[str, Array]):
    """The arrays of a file by name, each read when it is asked for; pickled objects are refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        except Exception as error:  # a damaged file makes zipfile raise nearly anything
            raise self._refusal() from error

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __getitem__(self, name: str) -> Array:
        member = self._members[name]
        check_fits(member.file_size, f"{self.path.name}, array '{shortened(name)}'")
        try:
            with zipfile.ZipFile(self.path) as archive:
                with archive.open(member) as file:
                    _check_header(file, member.file_size)
                with archive.open(member) as file:
                    return _checked(npy.read_array(file, allow_pickle=False))
        except Exception as error:  # and so does numpy
            raise self._refusal() from error

    def _refusal(self) -> DataError:
        return DataError(f"{self.path} cannot be read as an npz archive of plain arrays; save it with numpy.savez")


def _check_header(file: IO[bytes], size: int) -> None:
    """It says no more than the file holds: numpy asks for the memory before it reads."""
    read_header = npy.read_array_header_1_0 if npy.read_magic(file) == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or file.tell() + math.prod(shape) * dtype.itemsize != size:
        raise ValueError("an array of another length than its header says")


def _checked(array: Array) -> Array:
    """Texts whose numbers are all characters: numpy does not look, and Python goes wrong with others."""
    if array.dtype.kind == "U" and array.size:
        points = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("="))).view(np.uint32)
        if points.max() > sys.maxunicode:
            raise ValueError("a text with a number that is no character")
    return array


def _pair(arrays: Mapping[str, Array], names: tuple[tuple[str, str], ...]) -> tuple[Array, Array] | None:
    for inputs, labels in names:
        if inputs in arrays and labels in arrays:
            return arrays[inputs], arrays[labels]
    return None


def _contents(inputs: Array, labels: Array, where: str, reading: Reading) -> Contents:
    numbers = label_numbers(labels, reading.words, where)
    if (inputs.ndim < 2 and not _are_texts(inputs)) or len(inputs) != len(numbers):
        raise DataError(
            f"{where}: inputs of shape {inputs.shape} do not fit {len(numbers)} labels; the first axis counts examples"
        )
    names = None if reading.classes is None else reading.classes.names
    return Contents(_inputs(inputs, where, reading), numbers, names, classes=reading.classes)


def _are_texts(inputs: Array) -> bool:
    return inputs.ndim == 1 and inputs.dtype.kind == "U"


def _inputs(inputs: Array, where: str, reading: Reading) -> Array:
    if _are_texts(inputs):
        return reading.tokens(inputs.tolist(), where)
    if inputs.ndim == 2 or inputs.dtype.kind == "f":
        return checked_features(inputs, where)
    if inputs.dtype != np.uint8:
        raise DataError(f"{where}: the images are {inputs.dtype}; they must be uint8 from 0 to 255")
    return refit_images(_channels_first(inputs, where), reading, lambda row: f"{where}, row {row}")


def _clients(values: Array, examples: int, where: str) -> Array:
    if values.shape != (examples,) or values.dtype.kind not in "iuU":
        raise DataError(
            f"{where}: clients are {values.dtype} of shape {values.shape}; give one name or whole number for each of "
            f"the {examples} training examples"
        )
    return values.astype(np.str_)


def _channels_first(images: Array, where: str) -> Array:
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[1] in (1, 3):
        return images
    if images.ndim == 4 and images.shape[3] in (1, 3):
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    raise DataError(f"{where}: images of shape {images.shape[1:]} are neither gray nor RGB; they need 1 or 3 channels")
