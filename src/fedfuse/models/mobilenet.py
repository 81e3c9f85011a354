"""MobileNetV2 (Sandler et al., 2018) for small images, as FedBE uses it: the first two strides are 1.

Inverted residuals: a 1x1 convolution to six times the channels, a depthwise 3x3 one, and a linear 1x1 one back. The
input is added where its shape is the output's.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from fedfuse.models.architecture import Architecture, require_image
from fedfuse.models.classifier import Classifier, LayeredClassifier
from fedfuse.models.initialisation import he

_STEM, _LAST = 32, 1280
_STAGES = (
    # expansion, channels, blocks, stride of the first block
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


class MobileNetV2(Architecture):
    """Of the published channels with ``width: 32``; all of them, the last layer's included, are proportional to it."""

    arch: Literal["mobilenetv2"] = "mobilenetv2"
    width: int = Field(_STEM, ge=4, multiple_of=4, description="channels of the first convolution")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, _, _ = require_image(self.arch, input_shape, smallest=1)
        layers = nn.Sequential(*_convolution(inputs, self.width, 3))
        channels = self.width
        for expansion, published, blocks, stride in _STAGES:
            outputs = self._scaled(published)
            for block in range(blocks):
                layers.append(InvertedResidual(channels, outputs, expansion, stride if block == 0 else 1))
                channels = outputs
        last = self._scaled(_LAST)
        layers.extend([*_convolution(channels, last, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        return LayeredClassifier(layers.apply(he), last, classes)

    def _scaled(self, published: int) -> int:
        return published * self.width // _STEM


class InvertedResidual(nn.Module):
    """Expand, convolve each channel by itself, and project without a nonlinearity."""

    def __init__(self, inputs: int, outputs: int, expansion: int, stride: int) -> None:
        super().__init__()
        hidden = expansion * inputs
        self.carries = stride == 1 and inputs == outputs
        self.layers = nn.Sequential(
            *(_convolution(inputs, hidden, 1) if expansion > 1 else ()),
            *_convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.layers(x)
        return x + h if self.carries else h


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> tuple[nn.Module, ...]:
    layer = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return layer, nn.BatchNorm2d(outputs), nn.ReLU6()
