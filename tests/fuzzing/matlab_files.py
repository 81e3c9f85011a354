"""MATLAB's files, as SVHN has them."""

from __future__ import annotations

import io
from random import Random

import numpy as np
from scipy.io import savemat

from fedfuse.data.readers import Reading
from fedfuse.data.readers.svhn import read_svhn
from tests.fuzzing.mutation import bytes_of
from tests.fuzzing.place import written


def honest() -> list[bytes]:
    images = np.arange(4 * 4 * 3 * 5, dtype=np.uint8).reshape(4, 4, 3, 5)
    return [_saved(packed, images) for packed in (False, True)]


def _saved(packed: bool, images: np.ndarray) -> bytes:
    file = io.BytesIO()
    savemat(file, {"X": images, "y": np.array([[1], [2], [3], [10], [1]], np.uint8)}, do_compression=packed)
    return file.getvalue()


def mutate(rng: Random, case: bytes) -> bytes:
    return bytes_of(rng, case)


def read(case: bytes) -> None:
    read_svhn([written("train_32x32.mat", case)], Reading())
