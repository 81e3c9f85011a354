"""STL-10's binary files: 3 x 96 x 96 bytes per image, column by column; labels from 1 in ``..._y.bin``.

``unlabeled_X.bin`` has no labels; its images get label 0 of a single class, since only distillation can use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Array, Contents, Reading, join
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import check_range

SHAPE = (3, 96, 96)
CLASSES = 10


def read_stl10(files: Sequence[Path], reading: Reading) -> Contents:
    return join([_file(path, reading) for path in files], [path.name for path in files])


def _file(path: Path, reading: Reading) -> Contents:
    size, record = path.stat().st_size, int(np.prod(SHAPE))
    if size == 0 or size % record:
        raise DataError(f"{path} holds {size} bytes, no multiple of {record}; it is cut off, so fetch it again")
    # Mapped, so that 100,000 images of 2.8 GB can be made smaller one by one.
    columns = np.memmap(path, np.uint8, mode="r").reshape(-1, *SHAPE)
    images = refit_images(columns.transpose(0, 1, 3, 2), reading, lambda row: f"{path.name}, row {row}")
    labels = np.zeros(len(columns), np.int64) if path.name.startswith("unlabeled") else _labels(path, len(columns))
    return Contents(np.ascontiguousarray(images), labels)


def _labels(images: Path, count: int) -> Array:
    path = images.with_name(images.name.replace("_X", "_y"))
    if not path.is_file():
        raise DataError(f"{images} has no labels; put {path.name} beside it")
    labels = np.fromfile(path, np.uint8).astype(np.int64)
    if len(labels) != count:
        raise DataError(f"{path} holds {len(labels)} labels for {count} images; fetch both files anew")
    check_range(labels, CLASSES, path.name, first=1)
    return labels - 1
