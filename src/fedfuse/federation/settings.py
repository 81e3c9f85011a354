"""The shape of a federation: rounds, who takes part, who runs which architecture, when to look."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedfuse.core.errors import unknown
from fedfuse.core.part import Settings
from fedfuse.federation.clock.settings import ClockSettings
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.parts.merge import BatchNormPolicy
from fedfuse.parts.metrics import AnyMetric

Trust = Literal["bounded", "taken"]
"""bounded: within what the round's others set. taken: as it comes."""


class FederationSettings(Settings):
    """Rounds and participation."""

    rounds: int = Field(10, ge=1, description="communication rounds (T of the papers)")
    participation: float = Field(1.0, gt=0, le=1, description="share of the clients sampled per round (C)")
    clients_per_round: int | None = Field(None, ge=1, description="a number of clients instead of a share")
    shares: dict[str, int] = Field(
        default_factory=dict,
        description="how many parts of the clients run each model, in contiguous blocks; empty: equal parts; "
        "0: no client, a student on the server only",
    )
    assigned: tuple[str, ...] = Field(
        (), description="the model of each client, one by one in the clients' order, instead of shares"
    )
    batch_norm: BatchNormPolicy = Field(
        "average", description="BatchNorm statistics after a merge: average, last client's, reestimate, batch"
    )
    checkpoint_every: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto",
        description="rounds between checkpoints; auto: after the first round, after the last, and after each that ends "
        "a second or more after the last checkpoint",
    )
    keep_clients: bool = Field(
        False, description="keep every client's model of every round, a file each; the run says how much that will be"
    )
    claims: Trust = Field(
        "bounded",
        description="how much what clients say counts (examples, labels, scores, predictions): bounded by what the "
        "round's others say, or taken as it comes (docs/robustness.md)",
    )
    moves: Trust = Field(
        "bounded",
        description="how far and where to one client may move the weights beside the round's others: bounded, or taken",
    )
    secure_sums: SecureSums | None = Field(
        None,
        description="the server sees sums of what clients send and no client by itself, which only sums can be made of "
        "(docs/secure-sums.md)",
    )
    clock: ClockSettings | None = Field(
        None, description="simulated seconds for every round, on devices that are slow, late or absent (docs/clock.md)"
    )

    @model_validator(mode="after")
    def _shares_positive(self) -> Self:
        if any(share < 0 for share in self.shares.values()):
            raise ValueError("a share cannot be negative")
        if self.shares and self.assigned:
            raise ValueError("shares and assigned both say who runs which model; keep one of them")
        return self


class EvaluationSettings(Settings):
    """What is measured on the test split, and how often."""

    every: int = Field(1, ge=1, description="rounds between evaluations; the last round is always evaluated")
    batch_size: int = Field(500, ge=1, description="test examples that are looked at together")
    target_accuracy: float | None = Field(None, gt=0, le=1, description="count the rounds until this test accuracy")
    stop_at_target: bool = Field(
        False, description="end the run once every model has been at target_accuracy, instead of after all rounds"
    )
    patience: int | None = Field(
        None, ge=1, description="end the run after so many rounds without a better one, as best_by and best_on judge"
    )
    least_gain: float = Field(0.0, ge=0, description="how much better a round must be for patience to begin anew")
    keep_best: bool = Field(False, description="keep the models of the best round, beside those of the last")
    best_by: str = Field("accuracy", description="what rounds are judged by: accuracy, loss, or one of the metrics")
    best_on: Literal["auto", "validation", "test"] = Field(
        "auto", description="the examples they are judged on; auto: validation if there are any, else test"
    )
    validation: bool = Field(
        False, description="also measure on the validation examples; by itself where rounds are judged on them"
    )
    clients: bool | None = Field(
        None, description="also measure clients' own models; unless said, where clients keep their models to themselves"
    )
    ensemble: bool = Field(True, description="also measure the ensemble that a fusion imitates")
    metrics: tuple[AnyMetric, ...] = Field((), description="what to measure besides accuracy and loss")
    pictures: bool = Field(True, description="draw the run when it ends; no part of what it is")

    @model_validator(mode="after")
    def _there_is_a_target_to_stop_at(self) -> Self:
        if self.stop_at_target and self.target_accuracy is None:
            raise ValueError("stop_at_target needs a target_accuracy")
        return self

    @property
    def metric_names(self) -> tuple[str, ...]:
        return tuple(metric.called for metric in self.metrics)

    @property
    def judges(self) -> bool:
        """Whether anything depends on which round is the best."""
        return self.patience is not None or self.keep_best

    @property
    def higher_is_better(self) -> bool:
        """Whether that is so of what rounds are judged by."""
        metrics = {metric.called: metric for metric in self.metrics}
        metric = metrics.get(self.best_by.partition(".")[0])
        return self.best_by == "accuracy" or (metric is not None and metric.better == "higher")

    @model_validator(mode="after")
    def _rounds_can_be_judged(self) -> Self:
        known = ("accuracy", "loss", *self.metric_names)
        if self.best_by.partition(".")[0] not in known:
            raise ValueError(f"best_by: {unknown('measure', self.best_by, known)}; other metrics go into metrics first")
        if self.least_gain and self.patience is None:
            raise ValueError("least_gain says what patience waits for, and there is no patience; set it as well")
        return self

    @model_validator(mode="after")
    def _every_metric_has_a_name_of_its_own(self) -> Self:
        for name in self.metric_names:
            if self.metric_names.count(name) > 1:
                raise ValueError(f"metrics has two that are called '{name}'; give one of them another label")
        return self
