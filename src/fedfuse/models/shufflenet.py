"""ShuffleNetV2 (Ma et al., 2018) for small images, as FedDF uses it: a stem of stride 1 without pooling.

Three stages of one down-sampling unit and 3, 7, 3 basic units. A basic unit works on one half of the channels and
shuffles both halves together; only 1x1 and depthwise 3x3 convolutions.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.models.architecture import Architecture, Count, require_image
from fedfuse.models.classifier import Classifier, LayeredClassifier

_BASIC_UNITS = (3, 7, 3)
_STEM = 24


class ShuffleNetV2(Architecture):
    """The published sizes 0.5, 1, 1.5 and 2 have ``width`` 48, 116, 176 and 244, the last with ``last: 2048``."""

    arch: Literal["shufflenetv2"] = "shufflenetv2"
    width: int = Field(116, ge=2, multiple_of=2, description="channels of the first stage; then twice and four times")
    last: Count = Field(1024, description="channels after the last convolution, which are the features")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, _, _ = require_image(self.arch, input_shape, smallest=1)
        layers = nn.Sequential(*_dense(inputs, _STEM, 3))
        channels = _STEM
        for stage, units in enumerate(_BASIC_UNITS):
            outputs = self.width * 2**stage
            layers.append(DownUnit(channels, outputs))
            layers.extend([BasicUnit(outputs) for _ in range(units)])
            channels = outputs
        layers.extend([*_dense(channels, self.last, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        return LayeredClassifier(layers, self.last, classes)


class BasicUnit(nn.Module):
    """One half of the channels passes unchanged, the other through three convolutions."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.work = nn.Sequential(*_dense(half, half, 1), *_depthwise(half, 1), *_dense(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        carried, worked = x.chunk(2, dim=1)
        return shuffled(carried, self.work(worked))


class DownUnit(nn.Module):
    """Both halves of the outputs are computed from all inputs, at half the resolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        half = outputs // 2
        self.left = nn.Sequential(*_depthwise(inputs, 2), *_dense(inputs, half, 1))
        self.right = nn.Sequential(*_dense(inputs, half, 1), *_depthwise(half, 2), *_dense(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        return shuffled(self.left(x), self.right(x))


def shuffled(left: Tensor, right: Tensor) -> Tensor:
    """The channels of both in turn: left 0, right 0, left 1, right 1, ..."""
    return torch.stack([left, right], dim=2).flatten(1, 2)


def _dense(inputs: int, outputs: int, kernel: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
    return convolution, nn.BatchNorm2d(outputs), nn.ReLU()


def _depthwise(channels: int, stride: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(channels, channels, 3, stride, padding=1, groups=channels, bias=False)
    return convolution, nn.BatchNorm2d(channels)
