"""CIFAR's binary version: records of one label byte (CIFAR-100: two, the fine one last) and 3 x 32 x 32 bytes.

The Python version is pickled and therefore never opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Contents, Reading, join
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import check_range

SHAPE = (3, 32, 32)


def _read(label_bytes: int, classes: int, files: Sequence[Path], reading: Reading) -> Contents:
    return join([_file(path, label_bytes, classes, reading) for path in files], [path.name for path in files])


read_cifar10 = partial(_read, 1, 10)
read_cifar100 = partial(_read, 2, 100)


def _file(path: Path, label_bytes: int, classes: int, reading: Reading) -> Contents:
    content = np.fromfile(path, np.uint8)
    record = label_bytes + int(np.prod(SHAPE))
    if content.size == 0 or content.size % record:
        raise DataError(f"{path} holds {content.size} bytes, no multiple of {record}; it is cut off, so fetch it again")
    rows = content.reshape(-1, record)
    labels = rows[:, label_bytes - 1].astype(np.int64)
    check_range(labels, classes, path.name)
    images = np.ascontiguousarray(rows[:, label_bytes:]).reshape(-1, *SHAPE)
    return Contents(refit_images(images, reading, lambda row: f"{path.name}, row {row}"), labels)
