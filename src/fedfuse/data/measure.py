"""Mean and deviation of inputs, per channel or feature."""

from __future__ import annotations

import numpy as np

from fedfuse.catalogue.card import Normalisation
from fedfuse.data.readers.contents import Array

BLOCK = 4096


def measure(inputs: Array) -> Normalisation:
    """Constants that give every channel mean 0 and deviation 1; one that never varies keeps its scale."""
    mean, std = _of_images(inputs) if inputs.dtype == np.uint8 else _of_features(inputs)
    std = np.where(std > 0, std, 1.0)
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
    axes = (0, *range(2, features.ndim))
    return features.mean(axis=axes, dtype=np.float64), features.std(axis=axes, dtype=np.float64)
