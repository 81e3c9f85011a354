"""Encoded or raw images to one uint8 array N x C x H x W."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedfuse.core.errors import DataError
from fedfuse.data.readers.contents import Reading

Pixels = NDArray[np.uint8]
Encoded = bytes | Path | None

BLOCK = 128
GRAY_MODES = frozenset({"1", "L", "LA"})
COLOUR_MODES = frozenset({"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"})


def decode_images(
    batches: Iterable[Sequence[Encoded]], count: int, name: Callable[[int], str], reading: Reading
) -> Pixels:
    """Decode ``count`` images into one array, batch by batch; ``name(i)`` says where the i-th lies, for errors."""
    stack = _Stack(count, name)
    for batch in batches:
        stack.extend(len(batch), partial(_decode, batch, stack.filled, name, reading))
    return stack.pixels


def refit_images(images: Pixels, reading: Reading, name: Callable[[int], str]) -> Pixels:
    """Raw images N x C x H x W as ``resize`` and ``channels`` ask."""
    size_kept = reading.resize is None or images.shape[2:] == (reading.resize, reading.resize)
    if size_kept and reading.channels in (None, images.shape[1]):
        return images

    def refit(position: int) -> Pixels:
        raw = images[position]
        image = Image.fromarray(raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.transpose(1, 2, 0)))
        return _pixels(image, name(position), reading)

    stack = _Stack(len(images), name)
    stack.extend(len(images), refit)
    return stack.pixels


class _Stack:
    """One array for all images, filled in order by several threads."""

    def __init__(self, count: int, name: Callable[[int], str]) -> None:
        self.filled = 0
        self.pixels: Pixels = np.empty(0, np.uint8)
        self._count = count
        self._name = name

    def extend(self, number: int, image_at: Callable[[int], Pixels]) -> None:
        """The next ``number`` images; they must all be as large as the very first one."""
        if self.filled == 0 and number > 0:
            self.pixels = np.empty((self._count, *image_at(0).shape), np.uint8)
        end = self.filled + number

        def fill(start: int) -> None:
            for position in range(start, min(start + BLOCK, end)):
                image = image_at(position)
                if image.shape != self.pixels.shape[1:]:
                    raise DataError(_mismatch(image.shape, self._name(position), self.pixels.shape[1:], self._name(0)))
                self.pixels[position] = image

        # Pillow lets go of the interpreter's lock while it decodes, so threads are enough.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for _ in pool.map(fill, range(self.filled, end, BLOCK)):
                pass
        self.filled = end


def _mismatch(shape: tuple[int, ...], name: str, first: tuple[int, ...], first_name: str) -> str:
    key = "data.channels" if shape[1:] == first[1:] else "data.resize"
    sizes = ["x".join(str(size) for size in one) for one in (shape, first)]
    return f"{name} is {sizes[0]} while {first_name} is {sizes[1]}; set {key} to make all images alike"


def _decode(
    batch: Sequence[Encoded], start: int, name: Callable[[int], str], reading: Reading, position: int
) -> Pixels:
    return _open(batch[position - start], name(position), reading)


def _open(source: Encoded, name: str, reading: Reading) -> Pixels:
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
