"""The two networks that the papers call VGG-9: 3x3 convolutions, pooling and linear layers in a row, no norm.

``fedma``: six convolutions, two hidden linear layers and dropout (FedMA's "moderate CNN"); ``feddf``: eight
convolutions and one linear layer (FedDF's code). FedDF's appendix names both sources; its comparison with FedMA needs
the first.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field
from torch import nn

from fedfuse.models.architecture import Architecture, Count, require_image
from fedfuse.models.classifier import Classifier, LayeredClassifier
from fedfuse.models.initialisation import he

Variant = Literal["fedma", "feddf"]

_POOL, _DROP = "pool", "drop"
_CONVOLUTIONS: dict[Variant, tuple[int | str, ...]] = {
    "fedma": (1, 2, _POOL, 4, 4, _POOL, _DROP, 8, 8, _POOL),
    "feddf": (1, _POOL, 2, _POOL, 4, 4, _POOL, 8, 8, _POOL, 8, 8, _POOL),
}
_HIDDEN = 16
"""Of FedMA's linear layers, in multiples of the width."""


class Vgg9(Architecture):
    """Of the published widths with ``width: 32``; every layer has a multiple of it."""

    arch: Literal["vgg9"] = "vgg9"
    variant: Variant = Field("fedma", description="fedma: with hidden linear layers and dropout; feddf: without")
    width: Count = Field(32, description="channels of the first convolution")

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        plan = _CONVOLUTIONS[self.variant]
        shrinks = 2 ** plan.count(_POOL)
        channels, height, width = require_image(f"{self.arch} ({self.variant})", input_shape, smallest=shrinks)
        layers = nn.Sequential()
        for step in plan:
            if isinstance(step, int):
                layers.extend([nn.Conv2d(channels, step * self.width, kernel_size=3, padding=1), nn.ReLU()])
                channels = step * self.width
            else:
                layers.append(nn.MaxPool2d(2) if step == _POOL else nn.Dropout2d(0.05))
        layers.append(nn.Flatten())
        flat = math.prod((channels, height // shrinks, width // shrinks))
        if self.variant == "feddf":
            return LayeredClassifier(layers.apply(he), flat, classes)
        hidden = _HIDDEN * self.width
        layers.extend([nn.Dropout(0.1), nn.Linear(flat, hidden), nn.ReLU()])
        layers.extend([nn.Linear(hidden, hidden), nn.ReLU(), nn.Dropout(0.1)])
        return LayeredClassifier(layers, hidden, classes)
