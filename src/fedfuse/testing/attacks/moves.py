"""What weight attacks have in common: the weights that a client was sent, moved by something else than it learnt.

BatchNorm statistics are those of honest training: a negative variance would be refused at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedfuse.core.weights import Weights


def moved(honest: Weights, sent: Weights, factor: float) -> Weights:
    """As far in the honest direction as this many honest moves."""
    return honest.with_parameters(sent.parameters + factor * (honest.parameters - sent.parameters))


def moves_of(others: Sequence[Weights], sent: Weights) -> Tensor:
    """A row for every other client: how it moves its parameters, in double precision."""
    return torch.stack([other.parameters.double() - sent.parameters.double() for other in others])


def moved_by(honest: Weights, sent: Weights, move: Tensor) -> Weights:
    """The weights that were sent, moved by this."""
    return honest.with_parameters((sent.parameters.double() + move).to(sent.parameters.dtype))
