"""Training on false labels (Biggio, Nelson and Laskov, 2012; in federations Tolpegin et al., ESORICS 2020).

y -> K - 1 - y, or of one class only: ``source`` -> ``target``
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator

from fedfuse.core.randomness import Key
from fedfuse.data import Examples
from fedfuse.federation.attack import Attack


class LabelFlip(Attack):
    """Learn what is wrong, honestly."""

    kind: Literal["label_flip"] = "label_flip"
    source: int | None = Field(
        None, ge=0, description="the class that is called target; unless said, all labels are turned round"
    )
    target: int | None = Field(None, ge=0, description="what source is called")

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.source is None) != (self.target is None):
            raise ValueError("source and target belong together: the class, and what it is called instead")
        return self

    def examples(self, own: Examples, classes: int, key: Key) -> Examples:
        if self.source is None or self.target is None:
            return Examples(own.inputs, classes - 1 - own.labels, own.owners)
        target = min(self.target, classes - 1)
        return Examples(own.inputs, torch.where(own.labels == self.source, target, own.labels), own.owners)
