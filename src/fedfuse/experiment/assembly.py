"""From a config to a federation ready for round 1. Whatever cannot work is found here, before anything is written."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.core.errors import ConfigError, DataError, shortened
from fedfuse.core.hashes import sha256_of, sha256_of_file
from fedfuse.core.imports import check_findable_elsewhere
from fedfuse.core.messages import Tensors
from fedfuse.core.randomness import Key
from fedfuse.data import ClientDatasets, Dataset, PartitionReport, Splits, Transform, load, split
from fedfuse.data.partition import Assignment
from fedfuse.data.partition.base import checked
from fedfuse.data.pretrained_tokens import check_encoder
from fedfuse.data.readers.contents import UNLABELLED
from fedfuse.data.tokens import TextSettings
from fedfuse.experiment.choices import settled
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.judged import judged_on, measures_validation
from fedfuse.experiment.keeping import client_keeper
from fedfuse.experiment.promise import Promise
from fedfuse.experiment.promise import Surroundings as Around
from fedfuse.experiment.room import check_room
from fedfuse.federation import Engine, EvaluationSettings, Federation, FederationSettings, Recipe
from fedfuse.federation.accounting import BOOKS
from fedfuse.federation.client import Clients
from fedfuse.federation.clock.clock import Clock
from fedfuse.federation.clock.settings import ClockSettings
from fedfuse.federation.clock.work import RoundWork
from fedfuse.federation.events import EventLog
from fedfuse.federation.hostile import HostileClients
from fedfuse.federation.judging import On
from fedfuse.federation.kept_clients import kept_bytes
from fedfuse.federation.metrics import Metrics
from fedfuse.federation.prototypes import prototypes_of
from fedfuse.federation.sampling import clients_per_round, pooled
from fedfuse.federation.silence import SPEAKS
from fedfuse.federation.sums.fitting import check_sums
from fedfuse.federation.sums.summation import Summation
from fedfuse.models.interface import Interface
from fedfuse.parts.base import CheckContext
from fedfuse.parts.protocol.base import PREDICTIONS, WEIGHTS
from fedfuse.parts.sources import HeldOut, Surroundings
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source


@dataclass(frozen=True)
class Built:
    """A federation ready for round 1, and what it was built from."""

    config: ExperimentConfig
    dataset: Dataset
    splits: Splits
    partition: PartitionReport
    compute: Compute
    source: Source | None
    clients: Clients
    federation: Federation
    promise: Promise | None = None
    """What is promised about privacy, if anything is."""

    @property
    def interface(self) -> Interface:
        """What the models of a run are told about their inputs and classes."""
        return _interface(self.config, self.dataset)

    @property
    def judged_on(self) -> On:
        """The examples that rounds are judged on."""
        return judged_on(self.config, len(self.splits.validation))

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a run records of itself. Hashing the data takes a while, and only a run that is recorded asks for it."""
        return {
            "config_sha256": self.config.sha256(),
            "data": {
                "name": self.dataset.name,
                "origin": self.dataset.origin,
                "train": len(self.splits.train),
                "validation": len(self.splits.validation),
                "public": len(self.splits.public),
                "test": len(self.splits.test),
                "sha256": self.splits.sha256(),
                **_if_any(incomplete=self.dataset.incomplete),
                **_if_any(notes=list(self.dataset.notes), cautions=list(self.dataset.cautions)),
            },
            "partition_sha256": self.partition.sha256,
            **({"code": self.config.foreign_code} if self.config.foreign_code else {}),
            "source": _facts_of(self.source) if self.source else None,
            **_facts_of_clock(self.config.federation.clock),
            **({"privacy": self.promise.facts(self.federation.engine.keeps_secrets)} if self.promise else {}),
            **self._kept_facts(),
            **({"hostile": sorted(self.clients.hostile)} if isinstance(self.clients, HostileClients) else {}),
            "device": str(self.compute.device),
            **_if_any(caution=self.caution),
        }

    def privacy_of(self, memory: Mapping[str, Tensors]) -> dict[str, Any]:
        """What a run's summary says of privacy: what was promised, and what everybody has given away."""
        if self.promise is None:
            return {}
        return {"privacy": {**self.facts["privacy"], **self.promise.account.report(memory.get(BOOKS, {}))}}

    @property
    def caution(self) -> str | None:
        """What whoever reads the numbers should know of how they come about."""
        said = [self.compute.caution, *(self.promise.cautions() if self.promise else ()), _unmeasured(self.config)]
        return "; ".join(filter(None, said)) or None

    def _kept_facts(self) -> dict[str, Any]:
        """By what rounds are judged, and how many bytes of clients' models are kept, where that is so."""
        facts: dict[str, Any] = {}
        if self.config.evaluation.judges:
            facts["judged"] = {"by": self.config.evaluation.best_by, "on": self.judged_on}
        if self.config.federation.keep_clients:
            facts["kept_clients"] = kept_bytes(self.federation)
        return facts


