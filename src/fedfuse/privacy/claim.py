"""What an experiment promises, as far as it is known before round 1: what each visit of a client gives away.

Neighbours are a client's data and the same with one example (or all of them) blank: it is there, adds nothing, and
whoever has it takes part as before. So with ``unit: example`` the number of a client's examples is no secret; with
``unit: client`` it is.

    against     whom the number is about
    everybody   whoever sees everything that clients send, the server included; with secure sums that is sums
    others      whoever sees what the server makes of the sum of a round's updates, where clients share their noise
    server      the server, which sees single updates with a share of the noise
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from fedfuse.core.releases import Release
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.parts.base import MethodPart, joint_sensitivity, speaks_for
from fedfuse.parts.protocol import Votes
from fedfuse.parts.upload import Clip, Noise, Statistics
from fedfuse.parts.upload.clip import FAR
from fedfuse.parts.upload.statistics import TO_THE_OTHER_END
from fedfuse.privacy.settings import PrivacySettings
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.training import TrainingSettings

Against = Literal["everybody", "others", "server"]
Releases = Mapping[Against, Sequence[Release]]


@dataclass(frozen=True)
class Visit:
    """One client's part in one round, in public numbers."""

    client: int
    examples: int
    """Those it trains on; of no matter with ``unit: client``."""
    training: TrainingSettings
    """How it trains in this round, with its own number of epochs."""
    is_asked: bool = True
    """Whether it says how much its answers should count."""
    parties: int = 1
    """How many were to share the noise."""
    noise: float = 1.0
    """How much of the variance that they were to add together the sum has: less, if some of them are missing in it."""
    is_counted: bool = True
    """Whether the client is in the sum."""


