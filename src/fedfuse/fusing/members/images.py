"""Images of one size and colour to those of another, as each network wants them; with Pillow's own arithmetic."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.data.raw.base import sizes

BLOCK = 128
"""Images that one thread resizes at a time."""
THREADS = 2
GRAY = (19595, 38470, 7471)
"""Of red, green and blue in 65536 parts of gray: ITU-R 601, as Pillow rounds it."""


def fitted(images: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    """uint8 images as a network of this shape takes them: averaged over boxes when they shrink, cubic when they grow.

    ``name`` begins the sentence about images that cannot be had so.
    """
    if len(shape) != 3:
        raise ConfigError(f"{name} reads inputs of {sizes(shape)}, which are no images")
    coloured = with_channels(images, shape[0], name)
    smaller = shape[1] * shape[2] < images.shape[2] * images.shape[3]
    return resized(coloured, shape[1], shape[2], Image.Resampling.BOX if smaller else Image.Resampling.BICUBIC)


def with_channels(images: Tensor, channels: int, name: str) -> Tensor:
    """Gray ones for a network of colours, or the other way round."""
    found = images.shape[1]
    if found == channels:
        return images
    if (found, channels) == (1, 3):
        return images.expand(-1, 3, -1, -1)
    if (found, channels) == (3, 1):
        parts = torch.tensor(GRAY).view(1, 3, 1, 1)
        return ((images.long() * parts).sum(dim=1, keepdim=True) + (1 << 15) >> 16).to(torch.uint8)
    raise ConfigError(f"{name} reads images of {channels} channels, and these have {found}")


def resized(images: Tensor, height: int, width: int, resample: Image.Resampling | int) -> Tensor:
    """Every image by itself, in whichever way Pillow knows."""
    if images.shape[2:] == (height, width) or not len(images):
        return images if len(images) else images.new_empty((0, images.shape[1], height, width))
    blocks = images.split(BLOCK)
    work = partial(_resized_block, size=(width, height), resample=Image.Resampling(resample))
    with ThreadPoolExecutor(THREADS) as pool:
        return torch.cat(list(pool.map(work, blocks)))


def _resized_block(images: Tensor, size: tuple[int, int], resample: Image.Resampling) -> Tensor:
    channels = images.shape[1]
    if channels in (1, 3):
        rows = np.ascontiguousarray(images.permute(0, 2, 3, 1).numpy())
        pictures = [Image.fromarray(row[:, :, 0] if channels == 1 else row).resize(size, resample) for row in rows]
        table = np.stack([np.asarray(picture) for picture in pictures])
        return torch.from_numpy(table).view(len(rows), size[1], size[0], channels).permute(0, 3, 1, 2).contiguous()
    planes = images.reshape(-1, 1, *images.shape[2:])
    return _resized_block(planes, size, resample).reshape(len(images), channels, size[1], size[0])
