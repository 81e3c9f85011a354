"""A federation in miniature, to see what an experiment costs: its own networks and parts, a few clients, few examples.

Its rounds are real rounds. What they send is weighed, and what they take is timed, step by step.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.engines.local import LocalEngine
from fedfuse.experiment.assembly import Built
from fedfuse.federation import Federation, Recipe, Snapshot
from fedfuse.federation.client import Clients
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import EventLog
from fedfuse.federation.round import Round
from fedfuse.federation.server_models import ServerModels
from fedfuse.federation.stream import Stream
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse import Fused
from fedfuse.parts.sources.synthesised.source import SynthesisedSource
from fedfuse.runtime.source import Source

LATE = 3
"""The round in which the last client of each prototype is drawn for the first time."""


class Clock:
    """Seconds since it was made, without those in which the machine did something else."""

    def __init__(self) -> None:
        self._wall, self._own = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        wall, own = time.perf_counter() - self._wall, time.process_time() - self._own
        return wall if torch.cuda.is_available() else min(wall, own)


@dataclass(frozen=True)
class Size:
    """How small: clients of each prototype, examples of each, public inputs, test examples, passes, distiller steps."""

    clients: int
    examples: int
    inputs: int
    test: int
    epochs: int = 1
    steps: int = 1


@dataclass
class Ledger:
    """What was seen: bytes of every task and update, seconds of every part of the rounds."""

    down: dict[tuple[int, int], int] = field(default_factory=dict)
    up: dict[tuple[int, int], int] = field(default_factory=dict)
    """By round and client."""
    seconds: defaultdict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    """By round and part; the clients' by prototype."""
    tasks: dict[str, Task] = field(default_factory=dict)
    """The latest of each prototype."""

    def of_round(self, number: int) -> float:
        """Seconds of all its parts."""
        return sum(seconds for (one, _), seconds in self.seconds.items() if one == number)

    @contextmanager
    def timed(self, number: int, what: str) -> Iterator[None]:
        began = Clock()
        yield
        self.seconds[number, what] += began.seconds


class Miniature(Federation):
    """The small federation; its last client of each prototype comes late."""

    ledger: Ledger
    players: Clients
    late: frozenset[int]

    @staticmethod
    def of(built: Built, size: Size, all_at_once: bool = False) -> Miniature:
        """``all_at_once``: nobody comes late."""
        recipe = shrunk(built.config.recipe, size)
        names, chosen = built.federation.prototypes, dict[int, int]()
        late = set()
        for prototype in built.federation.bank.prototypes:
            own = _spread([client for client, name in enumerate(names) if name == prototype], size.clients)
            for client in own:
                chosen[len(chosen)] = client
            if len(own) > 1 and not all_at_once:
                late.add(len(chosen) - 1)
        clients = _clients(built, recipe, chosen, size)
        federation, ledger = built.federation, Ledger()
        settings = federation.settings.model_copy(
            update={
                "assigned": tuple(names[client] for client in chosen.values()),
                "shares": {},
                "participation": 1.0,
                "clients_per_round": None,
            }
        )
        small = replace(
            federation,
            recipe=recipe,
            settings=settings,
            clients=len(chosen),
            engine=WeighingEngine(clients, ledger),
            test=replace(federation.test, examples=federation.test.examples.select(_first(size.test, federation.test))),
            validation=_few(federation.validation, size.test),
            source=clients.source,
            log=EventLog(),
            clock=None,
            judging=None,
            keeping=None,
        )
        result = Miniature(**{name: getattr(small, name) for name in Federation.__dataclass_fields__})
        vars(result).update(ledger=ledger, players=clients, late=frozenset(late))
        return result

    def chosen(self, key: Key) -> list[int]:
        number = key.path[-2]
        assert isinstance(number, int), "a round's key has its number"
        return [client for client in range(self.clients) if number >= LATE or client not in self.late]

    def advance(self, before: Snapshot) -> Snapshot:
        with self.bank.compute.at_work():
            return TimedRound(self, before, self.ledger).play()


