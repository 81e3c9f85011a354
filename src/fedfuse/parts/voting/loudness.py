"""How loud members speak: logits of models that were trained apart differ in size, and a mean hears the loudest.

A member's logits are multiplied by one number, so its own first choices stay what they are.

    normalised:  to the same deviation s_k of logits from their row's mean, the geometric mean of all members'
    calibrated:  by 1 / T_k that minimises the negative log-likelihood of labels (temperature scaling, Guo et al., 2017)
                 plus (log T_k)^2 / 2, so that a few labels do not make it absolutely sure; without labels, to the same
                 mean of H(p) / log |C_k|, the mean of all members'

Members who differ make an ensemble that hesitates: its probabilities are flat, whoever learns them learns little of its
first choices, and a small mistake changes them. ``sureness`` makes it as sure as it should be, with the same first
choices, by the same two rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Loudness = Literal["as_is", "normalised", "calibrated"]

FURTHEST = 7.0
"""No logits are made more than exp(7), a thousand times, larger or smaller."""
HALVINGS = 40
LEAST_LOG = -70.0
"""What a class counts in the NLL of an ensemble that holds it for impossible."""
GOLDEN = (math.sqrt(5) - 1) / 2


def factors(loudness: Loudness, said: Sequence[Tensor], labels: Sequence[Tensor] | None = None) -> tuple[float, ...]:
    """What each member's logits are multiplied by; labels are numbers of its own classes, -1 for others."""
    if loudness == "as_is" or not len(said[0]):
        return tuple(1.0 for _ in said)
    if loudness == "normalised":
        return _normalised([one.double() for one in said])
    if labels is not None:
        return tuple(_calibrated(one.double(), own) for one, own in zip(said, labels, strict=True))
    return _equally_sure([one.double() for one in said])


def sureness(ensemble: Tensor, said: Sequence[Tensor], labels: Tensor | None = None) -> float:
    """What an ensemble's log-probabilities are multiplied by: by labels, or to the mean hesitation of its members."""
    if not len(ensemble):
        return 1.0
    if labels is not None:
        return _calibrated(ensemble.double().clamp_min(LEAST_LOG), labels)
    hesitations = [_hesitation(one.double(), 0.0) for one in said]
    return math.exp(_crossing(ensemble.double(), math.fsum(hesitations) / len(hesitations)))


def _normalised(said: Sequence[Tensor]) -> tuple[float, ...]:
    spreads = [float((one - one.mean(dim=1, keepdim=True)).square().mean().sqrt()) for one in said]
    heard = [math.log(spread) for spread in spreads if spread > 0]
    middle = math.exp(math.fsum(heard) / len(heard)) if heard else 1.0
    return tuple(middle / spread if spread > 0 else 1.0 for spread in spreads)


def _calibrated(logits: Tensor, labels: Tensor) -> float:
    known = labels >= 0
    logits, labels = logits[known], labels[known]

    def loss(log_factor: float) -> float:
        said = F.cross_entropy(logits * math.exp(log_factor), labels, reduction="sum") if len(labels) else 0.0
        return float(said) + log_factor**2 / 2

    return math.exp(_lowest(loss))


def _equally_sure(said: Sequence[Tensor]) -> tuple[float, ...]:
    unsure = [_hesitation(one, 0.0) for one in said]
    middle = math.fsum(unsure) / len(unsure)
    return tuple(math.exp(_crossing(one, middle)) if one.shape[1] > 1 else 1.0 for one in said)


def _hesitation(logits: Tensor, log_factor: float) -> float:
    """The mean entropy as a share of the largest that there could be, which falls as logits grow."""
    if logits.shape[1] < 2:
        return 0.0
    entropy = torch.special.entr((logits * math.exp(log_factor)).softmax(dim=1)).sum(dim=1).mean()
    return float(entropy) / math.log(logits.shape[1])


def _crossing(logits: Tensor, hesitation: float) -> float:
    low, high = -FURTHEST, FURTHEST
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _hesitation(logits, middle) > hesitation else (low, middle)
    return (low + high) / 2


def _lowest(value: Callable[[float], float]) -> float:
    """Where a function with one valley is lowest, by golden sections."""
    low, high = -FURTHEST, FURTHEST
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(HALVINGS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = value(right)
    return (low + high) / 2
