"""What clients add up: values on a grid of whole numbers, modulo 2^32 or 2^64.

    a client     q = round(v / step),  v = y - x of its weights, or what it says about public inputs, within the range
                 and sends  n q  and  n,  or q alone where all count the same;  what is beside the payload counts once
    the server   S = sum n q,  N = sum n    modulo 2^32 or 2^64,  and  x + step S / N  is the weighted mean

No sum of as many clients as there are can leave the numbers between -2^(b-1) and 2^(b-1), so nothing wraps around in
the end, whatever was added and taken away in between: masks cancel exactly (``fedfuse.flower.masking``), and a
simulation, which needs none, comes to the same bits.

Rounding is to the nearest whole number: it needs no random numbers, and is off by half a step at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from fedfuse.core.messages import Task, Update, within
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.engine import Residues
from fedfuse.federation.recipe import LOCAL, PROTOCOL, UPLOAD, Recipe
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.parts.base import Shapes
from fedfuse.parts.protocol.base import PREDICTIONS, WEIGHTS, Expected
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.runtime.bank import ModelBank

SUMMAND = "sums/summand"
"""Under which an update has all that it adds to a sum."""
ACROSS = ""
"""The one sum that clients of all models are in."""


class UnsoundSumError(ValueError):
    """A sum that no clients who kept to the rules could have made."""


@dataclass(frozen=True)
class Summation:
    """How the clients of an experiment add up, of whom a round has at most so many."""

    settings: SecureSums
    recipe: Recipe
    clients: int

    @property
    def sends_predictions(self) -> bool:
        return self.recipe.protocol.carries == "predictions"

    @property
    def is_weighted(self) -> bool:
        """Whether clients count by their examples, of which the server then learns the sum."""
        return (self.recipe.scores if self.sends_predictions else self.recipe.merge).counts_examples

    @property
    def most(self) -> int:
        """The largest number that a sum can come to."""
        return self.clients * self._heaviest * self.settings.largest

    @property
    def _heaviest(self) -> int:
        """How many times one client can count."""
        return self.settings.most_examples if self.is_weighted else 1

    @property
    def dtype(self) -> torch.dtype:
        return torch.int32 if not self.is_weighted and self.most < 2**31 else torch.int64

    def group_of(self, prototype: str) -> str:
        """Which sum clients of a model are in: weights are added inside a model, predictions across all."""
        return ACROSS if self.sends_predictions else prototype

    def spec(self, expected: Expected, task: Task, bank: ModelBank) -> TensorSpec:
        """What an update has to bring in the place of all else."""
        sizes = [math.prod(shape) for shape in (*expected.payload.values(), *self._beside(task, bank).values())]
        return TensorSpec((int(self.is_weighted) + sum(sizes),), self.dtype)

    def summand(self, update: Update, task: Task) -> Update:
        """A client's update as it is added; nothing else of it leaves, but the answers about test inputs if any."""
        extras = dict(update.extras)
        if self.sends_predictions:
            change = extras.pop(f"{UPLOAD if self.recipe.upload else PROTOCOL}/{PREDICTIONS}").double()
        else:
            flat = extras.pop(f"{UPLOAD}/{WEIGHTS}") if self.recipe.upload else update.weights.flat
            change = flat.double() - task.weights.flat.double()
        heavy = min(update.examples, self._heaviest)
        weight = [torch.tensor([heavy])] if self.is_weighted else []
        beside = [self._on_grid(extras[name]) for name in sorted(extras)]
        whole = torch.cat([*weight, heavy * self._on_grid(change), *beside]).to(self.dtype)
        return replace(update, weights=NOTHING, examples=1, extras={SUMMAND: whole}, metrics={})

    def together(
        self, total: Residues, members: Sequence[int], task: Task, expected: Expected, bank: ModelBank
    ) -> Update:
        """One update that stands for all ``members`` of a sum, as the parts of a method read it."""
        sums = torch.from_numpy(total.view(np.int32 if total.dtype == np.uint32 else np.int64)).long()
        weight, sums = (int(sums[0]), sums[1:]) if self.is_weighted else (len(members), sums)
        if not len(members) <= weight <= len(members) * self._heaviest:
            raise UnsoundSumError("its clients' examples add up to a number that they cannot have")
        [shape] = expected.payload.values()
        payload, beside = sums[: math.prod(shape)], sums[math.prod(shape) :]
        if self._is_beyond(payload, weight) or self._is_beyond(beside, len(members)):
            raise UnsoundSumError("it has a number that its clients cannot have come to")
        payload = (payload.double() * self.settings.step / weight).reshape(tuple(shape))
        extras = within(LOCAL, self._sums_beside(beside, task, bank))
        weights = NOTHING
        if self.sends_predictions:
            extras = {**extras, f"{PROTOCOL}/{PREDICTIONS}": payload.float()}
        else:
            received = task.weights
            weights = Weights((received.flat.double() + payload).to(received.flat.dtype), received.layout)
        return Update(task.round, min(members), task.prototype, weights, weight, extras)

    def _is_beyond(self, sums: Tensor, weight: int) -> bool:
        """Whether a number is none that clients of so much weight together can come to."""
        if not len(sums):
            return False
        low, high = torch.aminmax(sums)
        return max(-int(low), int(high)) > weight * self.settings.largest

    def _beside(self, task: Task, bank: ModelBank) -> Shapes:
        """What clients send beside the payload, in the order in which it is added."""
        spec = self.recipe.local.update_spec(bank, task.prototype)
        return {name: spec[name] for name in sorted(spec)}

    def _sums_beside(self, sums: Tensor, task: Task, bank: ModelBank) -> Mapping[str, Tensor]:
        named = {}
        for name, shape in self._beside(task, bank).items():
            own, sums = sums[: math.prod(shape)], sums[math.prod(shape) :]
            named[name] = (own.double() * self.settings.step).float().reshape(tuple(shape))
        return named

    def _on_grid(self, values: Tensor) -> Tensor:
        """Whole numbers. What training left without a number stands for no change at all."""
        flat, largest = values.detach().cpu().double().reshape(-1), self.settings.largest
        if not bool(flat.isfinite().all()):
            return torch.zeros(len(flat), dtype=torch.int64)
        return (flat / self.settings.step).round().clamp(-largest, largest).long()


def residues(summand: Tensor) -> Residues:
    """A summand as numbers that wrap around."""
    array = summand.contiguous().numpy()
    return array.view(np.uint32) if array.dtype == np.int32 else array.view(np.uint64)