class WeighingEngine(LocalEngine):
    """Clients of this process, what goes to them and what comes from them weighed."""

    def __init__(self, clients: Clients, ledger: Ledger) -> None:
        super().__init__(clients)
        self.ledger = ledger

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        for task in tasks:
            self.ledger.down[task.round, task.client] = task.nbytes
            self.ledger.tasks[task.prototype] = task
        began = Clock()
        for update, state in super().train(tasks, states):
            self.ledger.seconds[update.round, update.prototype] += began.seconds
            self.ledger.up[update.round, update.client] = update.nbytes
            yield update, state
            began = Clock()


class TimedRound(Round):
    """A round that tells what its parts take."""

    def __init__(self, federation: Federation, before: Snapshot, ledger: Ledger) -> None:
        super().__init__(federation, before)
        self.ledger = ledger
        models = self.models
        self.models = TimedModels(
            models.recipe, models.batch_norm, models.views, models.memories, models.growth, models.log
        ).telling(ledger, self.number)

    def remember_training(self, *given: Any) -> None:
        with self.ledger.timed(self.number, "remember"):
            super().remember_training(*given)

    def record(self, *given: Any) -> Any:
        with self.ledger.timed(self.number, "evaluate"):
            return super().record(*given)


class TimedModels(ServerModels):
    """Merge and fusion by the clock."""

    def telling(self, ledger: Ledger, number: int) -> TimedModels:
        self.ledger, self.number = ledger, number
        return self

    def merge(self, updates: Sequence[Update], stream: Stream | None) -> dict[str, Weights]:
        with self.ledger.timed(self.number, "merge"):
            return super().merge(updates, stream)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        with self.ledger.timed(self.number, "fuse"):
            return super().fuse(view, merged, teachers)


def shrunk(recipe: Recipe, size: Size) -> Recipe:
    """The recipe with fewer public inputs in a round and a fusion of few steps; what travels stays as it is."""
    changes: dict[str, Any] = {}
    distiller = getattr(recipe.fuse, "distiller", None)
    if distiller is not None and (distiller.steps or distiller.epochs):
        few = distiller.model_copy(update={"steps": size.steps, "epochs": None, "evaluate_every": 10**9, "swa": None})
        changes["fuse"] = recipe.fuse.model_copy(update={"distiller": few})
    if (inputs := getattr(recipe.protocol, "inputs", None)) is not None:
        changes["protocol"] = recipe.protocol.model_copy(update={"inputs": min(inputs, size.inputs)})
    if recipe.start.is_work:
        changes["start"] = _with_epochs(recipe.start, 1)
    return recipe.model_copy(update=changes)


def _with_epochs(part: Any, epochs: int) -> Any:
    known = isinstance(part, Settings) and "epochs" in type(part).model_fields
    return part.model_copy(update={"epochs": epochs}) if known else part


def _clients(built: Built, recipe: Recipe, chosen: Mapping[int, int], size: Size) -> Clients:
    clients = built.clients
    datasets = {place: clients.datasets[client] for place, client in chosen.items()}
    few = {place: examples.select(_first(size.examples, examples)) for place, examples in datasets.items()}
    training = clients.training.model_copy(
        update={"epochs": size.epochs, "fewest_epochs": None, "epochs_drawn": "once"}
    )
    tests = clients.test_inputs
    return replace(
        clients,
        datasets=few,
        recipe=recipe,
        training=training,
        source=_fewer(clients.source, size.inputs),
        test_inputs=tests and tests.part(_first(size.test, tests)),
    )


def _fewer(source: Source | None, inputs: int) -> Source | None:
    if source is None:
        return None
    few = source.part(_first(inputs, source))
    if isinstance(few, SynthesisedSource):
        return replace(few, settings=few.settings.model_copy(update={"size": len(few), "steps": 1}))
    return few


def _few(evaluator: Any, number: int) -> Any:
    return evaluator and replace(evaluator, examples=evaluator.examples.select(_first(number, evaluator)))


def _first(number: int, of: Any) -> torch.Tensor:
    """Positions that lie all over it, because classes may lie one after another."""
    return torch.linspace(0, len(of) - 1, min(number, len(of))).long()


def _spread(clients: Sequence[int], number: int) -> list[int]:
    """Some of them, from first to last."""
    step = max(1, len(clients) // number)
    return list(clients[::step][:number])
