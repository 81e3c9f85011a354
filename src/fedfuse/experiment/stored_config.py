"""What the config of a run folder says, read without importing anything that it names."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, OlderKeyWarning
from fedfuse.core.plain_text import one_line
from fedfuse.experiment.config import ExperimentConfig, Raw, read_yaml, validate
from fedfuse.experiment.config.schema import as_mapping
from fedfuse.experiment.named_code import named_code
from fedfuse.federation.summary import MetricFacts
from fedfuse.methods import METHODS


@dataclass(frozen=True)
class StoredConfig:
    """``known`` is the config of an experiment that this version can read, and that names nobody's code but ours."""

    raw: Raw
    known: ExperimentConfig | None

    @staticmethod
    def read(path: Path) -> StoredConfig:
        raw = read_yaml(path)
        if named_code(raw):
            return StoredConfig(raw, None)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OlderKeyWarning)
                known = validate(raw, str(path))
        except ConfigError:  # of another version, or a method of a package that is not installed
            return StoredConfig(raw, None)
        return StoredConfig(known.model_dump(mode="json"), known)

    @staticmethod
    def of(config: ExperimentConfig) -> StoredConfig:
        return StoredConfig(config.model_dump(mode="json"), config)

    def names(self) -> Raw:
        """What a run of it is called, as far as that can be said without the code behind it."""
        if self.known is not None:
            return self.known.names()
        seed = self.raw.get("seed")
        name, method = (one_line(str(word)) for word in (self.raw.get("name", "experiment"), self._called))
        return {"name": name, "method": method, "seed": seed if type(seed) is int else 0}

    @cached_property
    def method(self) -> Raw:
        """The recipe."""
        try:
            return as_mapping(self.raw.get("method", "fedavg"))
        except ConfigError:
            return {}

    @property
    def title(self) -> str | None:
        """What papers call the method; None for a variant that has a label, and for methods that are not ours."""
        own = METHODS.get(str(self.method.get("name", "fedavg")))
        return own.title if own is not None and not self.method.get("label") else None

    @property
    def _called(self) -> Any:
        return self.method.get("label") or str(self.method.get("name", "fedavg")).rpartition(":")[2]

    @property
    def answers_as_ensemble(self) -> bool:
        return self.known is not None and self.known.answers_as_ensemble

    @property
    def server_models(self) -> bool:
        """Whether the server ends up with models of its own."""
        if self.known is not None:
            return self.known.recipe.has_server_model
        kinds = (_kind(self.method.get(slot)) for slot in ("protocol", "fuse"))
        protocol, fuse = kinds
        return protocol not in ("predictions", "nothing") or fuse not in (None, "none")

    @property
    def target(self) -> float | None:
        found = _section(self.raw, "evaluation").get("target_accuracy")
        return float(found) if isinstance(found, int | float) and 0 < found <= 1 else None

    @property
    def rounds(self) -> int | None:
        """How many are planned."""
        found = _section(self.raw, "federation").get("rounds")
        return found if type(found) is int and found > 0 else None

    @property
    def may_end_early(self) -> bool:
        """Whether fewer rounds than planned may be enough."""
        own = _section(self.raw, "evaluation")
        return bool(own.get("stop_at_target") or own.get("patience"))

    @property
    def metrics(self) -> Sequence[MetricFacts]:
        if self.known is None:
            return ()
        return [MetricFacts(one.called, one.better, one.unit) for one in self.known.evaluation.metrics]

    @property
    def models(self) -> list[str]:
        return list(_section(self.raw, "models"))

    def code(self) -> str | None:
        """The first address that it names, if it names any."""
        return named_code(self.raw)


def _section(raw: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = raw.get(name)
    return found if isinstance(found, Mapping) else {}


def _kind(part: Any) -> Any:
    return part.get("kind") if isinstance(part, Mapping) else part


def flat(value: Any, address: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf of a config by its address, ``training.optimizer.kind``; a list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flat(inner, f"{address}.{key}" if address else str(key))
    else:
        yield address, value
