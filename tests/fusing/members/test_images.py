"""Sizes and colours, against NumPy and Pillow."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.fusing.members.images import fitted, resized, with_channels


def test_shrinking_averages_boxes(images: Tensor) -> None:
    means = images.numpy().astype(np.float64).reshape(70, 3, 4, 2, 4, 2).mean(axis=(3, 5))
    found = fitted(images, (3, 4, 4), "net").numpy()
    assert np.abs(found - means).max() <= 1  # rounded twice: along the rows, and along the columns


def test_growing_is_cubic_as_in_pillow(images: Tensor) -> None:
    found = fitted(images, (3, 20, 20), "net")
    for image, large in zip(images[:5], found[:5], strict=True):
        expected = Image.fromarray(image.permute(1, 2, 0).numpy()).resize((20, 20), Image.Resampling.BICUBIC)
        assert np.array_equal(large.permute(1, 2, 0).numpy(), np.asarray(expected))


def test_height_and_width_are_not_mixed_up(images: Tensor) -> None:
    assert resized(images, 5, 11, Image.Resampling.BILINEAR).shape == (70, 3, 5, 11)
    assert resized(images[:, :2], 5, 11, 2).shape == (70, 2, 5, 11)
    assert resized(images[:0], 5, 11, 2).shape == (0, 3, 5, 11)


def test_many_blocks_are_the_images_in_order() -> None:
    many = torch.arange(300, dtype=torch.int32).remainder(251).to(torch.uint8).view(300, 1, 1, 1).expand(-1, 1, 4, 4)
    assert torch.equal(resized(many, 2, 2, Image.Resampling.BOX)[:, 0, 0, 0], many[:, 0, 0, 0])


def test_gray_is_that_of_pillow(images: Tensor) -> None:
    gray = with_channels(images, 1, "net")
    for image, found in zip(images, gray, strict=True):
        expected = np.asarray(Image.fromarray(image.permute(1, 2, 0).numpy()).convert("L"))
        assert np.array_equal(found[0].numpy(), expected)
    back = with_channels(gray, 3, "net")
    assert torch.equal(back[:, 0], gray[:, 0])
    assert torch.equal(back[:, 2], gray[:, 0])


def test_other_numbers_of_channels_are_refused(images: Tensor) -> None:
    with pytest.raises(ConfigError, match="net reads images of 4 channels, and these have 3"):
        fitted(images, (4, 8, 8), "net")
