"""Whether the parts of a strategy can work with each other, with its models and with its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config.files import checked
from fedfuse.federation import Recipe
from fedfuse.parts.base import CheckContext
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.source import Source


def recipe_of(strategy: str, parts: Mapping[str, Any]) -> Recipe:
    """The parts by slot, each as an object, as an experiment file's section, or by its kind alone."""
    for slot, part in parts.items():
        if isinstance(part, type):
            raise ConfigError(f"{strategy}: {slot} is a class; give an object of it, {part.__name__}()")
    return checked(Recipe, {slot: _section(part) for slot, part in parts.items()}, strategy)


def check(strategy: str, recipe: Recipe, bank: ModelBank, source: Source | None, validation: Evaluator | None) -> None:
    """Raise a ConfigError with the reason if some part cannot work here."""
    for part in recipe.parts:
        if part.needs_source and source is None:
            raise ConfigError(f"{strategy}: {part.kind} reads unlabelled inputs; set inputs")
        if part.needs_labels:
            raise ConfigError(f"{strategy}: {part.kind} reads the true labels of inputs, which have none here")
    if recipe.scores.asks_clients:
        raise ConfigError(
            f"{strategy}: scores {recipe.scores.kind} ask clients about their data, which ordinary clients do not "
            "answer; choose examples, confidence, entropy, variance or validation"
        )
    if validation is not None and not _are_classes(validation, bank.classes):
        raise ConfigError(f"{strategy}: labels of validation must be from 0 to {bank.classes - 1}, the models' classes")
    inputs = None if source is None else len(source)
    context = CheckContext(bank, Sgd(learning_rate=0.1), validation is not None, inputs)
    for part in recipe.parts:
        try:
            part.check(context)
        except ConfigError as error:
            # Parts speak of an experiment file's keys; here the arguments have the names of its slots.
            words = str(error).replace("data.validation", "validation").replace("method.", "")
            raise ConfigError(f"{strategy}: {words}") from None


def _section(part: Any) -> Any:
    if isinstance(part, str):
        return {"kind": part}
    return [_section(one) for one in part] if isinstance(part, list | tuple) else part


def _are_classes(validation: Evaluator, classes: int) -> bool:
    labels = validation.examples.labels
    return int(labels.min()) >= 0 and int(labels.max()) < classes
