"""Small random images, raw and encoded."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

WriteParquet = Callable[..., Path]


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def random_images(count: int, side: int = 6, channels: int = 3, seed: int = 0) -> np.ndarray:
    """N x C x H x W."""
    return np.random.default_rng(seed).integers(0, 256, (count, channels, side, side), dtype=np.uint8)


def encode(images: np.ndarray) -> list[bytes]:
    return [png(image[0] if len(image) == 1 else image.transpose(1, 2, 0)) for image in images]
