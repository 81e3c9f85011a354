"""ResNets for small images (He et al., 2016, section 4.2), in the variants of FedDF, FedGKD and FedBE.

A 3x3 convolution, three stages of n basic blocks with 1, 2 and 4 times the width, global average pooling and one
linear layer; the depth is 6n + 2. FedDF and FedGKD change shape with a 1x1 convolution, FedBE by zero-padding
(option A of He et al.). ImageNet32 in FedDF uses width 64.
"""

from __future__ import annotations

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from fedfuse.models.architecture import Count, require_image
from fedfuse.models.classifier import Classifier
from fedfuse.models.initialisation import INITIALISE, Initialisation
from fedfuse.models.residual import BasicBlock, NormFactory, ResidualArchitecture, ShortcutKind, convolution

_BLOCKS_PER_STAGE = {"resnet8": 1, "resnet20": 3, "resnet32": 5, "resnet44": 7, "resnet56": 9}
_STAGES = 3


class ResNet(ResidualArchitecture):
    """A residual network for images of any size.

    ``initialisation: he`` draws convolutions from a normal distribution and leaves torch's default for the linear
    layer, as FedDF's code; ``xavier`` draws both uniformly, as FedBE's.
    """

    arch: Literal["resnet8", "resnet20", "resnet32", "resnet44", "resnet56"]
    shortcut: ShortcutKind = Field("conv", description="where the shape changes: a 1x1 convolution, or zeros (FedBE)")
    width: Count = Field(16, description="channels of the first stage; the others have 2 and 4 times as many")
    initialisation: Initialisation = Field("he", description="of the weights: he as FedDF's code, xavier as FedBE's")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        inputs, _, _ = require_image(self.arch, input_shape, smallest=1)
        network = _Network(inputs, classes, self.width, _BLOCKS_PER_STAGE[self.arch], self.shortcut, self.norm_layer)
        network.apply(INITIALISE[self.initialisation])
        return network


class _Network(Classifier):
    def __init__(
        self, inputs: int, classes: int, width: int, blocks: int, shortcut: ShortcutKind, norm_layer: NormFactory
    ) -> None:
        super().__init__()
        self.conv, self.norm = convolution(inputs, width, 3, 1, norm_layer)
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
