"""Train one student towards fixed targets: step budget, cosine rate, early stopping, best student kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key
from fedfuse.core.slices import mean_size, slices
from fedfuse.core.weights import Weights
from fedfuse.models.operations import BACKWARD
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse.base import Fused, FusionWork
from fedfuse.parts.fuse.batches import DistillBatch, Step, steps_of
from fedfuse.parts.fuse.lesson import Best, Bookmark, Judge, Lesson
from fedfuse.parts.fuse.swa import Swa
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.losses import kl_by_class
from fedfuse.runtime.optimizers import Adam, AnyOptimizer, Stepper
from fedfuse.runtime.pool import Progress
from fedfuse.runtime.source import Shown, Source

STEPS = 10_000
"""FedDF's printed number."""


class Distiller(Settings):
    """How a student is trained on the server; the defaults are FedDF's printed ones."""

    steps: int | None = Field(
        None, ge=0, description="most optimiser steps per round, 10000 unless epochs are given; 0: the merged weights"
    )
    epochs: int | None = Field(None, ge=1, description="passes over the source instead of a number of steps; FedBE: 20")
    batch_size: int = Field(128, ge=2, description="public inputs per step")
    optimizer: AnyOptimizer = Field(default_factory=Adam, description="how the student steps")
    schedule: Literal["cosine", "constant"] = Field(
        "cosine", description="cosine: to zero over the whole step budget. With swa, the rate its cycles start from"
    )
    loss: Literal["kl", "kl_elementwise", "mse", "kl_mse", "hard"] = Field(
        "kl",
        description="kl: KL(teachers, student), mean over the batch; kl_elementwise: mean over classes too, as FedBE's "
        "code (gradients K times smaller); mse: squared error of logits against the teachers' probabilities, as "
        "FedED; kl_mse: the sum of kl and mse; hard: cross-entropy with the teachers' most probable class",
    )
    temperature: float = Field(
        1.0, gt=0, description="of the ensemble and the student inside kl, which is scaled by its square"
    )
    clip_norm: float | None = Field(None, gt=0, description="bound on the gradient norm; FedDF's code used 5")
    keep: Literal["best", "last"] = Field("best", description="best on the validation split, or last")
    evaluate_every: int = Field(100, ge=1, description="steps between looks at the validation split")
    patience: int = Field(
        1000, ge=1, description="stop after so many steps without a better validation accuracy, if the best is kept"
    )
    keep_start: bool = Field(False, description="let the un-distilled start win if validation prefers it")
    swa: Swa | None = Field(
        None, description="return the average of collected students instead of one of them; needs keep last"
    )

    @model_validator(mode="before")
    @classmethod
    def _ten_thousand_steps(cls, value: Any) -> Any:
        if isinstance(value, dict) and "steps" not in value and value.get("epochs") is None:
            return {**value, "steps": STEPS}
        return value

    @model_validator(mode="after")
    def _every_key_does_something(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("steps and epochs both say how long to distil; give one of them and leave the other null")
        if self.keep == "best" and self.swa is not None:
            raise ValueError("swa averages students, so that none is chosen by validation; set keep to last")
        if self.keep == "last" and self.keep_start:
            raise ValueError("keep_start lets validation choose the start, but keep is last; set keep to best")
        if self.temperature != 1 and not self.loss.startswith("kl"):
            raise ValueError(f"temperature softens kl, but loss is {self.loss}; set it to 1")
        return self

    def check(self, context: CheckContext, address: str) -> None:
        """Raise a ConfigError if something here would have no effect on a source of this size."""
        if self.swa is None or context.inputs is None:
            return
        steps = self.budget(context.inputs)
        if self.swa.collections(steps) == 0:
            raise ConfigError(
                f"{address}.swa would collect no student: {context.inputs} inputs make {steps} steps, and it collects "
                f"every {self.swa.cycle} steps after step {self.swa.collect_after}; lower {address}.swa.collect_after "
                f"or {address}.batch_size, or set {address}.swa to null"
            )

    def plan(self, source: Shown, key: Key) -> list[Step]:
        """The mini-batches of a whole distillation."""
        return steps_of(source, self.budget(len(source)), self.batch_size, key)

    def budget(self, inputs: int) -> int:
        """Steps planned for a source of this size."""
        if self.epochs is not None:
            return self.epochs * len(slices(inputs, self.batch_size))
        assert self.steps is not None, "one of both is given"
        return self.steps

    def shown(self, work: FusionWork) -> float:
        """Inputs at a step, in the mean."""
        return self.batch_size if work.is_fresh else mean_size(work.inputs, self.batch_size)

    def passes(self, work: FusionWork) -> dict[str, float]:
        """Forward passes through each student's network."""
        return {prototype: BACKWARD * taken * self.shown(work) for prototype, taken in work.steps.items()}

    def distil(self, student: nn.Module, batches: Sequence[DistillBatch], context: DistillContext) -> Distilled:
        """Train the student through the batches, and leave in it the weights to keep."""
        judge = context.validation if self.keep == "best" else None
        lesson = Lesson(student, self.optimizer.build(student), Best(student, judge, consider_now=self.keep_start))
        diverged_at = None
        student.train()
        with context.key.child("dropout").default_generator():
            if context.bookmark is not None and (kept := context.bookmark.read()) is not None:
                lesson.go_on(kept)
            while lesson.taken < len(batches) and not self._has_enough(lesson):
                self._step(lesson, batches)
                if lesson.taken % self.evaluate_every == 0 or lesson.taken == len(batches):
                    context.progress("distil", lesson.taken, len(batches))
                    if not Weights.of(student).is_finite():
                        diverged_at = lesson.taken  # no step leads back from there
                        break
                    lesson.best.consider(lesson.taken)
                    if context.bookmark is not None:
                        context.bookmark.offer(lesson)
        lesson.best.restore()
        lesson.average.install(context.source)
        collected = None if self.swa is None else lesson.average.count
        return Distilled(lesson.taken, lesson.best.step, lesson.best.accuracy, diverged_at, collected)

    def _step(self, lesson: Lesson, batches: Sequence[DistillBatch]) -> None:
        inputs, target = batches[lesson.taken]()
        loss = self.distance(target, lesson.student(inputs))
        lesson.optimizer.zero_grad()
        loss.backward()
        if self.clip_norm is not None:
            nn.utils.clip_grad_norm_(lesson.student.parameters(), self.clip_norm)
        _set_rate(lesson.optimizer, self._rate(lesson.taken, len(batches)))
        lesson.optimizer.step()
        lesson.taken += 1
        if self.swa is not None and self.swa.collects(lesson.taken):
            lesson.average.collect()

    def _has_enough(self, lesson: Lesson) -> bool:
        """Whether the student has not become better for too long, where it was looked at last."""
        return lesson.taken % self.evaluate_every == 0 and lesson.taken - lesson.best.step >= self.patience

    def distance(self, target: Tensor, logits: Tensor) -> Tensor:
        """How far a student's logits are from the teachers' log-probabilities, mean over the batch."""
        if self.loss == "hard":
            return F.cross_entropy(logits, target.argmax(dim=1))
        if self.loss == "mse":
            return _squared_error(target, logits)
        divergence = _divergence(target, logits, self.temperature)
        if self.loss == "kl_elementwise":
            return divergence.mean()
        divergence = divergence.sum() / len(target)
        return divergence + _squared_error(target, logits) if self.loss == "kl_mse" else divergence

    def _rate(self, step: int, budget: int) -> float:
        fraction = 1.0 if self.swa is None else self.swa.rate_fraction(step)
        if self.schedule == "cosine":
            fraction *= 0.5 * (1 + math.cos(math.pi * step / budget))
        return self.optimizer.learning_rate * fraction


@dataclass(frozen=True)
class DistillContext:
    """The surroundings of a distillation."""

    source: Shown
    validation: Judge | None
    key: Key
    progress: Progress
    bookmark: Bookmark | None = None
    """Where an interrupted distillation finds how far it was."""


@dataclass(frozen=True)
class Distilled:
    """Steps taken, the step whose student was kept, its validation accuracy if there was a validation split, the step
    at which the student was found to have left the finite numbers, and how many students SWA averaged."""

    steps: int
    best_step: int
    validation_accuracy: float | None = None
    diverged_at: int | None = None
    collected: int | None = None

    def report(self) -> dict[str, float]:
        return {name: value for name, value in vars(self).items() if value is not None}


def teach(
    view: ServerView, distiller: Distiller, begin: Mapping[str, Weights], batches: Sequence[DistillBatch]
) -> Fused:
    """One student per prototype, all from the same batches, by whoever does the server's heavy work."""
    jobs = [
        DistillJob(view.bank, distiller, prototype, start, batches, view.public, view.validation, view.key)
        for prototype, start in begin.items()
    ]
    taught = dict(zip(begin, view.pool.each("the distillation", jobs, view.progress), strict=True))
    return Fused({p: student.weights for p, student in taught.items()}, {p: s.report for p, s in taught.items()})


@dataclass(frozen=True)
class Student:
    """What came of a distillation."""

    weights: Weights
    report: Mapping[str, float]


@dataclass(frozen=True)
class DistillJob:
    """All that the distillation of one student is made of, so that it can take place in another process."""

    bank: ModelBank
    distiller: Distiller
    prototype: str
    start: Weights
    batches: Sequence[DistillBatch]
    source: Source
    validation: Evaluator | None
    key: Key

    def __call__(self, progress: Progress) -> Student:
        with self.bank.compute.at_work():
            student = self.bank.lend(self.prototype, self.start)
            context = DistillContext(self.source, self.validation, self.key.child(self.prototype), progress)
            report = self.distiller.distil(student, self.batches, context).report()
            return Student(Weights.of(student, self.start.layout), report)


def _divergence(target: Tensor, logits: Tensor, temperature: float) -> Tensor:
    """The terms of T^2 KL(teachers || student), of which each is the softmax of its log-probabilities over T."""
    if temperature == 1:
        return kl_by_class(target, logits)
    return temperature**2 * kl_by_class((target / temperature).log_softmax(dim=1), logits / temperature)


def _squared_error(target: Tensor, logits: Tensor) -> Tensor:
    return F.mse_loss(logits, target.exp())


def _set_rate(optimizer: Stepper, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
