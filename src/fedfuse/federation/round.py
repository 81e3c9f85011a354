"""The round: sample, task, train, inspect, screen, merge, fuse, remember, evaluate.

Its longer steps lie beside this file: ``tasks`` go out, ``arrivals`` opened and inspected, a ``collection`` is made of
them and merged and fused into ``server_models``, ``measures`` are taken; ``views`` is what parts see meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from torch import Tensor

from fedfuse.core.messages import Task, Update
from fedfuse.core.plain_json import finite
from fedfuse.core.weights import Weights
from fedfuse.federation.absurd import Growth
from fedfuse.federation.accounting import Attended, PrivacyRecord
from fedfuse.federation.arrivals import Arrivals
from fedfuse.federation.attendance import Attendance
from fedfuse.federation.bookkeeping import Bookkeeping
from fedfuse.federation.bounds import Bounds
from fedfuse.federation.client_scores import LATEST_SCORES, NONE, by_prototype, remembered, updated
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.clock.clock import Clock, RoundClock
from fedfuse.federation.collection import Collection
from fedfuse.federation.inbox import Inbox
from fedfuse.federation.measures import RoundEvaluation
from fedfuse.federation.memories import Memories
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES
from fedfuse.federation.server_models import ServerModels
from fedfuse.federation.shelf import Shelf
from fedfuse.federation.state import RoundRecord, ServerState, Snapshot
from fedfuse.federation.stream import Stream, can_stream
from fedfuse.federation.sums.summing import Summing
from fedfuse.federation.tasks import joining, tasks_for
from fedfuse.federation.views import Views
from fedfuse.parts.context import CombinedPredictions, ServerView
from fedfuse.parts.fuse import Fused
from fedfuse.parts.screen import Screened
from fedfuse.parts.upload.chain import name_of
from fedfuse.runtime.evaluate import Score

if TYPE_CHECKING:
    from fedfuse.federation.server import Federation

SERVER = "server"
"""Where the server itself remembers something, beside its parts."""


class Round:
    """One round at work. It lives for one call of ``advance``."""

    def __init__(self, federation: Federation, before: Snapshot) -> None:
        self.started = time.perf_counter()
        self.federation, self.recipe, self.log = federation, federation.recipe, federation.log
        self.before, self.states, self.history = before.server, before.clients, before.server.history
        self.number = self.before.round + 1
        self.prototypes = federation.prototypes.but(self.history.joined)
        """The prototype that each client runs by now."""
        self.joined: dict[int, str] = {}
        """Who runs another model than was planned, from this round on."""
        self.attendance = Attendance(self.number, self.log)
        self.memories = Memories(self.number, self.before.memory, self.log)
        self.views = Views(self.view(), self.recipe, self.memories)
        self.growth = Growth(self.before.weights)
        self.models = ServerModels(
            self.recipe, federation.settings.batch_norm, self.views, self.memories, self.growth, self.log
        )
        is_last = self.number == federation.settings.rounds
        self.bookkeeping = Bookkeeping(
            self.number, self.recipe, federation.accounting, self.memories, self.log, is_last
        )
        self.clock = self._clock(federation.clock) if federation.clock else None
        self.measures = RoundEvaluation(
            self.number,
            self.recipe,
            federation.settings,
            federation.evaluation,
            federation.bank,
            federation.test,
            federation.judging,
        )

    def _clock(self, clock: Clock) -> RoundClock:
        return RoundClock(clock, self.history, self.federation.wanted, self.federation.settings.claims)

    def play(self) -> Snapshot:
        tasks = self.tasks()
        collection, states = self.collect(tasks)
        screened, given = (self.add_up if collection.summing else self.count)(tasks, collection)
        updates = collection.updates
        merged = self.models.merge(screened.counted, collection.stream)
        view = self.views.fusion(screened.teachers)
        fused = self.models.fuse(view, merged, screened.teachers)
        weights = {**self.before.weights, **fused.weights}
        heard = screened.counted if collection.summing else updates
        self.remember_clients(heard, screened.counted, view.predictions)
        self.remember_training(screened.counted, weights, collection.stream)
        scores = self.measures.clients(updates)
        everybody = self.remember_scores(scores)
        collection.bounds.remember()
        privacy = self.bookkeeping.close(given)
        outcome = _Outcome(collection, screened, merged, view, fused, weights, scores, everybody, privacy)
        record = self.record(tasks, outcome)
        collection.bounds.tell(self.log, self.number, self.history)
        self.log.emit("round_finished", **record.to_json())
        return Snapshot(ServerState(self.number, weights, self.memories.all, self.history.plus(record)), states)

    def count(self, tasks: Sequence[Task], collection: Collection) -> tuple[Screened, list[Attended]]:
        """Who counts, and what everybody has given away by now."""
        screened = self.screen(collection.counted())
        absent, counted = self.attendance.who("absent"), self.bookkeeping.added(screened)
        given = self.bookkeeping.given(tasks, absent, collection.updates, counted)
        if self.bookkeeping.objects_to(given):
            collection.drop()
            screened = Screened((), ())
        return screened, given

    def add_up(self, tasks: Sequence[Task], collection: Collection) -> tuple[Screened, list[Attended]]:
        """The same where sums are all that is seen: one update stands for all who are in a sum.

        Whether a sum may be looked at is decided before anybody can.
        """
        summing, sums, absent = collection.summing, list[Update](), self.attendance.who("absent")
        assert summing is not None
        self._withhold(summing.without_small_ones(absent))
        if self.bookkeeping.objects_to(self.bookkeeping.given(tasks, absent, collection.updates, summing.members)):
            collection.drop()
        self._withhold(summing.opened(self.federation.engine, sums))
        return Screened(sums, sums), self.bookkeeping.given(tasks, absent, collection.updates, summing.members)

    def _withhold(self, reasons: Iterable[str]) -> None:
        for reason in reasons:
            self.log.emit("sum_withheld", round=self.number, reason=reason)

    def view(self) -> ServerView:
        """What all parts see of this round."""
        federation = self.federation
        return replace(
            federation.view(self.number, federation.key.child("round", self.number)),
            weights=self.before.weights,
            clients_of=self.prototypes.clients_of,
            visits=federation.visits.after(self.history),
            pool=federation.engine.pool(self.number),
            weakened=self._weakened,
        )

    def _weakened(self, reason: str) -> None:
        self.log.emit("defence_weakened", round=self.number, reason=reason)

    @cached_property
    def inbox(self) -> Inbox:
        """Where updates arrive."""
        federation, views = self.federation, self.views
        test, sums = len(federation.test), federation.sums
        return Inbox(self.recipe, federation.bank, test, views.protocol, views.of(SCORES), sums)

    def drawn(self, number: int) -> dict[int, str]:
        """Who was drawn for a round, this one or an earlier one, and the prototypes they run."""
        federation, key = self.federation, self.federation.key.child("round", number, "sample")
        chosen = self.clock.draw(number, federation.clients, key) if self.clock else federation.chosen(key)
        return {client: self.prototypes[client] for client in chosen}

    def tasks(self) -> list[Task]:
        """Who takes part, and what each of them is sent."""
        planned = self.bookkeeping.with_budget(self.recipe.protocol.participants(self.views.protocol, self.drawn))
        self.log.emit("round_started", round=self.number, clients=list(planned))
        announced = self.federation.engine.announced(planned)
        if not self.recipe.pooled:
            self.joined = joining(planned, announced, self.views.whole)
        for client, prototype in self.joined.items():
            self.log.emit("client_joined", round=self.number, client=client, prototype=prototype)
        self.prototypes = self.prototypes.but(self.joined)
        self.views.with_clients_of(self.prototypes.clients_of)
        return tasks_for({**planned, **self.joined}, self.recipe, self.views, self.measures.asks)

    def collect(self, tasks: Sequence[Task]) -> tuple[Collection, ClientStates]:
        """Let the clients work: their sound updates, and their states after this round."""
        federation, log = self.federation, self.log
        shelf = Shelf(log.path.parent if log.path else None)
        arrivals = Arrivals(
            federation.engine, log, self.views, self.inbox, self.attendance, self.clock, federation.has_wire
        )
        kept = federation.keeping.of_round(self.number, log.path) if federation.keeping else None
        bounds = Bounds(self.recipe, federation.settings, tasks, self.views.whole, self.memories)
        summing = Summing(federation.sums, tasks, self.views.protocol) if federation.sums else None
        collection = Collection(
            self.recipe, self.views, arrivals, self.growth, bounds, shelf, self.states, kept, summing
        )
        streaming = not summing and can_stream(self.recipe, federation.settings.batch_norm)
        states = collection.collect(tasks, self.is_likely_complete and streaming)
        self.attendance.call_the_roll(federation.engine, tasks, collection.updates)
        return collection, states

    @property
    def is_likely_complete(self) -> bool:
        """Whether nobody is likely to be late, refused or out of bounds: nobody was in the last round."""
        last = self.history[-1] if self.history else None
        return not self.clock and not (last and (last.refused or last.late or last.screened or last.moves_bounded))

    def screen(self, screened: Screened) -> Screened:
        if screened.counted:
            for index, screen in enumerate(self.recipe.screen):
                screened = screen.screen(self.views.of(f"screen/{index}"), screened)
        for client, reason in screened.reasons.items():
            self.log.emit("client_screened", round=self.number, client=client, reason=reason)
        return screened

    def remember_clients(
        self, updates: Sequence[Update], counted: Sequence[Update], predictions: CombinedPredictions | None
    ) -> None:
        """What the protocol keeps of those who count, and the scores and the links of everybody who was heard."""
        if updates:
            own, recipe = [update.of(PROTOCOL) for update in counted], self.recipe
            learnt = recipe.protocol.after_round(self.views.protocol, own, predictions)
            self.memories.remember(PROTOCOL, learnt, recipe.protocol.nan_is_no_value)
            said = recipe.asking.after_round(self.views.of(SCORES), updates)
            self.memories.remember(SCORES, said, recipe.scores.nan_is_no_value)
            for place in recipe.chain.remembering:
                learnt = recipe.chain.after_round(place, self.views.of(name_of(place)), updates)
                self.memories.remember(name_of(place), learnt, recipe.upload[place].nan_is_no_value)

    def remember_training(
        self, counted: Sequence[Update], weights: Mapping[str, Weights], stream: Stream | None
    ) -> None:
        """What the local objective keeps of those who count."""
        local = self.recipe.local
        if stream:
            learnt = stream.local.memory(weights)
        else:
            learnt = local.after_round(self.views.of(LOCAL), [update.of(LOCAL) for update in counted], weights)
        self.memories.remember(LOCAL, learnt, local.nan_is_no_value)

    def remember_scores(self, scores: Mapping[int, Score]) -> Tensor:
        """How good everybody's own model was when it was measured last, which the server itself keeps."""
        latest = remembered(self.memories.of(SERVER))
        everybody = updated(latest, scores, self.federation.evaluation.metric_names)
        self.memories.keep(SERVER, {LATEST_SCORES: everybody} if len(everybody) else {})
        return everybody

    def record(self, tasks: Sequence[Task], outcome: _Outcome) -> RoundRecord:
        """The round, measured."""
        measures, updates, merged = self.measures, outcome.collection.updates, outcome.merged
        losses = [update.metrics["loss"] for update in updates if "loss" in update.metrics]
        own = by_prototype(outcome.client_scores, self.prototypes)
        if measures.is_due:
            self.log.tick("evaluate", 0, 1)
        ensemble = measures.ensemble(outcome.view, merged, outcome.screened.teachers)
        absent = self.attendance.who("absent")
        sent_nothing = set(absent)
        sent = [task for task in tasks if task.client not in sent_nothing]
        return RoundRecord(
            round=self.number,
            clients=tuple(task.client for task in tasks),
            refused=self.attendance.who("refused"),
            screened=tuple(sorted(outcome.screened.reasons)),
            bytes_up=outcome.collection.arrivals.bytes_up,
            bytes_down=sum(task.nbytes for task in sent) if self.federation.has_wire else 0,
            training_loss=finite(fmean(losses)) if losses else None,
            ensemble_accuracy=ensemble.accuracy if ensemble else None,
            ensemble_metrics=ensemble.metrics if ensemble else {},
            ensemble_validation=measures.ensemble_on_validation(outcome.view, merged, outcome.screened.teachers),
            client_accuracy={client: score.accuracy for client, score in outcome.scores.items()},
            prototypes={
                p: replace(
                    measures.prototype(p, merged.get(p), weights, own.get(p, NONE), outcome.fused.report.get(p, {})),
                    untaught=self.recipe.has_server_model and weights is self.before.weights[p],
                )
                for p, weights in outcome.weights.items()
            },
            seconds=round(time.perf_counter() - self.started, 3),
            clock=self.clock.record(outcome.screened, outcome.fused.report, self.views.public) if self.clock else None,
            absent=absent,
            late=self.attendance.who("late"),
            joined=self.joined,
            claims_bounded=outcome.collection.bounds.claims_bounded,
            moves_bounded=outcome.collection.bounds.moves_bounded,
            ensemble_choice=outcome.fused.ensemble,
            privacy=outcome.privacy,
        )


@dataclass(frozen=True)
class _Outcome:
    """What a round has come to, before it is measured; ``view`` is what the fusion saw."""

    collection: Collection
    screened: Screened
    merged: Mapping[str, Weights]
    view: ServerView
    fused: Fused
    weights: Mapping[str, Weights]
    scores: Mapping[int, Score]
    client_scores: Tensor
    privacy: PrivacyRecord | None
