"""IDX, the format of MNIST: big-endian sizes, then raw bytes; images and labels in two files, gzipped or not."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits
from fedfuse.data.readers.contents import Array, Contents, Reading
from fedfuse.data.readers.images import refit_images
from fedfuse.data.readers.labels import check_range

LETTERS = 26
DENSEST = 1032
"""Bytes that one of gzip can stand for, at most."""


def read_idx(images: Sequence[Path], reading: Reading) -> Contents:
    """One file of images; its labels lie beside it as ``...labels-idx1...``."""
    (path,) = images
    pixels, labels = _images_and_labels(path)
    return Contents(refit_images(pixels[:, None], reading, lambda row: f"{path.name}, row {row}"), labels)


def read_emnist_letters(images: Sequence[Path], reading: Reading) -> Contents:
    """EMNIST lays its images on their side, and counts the letters from 1."""
    (path,) = images
    pixels, labels = _images_and_labels(path)
    check_range(labels, LETTERS, _labels_beside(path).name, first=1)
    upright = np.ascontiguousarray(pixels.transpose(0, 2, 1)[:, None])
    names = tuple("abcdefghijklmnopqrstuvwxyz")
    return Contents(refit_images(upright, reading, lambda row: f"{path.name}, row {row}"), labels - 1, names)


def _images_and_labels(path: Path) -> tuple[Array, Array]:
    beside = _labels_beside(path)
    if not beside.is_file():
        raise DataError(f"{path} has no labels; put {beside.name} beside it")
    pixels, labels = _array(path, axes=3), _array(beside, axes=1).astype(np.int64)
    if len(pixels) != len(labels):
        raise DataError(
            f"{path.name} holds {len(pixels)} images, but {beside.name} {len(labels)} labels; fetch both anew"
        )
    return pixels, labels


def _labels_beside(images: Path) -> Path:
    return images.with_name(images.name.replace("images-idx3", "labels-idx1"))


def _array(path: Path, axes: int) -> Array:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            magic, *shape = struct.unpack(f">{1 + axes}I", file.read(4 * (1 + axes)))
            if magic != 0x0800 + axes:
                raise DataError(f"{path} is no IDX file of bytes with {axes} axes; check that it is the right file")
            check_fits(math.prod(shape), path.name)
            most = path.stat().st_size * (DENSEST if path.suffix == ".gz" else 1)
            data = np.frombuffer(bytearray(file.read(min(math.prod(shape), most) + 1)), np.uint8)
    except (OSError, EOFError, zlib.error, struct.error) as error:
        raise DataError(f"{path} cannot be read as IDX; it may be cut off, so fetch it again") from error
    if data.size != math.prod(shape):
        raise DataError(f"{path} announces {shape} bytes but holds another number; it is cut off, so fetch it again")
    return data.reshape(shape)
