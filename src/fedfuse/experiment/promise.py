"""A promise of privacy, made ready before round 1: how much noise it needs, whether it can be kept, who counts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.config.noise import left_to_us, with_noise
from fedfuse.federation import EvaluationSettings, FederationSettings
from fedfuse.federation.sampling import clients_per_round, sample
from fedfuse.federation.silence import Silence
from fedfuse.parts.protocol import Votes
from fedfuse.privacy.account import Account, told
from fedfuse.privacy.accountants import check_accountants
from fedfuse.privacy.claim import Claim
from fedfuse.privacy.planning import Plan, least_noise, planned_visits, rounded_up
from fedfuse.privacy.refusals import check_claim
from fedfuse.runtime.bank import ModelBank

MOST_PLANNED = 100
"""Clients of different sizes whose plans are worked out before round 1: each takes a tenth of a second."""


FROM_THE_SEED, SECRET = "from the seed: a simulation", "from secrets of the parties"
"""Where noise comes from, as logs and summaries say it."""


@dataclass(frozen=True)
class Surroundings:
    """The experiment as far as a promise depends on it: its networks, public inputs of a round, and clients."""

    bank: ModelBank
    inputs: int | None
    settings: FederationSettings
    clients: int
    sizes: Callable[[int], int]

    def plan(self, config: ExperimentConfig, rounds: int) -> Plan:
        """Who will take part how often; with a clock nobody knows, and it may be in every round."""
        if config.federation.clock is not None:
            return Plan(dict.fromkeys(range(self.clients), rounds), self.sizes)
        number, key = clients_per_round(self.settings, self.clients), Key(config.seed)
        visits = planned_visits(lambda turn: sample(self.clients, number, key.child("round", turn, "sample")), rounds)
        return Plan(visits, self.sizes)


@dataclass(frozen=True)
class Promise:
    """What an experiment promises, with all noise chosen."""

    config: ExperimentConfig
    around: Surroundings

    @staticmethod
    def of(config: ExperimentConfig, around: Surroundings) -> Promise | None:
        """None if it promises nothing. A ConfigError says why it cannot be kept."""
        if config.privacy is None:
            return None
        check_accountants()
        check_claim(_claim(_with_multiplier(config, 1.0, around), around))
        _check_clock(config)
        _check_bounds(config, around)
        if any(left_to_us(config)):
            plan = around.plan(config, config.federation.rounds)
            found = least_noise(plan, lambda noise: _claim(_with_multiplier(config, noise, around), around))
            config = _with_multiplier(config, found, around)
        promise = Promise(config, around)
        promise.check_budget()
        _check_range(promise.claim)
        return promise

    @cached_property
    def claim(self) -> Claim:
        return _claim(self.config, self.around)

    @cached_property
    def account(self) -> Account:
        return Account(self.claim, Key(self.config.seed), self.around.clients, self.around.sizes)

    def check_budget(self) -> None:
        """Somebody can take part at least once."""
        budget = self.claim.settings.budget
        if budget is None:
            return
        largest = max(range(self.around.clients), key=self.around.sizes)
        first = self.claim.of(self.account.planned(largest, is_first=True))[self.claim.against[0]]
        epsilon = self.account.epsilon(first)
        if epsilon > budget:
            raise ConfigError(
                f"privacy.budget is {budget:g}, but the first round alone would cost {epsilon:.3g}; raise the budget, "
                "or the noise"
            )

    def silence(self) -> Silence:
        """What clients leave unsaid. In a simulation whoever asks for clients' own models may measure them."""
        tested = self.claim.covers_answers or self.config.evaluation.clients is True
        return Silence(self.claim.settings.unit == "example", tells_metrics=False, answers_tests=tested)

    def evaluation(self) -> EvaluationSettings:
        """What is measured: of clients' own models nothing, unless that is asked for or tells nothing more."""
        evaluation = self.config.evaluation
        if evaluation.clients is not None or self.claim.covers_answers:
            return evaluation
        return evaluation.model_copy(update={"clients": False})

    @cached_property
    def planned(self) -> float | None:
        """Epsilon of the client that will have given away most at the end; None where that takes too long to say."""
        if self.claim.covers_models and len(set(map(self.around.sizes, range(self.around.clients)))) > MOST_PLANNED:
            return None
        return told(max(self.epsilons(self.config.federation.rounds).values()))

    def epsilons(self, rounds: int) -> dict[int, float]:
        """Of every client after so many rounds, if all goes as planned."""
        return self.around.plan(self.config, rounds).epsilons(self.claim)

    def facts(self, is_secret: bool) -> dict[str, Any]:
        """What a run records of it before round 1; whether the noise is a secret of the clients."""
        noise = SECRET if is_secret else FROM_THE_SEED
        return {**self.claim.settings.model_dump(mode="json"), "planned": self.planned, "noise": noise}

    def cautions(self) -> Iterator[str]:
        """What a reader of its numbers should know."""
        if self.config.evaluation.clients is True and not self.claim.covers_answers:
            yield (
                "evaluation.clients measures clients' own models, which a simulation may: real parties would not "
                "answer, because nothing protects that"
            )
        units, delta = self._units, self.claim.settings.delta
        if delta * units >= 1:
            yield (
                f"privacy.delta is {delta:g}, so that to publish one of the {units:,} {self.claim.settings.unit}s at "
                f"random would be private enough; set it well below {1 / units:.2g}"
            )

    @property
    def _units(self) -> int:
        """How many examples or clients there are to protect."""
        clients = range(self.around.clients)
        return len(clients) if self.claim.settings.unit == "client" else sum(map(self.around.sizes, clients))


def _claim(config: ExperimentConfig, around: Surroundings) -> Claim:
    assert config.privacy is not None, "asked only where there is a promise"
    sums = config.federation.secure_sums
    return Claim(config.privacy, config.recipe, config.training, around.bank, around.inputs, sums)


def _with_multiplier(config: ExperimentConfig, noise: float, around: Surroundings) -> ExperimentConfig:
    """With so much noise wherever it is auto."""
    votes = Votes.sensitivity_of_votes(around.inputs or 1)
    chosen = {key: noise * votes if key.startswith("method.protocol") else noise for key in left_to_us(config)}
    return with_noise(config, chosen)


def _check_clock(config: ExperimentConfig) -> None:
    if config.federation.clock is not None and config.privacy is not None and config.privacy.unit == "client":
        raise ConfigError(
            "privacy.unit is client, but federation.clock counts by how many examples clients have, which they do not "
            "tell; set it to null"
        )


def _check_range(claim: Claim) -> None:
    """Secure sums do not cut off noise that they count on."""
    farthest = claim.farthest
    if claim.sums is not None and farthest is not None and claim.sums.range < farthest:
        raise ConfigError(
            f"federation.secure_sums.range is {claim.sums.range:g}, which would cut off noise that is counted on; set "
            f"it to {rounded_up(farthest):g} or more"
        )


def _check_bounds(config: ExperimentConfig, around: Surroundings) -> None:
    """Bounds look at single updates, while clients that share their noise are hidden in the sum alone."""
    claim = _claim(_with_multiplier(config, 1.0, around), around)
    if claim.noise is None or not claim.noise.shared or not claim.is_by_clients:
        return
    for key in ("claims", "moves"):
        if getattr(config.federation, key) != "taken":
            raise ConfigError(
                f"federation.{key} is bounded by a look at single updates, which have only a share of the noise; set "
                f"federation.{key} to taken, or shared of method.upload noise to false"
            )
