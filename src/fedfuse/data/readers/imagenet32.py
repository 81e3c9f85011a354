"""ImageNet at 32 x 32 (Chrabaszcz et al. 2017) as npz: ``data`` (N x 3072, red, green, blue) and ``labels`` from 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Contents, Reading, join
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import check_range, checked_labels
from fedfuse.data.readers.npz import Archive

SHAPE = (3, 32, 32)
CLASSES = 1000


def read_imagenet32(files: Sequence[Path], reading: Reading) -> Contents:
    return join([_file(path, reading) for path in files], [path.name for path in files])


def _file(path: Path, reading: Reading) -> Contents:
    arrays = Archive(path)
    images, labels = arrays.get("data"), arrays.get("labels")
    if images is None or labels is None or images.shape != (labels.size, int(np.prod(SHAPE))):
        raise DataError(f"{path} does not hold data of N x 3072 and labels of N; check that it is the right file")
    if images.dtype != np.uint8:
        raise DataError(f"{path}: the images are {images.dtype}; they must be uint8 from 0 to 255")
    numbers = checked_labels(labels.reshape(-1), path.name)
    check_range(numbers, CLASSES, path.name, first=1)
    pixels = refit_images(images.reshape(-1, *SHAPE), reading, lambda row: f"{path.name}, row {row}")
    return Contents(pixels, numbers - 1)
