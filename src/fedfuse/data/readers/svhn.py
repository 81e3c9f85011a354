"""SVHN's cropped digits: a MATLAB file with ``X`` (32 x 32 x 3 x N) and ``y``, where 10 stands for the digit 0."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Array, Contents, Reading, join
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import check_range, checked_labels
from fedfuse.data.readers.matlab import read_matlab


def read_svhn(files: Sequence[Path], reading: Reading) -> Contents:
    return join([_file(path, reading) for path in files], [path.name for path in files])


def _file(path: Path, reading: Reading) -> Contents:
    arrays = _arrays(path)
    images, labels = arrays.get("X"), arrays.get("y")
    if images is None or labels is None or images.ndim != 4 or images.shape[2:] != (3, labels.size):
        raise DataError(f"{path} does not hold X of 32 x 32 x 3 x N and y of N; check that it is the right file")
    if images.dtype != np.uint8:
        raise DataError(f"{path}: the images are {images.dtype}; they must be uint8 from 0 to 255")
    digits = checked_labels(labels.reshape(-1), path.name)
    check_range(digits, 10, path.name, first=1)
    pixels = np.ascontiguousarray(images.transpose(3, 2, 0, 1))
    return Contents(refit_images(pixels, reading, lambda row: f"{path.name}, row {row}"), digits % 10)


def _arrays(path: Path) -> dict[str, Array]:
    try:
        return read_matlab(path)
    except (OSError, ValueError, struct.error, zlib.error) as error:
        raise DataError(f"{path} cannot be read as a MATLAB file; it may be cut off, so fetch it again") from error