def notes(facts: Mapping[str, Any]) -> list[str]:
    """What was done with the data of a run that nobody had asked for, in lines."""
    return list(facts["data"].get("notes", ()))


def cautions(facts: Mapping[str, Any]) -> list[str]:
    """What a run's facts say that a reader of its numbers should know, in sentences."""
    source = facts["source"] or {}
    parts = [facts["data"].get("incomplete"), source.get("incomplete")]
    found = [f"{sentence}; do not compare results with published ones" for sentence in parts if sentence is not None]
    found += facts["data"].get("cautions", [])
    if (facts.get("judged") or {}).get("on") == "test":
        found.append(
            "rounds are judged on the test examples, so that what the best of them has there is too good; "
            "data.validation gives them examples of their own"
        )
    if source.get("test_overlap"):
        copies, size = f"{source['test_overlap']:,}", f"{source['size']:,}"
        found.append(f"{copies} of the {size} inputs of source '{source['name']}' are copies of test inputs")
    if hostile := facts.get("hostile"):
        shown = ", ".join(map(str, hostile[:10])) + (" ..." if len(hostile) > 10 else "")
        found.append(f"{len(hostile)} of the clients attack, as the experiment asks for: {shown}")
    return [*found, facts["caution"]] if "caution" in facts else found


Loaded = tuple[Dataset, Splits]


def load_examples(config: ExperimentConfig, log: EventLog) -> Loaded:
    """The examples and how they are divided, which all experiments with the same data and seed share."""
    key = Key(config.seed)
    log.tick("load data", 0, 1)
    dataset = load(config.data, key.child("load"), split_key=key.child("split"))
    if dataset.classes == 1:
        raise DataError(
            f"{dataset.origin}: every label is '{shortened(dataset.class_names[0])}', so that there is nothing to learn"
        )
    return dataset, split(dataset, config.data, key.child("split"))


def assigned(config: ExperimentConfig, loaded: Loaded) -> Assignment:
    """Which client has which of the training examples."""
    (dataset, splits), key = loaded, Key(config.seed).child("partition")
    parts = config.partition.assign(splits.train.labels, dataset.classes, key, splits.train.owners)
    return checked(config.partition.kind, parts, len(splits.train))