@dataclass(frozen=True)
class Claim:
    """A promise about one experiment; ``inputs`` is how many public inputs a round is about."""

    settings: PrivacySettings
    recipe: Recipe
    training: TrainingSettings
    bank: ModelBank
    inputs: int | None
    sums: SecureSums | None = None
    """Where the server sees nothing but sums of what clients send."""

    @property
    def against(self) -> tuple[Against, ...]:
        """About whom there are numbers, the first of them the one to tell if there is room for one."""
        return ("others", "server") if self.shares_noise and self.sums is None else ("everybody",)

    @property
    def shares_noise(self) -> bool:
        """Whether clients are hidden by noise that they add together, in their sum and nowhere else."""
        return self.noise is not None and self.noise.shared

    def of(self, visit: Visit) -> Releases:
        """What a visit gives away, about whom there are numbers."""
        return {against: [*self._of_training(visit), *self._of_upload(visit, against)] for against in self.against}

    def _of_training(self, visit: Visit) -> Iterator[Release]:
        if self.covers_models:
            steps = visit.training.release(visit.examples)
            assert steps is not None, "DP-SGD is what covers them"
            yield steps
        elif self._by_votes is not None:
            said = self._by_votes.release(self.inputs or 0)
            assert said is not None, "noise on votes is what they are by"
            yield said

    def _of_upload(self, visit: Visit, against: Against) -> Iterator[Release]:
        if self.is_by_clients and self.clip is not None and self.clip.release is not None:
            yield replace(self.clip.release, multiplier=self.clip.release.multiplier / self.reach)
        in_sum = self.shares_noise and against != "server"
        if self.is_by_clients and (visit.is_counted or not in_sum):
            share = visit.noise if in_sum else 1 / visit.parties if against == "server" else 1.0
            rounded = self.rounding if in_sum else 1.0
            yield Release(self.multiplier / self.reach * math.sqrt(share) * rounded)
        yield from self._of_extras(visit)

    def _of_extras(self, visit: Visit) -> Iterator[Release]:
        """Of what is said beside the payload: by each part with noise of its own, by all others together."""
        scores = self.recipe.scores
        own = scores.own_release() if not self.is_by_clients and visit.is_asked else None
        if own is not None:
            yield own
        speaking = [part for part in self.speaking if part is not scores or (visit.is_asked and own is None)]
        if self.statistics is not None and speaking:
            by_example = self.settings.unit == "example"
            yield Release(self.statistics.counted(joint_sensitivity(speaking), by_example))

    @cached_property
    def speaking(self) -> list[MethodPart]:
        """Parts for which clients send extras that this promise has to cover."""
        return [part for part in self.sending if part.extras_of == "examples" or not self.covers_models]

    @cached_property
    def sending(self) -> list[MethodPart]:
        """Parts for which clients send extras."""
        recipe, bank = self.recipe, self.bank
        sending: list[MethodPart] = []
        if any(recipe.local.update_spec(bank, prototype) for prototype in bank.prototypes):
            sending.append(recipe.local)
        if recipe.protocol.sends_extras or not speaks_for(recipe.protocol, "sends_extras", "answer"):
            sending.append(recipe.protocol)
        if recipe.scores.asks_clients:
            sending.append(recipe.scores)
        return sending

    @property
    def covers_models(self) -> bool:
        """Whether a client's model itself is as private as is promised, and so is whatever is made of it."""
        return self.settings.unit == "example" and self.training.privacy is not None

    @property
    def covers_answers(self) -> bool:
        """Whether what a client says about other inputs is as private, with the scores that go with its predictions."""
        scores = self.recipe.scores
        scored = self.recipe.protocol.carries == "predictions" and scores in self.speaking
        return self.covers_models and (not scored or scores.own_release() is not None)

    @cached_property
    def is_by_clients(self) -> bool:
        """Whether noise on whole updates is what keeps the promise, about a client or about its examples."""
        return self.noise is not None and not self.covers_models and self._by_votes is None

    @property
    def _by_votes(self) -> Votes | None:
        return self.votes if self.settings.unit == "example" and self.votes and self.votes.deviation else None

    @cached_property
    def votes(self) -> Votes | None:
        return self.recipe.protocol if isinstance(self.recipe.protocol, Votes) else None

    @cached_property
    def noise_place(self) -> int | None:
        """Where in the upload the payload gets noise that can be counted: right behind what bounds it."""
        links = self.recipe.upload
        for place, link in enumerate(links):
            bounded = isinstance(links[place - 1], Clip) if place else self._natural_bound is not None
            if isinstance(link, Noise) and bounded:
                return place
        return None

    @property
    def noise(self) -> Noise | None:
        link = None if self.noise_place is None else self.recipe.upload[self.noise_place]
        return link if isinstance(link, Noise) else None

    @property
    def clip(self) -> Clip | None:
        """What bounds the payload before its noise."""
        link = self.recipe.upload[self.noise_place - 1] if self.noise_place else None
        return link if isinstance(link, Clip) else None

    @property
    def multiplier(self) -> float:
        """Of the noise on the payload, over its bound."""
        noise, clip = self.noise, self.clip
        assert noise is not None, "asked only where there is some"
        if noise.deviation is None:
            assert isinstance(noise.multiplier, float), "chosen before round 1"
            return noise.multiplier
        bound = self._natural_bound if clip is None else None if clip.quantile is not None else clip.norm
        return 0.0 if bound is None else noise.deviation / bound

    @property
    def reach(self) -> float:
        """How far what is protected can move a payload, over the payload's bound.

        A client that is blank adds nothing: its payload moves to zero. One example of many can move it from anywhere
        within the bound to anywhere else; rows of probabilities, which have no opposite, are never farther than
        sqrt(2) from each other.
        """
        if self.settings.unit == "client":
            return 1.0
        return TO_THE_OTHER_END if self.clip else math.sqrt(2)

    @property
    def rounding(self) -> float:
        """By how much noise that is shared counts for less, because clients round before they are added.

        With and without what is protected, what a client adds differs by ``reach`` of its bound, and by a step in every
        number at most.
        """
        bound = self.clip.norm if self.clip else self._natural_bound
        if self.sums is None or bound is None:
            return 1.0
        predictions = (self.inputs or 0) * self.bank.classes
        sizes = [self.bank.layout(prototype).size for prototype in self.bank.prototypes]
        numbers = predictions if self.recipe.protocol.carries == "predictions" else max(sizes)
        moved = self.reach * bound
        return moved / (moved + self.sums.step * math.sqrt(numbers))

    @property
    def farthest(self) -> float | None:
        """How large a number can be, noise included, that a client adds to a sum; None where that is of no matter."""
        bound = self.clip.norm if self.clip else self._natural_bound
        if self.sums is None or not self.shares_noise or not self.is_by_clients or bound is None:
            return None
        return bound + FAR * self.multiplier * bound / math.sqrt(self.sums.least)

    @property
    def _natural_bound(self) -> float | None:
        return None if self.inputs is None else self.recipe.protocol.longest(self.inputs)

    @cached_property
    def statistics(self) -> Statistics | None:
        return next((link for link in self.recipe.upload if isinstance(link, Statistics)), None)
