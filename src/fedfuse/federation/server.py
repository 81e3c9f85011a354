"""The round: sample, train, inspect, screen, merge, fuse, evaluate. One function per step of that line."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import torch
from torch import Tensor

from fedfuse.core.messages import EXAM, Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.exchange.base import PREDICTIONS
from fedfuse.federation.engine import Engine
from fedfuse.federation.events import EventLog
from fedfuse.federation.inspection import Due, fault
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.sampling import clients_per_round, prototype_of, sample
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
        view = ServerView(
            round=0,
            key=self.key.child("initialise"),
            common=self.key,
            weights={},
            memory={},
            clients_of=Counter(self.prototype_of()),
            visits={},
            bank=self.bank,
            validation=self.validation,
            source=self.source,
            progress=self.log.tick,
        )
        with self.bank.compute.fixed_threads():
            weights = {prototype: self.recipe.start.begin(view, prototype) for prototype in self.bank.prototypes}
        return Snapshot(ServerState(round=0, weights=weights))

    def advance(self, before: Snapshot) -> Snapshot:
        """Play one round."""
        with self.bank.compute.fixed_threads():
            return _Round(self, before).play()

    def prototype_of(self) -> list[str]:
        """The prototype that each client runs."""
        if self.recipe.exchange.pools_data:
            return [prototype for prototype in self.bank.prototypes if self.settings.shares.get(prototype, 1)]
        return prototype_of(self.bank.prototypes, self.settings, self.clients)

    def chosen(self, key: Key) -> list[int]:
        """Who takes part in a round."""
        pools = self.recipe.exchange.pools_data
        number = self.clients if pools else clients_per_round(self.settings, self.clients)
        return sample(self.clients, number, key)


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
        fused = self.fuse(merged, screened)
        weights = {**self.before.server.weights, **fused.weights}
        self.remember("local", self.recipe.local.debrief(self.view("local"), screened.counted, weights))
        self.remember("server", {"visits": self.visits_after(updates)})
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
            common=federation.key,
            weights=self.before.server.weights,
            memory=self.memory.get(part, {}),
            clients_of=Counter(federation.prototype_of()),
            visits=dict(enumerate(self.visits().tolist())),
            bank=federation.bank,
            validation=federation.validation,
            source=federation.source,
            progress=federation.log.tick,
        )

    @cached_property
    def wire(self) -> ServerView:
        """What the exchange sees, from the first task to the last update."""
        return self.view("exchange")

    def remember(self, part: str, memory: Tensors) -> None:
        self.memory.pop(part, None)
        if memory:
            self.memory[part] = memory

    def tasks(self) -> list[Task]:
        federation = self.federation
        exchange, view, prototypes = self.recipe.exchange, self.wire, federation.prototype_of()
        drawn = federation.chosen(
            federation.key.child("round", exchange.cohort(self.number, federation.bank), "sample")
        )
        prototype_of = exchange.invited(view, {client: prototypes[client] for client in drawn})
        chosen = list(prototype_of)
        federation.log.emit("round_started", round=self.number, clients=chosen)
        parts = [exchange.brief(view, prototype_of), self.recipe.local.brief(self.view("local"), prototype_of)]
        for prototype in federation.bank.prototypes:
            own = [client for client, name in prototype_of.items() if name == prototype]
            parts.append(self.recipe.merge.brief(self.view(f"merge/{prototype}"), own))
        extras = {c: {name: t for part in parts for name, t in part.get(c, {}).items()} for c in chosen}
        return [self.task(client, prototype, extras[client]) for client, prototype in prototype_of.items()]

    def task(self, client: int, prototype: str, extras: Tensors) -> Task:
        """One client's task; without weights for a client that goes on with its own."""
        exchange, view = self.recipe.exchange, self.wire
        weights = view.weights[prototype] if exchange.sends_weights(view, client) else NOTHING
        exam = (EXAM,) if self.examines_clients() else ()
        return Task(self.number, client, prototype, weights, extras, exchange.asks(view, client) + exam)

    def visits(self) -> Tensor:
        """How often each client had been heard before this round."""
        return self.before.server.memory.get("server", {}).get(
            "visits", torch.zeros(self.federation.clients, dtype=torch.long)
        )

    def visits_after(self, updates: Sequence[Update]) -> Tensor:
        heard = self.visits().clone()
        heard[[update.client for update in updates]] += 1
        return heard

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
                accepted[update.client] = self.recipe.exchange.open(self.wire, update)
                self.bytes_up += 0 if self.recipe.exchange.pools_data else update.nbytes
                states[update.client] = state
                log.emit(
                    "client_finished", round=self.number, client=update.client, prototype=update.prototype,
                    examples=update.examples, bytes_up=update.nbytes, metrics=dict(update.metrics),
                )  # fmt: skip
            log.tick("clients", len(tasks) - len(open_tasks), len(tasks))
        kept = {client: state for client, state in states.items() if state}
        return [accepted[client] for client in sorted(accepted)], kept

    def fault(self, update: Update, task: Task) -> str | None:
        bank, exchange, view = self.federation.bank, self.recipe.exchange, self.wire
        extras = {**exchange.reply(view, task), **self.recipe.local.reply(bank, task.prototype)}
        exam = exchange.exam(len(self.federation.test), bank.classes) if EXAM in task.asks else {}
        return fault(update, task, Due(exchange.due(view, task), extras, exam))

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
            own = [u for u in updates if u.prototype == prototype and u.weights]
            if own:
                part = f"merge/{prototype}"
                merged = self.recipe.merge.merge(self.view(part), prototype, own)
                self.remember(part, merged.memory)
                policy = self.federation.settings.batch_norm
                results[prototype] = settle(policy, self.view(part), prototype, merged.weights, own)
        return results

    def fuse(self, merged: Mapping[str, Weights], screened: Screened) -> Fused:
        exchange, teachers = self.recipe.exchange, screened.teachers
        if not teachers:
            return Fused(merged, memory=self.memory.get("fuse", {}))
        view = self.wire
        view = replace(view, answers=exchange.combine(view, teachers), shares=exchange.shares(view, teachers))
        public = exchange.public(view.source, view.common, self.number) if view.source is not None else None
        school = replace(self.view("fuse"), source=public, answers=view.answers, shares=view.shares)
        fused = self.recipe.fuse.fuse(school, merged, teachers)
        self.remember("fuse", fused.memory)
        self.remember("exchange", exchange.debrief(view, screened.counted))
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
            bytes_down=0 if self.recipe.exchange.pools_data else sum(task.nbytes for task in tasks),
            training_loss=fmean(losses) if losses else None,
            ensemble_accuracy=self.ensemble_accuracy(merged, screened.teachers),
            client_accuracy={u.client: self.own_score(u).accuracy for u in updates if u.exam},
            prototypes={
                p: self.prototype_record(p, merged.get(p), fused, weights[p], [u for u in updates if u.prototype == p])
                for p in weights
            },
            seconds=round(time.perf_counter() - self.started, 3),
        )

    def prototype_record(
        self, prototype: str, merged: Weights | None, fused: Fused, weights: Weights, own: Sequence[Update]
    ) -> PrototypeRecord:
        report = fused.report.get(prototype, {})
        if not self.is_evaluated():
            return PrototypeRecord(fusion=report)
        if not self.recipe.has_server_model:
            return _mean_of([self.own_score(update) for update in own if update.exam])
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

    def examines_clients(self) -> bool:
        wanted = self.federation.evaluation.clients
        return self.is_evaluated() and (
            self.recipe.exchange.carries not in ("weights", "layer") if wanted is None else wanted
        )

    def own_score(self, update: Update) -> Score:
        """How good a client's own model is, by what it said about the test inputs."""
        return self.federation.test.score_table(update.exam[PREDICTIONS])

    def ensemble_accuracy(self, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> float | None:
        if not teachers or not self.is_evaluated() or not self.federation.evaluation.ensemble:
            return None
        test = self.federation.test
        ensemble = self.recipe.fuse.ensemble(self.view("fuse"), merged, teachers)
        if ensemble:
            return test.score_logits(ensemble).accuracy
        examined = [update for update in teachers if update.exam]
        answers = self.recipe.exchange.combine_exams(examined) if examined else None
        return test.score_table(answers.log_probabilities).accuracy if answers else None


def _mean_of(scores: Sequence[Score]) -> PrototypeRecord:
    """What there is to say of a prototype that only clients have: the mean over this round's."""
    if not scores:
        return PrototypeRecord()
    accuracy = fmean(score.accuracy for score in scores)
    return PrototypeRecord(accuracy, fmean(score.loss for score in scores), accuracy)
