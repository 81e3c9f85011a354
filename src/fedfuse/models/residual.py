"""What all residual networks are made of: blocks, shortcuts, and the choice of their norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self

import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from fedfuse.models.architecture import Architecture, Count
from fedfuse.models.norm import NormKind, group_count, norm

ShortcutKind = Literal["conv", "pad"]
NormFactory = Callable[[int], nn.Module]


class ResidualArchitecture(Architecture):
    """``width`` is the first stage's channels, of which all other layers have multiples.

    ``groups`` (how many) or ``channels_per_group`` belong to ``norm: group``; without either, 16 channels per
    group as in FedGKD. With ``norm: none`` the convolutions get a bias instead; activations then grow with every
    block, so that is for the shallow ones.
    """

    norm: NormKind = Field("batch", description="normalisation after each convolution; none: a bias instead")
    groups: Count | None = Field(None, description="of norm group: how many groups of channels")
    channels_per_group: Count | None = Field(
        None, description="of norm group: how large they are; 16, as FedGKD, if neither is given"
    )
    width: Count = Field(description="channels of the first stage; all other layers have multiples")

    @model_validator(mode="after")
    def _groups_fit(self) -> Self:
        given = [name for name in ("groups", "channels_per_group") if getattr(self, name) is not None]
        if given and self.norm != "group":
            raise ValueError(f"{' and '.join(given)} need norm 'group', not '{self.norm}'")
        if len(given) == 2:
            raise ValueError("give groups or channels_per_group, not both")
        if self.norm == "group":
            group_count(self.width, self.groups, self.channels_per_group)
        return self

    def norm_layer(self, channels: int) -> nn.Module:
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
        self.conv1, self.norm1 = convolution(inputs, outputs, 3, stride, norm_layer)
        self.conv2, self.norm2 = convolution(outputs, outputs, 3, 1, norm_layer)
        self.shortcut = _shortcut(inputs, outputs, stride, shortcut, norm_layer)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.relu(h + self.shortcut(x))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, the last of which has four times the channels."""

    expansion = 4

    def __init__(self, inputs: int, planes: int, stride: int, norm_layer: NormFactory) -> None:
        super().__init__()
        outputs = self.expansion * planes
        self.conv1, self.norm1 = convolution(inputs, planes, 1, 1, norm_layer)
        self.conv2, self.norm2 = convolution(planes, planes, 3, stride, norm_layer)
        self.conv3, self.norm3 = convolution(planes, outputs, 1, 1, norm_layer)
        self.shortcut = _shortcut(inputs, outputs, stride, "conv", norm_layer)

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        h = F.relu(self.norm2(self.conv2(h)))
        h = self.norm3(self.conv3(h))
        return F.relu(h + self.shortcut(x))


def convolution(
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
    return nn.Sequential(*convolution(inputs, outputs, 1, stride, norm_layer))
