"""Gaussian noise on a client's update: y <- y + N(0, sigma^2 I), with random numbers that only this client has.

After ``clip`` with norm S this is the Gaussian mechanism with noise multiplier sigma / S; nothing here counts what
privacy that buys.
"""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.errors import ConfigError
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ClientContext
from fedfuse.parts.upload.updates import OnUpdates


class Noise(OnUpdates):
    """Updates with Gaussian noise."""

    kind: Literal["noise"] = "noise"
    deviation: float = Field(gt=0, description="sigma: standard deviation of the noise on every parameter")

    def check(self, context: CheckContext) -> None:
        for prototype in context.bank.prototypes:
            if context.bank.layout(prototype).buffers:
                raise ConfigError(
                    f"method.upload noise: the BatchNorm statistics of '{prototype}' would travel without noise; give "
                    "the model another norm"
                )

    def changed(self, update: Tensor, client: ClientContext) -> Tensor:
        return update + self.deviation * torch.randn(update.shape, generator=client.key.child("noise").torch())
