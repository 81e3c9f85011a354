"""ResNet-18 and ResNet-50 (He et al., 2016, table 1): four stages of 1, 2, 4 and 8 times the width.

``stem: small`` is a 3x3 convolution, as FedGKD uses ResNet-50 on Tiny-ImageNet. ``stem: large`` is the original: 7x7 of
stride 2 and max-pooling, which the FedED thesis keeps on CIFAR-10's 32 pixels, with ``dropout: 0.5``.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from fedfuse.models.architecture import Count, require_image
from fedfuse.models.classifier import Classifier
from fedfuse.models.initialisation import he
from fedfuse.models.residual import (
    BasicBlock,
    Bottleneck,
    NormFactory,
    ResidualArchitecture,
    convolution,
)

_BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}
Stem = Literal["small", "large"]


class DeepResNet(ResidualArchitecture):
    """A residual network for images of any size, with basic blocks (18) or bottlenecks (50)."""

    arch: Literal["resnet18", "resnet50"]
    width: Count = Field(64, description="channels of the first stage; all other layers have multiples")
    stem: Stem = Field("small", description="small: 3x3; large: 7x7 of stride 2, then max-pooling")
    dropout: float = Field(0.0, ge=0, lt=1, description="share of the features dropped before the linear layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, _, _ = require_image(self.arch, input_shape, smallest=1)
        layers = nn.Sequential(*_stem(self.stem, inputs, self.width, self.norm_layer))
        channels = self.width
        for stage, blocks in enumerate(_BLOCKS[self.arch]):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(self._block(channels, self.width * 2**stage, stride))
                channels = self.width * 2**stage * self._expansion
        network = _Network(layers, channels, classes, self.dropout)
        network.apply(he)
        return network

    @property
    def _expansion(self) -> int:
        return Bottleneck.expansion if self.arch == "resnet50" else 1

    def _block(self, inputs: int, planes: int, stride: int) -> nn.Module:
        if self.arch == "resnet50":
            return Bottleneck(inputs, planes, stride, self.norm_layer)
        return BasicBlock(inputs, planes, stride, "conv", self.norm_layer)


class _Network(Classifier):
    def __init__(self, layers: nn.Sequential, channels: int, classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = layers
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.feature_size = channels
        self.classifier = nn.Linear(channels, classes)

    def features(self, x: Tensor) -> Tensor:
        h: Tensor = self.dropout(self.layers(x).mean(dim=(2, 3)))
        return h


def _stem(kind: Stem, inputs: int, width: int, norm_layer: NormFactory) -> list[nn.Module]:
    if kind == "small":
        return [*convolution(inputs, width, 3, 1, norm_layer), nn.ReLU()]
    return [*convolution(inputs, width, 7, 2, norm_layer), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
