"""Tiny problems: a network with BatchNorm, random examples, experiments of a tenth of a second."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import nn

from fedfuse.core.choice import OneOf
from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.part import Part
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples, Transform
from fedfuse.data.dataset import Normalisation
from fedfuse.engines import LocalEngine
from fedfuse.experiment.config import ExperimentConfig, validate
from fedfuse.federation import Engine, EvaluationSettings, Federation, FederationSettings, Recipe
from fedfuse.federation.client import Clients
from fedfuse.federation.events import EventLog
from fedfuse.methods import METHODS
from fedfuse.models import Architecture, Classifier, Mlp
from fedfuse.models.classifier import LayeredClassifier
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.fuse import NoFusion
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean
from fedfuse.parts.scores import Uniform
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source
from fedfuse.runtime.training import TrainingSettings

FEATURES, CLASSES = 4, 3
CPU = Compute(torch.device("cpu"), threads=1, channels_last=False)
AS_IT_IS = Transform(Normalisation((0.0,) * FEATURES, (1.0,) * FEATURES), (FEATURES,))


class TinyNorm(Architecture):
    """The smallest network with BatchNorm; with ``dropout``, also the smallest with randomness inside."""

    arch: Literal["tiny_norm"] = "tiny_norm"
    width: int = 6
    dropout: float = 0.0

    def build(self, input_shape: tuple[int, ...], classes: int) -> Classifier:
        layers = [nn.Flatten(), nn.Linear(math.prod(input_shape), self.width), nn.BatchNorm1d(self.width), nn.ReLU()]
        if self.dropout:
            layers.append(nn.Dropout(self.dropout))
        return LayeredClassifier(nn.Sequential(*layers), self.width, classes)


def make_bank(**architectures: Architecture) -> ModelBank:
    return ModelBank(architectures or {"mlp": Mlp(hidden=(5,))}, (FEATURES,), CLASSES, CPU)


def make_examples(count: int, seed: int = 0) -> Examples:
    """Random points with labels that a network can learn: the largest of the first three features."""
    random = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, FEATURES, generator=random)
    return Examples(inputs, inputs[:, :CLASSES].argmax(dim=1))


def make_source(count: int, seed: int = 99, labelled: bool = False) -> Source:
    examples = make_examples(count, seed)
    return Source("test", examples.inputs, AS_IT_IS, CPU, labels=examples.labels if labelled else None)


def make_evaluator(examples: Examples, batch_size: int = 7) -> Evaluator:
    return Evaluator(examples, AS_IT_IS, CPU, batch_size)


def make_weights(bank: ModelBank, prototype: str, seed: int) -> Weights:
    """Random weights whose buffers are random too, and positive, as a running variance has to be."""
    fresh = bank.initial(prototype, Key(seed))
    random = torch.Generator().manual_seed(seed)
    return fresh.with_buffers(fresh.buffers + torch.rand(fresh.buffers.shape, generator=random))


def make_update(
    weights: Weights, client: int = 0, examples: int = 10, prototype: str = "mlp", number: int = 1, **more: Any
) -> Update:
    return Update(number, client, prototype, weights, examples, **more)


def make_client(
    task: Task,
    model: Classifier,
    examples: Examples,
    training: TrainingSettings | None = None,
    learning_rate: float = 0.1,
    state: Tensors | None = None,
    bank: ModelBank | None = None,
    key: Key | None = None,
    source: Source | None = None,
    transform: Transform | None = None,
) -> ClientContext:
    """A client at work, as the part at hand sees it: all extras of the task are that part's."""
    return ClientContext(
        task=task,
        model=model,
        start=task.weights,
        examples=examples,
        transform=transform or AS_IT_IS,
        training=training or TrainingSettings(),
        learning_rate=learning_rate,
        bank=bank or make_bank(),
        source=source,
        test_inputs=None,
        received=task.extras,
        state=state or {},
        key=key or Key(3),
        common=Key(0),
    )


def make_view(bank: ModelBank, weights: Mapping[str, Weights] | None = None, **more: Any) -> ServerView:
    defaults = {
        "round": 1,
        "key": Key(0),
        "common": Key(0),
        "memory": {},
        "clients_of": dict.fromkeys(bank.prototypes, 10),
        "visits": dict.fromkeys(range(10), 0),
        "validation": None,
        "source": None,
        "scores": Uniform(),
    }
    return ServerView(bank=bank, weights=weights or {}, **{**defaults, **more})


def make_recipe(**parts: Any) -> Recipe:
    """A recipe of any parts, those of a test included, which the schema does not know."""
    whole = {"local": Plain(), "screen": (), "merge": Mean(), "fuse": NoFusion(), **parts}
    return Recipe.model_construct(**whole)


class Recorder:
    """A listener that keeps what it hears."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []

    def __call__(self, entry: Mapping[str, Any]) -> None:
        self.entries.append(dict(entry))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["event"] == kind]


class CopyAt:
    """A listener that copies a run's folder at the how-manieth event of a kind, as a crash would leave it then."""

    def __init__(self, kind: str, count: int, folder: Path, copy: Path) -> None:
        self.kind, self.left, self.folder, self.copy = kind, count, folder, copy

    def __call__(self, entry: Mapping[str, Any]) -> None:
        if entry["event"] == self.kind:
            self.left -= 1
            if self.left == 0:
                shutil.copytree(self.folder, self.copy)


