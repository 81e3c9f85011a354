"""Noise on what other parts send beside the payload: label counts, sums of logits, control variates, scores.

    s <- s min(1, S / ||s||) + N(0, (z S)^2 I)      with a ``norm`` S: all of a client's s together, whoever made it
    s <- s + N(0, (z L)^2 I)                        without: L is how far one example can move s

The first protects a client, the second its examples; L is known of label counts, which one example moves by 1. With a
norm, one example can move s from one end to the other, 2 S, so that z counts half for it, unless L is less. Counts
that noise has brought below zero are zero.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator

from fedfuse.core.messages import Tensors
from fedfuse.core.releases import Multiplier, check_one_measure
from fedfuse.parts.context import ClientContext
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.parts.upload.updates import shortened

TO_THE_OTHER_END = 2.0
"""How far apart, over the bound, two things can be that are cut to the same length."""


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
    deviation: float | None = Field(None, gt=0, description="standard deviation of the noise on every number")
    multiplier: Multiplier | None = Field(
        None, description="z: the same over S, or over what one example can change; auto: as privacy.budget needs"
    )

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        check_one_measure(self.deviation, self.multiplier)
        return self

    def multiplier_of(self, sensitivity: float | None) -> float:
        """z, where one example can move what is sent that far; 0 where nobody knows."""
        if self.deviation is None:
            assert isinstance(self.multiplier, float), "chosen before round 1"
            return self.multiplier
        unit = self.norm or sensitivity
        return 0.0 if unit is None else self.deviation / unit

    def counted(self, sensitivity: float | None, by_example: bool) -> float:
        """z over what really can change: a client can take away all that is within the norm.

        One example can turn it round, if it can move it so far.
        """
        multiplier = self.multiplier_of(sensitivity)
        if self.norm is None or not by_example:
            return multiplier
        farthest = TO_THE_OTHER_END * self.norm
        return multiplier * self.norm / min(farthest, math.inf if sensitivity is None else sensitivity)

    def pack(self, sent: Tensors, client: ClientContext) -> Packed:
        return Packed(sent, bound=client.bound)

    def beside(self, extras: Tensors, sensitivity: float | None, client: ClientContext) -> Tensors:
        scale, key = self._scale(extras), client.secret.child("statistics")
        deviation = self.deviation or self.multiplier_of(None) * (self.norm or sensitivity or 0.0)
        return {
            name: key.child(name).noised(torch.nan_to_num(shortened(tensor, scale)), deviation)
            for name, tensor in extras.items()
        }

    def _scale(self, extras: Tensors) -> float:
        """By what all of it is multiplied, so that it is not too long; what is not finite has no length."""
        if self.norm is None:
            return 1.0
        length = math.sqrt(sum(float(tensor.double().square().sum()) for tensor in extras.values()))
        return min(1.0, self.norm / length) if 0 < length < math.inf else 0.0
