"""Experiment files: reading them, and checking what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Settings
from fedfuse.experiment.config.error_messages import refusal
from fedfuse.experiment.config.extent import check_extent
from fedfuse.experiment.config.schema import ExperimentConfig, Raw, changed_recipe, changes_of_methods, complete
from fedfuse.federation import Recipe

T = TypeVar("T", bound=Settings)


def validate(raw: Any, where: str = "the experiment") -> ExperimentConfig:
    """Check a raw mapping and complete it, or say in one sentence what is wrong with it.

    What it says about methods that this run does not use is checked too: the next run may be theirs.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} should be a mapping of keys such as data, models and method")
    check_extent(raw, where)
    with _said_of(where):
        recipes = {name: changed_recipe(name, changes) for name, changes in changes_of_methods(raw).items()}
    for name, recipe in recipes.items():
        checked(Recipe, recipe, where, ("methods", name))
    with _said_of(where):
        completed = complete(raw)
    return checked(ExperimentConfig, completed, where)


@contextmanager
def _said_of(where: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def checked(kind: type[T], raw: Raw, where: str, section: tuple[str, ...] = ()) -> T:
    """A raw mapping as settings, or one sentence about what is wrong with it; ``section`` is where it was found."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise refusal(error.errors()[0], raw, section, where) from None
