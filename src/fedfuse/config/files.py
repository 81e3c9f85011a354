"""Experiment files and the ``--set`` assignments on top of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from fedfuse.config.schema import ExperimentConfig, Raw, as_mapping, complete
from fedfuse.config.sentences import sentence
from fedfuse.core.errors import ConfigError


def validate(raw: Any, where: str = "the experiment") -> ExperimentConfig:
    """Check a raw mapping and complete it, or say in one sentence what is wrong with it."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{where} should be a mapping of keys such as data, models and method")
    try:
        completed = complete(raw)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    try:
        return ExperimentConfig.model_validate(completed)
    except ValidationError as error:
        raise ConfigError(f"{where}: {sentence(error.errors()[0], completed)}") from None


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


def assign(raw: Raw, assignments: Sequence[str]) -> Raw:
    """Apply ``key.sub=value`` assignments to a raw mapping; values are YAML."""
    result: Raw = json.loads(json.dumps(raw))
    for assignment in assignments:
        address, equals, text = assignment.partition("=")
        if not equals or not address:
            raise ConfigError(f"--set {assignment}: write key=value, for example federation.rounds=20")
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            raise ConfigError(f"--set {assignment}: '{text}' is not a YAML value") from None
        _assign(result, address.split("."), value, assignment)
    return result


def _assign(node: Raw, keys: Sequence[str], value: Any, assignment: str) -> None:
    for depth, key in enumerate(keys[:-1]):
        if keys[: depth + 1] == ["method"] and isinstance(node.get(key), str):
            node[key] = as_mapping(node[key])
        child = node.setdefault(key, {})
        if not isinstance(child, dict):
            raise ConfigError(
                f"--set {assignment}: '{'.'.join(keys[: depth + 1])}' is {child!r} and has no keys below it"
            )
        node = child
    node[keys[-1]] = value


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