def build(
    config: ExperimentConfig,
    log: EventLog,
    engine: Engine | None = None,
    loaded: Loaded | None = None,
    assignment: Assignment | None = None,
) -> Built:
    """Bring everything into memory. Whatever cannot work is found here, before round 1.

    Whoever has ``loaded`` the examples already, or lets clients have others of them, says so.
    """
    key = Key(config.seed)
    if engine is None and config.engine.has_processes and not hasattr(sys.modules["__main__"], "__file__"):
        check_findable_elsewhere(config.foreign_code)  # of a notebook, other processes know nothing
    dataset, splits = loaded or load_examples(config, log)
    check_room(config.models, dataset.model_shape, dataset.classes)
    config = settled(config, dataset)
    labels, owners = splits.train.labels, splits.train.owners
    assignment = assignment or assigned(config, (dataset, splits))
    partition = PartitionReport.of(config.partition, assignment, labels, dataset.class_names, owners)
    compute = Compute.of(config.compute)
    transform = Transform.of(dataset, config.data)
    bank = _bank(config, dataset, compute)
    source = _source(config, dataset, splits, transform, compute)
    parties, settings = _parties(config, assignment)
    most = _most_in_a_round(config, settings, len(parties))
    _check_parts(config, bank, source, len(splits.validation) > 0, most)
    _check_students(config, settings, len(parties))
    clients_per_round(config.federation, len(assignment))
    datasets = ClientDatasets(splits.train, parties)
    inputs = None if source is None else _inputs_per_round(config.recipe, source, key)
    promise = Promise.of(config, Around(bank, inputs, settings, len(parties), datasets.size))
    config = promise.config if promise else config
    sums = _sums(config, bank, most, clients_per_round(settings, len(parties)))
    clients = Clients(
        datasets=datasets,
        transform=transform,
        bank=bank,
        recipe=config.recipe,
        source=source,
        test_inputs=Source("test", splits.test.inputs, transform, compute),
        training=config.training,
        rounds=config.federation.rounds,
        key=key,
        together=clients_per_round(settings, len(parties)),
        silence=promise.silence() if promise else SPEAKS,
        sums=sums,
    )
    if config.attack:
        clients = HostileClients.of(clients, config.attack)
    by_batch = config.federation.batch_norm == "batch"
    on_validation = measures_validation(config, len(splits.validation))
    metrics = Metrics(config.evaluation.metrics, dataset.class_names, log) if config.evaluation.metrics else None
    test = Evaluator(splits.test, transform, compute, config.evaluation.batch_size, by_batch, metrics)
    federation = Federation(
        recipe=config.recipe,
        settings=settings,
        evaluation=_measured(config, promise),
        clients=len(parties),
        bank=bank,
        engine=engine or config.engine.open(clients, log),
        test=test,
        validation=replace(test, examples=splits.validation, measure=None) if len(splits.validation) else None,
        judging=replace(test, examples=splits.validation) if on_validation else None,
        keeping=client_keeper(config, bank, _interface(config, dataset)),
        source=source,
        key=key,
        log=log,
        has_wire=not config.recipe.pooled,
        clock=_clock(config, bank),
        accounting=promise.account if promise else None,
        sums=sums,
    )
    return Built(config, dataset, splits, partition, compute, source, clients, federation, promise)


def _interface(config: ExperimentConfig, dataset: Dataset) -> Interface:
    by_batch = config.federation.batch_norm == "batch"
    return Interface.of(dataset, config.data, config.evaluation.batch_size if by_batch else None)


def _clock(config: ExperimentConfig, bank: ModelBank) -> Clock | None:
    settings = config.federation.clock
    work = RoundWork(config.recipe, bank, config.training)
    return None if settings is None else Clock.of(settings, work, Key(config.seed))


def _bank(config: ExperimentConfig, dataset: Dataset, compute: Compute) -> ModelBank:
    """The models, each built once, so that an impossible one is refused now."""
    if dataset.tokenizer is not None:
        _check_tokens(config)
    bank = ModelBank(config.models, dataset.model_shape, dataset.classes, compute)
    for prototype in bank.prototypes:
        bank.layout(prototype)
    return bank


def _most_in_a_round(config: ExperimentConfig, settings: FederationSettings, clients: int) -> dict[str, int]:
    """How many clients of each model a round can have."""
    wanted = clients_per_round(settings, clients)
    running = prototypes_of(tuple(config.models), settings, clients).clients_of
    return {name: min(wanted, number) for name, number in running.items()}


def _check_parts(
    config: ExperimentConfig, bank: ModelBank, source: Source | None, has_validation: bool, most: Mapping[str, int]
) -> None:
    """Every part can work in this experiment."""
    recipe, key = config.recipe, Key(config.seed)
    inputs = None if source is None else _inputs_per_round(recipe, source, key)
    predicts = recipe.protocol.carries == "predictions"
    context = CheckContext(
        bank, config.training.optimizer, has_validation, inputs, sends_predictions=predicts, most_in_a_round=most
    )
    for part in recipe.parts:
        part.check(context)
    _check_upload(recipe, bank, inputs)


def _sums(config: ExperimentConfig, bank: ModelBank, most: Mapping[str, int], together: int) -> Summation | None:
    """How clients add up, where sums of them are all that the server sees; and that it can do with them."""
    if config.federation.secure_sums is None:
        return None
    sums = Summation(config.federation.secure_sums, config.recipe, together)
    check_sums(sums, config.federation, bank, most)
    return sums


