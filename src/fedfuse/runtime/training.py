"""How every client trains, whatever the method: epochs, batches, optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Self

from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key
from fedfuse.core.releases import Multiplier, Release
from fedfuse.core.slices import number_of_slices
from fedfuse.runtime.optimizers import AnyOptimizer, Sgd


class Decay(Settings):
    """A step down of the learning rate."""

    after: float = Field(gt=0, lt=1, description="share of the rounds, or of a round's steps, that must have passed")
    factor: float = Field(gt=0, description="what the rate is multiplied by from then on")


class ExamplePrivacy(Settings):
    """DP-SGD (Abadi et al., 2016): no example moves a step by more than ``norm``, and noise hides whether it did.

    Every step draws each example with probability q = batch_size / examples (Poisson sampling), clips the gradient of
    each that was drawn, and divides their sum with noise by q times the number of examples.
    """

    norm: float = Field(1.0, gt=0, description="C: the longest gradient that one example may have")
    multiplier: Multiplier = Field(
        description="z: standard deviation of the noise on the sum of gradients, over C; auto: as privacy.budget needs"
    )


class TrainingSettings(Settings):
    """Local training between receiving a task and sending an update; the optimiser starts afresh each time."""

    epochs: int = Field(1, ge=1, description="passes over the client's own examples per round (E of the papers)")
    batch_size: int = Field(64, ge=1, description="examples per step (B of the papers)")
    shuffle: bool = Field(
        True, description="a new order in every epoch; false: always the client's own, as FedED's code"
    )
    by_length: bool = Field(
        True, description="texts of similar length share a batch, which saves padding; false: any texts do"
    )
    optimizer: AnyOptimizer = Field(default_factory=Sgd, description="how a client steps")
    decay: tuple[Decay, ...] = Field((), description="steps down of the rate across rounds; FedBE: .1 at .3 and at .6")
    step_decay: float = Field(1.0, gt=0, le=1, description="the rate's factor after each step; every round starts anew")
    decay_inside: tuple[Decay, ...] = Field(
        (), description="steps down of the rate inside a round, at shares of the client's steps; as step_decay"
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        "constant", description="of the rate inside a round: it may fall to zero, along a line or half a cosine"
    )
    clip_norm: float | None = Field(None, gt=0, description="bound on the gradient norm; FedGKD's code used 10")
    fewest_epochs: int | None = Field(
        None, ge=1, description="stragglers: each client trains a random number of epochs, from this up to epochs"
    )
    epochs_drawn: Literal["once", "every_round"] = Field(
        "once", description="whether that number is a client's own for the whole run, as FedBE, or drawn in every round"
    )
    stop_above: float | None = Field(
        None,
        gt=0,
        description="a client stops after a step at which its mean loss of the epoch so far is above this or not a "
        "number, and sends what it has; FedDF's code: 1000",
    )
    privacy: ExamplePrivacy | None = Field(
        None, description="differential privacy of every example: DP-SGD in the place of plain steps (docs/privacy.md)"
    )

    @model_validator(mode="after")
    def _fewest_is_fewer(self) -> Self:
        if self.fewest_epochs is not None and self.fewest_epochs > self.epochs:
            raise ValueError(f"fewest_epochs is {self.fewest_epochs}, but epochs is {self.epochs}")
        if self.fewest_epochs is None and self.epochs_drawn != "once":
            raise ValueError(
                f"epochs_drawn is {self.epochs_drawn}, but nothing is drawn without fewest_epochs; set it as well"
            )
        return self

    @property
    def depends_on_rounds(self) -> bool:
        """The rate steps down after shares of them."""
        return bool(self.decay)

    def rate(self, number: int, rounds: int) -> float:
        """The learning rate that round ``number`` (from 1) of ``rounds`` begins with."""
        return self.optimizer.learning_rate * _decayed(self.decay, (number - 1) / rounds)

    def rates(self, first: float, steps: int) -> Iterator[float]:
        """The rate of every step of a client's round that begins with ``first``."""
        for step in range(steps):
            passed = step / steps
            yield first * SCHEDULES[self.schedule](passed) * _decayed(self.decay_inside, passed)
            first *= self.step_decay

    def steps(self, examples: int) -> int:
        """How many steps a client with so many examples takes in one round."""
        return self.epochs * number_of_slices(examples, self.batch_size)

    def sampling_rate(self, examples: int) -> float:
        """The probability with which a private step draws each of so many examples."""
        return min(1.0, self.batch_size / examples)

    def release(self, examples: int) -> Release | None:
        """What one round of a client with so many examples gives away of each of them, where that has a bound."""
        if self.privacy is None:
            return None
        assert isinstance(self.privacy.multiplier, float), "chosen before round 1"
        return Release(self.privacy.multiplier, self.sampling_rate(examples), self.steps(examples))

    def of(self, client: Key, visit: Key) -> TrainingSettings:
        """One client's training in one round, with its own number of epochs; ``client`` is its key in all rounds."""
        if self.fewest_epochs is None:
            return self
        key = client if self.epochs_drawn == "once" else visit
        drawn = key.child("epochs").numpy().integers(self.fewest_epochs, self.epochs + 1)
        return self.model_copy(update={"epochs": int(drawn)})


def _decayed(decays: Sequence[Decay], passed: float) -> float:
    """What is left of the rate after a share of the time."""
    return math.prod(decay.factor for decay in decays if passed >= decay.after)


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda _passed: 1.0,
    "linear": lambda passed: 1 - passed,
    "cosine": lambda passed: (1 + math.cos(math.pi * passed)) / 2,
}
