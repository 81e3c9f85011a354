"""The schema of an experiment: every key, its type, range and default."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from fedfuse.catalogue.keys import suggested
from fedfuse.core.errors import ConfigError, shortened
from fedfuse.core.foreign import source_sha256
from fedfuse.core.part import Settings, addresses_in, dependent_on_rounds
from fedfuse.core.yaml_text import MOST_BYTES, dump_yaml
from fedfuse.data import AnyPartition, DataSettings, Iid
from fedfuse.engines import AnyEngine, LocalEngineSettings
from fedfuse.experiment.config.error_messages import in_short
from fedfuse.experiment.config.noise import left_to_us, promising, without_later_defaults
from fedfuse.experiment.config.older import renewed
from fedfuse.federation import EvaluationSettings, FederationSettings, Recipe
from fedfuse.federation.attack import Attacks
from fedfuse.federation.checkpoint import Identity
from fedfuse.methods import FILE_NAME, METHODS, Method, find_method, method_names
from fedfuse.models import AnyArchitecture
from fedfuse.parts.fuse import EnsembleOnly
from fedfuse.parts.sources import AnySource, HeldOut, OtherDataset
from fedfuse.privacy import PrivacySettings
from fedfuse.report.trackers import AnyTracker, as_list
from fedfuse.runtime.compute import ComputeSettings
from fedfuse.runtime.training import TrainingSettings

Raw = dict[str, Any]
LONGEST_NAME = 100
"""Of an experiment, a method or a model, in bytes: they are put together to the names of files."""


NEWER_EVALUATION = ("metrics", "patience", "least_gain", "keep_best", "best_by", "best_on", "validation")


class MethodSettings(Recipe):
    """A method by its name or address; any part given here replaces or adjusts that method's part."""

    name: str = Field(description="a published method, or the address of one of your own")
    label: str | None = Field(
        None,
        pattern=FILE_NAME,
        max_length=LONGEST_NAME,
        description="what tables and run folders call it, to tell variants of a method apart; its name if not given",
    )

    @property
    def called(self) -> str:
        return self.label or find_method(self.name).name