class BentEngine(Engine):
    """An engine whose answers are bent before the server sees them."""

    def __init__(self, inner: LocalEngine, bend: Any) -> None:
        self.inner, self.bend = inner, bend

    def train(self, tasks: Sequence[Task], states: Mapping[int, Tensors]) -> Iterator[tuple[Update, Tensors]]:
        yield from self.bend(list(self.inner.train(tasks, states)))

    def examples_of(self, tasks: Sequence[Task]) -> list[int]:
        return self.inner.examples_of(tasks)

    def close(self) -> None:
        self.inner.close()


def make_federation(
    bank: ModelBank | None = None,
    recipe: Recipe | None = None,
    clients: int = 4,
    listener: Any = None,
    bend: Any = None,
    validation: int = 0,
    source: int = 0,
    labelled: bool = False,
    target: EvaluationSettings | None = None,
    **settings: Any,
) -> Federation:
    """A federation of clients of different sizes, without any file."""
    bank = bank or make_bank()
    recipe = recipe or make_recipe()
    key = Key(5)
    datasets = {client: make_examples(8 + 3 * client, seed=client) for client in range(clients)}
    training = TrainingSettings(epochs=1, batch_size=4)
    public = make_source(source, labelled=labelled) if source else None
    test, validating = make_examples(30, seed=1000), make_evaluator(make_examples(validation, seed=1001))
    by_batch = settings.get("batch_norm") == "batch"
    test_inputs = Source("test", test.inputs, AS_IT_IS, CPU)
    clients_here = Clients(datasets, AS_IT_IS, bank, recipe, public, test_inputs, training, 10, key)
    engine: Any = LocalEngine(clients_here)
    return Federation(
        recipe=recipe,
        settings=FederationSettings(**{"rounds": 3, **settings}),
        evaluation=target or EvaluationSettings(),
        clients=clients,
        bank=bank,
        engine=BentEngine(engine, bend) if bend else engine,
        test=replace(make_evaluator(test), batch_statistics=by_batch),
        validation=replace(validating, batch_statistics=by_batch) if validation else None,
        source=public,
        key=key,
        log=EventLog(listeners=(listener,) if listener else ()),
    )


def played(federation, rounds=3, snapshot=None):
    snapshot = snapshot or federation.start()
    for _ in range(rounds):
        snapshot = federation.advance(snapshot)
    return snapshot


SMALL_WORK = {
    "steps": 5,
    "epochs": 2,
    "evaluate_every": 2,
    "patience": 4,
    "batch_size": 16,
    "collect_after": 1,
    "cycle": 2,
}
"""Whatever part of a method has one of these fields gets this value, so that a new method is quick here too."""


def tiny_method(name: str, **parts: Any) -> dict[str, Any]:
    recipe = METHODS[name].recipe.model_dump(mode="json")
    return {**shrunk(recipe), "name": name, **parts}


def tiny_config(method: str | Mapping[str, Any] = "fedavg", **sections: Any) -> ExperimentConfig:
    """Two-dimensional blobs, four clients, two rounds."""
    raw = {
        "data": {"name": "blobs", "examples": 150, "validation": 0.15, "public": 0.2},
        "partition": {"kind": "dirichlet", "clients": 4, "alpha": 1.0, "min_examples": 2},
        "models": {"mlp": {"arch": "mlp", "hidden": [6]}},
        "training": {"epochs": 1, "batch_size": 8},
        "federation": {"rounds": 2, "participation": 0.75},
        "compute": {"device": "cpu"},
        "method": tiny_method(method) if isinstance(method, str) else dict(method),
    }
    federation = {"checkpoint_every": 1, **sections.pop("federation", raw["federation"])}
    return validate(with_heads({**raw, **sections, "federation": federation}))


def with_heads(raw: dict[str, Any]) -> dict[str, Any]:
    """An experiment whose models have a projection head if its method refuses models without."""
    local = raw["method"].get("local") if isinstance(raw["method"], Mapping) else None
    if not isinstance(local, Mapping) or not local.get("needs_projection_head"):
        return raw
    return {**raw, "models": {name: {"projection_head": 5, **model} for name, model in raw["models"].items()}}


def kinds(slot: Any) -> tuple[type[Part], ...]:
    """The classes behind an ``AnyX`` of the schema."""
    return next(meta.known for meta in get_args(slot) if isinstance(meta, OneOf))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


def without_seconds(value: Any) -> Any:
    """A record or summary without what a clock measured."""
    plain = json.loads(json.dumps(value))
    return _drop_seconds(plain)


def events_of(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "events.jsonl").read_text().splitlines()
    return [entry for entry in map(json.loads, lines) if entry["event"] == kind]


def shrunk(value: Any) -> Any:
    """A dumped part with less work to do."""
    if isinstance(value, dict):
        return {key: inner if inner is None else SMALL_WORK.get(key, shrunk(inner)) for key, inner in value.items()}
    return [shrunk(inner) for inner in value] if isinstance(value, list) else value


def _drop_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_seconds(inner) for key, inner in value.items() if key not in ("seconds", "time")}
    return [_drop_seconds(inner) for inner in value] if isinstance(value, list) else value
