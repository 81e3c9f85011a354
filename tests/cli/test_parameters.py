"""The parameter list of a method: complete, and each line can be written into an experiment file."""

from __future__ import annotations

import pytest

from fedfuse.cli.parameters import parameters
from fedfuse.methods import METHODS


def leaves(value: object, address: str = "") -> set[str]:
    """Addresses of everything in a dumped recipe that is not a mapping or a list of mappings."""
    if isinstance(value, dict):
        return {leaf for key, inner in value.items() for leaf in leaves(inner, f"{address}.{key}" if address else key)}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return {leaf for index, inner in enumerate(value) for leaf in leaves(inner, f"{address}[{index}]")}
    return {address}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_leaf_of_the_recipe_is_listed_once(name: str) -> None:
    recipe = METHODS[name].recipe
    listed = [parameter.address for parameter in parameters(recipe)]
    assert sorted(listed) == sorted(leaves(recipe.model_dump(mode="json")))


def test_ranges_choices_and_meanings_are_shown() -> None:
    listed = {parameter.address: parameter for parameter in parameters(METHODS["feddf"].recipe)}
    steps = listed["fuse.distiller.steps"]
    assert (steps.value, steps.allowed) == ("10000", "whole number | null from 0")
    assert "optimiser steps" in steps.meaning
    assert listed["fuse.start"].allowed == "average | previous"
    assert listed["fuse.distiller.clip_norm"].allowed == "number | null above 0"
    assert listed["fuse.distiller.optimizer.learning_rate"].value == "0.001"
