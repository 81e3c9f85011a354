"""Experiments as Python hands them over: mappings, lists and values."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from fedfuse.experiment import presets
from fedfuse.experiment.config import load_yaml, validate
from fedfuse.methods import METHODS
from tests.fuzzing.mutation import value_of

SMALL: dict[str, Any] = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}


@cache
def experiments() -> tuple[dict[str, Any], ...]:
    """All presets, and all methods with every part written out."""
    texts = [load_yaml(presets.text(name), name) for name in presets.names()]
    recipes = {name: method.recipe.model_dump(mode="json") for name, method in METHODS.items()}
    by_name = [{**SMALL, "method": {"name": name, **recipe}} for name, recipe in recipes.items()]
    changes = [{**SMALL, "methods": {name: recipe}} for name, recipe in recipes.items()]
    older = {"name": "fedavg", "exchange": {"kind": "predictions", "weighting": {"kind": "certainty"}, "bits_up": 1}}
    complete = validate(texts[0]).model_dump(mode="json")
    return (*texts, *by_name, *changes, {**SMALL, "method": older}, complete)


def honest() -> list[dict[str, Any]]:
    return [*experiments()[:-2], experiments()[-1]]


def mutate(rng: Random, case: dict[str, Any]) -> dict[str, Any]:
    older = experiments()[-2]
    base = older if rng.random() < 0.05 else case
    parts = (
        [*case.values(), *case.get("method", {"name": "x"}).values()] if isinstance(case.get("method"), dict) else []
    )
    return value_of(rng, base, parts)  # type: ignore[no-any-return]


def read(case: dict[str, Any]) -> None:
    """What is read once is read again from its own file, as the same experiment."""
    config = validate(case)
    again = validate(load_yaml(config.to_yaml(), "its own file"))
    assert again == config
    assert again.sha256() == config.sha256()