def _unmeasured(config: ExperimentConfig) -> str | None:
    """What cannot be measured, or only here, where the server sees sums alone."""
    if config.federation.secure_sums is None:
        return None
    if config.evaluation.clients:
        return "evaluation.clients measures clients' own models, which a simulation may; masked parties do not answer"
    if not config.recipe.has_server_model and config.evaluation.clients is None:
        return "nobody's model is measured: clients have the only ones; a simulation may, with evaluation.clients true"
    return None


def _measured(config: ExperimentConfig, promise: Promise | None) -> EvaluationSettings:
    """What is measured: of clients' own models nothing that the server could not see, unless that is asked for."""
    evaluation = promise.evaluation() if promise else config.evaluation
    if config.federation.secure_sums is None or evaluation.clients is not None:
        return evaluation
    return evaluation.model_copy(update={"clients": False})


def _check_tokens(config: ExperimentConfig) -> None:
    """A pre-trained encoder understands its own tokenizer's numbers only."""
    for name, architecture in config.models.items():
        if architecture.taught_on is not None:
            check_encoder(config.data.text or TextSettings(), architecture.taught_on, f"models.{name}")


def _inputs_per_round(recipe: Recipe, source: Source, key: Key) -> int:
    return len(recipe.protocol.public(recipe.scores.inputs(source, key), key, 1))


def _check_upload(recipe: Recipe, bank: ModelBank, inputs: int | None) -> None:
    """Every link finds what it works on."""
    for prototype in bank.prototypes if recipe.upload else ():
        weights, predictions = {WEIGHTS: (bank.layout(prototype).size,)}, {PREDICTIONS: (inputs or 0, bank.classes)}
        sent = {"predictions": predictions, "nothing": {}}.get(recipe.protocol.carries, weights)
        recipe.chain.specs(sent, prototype, bank)


def _parties(config: ExperimentConfig, assignment: Assignment) -> tuple[Assignment, FederationSettings]:
    """Who trains on which examples: every client on its own, or one party per model on everybody's."""
    if not config.recipe.pooled:
        return assignment, config.federation
    everything = np.sort(assignment.positions)
    settings = pooled(config.federation, tuple(config.models))
    return Assignment.of([everything for _ in settings.assigned]), settings


def _check_students(config: ExperimentConfig, settings: FederationSettings, clients: int) -> None:
    """A model that nobody trains would stay as it was initialised."""
    run = prototypes_of(tuple(config.models), settings, clients).clients_of
    for name in config.models:
        if name not in run and not config.recipe.fuse.trains_without_clients(name):
            raise ConfigError(
                f"no client runs model '{name}' (federation.shares or assigned), and with method.fuse "
                f"{config.recipe.fuse.kind} nobody else trains it; give it clients, remove it, or choose a method that "
                "distils into it, such as feddf"
            )


def _source(
    config: ExperimentConfig, dataset: Dataset, splits: Splits, transform: Transform, compute: Compute
) -> Source | None:
    """The distillation inputs, if any part of the experiment reads them."""
    if not config.recipe.needs_source and config.federation.batch_norm != "reestimate":
        return None
    surroundings = Surroundings(
        splits.public,
        splits.train,
        transform,
        compute,
        Key(config.seed).child("source"),
        dataset.classes,
        config.recipe.needs_labels,
        dataset.tokenizer,
        splits.test,
        dataset.columns,
    )
    if surroundings.reads_labels and isinstance(config.source, HeldOut) and UNLABELLED in surroundings.public.labels:
        raise ConfigError(
            f"method {config.method.called} reads the labels of public examples; give data.public as (inputs, labels)"
        )
    return config.source.open(surroundings)


def _facts_of(source: Source) -> dict[str, Any]:
    return {
        "name": source.name,
        "size": len(source),
        "overlap": source.overlap,
        "sha256": sha256_of(source.raw),
        **_if_any(test_overlap=source.test_overlap, incomplete=source.incomplete),
    }


def _facts_of_clock(settings: ClockSettings | None) -> dict[str, Any]:
    """The devices that come from a file are those that were in it."""
    if settings is None or settings.trace is None:
        return {}
    return {"clock": {"name": settings.trace, "sha256": sha256_of_file(Path(settings.trace))}}


def _if_any(**facts: str | int | list[str] | None) -> dict[str, str | int | list[str]]:
    """Facts that are only there if there is something to say."""
    return {name: fact for name, fact in facts.items() if fact}
