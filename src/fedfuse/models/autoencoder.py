"""The autoencoders by which FedED's clients tell how well they know an input (thesis, METHODS A0.3 / A9).

Images of 28 pixels and 32 pixels have the thesis's convolutional ones (bottlenecks of 4 and 64 numbers); for anything
else a small fully connected one, which the thesis has no need of.
"""

from __future__ import annotations

import math

from torch import nn


def autoencoder(shape: tuple[int, ...]) -> nn.Sequential:
    """A freshly initialised autoencoder for inputs of this shape: encoder and decoder in a row."""
    if shape == (1, 28, 28):
        return _convolutional(1, (8, 16, 32), bottleneck=4)
    if shape == (3, 32, 32):
        return _convolutional(3, (32, 64, 128), bottleneck=64)
    return _dense(shape)


def _convolutional(channels: int, widths: tuple[int, int, int], bottleneck: int) -> nn.Sequential:
    """Three strided convolutions, two linear layers, and the way back; the code ends in a sigmoid."""
    first, second, third = widths
    flat = third * 9
    encoder = nn.Sequential(
        nn.Conv2d(channels, first, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(first, second, 3, stride=2, padding=1),
        nn.BatchNorm2d(second),
        nn.ReLU(),
        nn.Conv2d(second, third, 3, stride=2, padding=0),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(flat, 128),
        nn.ReLU(),
        nn.Linear(128, bottleneck),
    )
    # 3 -> 7 -> 14 -> 28 pixels for gray images, 3 -> 7 -> 15 -> 32 for colour ones.
    small = channels == 1
    decoder = nn.Sequential(
        nn.Linear(bottleneck, 128),
        nn.ReLU(),
        nn.Linear(128, flat),
        nn.ReLU(),
        nn.Unflatten(1, (third, 3, 3)),
        nn.ConvTranspose2d(third, second, 3, stride=2),
        nn.BatchNorm2d(second),
        nn.ReLU(),
        nn.ConvTranspose2d(second, first, 3, stride=2, padding=1 if small else 0, output_padding=1 if small else 0),
        nn.BatchNorm2d(first),
        nn.ReLU(),
        nn.ConvTranspose2d(first, channels, 3, stride=2, padding=1 if small else 0, output_padding=1),
        nn.Sigmoid(),
    )
    return nn.Sequential(encoder, decoder)


def _dense(shape: tuple[int, ...]) -> nn.Sequential:
    size = math.prod(shape)
    hidden, bottleneck = max(8, min(128, size)), max(1, min(8, size // 2))
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, bottleneck), nn.ReLU())
    decoder = nn.Sequential(nn.Linear(bottleneck, hidden), nn.ReLU(), nn.Linear(hidden, size), nn.Unflatten(1, shape))
    return nn.Sequential(encoder, decoder)
