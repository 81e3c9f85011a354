"""The shape of a federation: rounds, who takes part, who runs which architecture, when to look."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.federation.clock.settings import ClockSettings
from fedfuse.parts.merge import BatchNormPolicy
from fedfuse.parts.metrics import AnyMetric


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

    @model_validator(mode="after")
    def _every_metric_has_a_name_of_its_own(self) -> Self:
        for name in self.metric_names:
            if self.metric_names.count(name) > 1:
                raise ValueError(f"metrics has two that are called '{name}'; give one of them another label")
        return self
