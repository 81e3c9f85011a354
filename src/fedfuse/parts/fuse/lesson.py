"""A student in the middle of a distillation: all that its next step depends on, which can be kept and gone on from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn

from fedfuse.core.weights import Weights
from fedfuse.parts.fuse.swa import RunningAverage
from fedfuse.runtime.evaluate import Score
from fedfuse.runtime.optimizers import Stepper

State = Mapping[str, Tensor]


class Bookmark(ABC):
    """Where a distillation that may be interrupted keeps how far it is."""

    @abstractmethod
    def read(self) -> State | None:
        """What was kept last; None at the beginning."""

    @abstractmethod
    def offer(self, lesson: Lesson) -> None:
        """A moment at which ``lesson.state()`` can be kept, if it is time for it."""


class Judge(Protocol):
    """Whoever says how good a student is."""

    def score(self, model: nn.Module) -> Score:
        """Its accuracy and loss."""


class Best:
    """The best student so far by validation accuracy; without a validation split, simply the last one."""

    def __init__(self, student: nn.Module, validation: Judge | None, consider_now: bool) -> None:
        self.student, self.validation = student, validation
        self.step = 0
        self.accuracy: float | None = None
        self.weights: Weights | None = None
        if consider_now:
            self.consider(0)

    def consider(self, step: int) -> None:
        if self.validation is None:
            self.step = step
            return
        score = self.validation.score(self.student)
        if math.isfinite(score.loss) and (self.accuracy is None or score.accuracy > self.accuracy):
            self.step, self.accuracy, self.weights = step, score.accuracy, Weights.of(self.student)

    def restore(self) -> None:
        if self.weights is not None:
            self.weights.load_into(self.student)


class Lesson:
    """A student, the optimiser that moves it, and what was kept of it so far."""

    def __init__(self, student: nn.Module, optimizer: Stepper, best: Best) -> None:
        self.student, self.optimizer, self.best = student, optimizer, best
        self.average = RunningAverage(student)
        self.taken = 0

    def state(self) -> dict[str, Tensor]:
        """Everything, dropout's random numbers among it."""
        state = {f"student/{name}": tensor for name, tensor in self.student.state_dict().items()}
        for place, parameter in enumerate(self._parameters):
            for name, tensor in self.optimizer.state.get(parameter, {}).items():
                if isinstance(tensor, Tensor):
                    state[f"optimizer/{place}/{name}"] = tensor
        state |= {f"random/{name}": numbers for name, numbers in _random_numbers().items()}
        state["lesson/taken"] = torch.tensor([self.taken, self.best.step, self.average.count])
        if self.best.accuracy is not None and self.best.weights is not None:
            state["best/accuracy"] = torch.tensor(self.best.accuracy, dtype=torch.float64)
            state["best/weights"] = self.best.weights.flat
        if self.average.total is not None:
            state["average/total"] = self.average.total
        return state

    def go_on(self, state: State) -> None:
        """Become what was kept; inside the block that seeds the random numbers."""
        self.student.load_state_dict(_below("student", state))
        parameters = self._parameters
        for name, tensor in _below("optimizer", state).items():
            place, _, what = name.partition("/")
            parameter = parameters[int(place)]
            self.optimizer.state.setdefault(parameter, {})[what] = tensor.to(parameter.device)
        for name, numbers in _below("random", state).items():
            _set_random_numbers(name, numbers)
        self.taken, self.best.step, self.average.count = state["lesson/taken"].tolist()
        if "best/weights" in state:
            self.best.accuracy = state["best/accuracy"].item()
            self.best.weights = Weights(state["best/weights"], Weights.of(self.student).layout)
        self.average.total = state.get("average/total")

    @property
    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]


def _below(section: str, state: State) -> dict[str, Tensor]:
    return {name.removeprefix(f"{section}/"): t for name, t in state.items() if name.startswith(f"{section}/")}


def _random_numbers() -> dict[str, Tensor]:
    numbers = {"cpu": torch.get_rng_state()}
    return {**numbers, "cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else numbers


def _set_random_numbers(device: str, numbers: Tensor) -> None:
    if device == "cpu":
        torch.set_rng_state(numbers)
    elif torch.cuda.is_available():
        torch.cuda.set_rng_state(numbers)
