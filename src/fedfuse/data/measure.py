"""Mean and deviation of inputs, per channel or feature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedfuse.catalogue.card import Normalisation
from fedfuse.data.readers.contents import Array, Columns

BLOCK = 4096


def measure(inputs: Array, columns: Columns | None = None) -> Normalisation:
    """Constants that give every channel mean 0 and deviation 1; one that never varies keeps its scale.

    Columns of 0 and 1 that stand for categories and truth values stay as they are.
    """
    mean, std = _of_images(inputs) if inputs.dtype == np.uint8 else _of_features(inputs)
    std = np.where(std > 0, std, 1.0)
    if columns is not None and columns.encoding is not None:
        are_numbers = [one.kind == "number" for one in columns.encoding.columns for _ in range(one.width)]
        mean, std = np.where(are_numbers, mean, 0.0), np.where(are_numbers, std, 1.0)
    return Normalisation(tuple(mean.tolist()), tuple(std.tolist()))


def _of_images(images: Array) -> tuple[Array, Array]:
    """Exact and small in memory: from how often each of the 256 values occurs."""
    counts = np.zeros((images.shape[1], 256), dtype=np.int64)
    for start in range(0, len(images), BLOCK):
        for channel in range(images.shape[1]):
            counts[channel] += np.bincount(images[start : start + BLOCK, channel].ravel(), minlength=256)
    shares, values = counts / counts.sum(axis=1, keepdims=True), np.arange(256) / 255
    mean = shares @ values
    return mean, np.sqrt((shares * (values - mean[:, None]) ** 2).sum(axis=1))


def _of_features(features: Array) -> tuple[Array, Array]:
    if features.ndim == 2 and features.shape[1] > 1:  # NumPy adds the numbers of a single column in another order
        return _of_rows(features)
    axes = (0, *range(2, features.ndim))
    return features.mean(axis=axes, dtype=np.float64), features.std(axis=axes, dtype=np.float64)


def _of_rows(rows: Array) -> tuple[Array, Array]:
    """A block at a time instead of a second table in double precision, with the bits of NumPy's mean and deviation."""
    mean = _sum(rows, lambda block: block.astype(np.float64)) / len(rows)
    return mean, np.sqrt(_sum(rows, lambda block: np.square(block - mean)) / len(rows))


def _sum(rows: Array, of_block: Callable[[Array], Array]) -> Array:
    """Row after row from the first to the last."""
    total = np.full(rows.shape[1], -0.0)  # to which any first row can be added and stays what it is
    for start in range(0, len(rows), BLOCK):
        total = np.add.reduce(np.concatenate([total[None], of_block(rows[start : start + BLOCK])]), axis=0)
    return total
