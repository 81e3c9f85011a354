"""Training on false labels (Biggio, Nelson and Laskov, 2012; in federations Tolpegin et al., ESORICS 2020).

y -> K - 1 - y, or ``source`` -> ``target``, or all of them -> ``target``
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.data import Examples
from fedfuse.federation.attack import Attack


class LabelFlip(Attack):
    """Learn what is wrong, honestly."""

    kind: Literal["label_flip"] = "label_flip"
    source: int | None = Field(None, ge=0, description="the class that is called target; unless said, all of them are")
    target: int | None = Field(
        None, ge=0, description="what it is called instead; unless said, all labels are turned round"
    )

    @model_validator(mode="after")
    def _called_something(self) -> Self:
        if self.source is not None and self.target is None:
            raise ValueError("a source needs a target: what that class is called instead")
        return self

    def examples(self, own: Examples, classes: int, key: Key) -> Examples:
        return Examples(own.inputs, self._false(own.labels, classes), own.owners)

    def _false(self, labels: Tensor, classes: int) -> Tensor:
        if self.target is None:
            return classes - 1 - labels
        target = torch.full_like(labels, min(self.target, classes - 1))
        return target if self.source is None else torch.where(labels == self.source, target, labels)
