"""The merges of the table, each with the settings that its paper tunes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from benchmarks.merging.tasks import VIEWS, Digits, Problem, accuracy, holding
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.merge import Dare, Fisher, ModelMerge, RegMean, Soup, TaskArithmetic, Ties, TrainedModels
from fedfuse.runtime.evaluate import Score

Inputs = Literal["own", "public"]
"""What a model is asked about: the digits that it was trained on, as in the papers, or the same mixture for all."""
SCALES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
ALPHAS = (0.1, 0.5, 0.9, 1.0)

Grid = Mapping[float, ModelMerge]
"""Merges by what is tuned: a scale lambda, or alpha; one alone has nothing to tune."""

CONTENDERS: Mapping[str, tuple[Inputs, Grid]] = {
    "average": ("own", {1.0: Soup(form="uniform")}),
    "greedy soup": ("own", {1.0: Soup()}),
    "RegMean, own inputs": ("own", {alpha: RegMean(alpha=alpha) for alpha in ALPHAS}),
    "Fisher, own inputs": ("own", {1.0: Fisher()}),
    "RegMean, public inputs": ("public", {alpha: RegMean(alpha=alpha) for alpha in ALPHAS}),
    "Fisher, public inputs": ("public", {1.0: Fisher()}),
    "task arithmetic": ("own", {scale: TaskArithmetic(scale=scale) for scale in SCALES}),
    "TIES": ("own", {scale: Ties(scale=scale) for scale in SCALES}),
    "DARE, task arithmetic": ("own", {scale: Dare(then=TaskArithmetic(scale=scale)) for scale in SCALES}),
    "DARE, TIES": ("own", {scale: Dare(then=Ties(density=1.0, scale=scale)) for scale in SCALES}),
}


@dataclass(frozen=True)
class Measured:
    """Mean normalised accuracies when tuned and by default, and what was chosen, where there is a choice."""

    tuned: float
    default: float | None = None
    chosen: float | None = None


def measured(problem: Problem, seed: int) -> dict[str, Measured]:
    """Every contender on the test digits of one seed."""
    alone = [
        accuracy(holding(model), problem.test.seen(view)) for model, view in zip(problem.models, VIEWS, strict=True)
    ]

    def normalised(weights: Weights) -> float:
        """Of the merged model on each task, as a share of what the task's own model reaches there."""
        return sum(a / own for a, own in zip(_accuracies(weights, problem.test), alone, strict=True)) / len(alone)

    found = {"no merge: the base": Measured(normalised(problem.base))}
    for name, (inputs, grid) in CONTENDERS.items():
        merged = {value: merge.combine(_material(problem, inputs, seed)) for value, merge in grid.items()}
        best = max(merged, key=lambda value: sum(_accuracies(merged[value], problem.tuning)))
        default = next((normalised(merged[value]) for value, merge in grid.items() if _is_default(merge)), None)
        found[name] = Measured(normalised(merged[best]), *((default, best) if len(grid) > 1 else ()))
    return found


def _accuracies(weights: Weights, digits: Digits) -> list[float]:
    model = holding(weights)
    return [accuracy(model, digits.seen(view)) for view in VIEWS]


def _is_default(merge: ModelMerge) -> bool:
    return merge == type(merge).model_validate({})


def _material(problem: Problem, inputs: Inputs, seed: int) -> TrainedModels:
    def batches(view: str, most: int) -> Iterator[Tensor]:
        trained, share = problem.trained, most // len(VIEWS)
        if inputs == "own":
            return iter(trained.seen(view).inputs[:most].split(64))
        return iter(Digits(trained.inputs[:share], trained.labels[:share]).mixed().inputs.split(64))

    def score(weights: Weights) -> Score:
        return Score(sum(_accuracies(weights, problem.tuning)) / len(VIEWS), 0.0)

    count = len(problem.models)
    return TrainedModels(
        problem.models, problem.base, [1 / count] * count, list(VIEWS), Key(seed), holding, batches, score
    )
