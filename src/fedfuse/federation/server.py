"""The round: sample, train, inspect, screen, merge, fuse, evaluate. One function per step of that line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import torch
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.inspection import fault
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.sampling import assign_prototypes, clients_per_round, sample
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.state import ClientStates, PrototypeRecord, RoundRecord, ServerState, Snapshot
from fedfuse.fusion import Fused
from fedfuse.merge import settle
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator, Score
from fedfuse.runtime.source import Source
from fedfuse.runtime.view import ServerView
from fedfuse.screen import Screened


@dataclass(frozen=True)
class Federation:
    """Everything a round is made of, except the state that goes from round to round."""

    recipe: Recipe
    settings: FederationSettings
    evaluation: EvaluationSettings
    clients: int
    bank: ModelBank
    engine: Engine
    test: Evaluator
    validation: Evaluator | None
    source: Source | None
    key: Key
    log: EventLog

    def start(self) -> Snapshot:
        """The federation before its first round."""
        initial = {p: self.bank.initial(p, self.key.child("initialise", p)) for p in self.bank.prototypes}
        return Snapshot(ServerState(round=0, weights=initial))

    def advance(self, before: Snapshot) -> Snapshot:
        """Play one round."""
        with self.bank.compute.fixed_threads():
            return _Round(self, before).play()

    def prototype_of(self) -> list[str]:
        """The prototype that each client runs."""
        return assign_prototypes(self.bank.prototypes, self.settings.shares, self.clients)


class _Round:
    """One round at work. It lives for one call of ``advance``."""

    def __init__(self, federation: Federation, before: Snapshot) -> None:
        self.federation = federation
        self.recipe = federation.recipe
        self.before = before
        self.number = before.server.round + 1
        self.key = federation.key.child("round", self.number)
        self.memory = dict(before.server.memory)
        self.bytes_up = 0
        self.started = time.perf_counter()

    def play(self) -> Snapshot:
        tasks = self.tasks()
        updates, states = self.collect(tasks)
        screened = self.screen(updates)
        merged = self.merge(screened.counted)
        fused = self.fuse(merged, screened.teachers)
        weights = {**self.before.server.weights, **fused.weights}
        self.remember("local", self.recipe.local.debrief(self.view("local"), screened.counted, weights))
        record = self.record(tasks, updates, screened, merged, fused, weights)
        server = ServerState(self.number, weights, self.memory, (*self.before.server.history, record))
        self.federation.log.emit("round_finished", **record.to_json())
        return Snapshot(server, states)

    def view(self, part: str) -> ServerView:
        """What the server shows to one part in this round."""
        federation = self.federation
        return ServerView(
            round=self.number,
            key=self.key.child(part),
            weights=self.before.server.weights,
            memory=self.memory.get(part, {}),
            clients_of=Counter(federation.prototype_of()),
            bank=federation.bank,
            validation=federation.validation,
            source=federation.source,
            progress=federation.log.tick,
        )

    def remember(self, part: str, memory: Tensors) -> None:
        self.memory.pop(part, None)
        if memory:
            self.memory[part] = memory

    def tasks(self) -> list[Task]:
        federation = self.federation
        number = clients_per_round(federation.settings, federation.clients)
        chosen = sample(federation.clients, number, self.key.child("sample"))
        federation.log.emit("round_started", round=self.number, clients=chosen)
        prototypes = federation.prototype_of()
        prototype_of = {client: prototypes[client] for client in chosen}
        extras = self.recipe.local.brief(self.view("local"), prototype_of)
        return [
            Task(self.number, client, prototype, self.sent(client, prototype), extras.get(client, {}))
            for client, prototype in prototype_of.items()
        ]

    def sent(self, client: int, prototype: str) -> Weights:
        """The weights that a client is sent; NOTHING if it goes on with its own."""
        visits = int(self.visits()[client])
        return self.before.server.weights[prototype] if self.recipe.exchange.sends_weights(visits) else NOTHING

    def visits(self) -> Tensor:
        """How often each client has been heard so far."""
        return self.memory.get("exchange", {}).get("visits", torch.zeros(self.federation.clients, dtype=torch.long))

    def collect(self, tasks: Sequence[Task]) -> tuple[list[Update], ClientStates]:
        """Sound updates in client order, whatever order they came in, and the clients' states after this round."""
        log, open_tasks = self.federation.log, {task.client: task for task in tasks}
        accepted: dict[int, Update] = {}
        states = dict(self.before.clients)
        log.tick("clients", 0, len(tasks))
        for update, state in self.federation.engine.train(tasks, self.before.clients):
            task = open_tasks.pop(update.client, None)
            reason = self.fault(update, task) if task else "answers a task that is not open"
            if reason:
                log.emit("update_refused", round=self.number, client=update.client, reason=reason)
            else:
                accepted[update.client] = self.recipe.exchange.open(update, self.federation.bank)
                self.bytes_up += update.nbytes
                states[update.client] = state
                log.emit(
                    "client_finished", round=self.number, client=update.client, prototype=update.prototype,
                    examples=update.examples, bytes_up=update.nbytes, metrics=dict(update.metrics),
                )  # fmt: skip
            log.tick("clients", len(tasks) - len(open_tasks), len(tasks))
        if not self.recipe.exchange.carries_weights:
            heard = self.visits().clone()
            heard[list(accepted)] += 1
            self.remember("exchange", {"visits": heard})
        kept = {client: state for client, state in states.items() if state}
        return [accepted[client] for client in sorted(accepted)], kept

    def fault(self, update: Update, task: Task) -> str | None:
        bank, recipe = self.federation.bank, self.recipe
        layout = task.weights.layout if recipe.exchange.sends_full_weights else NOTHING.layout
        extras = recipe.exchange.reply(bank, task.prototype, self.federation.source)
        return fault(update, task, layout, {**extras, **recipe.local.reply(bank, task.prototype)})

    def screen(self, updates: Sequence[Update]) -> Screened:
        screened = Screened(updates, updates)
        if updates:
            for index, screen in enumerate(self.recipe.screen):
                screened = screen.screen(self.view(f"screen/{index}"), screened)
        for client, reason in screened.reasons.items():
            self.federation.log.emit("client_screened", round=self.number, client=client, reason=reason)
        return screened

    def merge(self, updates: Sequence[Update]) -> dict[str, Weights]:
        """Merged weights of the prototypes that had clients in this round; the others stay as they are."""
        results = {}
        for prototype in self.federation.bank.prototypes:
            own = [u for u in updates if u.prototype == prototype and self.recipe.exchange.carries_weights]
            if own:
                part = f"merge/{prototype}"
                merged = self.recipe.merge.merge(self.view(part), prototype, own)
                self.remember(part, merged.memory)
                policy = self.federation.settings.batch_norm
                results[prototype] = settle(policy, self.view(part), prototype, merged.weights, own)
        return results

    def fuse(self, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        if not teachers:
            return Fused(merged, memory=self.memory.get("fuse", {}))
        view = replace(self.view("fuse"), answers=self.recipe.exchange.combine(teachers))
        fused = self.recipe.fuse.fuse(view, merged, teachers)
        self.remember("fuse", fused.memory)
        return fused

    def record(
        self,
        tasks: Sequence[Task],
        updates: Sequence[Update],
        screened: Screened,
        merged: Mapping[str, Weights],
        fused: Fused,
        weights: Mapping[str, Weights],
    ) -> RoundRecord:
        losses = [update.metrics["loss"] for update in updates if "loss" in update.metrics]
        return RoundRecord(
            round=self.number,
            clients=tuple(task.client for task in tasks),
            refused=tuple(sorted({t.client for t in tasks} - {u.client for u in updates})),
            screened=tuple(sorted(screened.reasons)),
            bytes_up=self.bytes_up,
            bytes_down=sum(task.nbytes for task in tasks),
            training_loss=fmean(losses) if losses else None,
            ensemble_accuracy=self.ensemble_accuracy(merged, screened.teachers),
            prototypes={p: self.prototype_record(p, merged.get(p), fused, weights[p]) for p in weights},
            seconds=round(time.perf_counter() - self.started, 3),
        )

    def prototype_record(
        self, prototype: str, merged: Weights | None, fused: Fused, weights: Weights
    ) -> PrototypeRecord:
        report = fused.report.get(prototype, {})
        if not self.is_evaluated():
            return PrototypeRecord(fusion=report)
        self.federation.log.tick("evaluate", 0, 1)
        after = self.score(prototype, weights)
        before = after if merged is None or merged.equals(weights) else self.score(prototype, merged)
        return PrototypeRecord(after.accuracy, after.loss, before.accuracy, report)

    def is_evaluated(self) -> bool:
        settings = self.federation.settings
        return self.number % self.federation.evaluation.every == 0 or self.number == settings.rounds

    def score(self, prototype: str, weights: Weights) -> Score:
        batch_statistics = self.federation.settings.batch_norm == "batch"
        return self.federation.test.score(self.federation.bank.lend(prototype, weights), batch_statistics)

    def ensemble_accuracy(self, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> float | None:
        if not teachers or not self.is_evaluated() or not self.federation.evaluation.ensemble:
            return None
        ensemble = self.recipe.fuse.ensemble(self.view("fuse"), merged, teachers)
        return self.federation.test.score_logits(ensemble).accuracy if ensemble else None
