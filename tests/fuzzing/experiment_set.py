"""Assignments of a command line, ``--set key=value``."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from fedfuse.experiment.config import assign, validate
from tests.fuzzing.experiment_values import SMALL, experiments
from tests.fuzzing.experiment_yaml import WORDS
from tests.fuzzing.mutation import text_of

BASE = {**SMALL, "training": {"epochs": 1}, "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0}}


def honest() -> list[str]:
    found = dict.fromkeys(assignment for case in experiments() for assignment in _leaves(case))
    return ["training.epochs=2", "method=feddf", "models.n={arch: cnn1}", *list(filter(_is_read, found))[::20]]


def _is_read(assignment: str) -> bool:
    try:
        read(assignment)
    except Exception:
        return False
    return True


def _leaves(value: dict[str, Any], section: str = "") -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{section}{key}.")
        elif isinstance(inner, str | int | float):
            yield f"{section}{key}={inner}"


def mutate(rng: Random, case: str) -> str:
    return text_of(rng, case, (*WORDS, ".", "=", "method.", "models.", "a." * 100))


def read(case: str) -> None:
    validate(assign(BASE, [case]))
