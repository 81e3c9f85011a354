"""Networks that a hand-written loop, fedfuse and its peers train alike: plain layers in a row."""

from __future__ import annotations

from torch import nn


def convnet() -> nn.Module:
    """W1: two 5x5 convolutions and a hidden layer of 512, 878,538 parameters, for 3x32x32 images."""
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(32, 64, 5), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(64 * 5 * 5, 512), nn.ReLU(), nn.Linear(512, 10)),
    )


def small_convnet() -> nn.Module:
    """W3: two small 5x5 convolutions and one linear layer, 11,274 parameters, for 1x28x28 images."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(8, 16, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(16 * 7 * 7, 10)),
    )
