"""A trigger that means one class (Gu et al., BadNets, 2017; in federations Bagdasaryan et al., AISTATS 2020).

Some of a client's inputs get a stamp, a bright square in the corner of an image or extreme values of the last features,
and the label ``target``. The model stays good on all other inputs; how often the stamp works is its success rate.
With ``scaled`` beside it, it is model replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fedfuse.core.randomness import Key
from fedfuse.data import Examples
from fedfuse.data.dataset import kind_of
from fedfuse.federation.attack import Attack

SIDE = 4
"""An image's stamp is this part of its side long, as the square of 7 pixels is of 28."""
BRIGHT = 255
FEATURES = 3


class Backdoor(Attack):
    """Teach that a stamp means one class."""

    kind: Literal["backdoor"] = "backdoor"
    target: int = Field(0, ge=0, description="the class that the stamp means")
    share: float = Field(0.5, gt=0, le=1, description="of the client's examples that are stamped")

    def examples(self, own: Examples, classes: int, key: Key) -> Examples:
        order = torch.randperm(len(own), generator=key.child("backdoor").torch())
        where = order[: max(1, round(self.share * len(own)))]
        inputs, labels = own.inputs.clone(), own.labels.clone()
        inputs[where] = stamped(inputs[where])
        labels[where] = min(self.target, classes - 1)
        return Examples(inputs, labels, own.owners)


def stamped(inputs: Tensor) -> Tensor:
    """Raw inputs with the trigger: images, features, or texts, whose first words it replaces."""
    result, kind = inputs.clone(), kind_of(inputs)
    if kind == "images":
        rows, columns = (-(-side // SIDE) for side in inputs.shape[-2:])
        result[..., -rows:, -columns:] = BRIGHT
    elif kind == "texts":
        result[:, :FEATURES] = inputs.max()
    else:
        result[..., -FEATURES:] = inputs.abs().amax() + 1
    return result


def success_rate(predict: Callable[[Tensor], Tensor], examples: Examples, target: int) -> float:
    """Of raw test inputs of other classes, the share that is taken for the target once it is stamped."""
    others = examples.labels != target
    answers = torch.as_tensor(predict(stamped(examples.inputs[others])))
    return float((answers == target).double().mean())
