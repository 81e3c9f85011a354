"""Experiment files: reading them, and checking what they say."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Settings
from fedfuse.experiment.config.error_messages import refusal
from fedfuse.experiment.config.schema import ExperimentConfig, Raw, changed_recipe, changes_of_methods, complete
from fedfuse.federation import Recipe

T = TypeVar("T", bound=Settings)


def validate(raw: Any, where: str = "the experiment") -> ExperimentConfig:
    """Check a raw mapping and complete it, or say in one sentence what is wrong with it.

    What it says about methods that this run does not use is checked too: the next run may be theirs.
    """
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} should be a mapping of keys such as data, models and method")
    try:
        completed, methods = complete(raw), changes_of_methods(raw)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    for name, changes in methods.items():
        checked(Recipe, changed_recipe(name, changes), where, ("methods", name))
    return checked(ExperimentConfig, completed, where)


def checked(kind: type[T], raw: Raw, where: str, section: tuple[str, ...] = ()) -> T:
    """A raw mapping as settings, or one sentence about what is wrong with it; ``section`` is where it was found."""
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        raise refusal(error.errors()[0], raw, section, where) from None


def read_yaml(path: Path) -> Raw:
    """An experiment file as a raw mapping."""
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file in UTF-8") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {_yaml_problem(error)}") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} should be a mapping of keys such as data, models and method")
    return raw


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem} in line {error.problem_mark.line + 1}"
    return " ".join(str(error).split())


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key written twice, instead of silently keeping the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key '{key}' is written twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)
