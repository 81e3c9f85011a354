"""Raw images: arrays of bytes, Pillow's images, or files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fedfuse.core.errors import DataError
from fedfuse.data.raw.base import Normalised, array_of, sizes
from fedfuse.data.readers.contents import Array, Reading
from fedfuse.data.readers.images import open_image, refit_images

Picture = str | Path | bytes | Image.Image


class RawImages(Normalised):
    """uint8, 0 to 255; ``resize`` and ``channels`` are what the experiment's ``data`` section says of all images."""

    kind: Literal["images"] = "images"
    resize: int | None = None
    channels: Literal[1, 3] | None = None

    def read(self, raw: Any, shape: tuple[int, ...]) -> Tensor:
        pictures = [raw] if _is_picture(raw) else raw
        pixels = self._opened(pictures, shape) if _are_pictures(pictures) else self._fitted(array_of(raw), shape)
        return torch.from_numpy(np.ascontiguousarray(pixels))

    def made_up(self, count: int, shape: tuple[int, ...], random: torch.Generator) -> Tensor:
        return torch.randint(256, (count, *shape), dtype=torch.uint8, generator=random)

    def in_words(self, shape: tuple[int, ...]) -> str:
        return f"uint8 images {sizes(shape)}"

    def check(self, shape: tuple[int, ...]) -> None:
        super().check(shape)
        if len(shape) != 3:
            raise ValueError(f"images have channels, height and width, not the shape {shape}")

    @property
    def _reading(self) -> Reading:
        return Reading(resize=self.resize, channels=self.channels)

    def _opened(self, pictures: Sequence[Picture], shape: tuple[int, ...]) -> Array:
        names = [f"image {position}" for position in range(len(pictures))]
        pixels = [
            open_image(Path(picture) if isinstance(picture, str) else picture, _name(picture, name), self._reading)
            for picture, name in zip(pictures, names, strict=True)
        ]
        images = [image.transpose(2, 0, 1) for image in pixels]
        for image, name in zip(images, names, strict=True):
            _check_shape(image.shape, shape, name)
        return np.stack(images)

    def _fitted(self, pixels: Array, shape: tuple[int, ...]) -> Array:
        if pixels.dtype != np.uint8:
            raise DataError(
                f"images must be uint8 from 0 to 255, and these are {pixels.dtype}; turn numbers from 0 to 1 into "
                "(255 * images).round().astype('uint8')"
            )
        for images in _understandings(pixels):
            if images.shape[1:] == shape:
                return images
        if (self.resize or self.channels) and pixels.ndim == 4:
            return self._refitted(pixels, shape)
        raise DataError(_does_not_fit(pixels.shape, shape))

    def _refitted(self, pixels: Array, shape: tuple[int, ...]) -> Array:
        """Images of another size or colour, as those of the dataset were treated."""
        for images in _understandings(pixels):
            if images.shape[1] in (1, 3):
                fitted = refit_images(np.ascontiguousarray(images), self._reading, "image {}".format)
                _check_shape(fitted.shape[1:], shape, "an image")
                return fitted
        raise DataError(_does_not_fit(pixels.shape, shape))


def _is_picture(raw: Any) -> TypeGuard[Picture]:
    return isinstance(raw, Picture)


def _are_pictures(raw: Any) -> TypeGuard[Sequence[Picture]]:
    return isinstance(raw, list | tuple) and len(raw) > 0 and all(map(_is_picture, raw))


def _name(picture: Picture, otherwise: str) -> str:
    return str(picture) if isinstance(picture, str | Path) else otherwise


def _understandings(pixels: Array) -> Iterator[Array]:
    """N x C x H x W in every way in which an array can be understood: many or one, channels first, last or none."""
    if pixels.ndim == 4:
        yield from (pixels, pixels.transpose(0, 3, 1, 2))
    elif pixels.ndim == 3:
        yield from (pixels[:, None], pixels[None], pixels.transpose(2, 0, 1)[None])
    elif pixels.ndim == 2:
        yield pixels[None, None]


def _check_shape(found: tuple[int, ...], wanted: tuple[int, ...], name: str) -> None:
    if found != wanted:
        raise DataError(
            f"{name} is {sizes(found)}, but the model reads {sizes(wanted)} (channels, height, width); convert it"
        )


def _does_not_fit(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    return (
        f"an array of shape {sizes(found)} holds no images of {sizes(wanted)}; give N x C x H x W, N x H x W x C, for "
        "gray images N x H x W, or one image"
    )
