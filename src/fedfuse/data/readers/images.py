"""Encoded or raw images to one uint8 array N x C x H x W."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Reading

Pixels = NDArray[np.uint8]

BLOCK = 256
GRAY_MODES = frozenset({"1", "L", "LA"})
COLOUR_MODES = frozenset({"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"})


def decode_images(sources: Sequence[bytes | Path | None], name: Callable[[int], str], reading: Reading) -> Pixels:
    """Decode every image; ``name(i)`` says where the i-th one lies, for errors."""
    return _stack(len(sources), lambda position: _open(sources[position], name(position), reading), name)


def refit_images(images: Pixels, reading: Reading, name: Callable[[int], str]) -> Pixels:
    """Raw images N x C x H x W as ``resize`` and ``channels`` ask."""
    size_kept = reading.resize is None or images.shape[2:] == (reading.resize, reading.resize)
    if size_kept and reading.channels in (None, images.shape[1]):
        return images

    def refit(position: int) -> Pixels:
        raw = images[position]
        image = Image.fromarray(raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.transpose(1, 2, 0)))
        return _pixels(image, name(position), reading)

    return _stack(len(images), refit, name)


def _stack(count: int, image_at: Callable[[int], Pixels], name: Callable[[int], str]) -> Pixels:
    first = image_at(0)
    result = np.empty((count, *first.shape), np.uint8)

    def fill(start: int) -> None:
        for position in range(start, min(start + BLOCK, count)):
            image = image_at(position)
            if image.shape != first.shape:
                raise DataError(_mismatch(image, name(position), first, name(0)))
            result[position] = image

    # Pillow lets go of the interpreter's lock while it decodes, so threads are enough.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for _ in pool.map(fill, range(0, count, BLOCK)):
            pass
    return result


def _mismatch(image: Pixels, name: str, first: Pixels, first_name: str) -> str:
    key = "data.channels" if image.shape[1:] == first.shape[1:] else "data.resize"
    sizes = ["x".join(str(size) for size in pixels.shape) for pixels in (image, first)]
    return f"{name} is {sizes[0]} while {first_name} is {sizes[1]}; set {key} to make all images alike"


def _open(source: bytes | Path | None, name: str, reading: Reading) -> Pixels:
    if source is None:
        raise DataError(f"{name} holds no image; remove the row or fill it in")
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            return _pixels(image, name, reading)
    except DataError:
        raise
    except Exception as error:  # a damaged file makes Pillow raise nearly anything
        raise DataError(f"{name} cannot be read as an image; replace or remove it") from error


def _pixels(image: Image.Image, name: str, reading: Reading) -> Pixels:
    converted = image.convert(_mode(image, name, reading))
    if reading.resize is not None:
        converted = converted.resize((reading.resize, reading.resize), Image.Resampling.BOX)
    pixels = np.asarray(converted, dtype=np.uint8)
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _mode(image: Image.Image, name: str, reading: Reading) -> str:
    if image.mode not in GRAY_MODES | COLOUR_MODES:
        raise DataError(f"{name} has pixels of mode {image.mode}; save it as an 8-bit gray or RGB image")
    if reading.channels is not None:
        return "L" if reading.channels == 1 else "RGB"
    return "L" if image.mode in GRAY_MODES else "RGB"
