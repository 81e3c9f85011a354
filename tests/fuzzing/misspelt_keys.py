"""Experiments that are looked through for misspelt keys: what is refused here, the schema refuses as well."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from fedfuse.catalogue.misspelt import misspellings
from fedfuse.experiment.config import validate
from tests.fuzzing import experiment_values


def honest() -> list[Any]:
    return experiment_values.honest()


def mutate(rng: Random, case: Any) -> Any:
    return experiment_values.mutate(rng, case)


def read(case: Any) -> None:
    problem = next(misspellings(case, "it"), None) if isinstance(case, Mapping) else None
    validate(case, "it")
    if problem is not None:
        raise AssertionError(f"the schema takes it, but not the search for misspellings: {problem}")
