"""Encoded or raw images to one uint8 array N x C x H x W."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fedfuse.core.errors import DataError
from fedfuse.data.readers.bounds import check_fits, check_is_file
from fedfuse.data.readers.contents import Reading

Pixels = NDArray[np.uint8]
Encoded = bytes | Path | Image.Image | None

BLOCK = 128
WORTH_A_THREAD = 64 * 64
"""Pixels; smaller images decode faster on one thread than on two that wait for each other."""
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "PPM", "TIFF")
"""Named, because Pillow otherwise tries forty of them on every image, which takes longer than decoding a small one."""
MOST_PIXELS = 89_000_000
"""Of one image; what Pillow warns of."""
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
    """One array for all images, filled in order."""

    def __init__(self, count: int, name: Callable[[int], str]) -> None:
        self.filled = 0
        self.pixels: Pixels = np.empty(0, np.uint8)
        self._count = count
        self._name = name

    def extend(self, number: int, image_at: Callable[[int], Pixels]) -> None:
        """The next ``number`` images, each H x W x C; they must all be as large as the very first one."""
        if self.filled == 0 and number > 0:
            height, width, channels = image_at(0).shape
            check_fits(self._count * height * width * channels, f"{self._count:,} images as large as {self._name(0)}")
            self.pixels = np.empty((self._count, channels, height, width), np.uint8)
        end = self.filled + number
        fill = partial(self._fill, image_at, end)
        with ThreadPoolExecutor(self._threads()) as pool:
            for _ in pool.map(fill, range(self.filled, end, BLOCK)):
                pass
        self.filled = end

    def _fill(self, image_at: Callable[[int], Pixels], end: int, start: int) -> None:
        """One block; to put channels first is much faster for many images at once than for each."""
        images = [image_at(position) for position in range(start, min(start + BLOCK, end))]
        _, channels, height, width = self.pixels.shape
        for position, image in enumerate(images, start):
            if image.shape != (height, width, channels):
                raise DataError(_mismatch(image.shape, self._name(position), (height, width, channels), self._name(0)))
        self.pixels[start : start + len(images)] = np.stack(images).transpose(0, 3, 1, 2)

    def _threads(self) -> int:
        """Pillow lets go of the interpreter's lock while it decodes, which pays for images that are not tiny."""
        return min(8, os.cpu_count() or 1) if math.prod(self.pixels.shape[2:]) >= WORTH_A_THREAD else 1


def _mismatch(shape: tuple[int, ...], name: str, first: tuple[int, ...], first_name: str) -> str:
    key = "data.channels" if shape[:2] == first[:2] else "data.resize"
    sizes = [f"{channels}x{height}x{width}" for height, width, channels in (shape, first)]
    return f"{name} is {sizes[0]} while {first_name} is {sizes[1]}; set {key} to make all images alike"


def _decode(
    batch: Sequence[Encoded], start: int, name: Callable[[int], str], reading: Reading, position: int
) -> Pixels:
    return open_image(batch[position - start], name(position), reading)


def open_image(source: Encoded, name: str, reading: Reading) -> Pixels:
    """One image, H x W x C; ``name`` says which, for errors."""
    if source is None:
        raise DataError(f"{name} holds no image; remove the row or fill it in")
    if isinstance(source, Image.Image):
        return _pixels(source, name, reading)
    try:
        if isinstance(source, Path):
            check_is_file(source)
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=FORMATS) as image:
            _check_size(image, name)
            return _pixels(image, name, reading)
    except DataError:
        raise
    except Image.DecompressionBombError as error:
        raise DataError(_too_large(name)) from error
    except Exception as error:  # a damaged file makes Pillow raise nearly anything
        raise DataError(f"{name} cannot be read as an image; replace or remove it") from error


def image_size(file: Path) -> tuple[int, int, int]:
    """Width, height and channels of an image, from the first bytes of its file."""
    check_is_file(file)
    try:
        with Image.open(file, formats=FORMATS) as image:
            return *image.size, 1 if image.mode in GRAY_MODES else 3
    except Exception as error:  # Pillow raises nearly anything on a damaged file
        raise DataError(f"{file} cannot be read as an image; remove or replace it") from error


def _check_size(image: Image.Image, name: str) -> None:
    """Before it is decoded: a few kilobytes may hold any number of pixels."""
    if image.width * image.height > MOST_PIXELS:
        raise DataError(_too_large(name))


def _too_large(name: str) -> str:
    return f"{name} has more than {MOST_PIXELS // 1_000_000} million pixels; make it smaller or remove it"


def _pixels(image: Image.Image, name: str, reading: Reading) -> Pixels:
    mode = _mode(image, name, reading)
    converted = image if image.mode == mode else image.convert(mode)
    if reading.resize is not None:
        converted = converted.resize((reading.resize, reading.resize), Image.Resampling.BOX)
    pixels = np.asarray(converted, dtype=np.uint8)
    return pixels[:, :, None] if pixels.ndim == 2 else pixels


def _mode(image: Image.Image, name: str, reading: Reading) -> str:
    if image.mode not in GRAY_MODES | COLOUR_MODES:
        raise DataError(f"{name} has pixels of mode {image.mode}; save it as an 8-bit gray or RGB image")
    if reading.channels is not None:
        return "L" if reading.channels == 1 else "RGB"
    return "L" if image.mode in GRAY_MODES else "RGB"