class ExperimentConfig(Settings):
    """One experiment: who has what data, which models, which method, how it is measured."""

    name: str = Field("experiment", pattern=FILE_NAME, max_length=LONGEST_NAME, description="names the run folder")
    seed: int = Field(0, ge=0, lt=2**128, description="all randomness of the run is derived from it")
    data: DataSettings = Field(description="the dataset, how it is prepared and divided")
    partition: AnyPartition = Field(default_factory=lambda: Iid(clients=10), description="who has which examples")
    models: dict[str, AnyArchitecture] = Field(min_length=1, description="architectures by name: the prototypes")
    training: TrainingSettings = Field(default_factory=TrainingSettings, description="how clients train")
    federation: FederationSettings = Field(default_factory=FederationSettings, description="rounds and who takes part")
    method: MethodSettings = Field(description="the method: its name, or its name and what is changed in it")
    methods: dict[str, Raw] = Field(
        default_factory=dict, description="what this experiment changes in a method's parts, for each method it may run"
    )
    privacy: PrivacySettings | None = Field(
        None, description="a promise of differential privacy, which is counted; none without (docs/privacy.md)"
    )
    source: AnySource = Field(default_factory=HeldOut, description="distillation inputs, for methods that need them")
    attack: Attacks = Field(
        (), description="what hostile clients do, for experiments about defences; a mapping, or a list of them"
    )
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings, description="what is measured")
    compute: ComputeSettings = Field(default_factory=ComputeSettings, description="device, threads, precision")
    engine: AnyEngine = Field(default_factory=LocalEngineSettings, description="where clients run")
    track: Annotated[tuple[AnyTracker, ...], BeforeValidator(as_list)] = Field(
        (), description="programs that keep the curves of runs, by kind or address"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_method(cls, value: Any) -> Any:
        return complete(value) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _prototype_names_are_file_names(self) -> Self:
        for name in self.models:
            if not name.replace("-", "").replace("_", "").isalnum():
                raise ValueError(
                    f"models: '{shortened(name)}' may only have letters, digits, '-' and '_': it names a file"
                )
            if len(name.encode()) > LONGEST_NAME:
                raise ValueError(f"models: '{shortened(name)}' is longer than {LONGEST_NAME} bytes: it names a file")
        return self

    @model_validator(mode="after")
    def _a_file_can_hold_it(self) -> Self:
        """The run's own config.yaml has a line for each client that is assigned a model by name."""
        if sum(len(name) + 5 for name in self.federation.assigned) > MOST_BYTES / 2:
            raise ValueError(
                f"federation.assigned names the models of {len(self.federation.assigned):,} clients one by one, "
                "which is more than an experiment file holds; give federation.shares"
            )
        return self

    @model_validator(mode="after")
    def _fresh_inputs_are_not_asked_for_again(self) -> Self:
        for part in self.recipe.parts:
            if self.source.is_fresh and part.needs_source and not part.takes_fresh_inputs:
                raise ValueError(
                    f"source.fresh gives every step of a distillation inputs of its own, but method {self.method.name} "
                    "reads the same ones again; remove it"
                )
        return self

    @model_validator(mode="after")
    def _inputs_are_made_before_they_are_read(self) -> Self:
        if not self.source.needs_teachers:
            return self
        readers = [part.kind for part in self.recipe.parts if part.needs_source and not part.takes_synthesised_inputs]
        if any(kind.reestimates for kind in getattr(self.recipe.fuse, "teachers", ())):
            readers.append("teachers with batch_norm reestimate")
        if self.federation.batch_norm == "reestimate":
            readers.append("federation.batch_norm reestimate")
        if getattr(self.recipe.fuse, "target", None) == "auto" and not self.data.validation:
            readers.append("fuse.target auto (without data.validation)")
        if readers:
            raise ValueError(
                f"source {self.source.kind} makes inputs from the round's models when they are about to teach, but "
                f"{readers[0]} reads public inputs before; choose another source"
            )
        return self

    @model_validator(mode="after")
    def _noise_that_promises_is_counted(self) -> Self:
        if self.privacy is None and (key := next(promising(self), None)):
            raise ValueError(
                f"{key} promises privacy, but nobody counts it; say what is protected, such as privacy: {{unit: "
                f"{'example' if key.startswith('training') else 'client'}, delta: 1.0e-5}}"
            )
        if (self.privacy is None or self.privacy.budget is None) and (key := next(left_to_us(self), None)):
            raise ValueError(f"{key} is auto, as much noise as a budget needs, but there is none; set privacy.budget")
        return self

    @property
    def recipe(self) -> Recipe:
        return self.method

    @property
    def answers_as_ensemble(self) -> bool:
        """Whether the result of the run is the accuracy of an ensemble, and not that of any model."""
        return find_method(self.method.name).answers_as_ensemble and isinstance(self.recipe.fuse, EnsembleOnly)

    def names(self) -> Raw:
        """What a run of it is called."""
        return {"name": self.name, "method": self.method.called, "seed": self.seed}

    @property
    def label(self) -> str:
        return f"{self.name} {self.method.called} seed {self.seed}"

    def to_yaml(self) -> str:
        """The complete experiment, every default written out."""
        return dump_yaml(self.model_dump(mode="json"))

    def identity(self) -> Raw:
        """What determines the result's bits: all but the name, the engine and trackers, and the code from outside."""
        not_bits: dict[str, Any] = {"name": True, "engine": True, "track": True, "methods": True, "method": {"label"}}
        not_bits["evaluation"] = {"pictures", *_as_before(self.evaluation, NEWER_EVALUATION)}
        not_bits["data"] = self.data.unsaid
        if isinstance(self.source, OtherDataset):
            not_bits["source"] = {"data": self.source.data.unsaid}
        if not self.attack:
            not_bits["attack"] = True
        not_bits["federation"] = _as_before(self.federation, ("clock", "keep_clients", "secure_sums"))
        if self.privacy is None:
            not_bits |= {"privacy": True, "training": {"privacy"}}
        dump = without_later_defaults(self.model_dump(mode="json", exclude=not_bits))
        code = self.foreign_code
        return json.loads(json.dumps({**dump, **({"code": code} if code else {})}, sort_keys=True))  # type: ignore[no-any-return]

    @cached_property
    def foreign_code(self) -> dict[str, str]:
        """By address, a hash of the source of every part, network and function that is not ours."""
        sections = (self.partition, self.method, self.source, self.training, self.evaluation)
        parts = (*sections, *self.attack, *self.models.values())
        addresses = [address for part in parts for address in sorted(set(addresses_in(part)))]
        return {address: source_sha256(address) for address in (*self.data.own_code, *addresses)}

    def sha256(self) -> str:
        return _sha256(self.identity())

    def course(self) -> Raw:
        """The identity but for the number of rounds."""
        identity = self.identity()
        return {**identity, "federation": {key: v for key, v in identity["federation"].items() if key != "rounds"}}

    def dependent_on_rounds(self) -> list[str]:
        """The keys of what depends on the number of rounds."""
        sections = {name: getattr(self, name) for name in type(self).model_fields if name != "engine"}
        return list(dependent_on_rounds(sections))

    @property
    def of_checkpoints(self) -> Identity:
        """What its checkpoints are of."""
        return Identity(self.sha256(), None if self.dependent_on_rounds() else _sha256(self.course()))


def _as_before(section: Settings, newer: Sequence[str]) -> set[str]:
    """Of the keys that there were not always, those that say nothing: without them, older runs are still the same."""
    return {key for key in newer if getattr(section, key) == type(section).model_fields[key].get_default()}


def _sha256(identity: Raw) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def complete(raw: Mapping[str, Any]) -> Raw:
    """``raw`` with its ``method`` filled in from the published recipe and from what ``methods`` changes in it."""
    for key in raw:
        if key not in ExperimentConfig.model_fields:
            near = suggested(str(key), (), tuple(ExperimentConfig.model_fields))
            raise ConfigError(f"unknown key '{shortened(str(key))}'{near}")
    methods = changes_of_methods(raw)
    chosen = as_mapping(raw.get("method", "fedavg"))
    name = str(chosen.get("name", "fedavg"))
    base = changed_recipe(name, methods.get(name, {}))
    return {**raw, "method": overlay(base, {**renewed(chosen, base), "name": name})}


def changes_of_methods(raw: Mapping[str, Any]) -> dict[str, Raw]:
    """The section ``methods``, with mappings below the names of methods that there are."""
    methods = raw.get("methods") or {}
    if not isinstance(methods, Mapping):
        raise ConfigError(f"methods is {in_short(methods)}, but should be a mapping")
    for name, changes in methods.items():
        try:
            find_method(str(name))
        except ConfigError as error:
            raise ConfigError(f"methods: {error}") from None
        if not isinstance(changes, Mapping):
            raise ConfigError(f"methods.{name} is {in_short(changes)}, but should be a mapping of parts")
    return dict(methods)


def changed_recipe(name: str, changes: Mapping[str, Any]) -> Raw:
    """The published recipe with changes on top."""
    base = find_method(name).recipe.model_dump(mode="json")
    return overlay(base, renewed(changes, base))


def as_mapping(method: Any) -> Raw:
    """``feddf`` is short for ``{name: feddf}``; a method that was made in Python comes with all its parts."""
    if isinstance(method, str):
        return {"name": method}
    if isinstance(method, Method):
        if METHODS.get(method.name) is method:
            return {"name": method.name}
        return {"name": "fedavg", "label": method.name, **method.recipe.model_dump(mode="json")}
    if isinstance(method, Mapping):
        return dict(method)
    raise ConfigError(f"method is {in_short(method)}, but should be a name or a mapping with a name")


CHOOSERS = ("kind", "arch", "name")
"""Keys that say what the other keys beside them mean."""


ALTERNATIVES = {"steps": "epochs", "epochs": "steps"}
"""Keys that say the same thing in two ways: whoever gives one of them takes the other away."""


def overlay(base: Raw, changes: Mapping[str, Any]) -> Raw:
    """``base`` with ``changes`` on top; a part of another kind (arch, name) replaces the whole part."""
    replaced = {ALTERNATIVES[key] for key, value in changes.items() if key in ALTERNATIVES and value is not None}
    result = {key: None if key in replaced else value for key, value in base.items()}
    for key, value in changes.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping) and _is_same_choice(old, value):
            result[key] = overlay(old, value)
        else:
            result[key] = value
    return result


def _is_same_choice(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return all(new.get(key, old.get(key)) == old.get(key) for key in CHOOSERS)


def json_schema() -> Raw:
    """The JSON schema of an experiment file."""
    schema = ExperimentConfig.model_json_schema()
    names = {"enum": sorted(method_names()), "description": "a published method with its defaults"}
    by_address = {"type": "string", "pattern": ".:.", "description": "package.module:NAME, a method of your own"}
    by_parts = dict(schema["properties"]["method"])
    schema["properties"]["method"] = {"anyOf": [names, by_address, by_parts], "default": "fedavg"}
    schema["required"] = [key for key in schema["required"] if key != "method"]
    _loosen(schema)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def _loosen(node: Any) -> None:
    """``oneOf`` to ``anyOf``: a file may adjust a part without repeating its kind, and then several may fit."""
    if isinstance(node, dict):
        node.pop("discriminator", None)
        if "oneOf" in node:
            node["anyOf"] = node.pop("oneOf")
        for child in node.values():
            _loosen(child)
    elif isinstance(node, list):
        for child in node:
            _loosen(child)
