"""Noise on what other parts send beside the payload: label counts, sums of logits, control variates, scores.

    s <- s min(1, S / ||s||) + N(0, (z S)^2 I)      with a ``norm`` S: all of a client's s together, whoever made it
    s <- s + N(0, (z L)^2 I)                        without: L is how far one example can move s

The first protects a client, the second its examples; L is known of label counts, which one example moves by 1. Counts
that noise has brought below zero are zero.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import torch
from pydantic import Field

from fedfuse.core.messages import Tensors
from fedfuse.core.releases import Multiplier
from fedfuse.parts.context import ClientContext
from fedfuse.parts.upload.base import Packed, Upload


class Statistics(Upload):
    """What travels beside weights or predictions, clipped and with noise."""

    kind: Literal["statistics"] = "statistics"
    needs_payload: ClassVar[bool] = False
    only_repacks: ClassVar[bool] = True
    norm: float | None = Field(
        None,
        gt=0,
        description="S: how long all that a client sends beside its payload may be together; null: noise is relative "
        "to what one example can change",
    )
    multiplier: Multiplier = Field(description="z: noise over S, or over what one example can change")

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        return Packed(sent, bound=client.bound)

    def beside(self, extras: Tensors, sensitivity: float | None, client: ClientContext) -> Tensors:
        if not extras:
            return extras
        assert isinstance(self.multiplier, float), "chosen before round 1"
        scale = 1.0
        if self.norm is not None:
            length = math.sqrt(sum(float(tensor.double().square().sum()) for tensor in extras.values()))
            scale = min(1.0, self.norm / length) if math.isfinite(length) and length else 0.0
        unit = self.norm or sensitivity
        assert unit is not None, "a promise of privacy needs a bound"
        key = client.secret.child("statistics")
        return {
            name: key.child(name).noised(torch.nan_to_num(scale * tensor), self.multiplier * unit)
            for name, tensor in extras.items()
        }
