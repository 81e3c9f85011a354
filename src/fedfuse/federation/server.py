"""The round: sample, train, inspect, screen, merge, fuse, evaluate. One function per step of that line."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import starmap
from statistics import fmean

from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update, within
from fedfuse.core.plain_json import finite
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.absurd import Growth, unsound
from fedfuse.federation.attendance import Attendance
from fedfuse.federation.client_scores import NONE, by_prototype, of_older_runs, updated
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.clock.clock import Clock, RoundClock
from fedfuse.federation.engine import Engine, QuorumError
from fedfuse.federation.events import EventLog
from fedfuse.federation.inbox import Inbox
from fedfuse.federation.inspection import with_sound_metrics
from fedfuse.federation.measures import RoundEvaluation
from fedfuse.federation.predictions import combined
from fedfuse.federation.prototypes import Prototypes, prototypes_of
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, Recipe
from fedfuse.federation.sampling import clients_per_round, sample
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.shelf import Shelf
from fedfuse.federation.state import RoundRecord, ServerState, Snapshot
from fedfuse.federation.stream import Stream, can_stream, left
from fedfuse.federation.turns import in_turn
from fedfuse.federation.visits import Visits
from fedfuse.parts.context import CombinedPredictions, ServerView
from fedfuse.parts.fuse import Fused
from fedfuse.parts.merge import Merged, settle
from fedfuse.parts.screen import Screened
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.evaluate import Evaluator, Score
from fedfuse.runtime.source import Source

MERGE = "merge"
SERVER = "server"
LATEST_SCORES, SCORES_OF_ALL = "latest_scores", "client_scores"
"""What the server itself remembers, and its name in older runs."""


Answer = tuple[int, tuple[Update, Tensors] | None]
"""A client, its opened update and its new state; None if the update is refused."""
State = tuple[int, Tensors]
"""A client and its new state."""


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
    has_wire: bool = True
    """Whether what the parties send leaves the machine; else it is not counted."""
    clock: Clock | None = None
    """What gives rounds simulated seconds, if the experiment wants them."""

    def start(self) -> Snapshot:
        """The federation before its first round."""
        view = ServerView(
            round=0,
            key=self.key.child("initialise"),
            common=self.key,
            weights={},
            memory={},
            clients_of=self.prototypes.clients_of,
            visits={},
            bank=self.bank,
            validation=self.validation,
            source=self.source,
            scores=self.recipe.scores,
            progress=self.log.tick,
        )
        with self.bank.compute.at_work():
            weights = {prototype: self.recipe.start.begin(view, prototype) for prototype in self.bank.prototypes}
        return Snapshot(ServerState(round=0, weights=weights))

    def advance(self, before: Snapshot) -> Snapshot:
        """Play one round."""
        with self.bank.compute.at_work():
            return _Round(self, before).play()

    @cached_property
    def prototypes(self) -> Prototypes:
        """The prototype that each client runs."""
        return prototypes_of(self.bank.prototypes, self.settings, self.clients)

    @cached_property
    def visits(self) -> Visits:
        """How often each client was heard, as far as somebody asked."""
        return Visits(self.clients)

    @property
    def wanted(self) -> int:
        """How many clients a round is about."""
        return clients_per_round(self.settings, self.clients)

    def chosen(self, key: Key) -> list[int]:
        """Who takes part in a round, if all are there."""
        return sample(self.clients, self.wanted, key)


class _Round:
    """One round at work. It lives for one call of ``advance``."""

    def __init__(self, federation: Federation, before: Snapshot) -> None:
        self.federation = federation
        self.recipe = federation.recipe
        self.before = before
        self.number = before.server.round + 1
        self.key = federation.key.child("round", self.number)
        self.memory = dict(before.server.memory)
        self.measures = RoundEvaluation(
            self.number, federation.recipe, federation.settings, federation.evaluation, federation.bank, federation.test
        )
        self.bytes_up = 0
        self.attendance = Attendance(self.number, federation.log)
        self.growth = Growth(before.server.weights)
        self.joined: dict[int, str] = {}
        """Who runs another model than was planned, from this round on."""
        self.prototypes = federation.prototypes.but(before.server.history.joined)
        """The prototype that each client runs by now."""
        self.turned_away: set[int] = set()
        """Who answered although nobody waited for it."""
        log = federation.log.path
        self.shelf = Shelf(log.parent if log else None)
        self.stream: Stream | None = None
        """Who took the updates as they came; None if they are held."""
        clock, history = federation.clock, before.server.history
        self.clock = RoundClock(clock, history, federation.wanted) if clock else None
        self.started = time.perf_counter()

    def play(self) -> Snapshot:
        tasks = self.tasks()
        updates, states = self.collect(tasks)
        screened = self.screen(updates)
        merged = self.merge(screened.counted)
        fusing = self.fusing(screened.teachers)
        fused = self.fuse(fusing, merged, screened.teachers)
        weights = {**self.before.server.weights, **fused.weights}
        self.remember_clients(updates, fusing.predictions)
        self.remember(LOCAL, self.learnt(screened.counted, weights), self.recipe.local.nan_is_no_value)
        scores = self.measures.clients(updates)
        names = self.federation.evaluation.metric_names
        everybody = updated(self.latest_scores(), scores, names)
        self.keep(SERVER, {LATEST_SCORES: everybody} if len(everybody) else {})
        record = self.record(tasks, _Outcome(updates, screened, merged, fusing, fused, weights, scores, everybody))
        server = ServerState(self.number, weights, self.memory, self.before.server.history.plus(record))
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
            clients_of=self.prototypes.clients_of,
            visits=federation.visits.after(self.before.server.history),
            bank=federation.bank,
            validation=federation.validation,
            source=federation.source,
            scores=self.recipe.scores,
            progress=federation.log.tick,
            pool=federation.engine.pool(self.number),
        )

    @cached_property
    def protocol_view(self) -> ServerView:
        """What the protocol sees, from the first task to the last update: public inputs that scores are about."""
        view = self.view(PROTOCOL)
        source = view.source and self.recipe.scores.inputs(view.source, view.common)
        return replace(view, source=source)

    @cached_property
    def public(self) -> Source | None:
        """Of those inputs, the ones that this round is about."""
        scored = self.protocol_view.source
        return scored and self.recipe.protocol.public(scored, self.federation.key, self.number)

    @cached_property
    def inbox(self) -> Inbox:
        """Where updates arrive."""
        federation = self.federation
        return Inbox(self.recipe, federation.bank, len(federation.test), self.protocol_view, self.view(SCORES))

    def remember(self, part: str, memory: Tensors, nan_is_no_value: bool = False) -> None:
        """For the next round, unless nobody could work with it: then what there was before stays."""
        before = self.memory.get(part, {})
        if name := unsound(memory, before, nan_is_no_value):
            reason = f"'{name}' was not finite or far too large; kept: what it remembered before"
            self.federation.log.emit("memory_diverged", round=self.number, part=part, reason=reason)
        else:
            self.keep(part, memory)

    def keep(self, part: str, memory: Tensors) -> None:
        self.memory.pop(part, None)
        if memory:
            self.memory[part] = memory

    def remember_clients(self, updates: Sequence[Update], predictions: CombinedPredictions | None) -> None:
        """What the protocol and the scores keep of everybody who was heard, counted or not."""
        if updates:
            own, recipe = [update.of(PROTOCOL) for update in updates], self.recipe
            learnt = recipe.protocol.after_round(self.protocol_view, own, predictions)
            self.remember(PROTOCOL, learnt, recipe.protocol.nan_is_no_value)
            said = recipe.asking.after_round(self.view(SCORES), updates)
            self.remember(SCORES, said, recipe.scores.nan_is_no_value)

    def learnt(self, counted: Sequence[Update], weights: Mapping[str, Weights]) -> Tensors:
        """What the local objective keeps of those who count."""
        if self.stream:
            return self.stream.local.memory(weights)
        return self.recipe.local.after_round(self.view(LOCAL), [update.of(LOCAL) for update in counted], weights)

    def drawn(self, number: int) -> dict[int, str]:
        """Who was drawn for a round, this one or an earlier one, and the prototypes they run."""
        federation, key = self.federation, self.federation.key.child("round", number, "sample")
        chosen = self.clock.draw(number, federation.clients, key) if self.clock else federation.chosen(key)
        return {client: self.prototypes[client] for client in chosen}

    def tasks(self) -> list[Task]:
        planned = self.recipe.protocol.participants(self.protocol_view, self.drawn)
        self.federation.log.emit("round_started", round=self.number, clients=list(planned))
        self.joined = self.joining(planned)
        self.prototypes = self.prototypes.but(self.joined)
        chosen = {**planned, **self.joined}
        for client, prototype in self.joined.items():
            self.federation.log.emit("client_joined", round=self.number, client=client, prototype=prototype)
        extras = self.broadcast(chosen)
        return [self.task(client, prototype, extras[client]) for client, prototype in chosen.items()]

    def joining(self, planned: Mapping[int, str]) -> dict[int, str]:
        """Parties that were never heard and say that they run another model than was planned for them."""
        announced = self.federation.engine.announced(planned)
        if not announced or self.recipe.pooled:
            return {}
        visits, known = self.federation.visits.after(self.before.server.history), self.federation.bank.prototypes
        return {
            client: announced[client]
            for client, prototype in planned.items()
            if announced.get(client, prototype) != prototype and announced[client] in known and not visits[client]
        }

    def broadcast(self, chosen: Mapping[int, str]) -> dict[int, Tensors]:
        """What the parts send beside weights, by client, each under the name of its slot."""
        recipe = self.recipe
        parts = [
            (PROTOCOL, recipe.protocol.broadcast(self.protocol_view, chosen)),
            (SCORES, recipe.asking.broadcast(self.view(SCORES), chosen)),
            (LOCAL, recipe.local.broadcast(self.view(LOCAL), chosen)),
        ]
        for prototype in self.federation.bank.prototypes:
            own = [client for client, name in chosen.items() if name == prototype]
            parts.append((MERGE, recipe.merge.broadcast(self.view(f"{MERGE}/{prototype}"), prototype, own)))
        return {c: {n: t for part, sent in parts for n, t in within(part, sent.get(c, {})).items()} for c in chosen}

    def task(self, client: int, prototype: str, extras: Tensors) -> Task:
        """One client's task; without weights for a client that goes on with its own."""
        weights = NOTHING
        if self.recipe.protocol.sends_weights(self.protocol_view, client):
            weights = self.recipe.merge.offer(self.view(f"{MERGE}/{prototype}"), prototype, client)
        asks = self.recipe.asking.asks(self.protocol_view, client) + self.measures.asks
        return Task(self.number, client, prototype, weights, extras, asks)

    def latest_scores(self) -> Tensor:
        """What the server itself remembers of the rounds before."""
        own = self.before.server.memory.get(SERVER, {})
        return of_older_runs(own[SCORES_OF_ALL]) if SCORES_OF_ALL in own else own.get(LATEST_SCORES, NONE)

    def collect(self, tasks: Sequence[Task]) -> tuple[list[Update], ClientStates]:
        """Sound updates in client order, whatever order they came in, and the clients' states after this round.

        If updates are taken as they come, what is left of them are numbers.
        """
        updates: list[Update] = []
        states = self.before.clients.after(self.number, self.kept(tasks, updates))
        self.call_the_roll(tasks, updates)
        return updates, states

    def call_the_roll(self, tasks: Sequence[Task], updates: Sequence[Update]) -> None:
        """Say who is missing; with too few left, the run stops."""
        engine, log, asked = self.federation.engine, self.federation.log, len(tasks)
        for event, fields in engine.news():
            log.emit(event, round=self.number, **fields)
        self.attendance.close({t.client for t in tasks}, {u.client for u in updates}, engine.missed())
        why = self.attendance.in_words()
        if len(updates) < engine.quorum * asked:
            raise QuorumError(
                f"round {self.number}: {len(updates)} of {asked} updates count ({why}), engine.quorum asks for "
                f"{engine.quorum:.0%}; finished rounds are kept, start the app again to go on"
            )
        if not updates:
            log.emit("nobody_counted", round=self.number, asked=asked, reason=why)
        elif (refused := len(self.attendance.who("refused"))) > len(updates):
            log.emit("mostly_refused", round=self.number, refused=refused, answers=refused + len(updates))

    def kept(self, tasks: Sequence[Task], updates: list[Update]) -> Iterator[State]:
        """The new states of clients whose updates are sound, while these are collected."""
        self.stream = self.expecting(sorted(tasks, key=_client))
        yield from self.taken(tasks, self.timely(tasks), updates)
        yield from self.dismissed(updates)
        if self.is_short(updates):  # the others' shares are larger than those with which they were added
            yield from self.once_more(tasks, updates, streaming=True)
        if self.is_short(updates):  # somebody says something else when it is asked again
            yield from self.once_more(tasks, updates, streaming=False)

    def taken(self, tasks: Sequence[Task], answers: Iterator[Answer], updates: list[Update]) -> Iterator[State]:
        """Each client in its turn: its update is collected or given away, and its new state goes on."""

        def take(update: Update, state: Tensors) -> State:
            self.growth.take(update)
            updates.append(self.stream.take(update) if self.stream else self.shelf.hold(update))
            return update.client, state

        return starmap(take, in_turn(sorted(task.client for task in tasks), answers))

    def dismissed(self, updates: list[Update]) -> Iterator[State]:
        """Clients whose weights turn out to be nothing like the others' are refused after all; their states stay."""
        refused = self.growth.refused()
        updates[:] = [update for update in updates if update.client not in refused]
        for client, reason in refused.items():
            self.attendance.refuse(client, reason)
            yield client, self.before.clients.get(client, {})

    def is_short(self, updates: Sequence[Update]) -> bool:
        """Whether updates were added with shares that they do not have."""
        return self.stream is not None and not self.stream.is_complete(updates)

    def once_more(self, tasks: Sequence[Task], updates: list[Update], streaming: bool) -> Iterator[State]:
        """Those who were heard, asked for the same again."""
        expected = left(sorted(tasks, key=_client), updates)
        self.stream = Stream.of(self.recipe, expected, self.view) if streaming and expected else None
        updates.clear()
        same = [task for task, _ in expected]
        return self.taken(same, self.repeated(same) if same else iter(()), updates)

    def expecting(self, tasks: Sequence[Task]) -> Stream | None:
        """Who takes updates as they come, if all parts can, and if nobody is likely to be refused or late."""
        history, policy = self.before.server.history, self.federation.settings.batch_norm
        if self.clock or not can_stream(self.recipe, policy) or _is_troubled(history):
            return None
        examples = self.federation.engine.examples_of(tasks)
        return None if examples is None else Stream.of(self.recipe, list(zip(tasks, examples, strict=True)), self.view)

    def timely(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """The arrivals; where there is a clock, who was in time is known when all are there."""
        if self.clock is None:
            return self.arrivals(tasks)
        arrived = dict(self.arrivals(tasks))
        missed = self.clock.wait(tasks, self.public)
        for client, reason in missed.items():
            self.attendance.late(client, reason)
        return iter({**arrived, **dict.fromkeys(missed)}.items())

    def arrivals(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """Each client's opened update and new state, as they come; None where it is refused."""
        log, open_tasks = self.federation.log, {task.client: task for task in tasks}

        def open_one(update: Update, state: Tensors) -> Answer | None:
            task = open_tasks.pop(update.client, None) if isinstance(update.client, int) else None
            if task is None:
                self.turn_away(update)
                return None
            opened = self.inbox.opened(update, task)
            self.account(update, opened if isinstance(opened, str) else None)
            log.tick("clients", len(tasks) - len(open_tasks), len(tasks))
            return update.client, _if_sound(opened, state)

        log.tick("clients", 0, len(tasks))
        return filter(None, starmap(open_one, self.answers(tasks)))

    def answers(self, tasks: Sequence[Task]) -> Iterator[tuple[Update, Tensors]]:
        """What the engine brings, with metrics that a log and a mean can take."""
        brought = self.federation.engine.train(tasks, self.before.clients)
        return starmap(lambda update, state: (with_sound_metrics(update), state), brought)

    def turn_away(self, update: Update) -> None:
        """Nobody waits for this answer; the log says so once a round, however many come."""
        client = update.client if isinstance(update.client, int) else -1
        is_known = client in self.turned_away
        self.turned_away.add(client)
        self.account(replace(update, client=client), "answers a task that is not open", silently=is_known)

    def repeated(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """The same, of tasks that were done before: nobody but the parts has to know, unless one fails now."""
        by_client = {task.client: task for task in tasks}

        def open_one(update: Update, state: Tensors) -> Answer | None:
            task = by_client.pop(update.client, None)
            if task is None:
                return None
            opened = self.inbox.opened(update, task)
            if isinstance(opened, str):
                self.attendance.refuse(update.client, opened)
            return update.client, _if_sound(opened, state)

        return filter(None, starmap(open_one, self.answers(tasks)))

    def account(self, update: Update, refused: str | None, silently: bool = False) -> None:
        """Whatever becomes of an update, it has travelled, and the log says what became of it."""
        log, size = self.federation.log, update.nbytes if self.federation.has_wire else 0
        self.bytes_up += size
        if self.clock:
            self.clock.arrived(update)
        if silently:
            return
        if refused is not None:
            self.attendance.refuse(update.client, refused, size)
            return
        log.emit(
            "client_finished", round=self.number, client=update.client, prototype=update.prototype,
            examples=update.examples, bytes_up=size, metrics=dict(update.metrics),
        )  # fmt: skip

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
            own = [u for u in updates if u.prototype == prototype and (u.weights or self.stream)]
            if own:
                part = f"{MERGE}/{prototype}"
                merged = self.merged(prototype, own)
                if fault := self.fault(prototype, merged):
                    self.diverged(prototype, f"{fault} after the merge", kept="last round's weights")
                    continue
                self.remember(part, merged.memory, self.recipe.merge.nan_is_no_value)
                results[prototype] = merged.weights
        return results

    def merged(self, prototype: str, updates: Sequence[Update]) -> Merged:
        """What one prototype's updates come to, with BatchNorm statistics as the policy has them."""
        view, policy = self.view(f"{MERGE}/{prototype}"), self.federation.settings.batch_norm
        if self.stream:
            merged = self.stream.merges.pop(prototype).merged()  # nobody needs the sum any more
        else:
            merged = self.recipe.merge.merge(view, prototype, updates)
        if self.growth.fault(prototype, merged.weights):
            return merged
        return replace(merged, weights=settle(policy, view, prototype, merged.weights, updates))

    def fault(self, prototype: str, merged: Merged) -> str | None:
        """What is wrong with merged weights, or with what the merge would remember; None if nothing is."""
        if fault := self.growth.fault(prototype, merged.weights):
            return fault
        before = self.memory.get(f"{MERGE}/{prototype}", {})
        name = unsound(merged.memory, before, self.recipe.merge.nan_is_no_value)
        return f"what it remembers ('{name}') was not finite or far too large" if name else None

    def diverged(self, prototype: str, fault: str, kept: str) -> None:
        """Weights that nobody could train from go no further, and the log says what is kept in their place."""
        reason = f"{fault}; kept: {kept}"
        self.federation.log.emit("model_diverged", round=self.number, prototype=prototype, reason=reason)

    def fusing(self, teachers: Sequence[Update]) -> ServerView:
        """What the fusion sees: of the public inputs, those that this round is about, and what is said about them."""
        protocol, scored = self.recipe.protocol, self.protocol_view.source
        view = replace(self.view("fuse"), source=self.public)
        if protocol.carries != "predictions" or scored is None or not teachers:
            return view
        combine = partial(combined, self.recipe, protocol.rows(len(scored), self.federation.key, self.number))
        return replace(view, predictions=combine(teachers), combine=combine)

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        if not teachers:
            return Fused(merged, memory=self.memory.get("fuse", {}))
        fused = self.recipe.fuse.fuse(view, merged, teachers)
        self.remember("fuse", fused.memory, self.recipe.fuse.nan_is_no_value)
        return replace(fused, weights={p: self.sound(p, fused, merged) for p in fused.weights})

    def sound(self, prototype: str, fused: Fused, merged: Mapping[str, Weights]) -> Weights:
        """A student that others can work with; else what there was before it was taught."""
        weights, at = fused.weights[prototype], fused.report.get(prototype, {}).get("diverged_at")
        where = "the fusion" if at is None else f"step {at} of the distillation"
        if weights is merged.get(prototype) and at is None:
            return weights
        if fault := self.growth.fault(prototype, weights):
            kept = "merged weights" if prototype in merged else "last round's weights"
            self.diverged(prototype, f"{fault} after {where}", kept)
            return merged.get(prototype, self.before.server.weights[prototype])
        if at is not None:
            self.diverged(prototype, f"weights were not finite after {where}", kept="an earlier student")
        return weights

    def record(self, tasks: Sequence[Task], outcome: _Outcome) -> RoundRecord:
        measures, updates, merged = self.measures, outcome.updates, outcome.merged
        losses = [update.metrics["loss"] for update in updates if "loss" in update.metrics]
        own = by_prototype(outcome.client_scores, self.prototypes)
        if measures.is_due:
            self.federation.log.tick("evaluate", 0, 1)
        ensemble = measures.ensemble(outcome.view, merged, outcome.screened.teachers)
        absent = self.attendance.who("absent")
        sent_nothing = set(absent)
        sent = [task for task in tasks if task.client not in sent_nothing]
        return RoundRecord(
            round=self.number,
            clients=tuple(task.client for task in tasks),
            refused=self.attendance.who("refused"),
            screened=tuple(sorted(outcome.screened.reasons)),
            bytes_up=self.bytes_up,
            bytes_down=sum(task.nbytes for task in sent) if self.federation.has_wire else 0,
            training_loss=finite(fmean(losses)) if losses else None,
            ensemble_accuracy=ensemble.accuracy if ensemble else None,
            ensemble_metrics=ensemble.metrics if ensemble else {},
            client_accuracy={client: score.accuracy for client, score in outcome.scores.items()},
            prototypes={
                p: replace(
                    measures.prototype(p, merged.get(p), weights, own.get(p, NONE), outcome.fused.report.get(p, {})),
                    untaught=self.recipe.has_server_model and weights is self.before.server.weights[p],
                )
                for p, weights in outcome.weights.items()
            },
            seconds=round(time.perf_counter() - self.started, 3),
            clock=self.clock.record(outcome.screened, outcome.fused.report, self.public) if self.clock else None,
            absent=absent,
            late=self.attendance.who("late"),
            joined=self.joined,
        )


def _client(task: Task) -> int:
    return task.client


def _is_troubled(history: Sequence[RoundRecord]) -> bool:
    """Whether somebody was missing in the last round, and is likely to be missing again."""
    return bool(history) and bool(history[-1].refused or history[-1].late)


def _if_sound(opened: Update | str, state: Tensors) -> tuple[Update, Tensors] | None:
    return None if isinstance(opened, str) else (opened, state)


@dataclass(frozen=True)
class _Outcome:
    """What a round has come to, before it is measured; ``view`` is what the fusion saw."""

    updates: Sequence[Update]
    screened: Screened
    merged: Mapping[str, Weights]
    view: ServerView
    fused: Fused
    weights: Mapping[str, Weights]
    scores: Mapping[int, Score]
    client_scores: Tensor
