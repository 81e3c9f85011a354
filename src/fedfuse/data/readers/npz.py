"""NumPy archives: ``inputs``/``labels``, ``x``/``y``, or ``x_train``/``y_train``/``x_test``/``y_test``.

A further array ``clients`` may say whose each training example is.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Array, Contents, Reading, checked_features, label_numbers
from fedfuse.data.readers.images import refit_images

TRAIN_NAMES = (("inputs", "labels"), ("x", "y"), ("x_train", "y_train"))
TEST_NAMES = (("x_test", "y_test"),)


def read_npz(path: Path, reading: Reading) -> tuple[Contents, Contents | None]:
    """The training examples and, if the archive has them, the test examples."""
    return contents_of_arrays(load_arrays(path), path.name, reading)


def contents_of_arrays(arrays: Mapping[str, Array], where: str, reading: Reading) -> tuple[Contents, Contents | None]:
    """The training examples and, if there are any, the test examples among named arrays."""
    train = _pair(arrays, TRAIN_NAMES)
    if train is None:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(f"{where} holds {found}; it must hold inputs and labels, x and y, or x_train and y_train")
    contents = _contents(*train, where, reading)
    if "clients" in arrays:
        contents = replace(contents, clients=_clients(arrays["clients"], len(contents.labels), where))
    test = _pair(arrays, TEST_NAMES)
    return contents, None if test is None else _contents(*test, f"{where} (test)", reading)


def read_npz_inputs(path: Path, reading: Reading) -> Array:
    """The inputs alone: the array of a usual name, or the only one there is."""
    arrays = load_arrays(path)
    named = [arrays[name] for name, _ in TRAIN_NAMES if name in arrays]
    if not named and len(arrays) == 1:
        named = list(arrays.values())
    if not named:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise DataError(f"{path.name} holds {found}; it must hold one array, or inputs, x or x_train")
    return inputs_of_array(named[0], path.name, reading)


def inputs_of_array(inputs: Array, where: str, reading: Reading) -> Array:
    """Inputs that come without labels."""
    if (inputs.ndim < 2 and not _are_texts(inputs)) or not len(inputs):
        raise DataError(f"{where}: inputs of shape {inputs.shape} cannot be read; the first axis counts inputs")
    return _inputs(inputs, where, reading)


def load_arrays(path: Path) -> dict[str, Array]:
    """All arrays of an archive; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error, AttributeError, TypeError) as error:
        raise DataError(f"{path} cannot be read as an npz archive of plain arrays; save it with numpy.savez") from error


def _pair(arrays: Mapping[str, Array], names: tuple[tuple[str, str], ...]) -> tuple[Array, Array] | None:
    for inputs, labels in names:
        if inputs in arrays and labels in arrays:
            return arrays[inputs], arrays[labels]
    return None


def _contents(inputs: Array, labels: Array, where: str, reading: Reading) -> Contents:
    labels = label_numbers(labels, reading, where)
    if (inputs.ndim < 2 and not _are_texts(inputs)) or len(inputs) != len(labels):
        raise DataError(
            f"{where}: inputs of shape {inputs.shape} do not fit {len(labels)} labels; the first axis counts examples"
        )
    return Contents(_inputs(inputs, where, reading), labels)


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
