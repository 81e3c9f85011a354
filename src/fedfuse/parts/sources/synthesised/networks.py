"""The generators of synthesised inputs: random numbers to images from 0 to 1, or to features.

An image begins as a small map of features, which is doubled in size again and again by repeating pixels and smoothed by
3 x 3 convolutions (as the generator of DENSE, after DAFL; Chen et al., 2019). Features come from two linear layers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from fedfuse.data import Normalisation

SMALLEST_SIDE = 8
"""Images begin with sides of at most so many pixels, and are doubled twice at least."""
SLOPE = 0.2


def build_generator(
    shape: tuple[int, ...], are_images: bool, latent: int, width: int, constants: Normalisation
) -> nn.Module:
    """A generator of inputs of this shape; features have the mean and the deviation of these constants."""
    return ImageGenerator(shape, latent, width) if are_images else FeatureGenerator(shape, latent, width, constants)


class ImageGenerator(nn.Module):
    """Random numbers to images; ``width`` are the channels before the last layer, twice as many before that."""

    def __init__(self, shape: tuple[int, ...], latent: int, width: int) -> None:
        super().__init__()
        channels, *self.sides = shape
        doublings = max(2, math.ceil(math.log2(max(self.sides) / SMALLEST_SIDE)))
        start = (2 * width, *(math.ceil(side / 2**doublings) for side in self.sides))
        layers: list[nn.Module] = [
            nn.Linear(latent, math.prod(start)),
            nn.Unflatten(1, start),
            nn.BatchNorm2d(2 * width),
        ]
        for number in range(doublings):
            after = width if number == doublings - 1 else 2 * width
            layers += [nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, after, 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(after), nn.LeakyReLU(SLOPE)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, channels, 3, padding=1), nn.Sigmoid())

    def forward(self, codes: Tensor) -> Tensor:
        whole: Tensor = self.layers(codes)
        return whole[..., : self.sides[0], : self.sides[1]]


class FeatureGenerator(nn.Module):
    """Random numbers to features that have, over a batch, the mean and the deviation of the experiment's constants."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, shape: tuple[int, ...], latent: int, width: int, constants: Normalisation) -> None:
        super().__init__()
        self.shape, number = shape, math.prod(shape)
        self.layers = nn.Sequential(
            nn.Linear(latent, 2 * width, bias=False),
            nn.BatchNorm1d(2 * width),
            nn.LeakyReLU(SLOPE),
            nn.Linear(2 * width, number, bias=False),
            nn.BatchNorm1d(number),
        )
        per_channel = (-1, *[1] * (len(shape) - 1))
        self.register_buffer("mean", torch.tensor(constants.mean).reshape(per_channel))
        self.register_buffer("deviation", torch.tensor(constants.std).reshape(per_channel))

    def forward(self, codes: Tensor) -> Tensor:
        made: Tensor = self.mean + self.deviation * self.layers(codes).unflatten(1, self.shape)
        return made
