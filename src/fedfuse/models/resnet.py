"""ResNets for small images (He et al., 2016, section 4.2), in the variants of FedDF, FedGKD and FedBE.

A 3x3 convolution, three stages of n basic blocks with 1, 2 and 4 times the width, global average pooling and one
linear layer; the depth is 6n + 2. FedDF and FedGKD change shape with a 1x1 convolution, FedBE by zero-padding
(option A of He et al.). ImageNet32 in FedDF uses width 64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal, Self

import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from fedfuse.models.architecture import Architecture, require_image
from fedfuse.models.classifier import Classifier
from fedfuse.models.norm import NormKind, group_count, norm

ShortcutKind = Literal["conv", "pad"]
Initialisation = Literal["he", "xavier"]
Count = Annotated[int, Field(ge=1)]
NormFactory = Callable[[int], nn.Module]

_BLOCKS_PER_STAGE = {"resnet8": 1, "resnet20": 3, "resnet32": 5, "resnet44": 7, "resnet56": 9}
_STAGES = 3


class ResNet(Architecture):
    """A residual network for images of any size.

    ``groups`` (how many) or ``channels_per_group`` belong to ``norm: group``; without either, 16 channels per
    group as in FedGKD. With ``norm: none`` the convolutions get a bias instead; activations then grow with every
    block, so that is for the shallow ones. ``he`` draws convolutions from a normal distribution and leaves
    torch's default for the linear layer, as FedDF's code; ``xavier`` draws both uniformly, as FedBE's.
    """

    arch: Literal["resnet8", "resnet20", "resnet32", "resnet44", "resnet56"]
    norm: NormKind = "batch"
    groups: Count | None = None
    channels_per_group: Count | None = None
    shortcut: ShortcutKind = "conv"
    width: Count = 16
    initialisation: Initialisation = "he"

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        given = [name for name in ("groups", "channels_per_group") if getattr(self, name) is not None]
        if given and self.norm != "group":
            raise ValueError(f"{' and '.join(given)} need norm 'group', not '{self.norm}'")
        if len(given) == 2:
            raise ValueError("give groups or channels_per_group, not both")
        if self.norm == "group":
            # The other stages have multiples of the first one's channels.
            group_count(self.width, self.groups, self.channels_per_group)
        return self

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, _, _ = require_image(self.arch, input_shape, smallest=1)
        network = _Network(inputs, classes, self.width, _BLOCKS_PER_STAGE[self.arch], self.shortcut, self._norm_layer)
        network.apply(_INITIALISE[self.initialisation])
        return network

    def _norm_layer(self, channels: int) -> nn.Module:
        return norm(self.norm, channels, self.groups, self.channels_per_group)


class PadShortcut(nn.Module):
    """Option A: take every ``stride``-th pixel and surround the channels with zero ones; no parameters."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.before = (outputs - inputs) // 2
        self.after = outputs - inputs - self.before

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.before, self.after))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions around which the input is carried."""

    def __init__(self, inputs: int, outputs: int, stride: int, shortcut: ShortcutKind, norm_layer: NormFactory) -> None:
        super().__init__()
        self.conv1, self.norm1 = _convolution(inputs, outputs, 3, stride, norm_layer)
        self.conv2, self.norm2 = _convolution(outputs, outputs, 3, 1, norm_layer)
        self.shortcut = _shortcut(inputs, outputs, stride, shortcut, norm_layer)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.relu(h + self.shortcut(x))


class _Network(Classifier):
    def __init__(
        self, inputs: int, classes: int, width: int, blocks: int, shortcut: ShortcutKind, norm_layer: NormFactory
    ) -> None:
        super().__init__()
        self.conv, self.norm = _convolution(inputs, width, 3, 1, norm_layer)
        self.stages = nn.Sequential()
        channels = width
        for stage in range(_STAGES):
            for block in range(blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                outputs = width * 2**stage
                self.stages.append(BasicBlock(channels, outputs, stride, shortcut, norm_layer))
                channels = outputs
        self.feature_size = channels
        self.classifier = nn.Linear(channels, classes)

    def features(self, x: Tensor) -> Tensor:
        h: Tensor = self.stages(F.relu(self.norm(self.conv(x))))
        return h.mean(dim=(2, 3))


def _convolution(
    inputs: int, outputs: int, kernel: int, stride: int, norm_layer: NormFactory
) -> tuple[nn.Conv2d, nn.Module]:
    """A size-preserving convolution (up to the stride) and its norm, which makes a bias superfluous."""
    layer = norm_layer(outputs)
    bias = isinstance(layer, nn.Identity)
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=bias), layer


def _shortcut(inputs: int, outputs: int, stride: int, kind: ShortcutKind, norm_layer: NormFactory) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    if kind == "pad":
        return PadShortcut(inputs, outputs, stride)
    return nn.Sequential(*_convolution(inputs, outputs, 1, stride, norm_layer))


def _he(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        height, width = module.kernel_size
        nn.init.normal_(module.weight, std=math.sqrt(2 / (height * width * module.out_channels)))
        _zero_bias(module)


def _xavier(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
    if isinstance(module, nn.Conv2d):
        _zero_bias(module)


def _zero_bias(module: nn.Conv2d) -> None:
    if module.bias is not None:
        nn.init.zeros_(module.bias)


_INITIALISE: dict[Initialisation, Callable[[nn.Module], None]] = {"he": _he, "xavier": _xavier}
