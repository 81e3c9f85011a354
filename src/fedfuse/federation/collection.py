"""How a round collects its clients' updates: in client order, held until its end or taken by the parts as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.federation.absurd import Growth
from fedfuse.federation.arrivals import Answer, Arrivals
from fedfuse.federation.bounds import Bounds
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.kept_clients import KeptClients
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.shelf import Shelf
from fedfuse.federation.stream import Expected, Stream, left
from fedfuse.federation.sums.summing import Summing
from fedfuse.federation.turns import in_turn
from fedfuse.federation.views import Views
from fedfuse.parts.screen import Screened

State = tuple[int, Tensors]
"""A client and its new state."""


class Collection:
    """One round's updates: sound ones, in client order, whatever order they came in."""

    def __init__(
        self,
        recipe: Recipe,
        views: Views,
        arrivals: Arrivals,
        growth: Growth,
        bounds: Bounds,
        shelf: Shelf,
        states: ClientStates,
        kept: KeptClients | None = None,
        summing: Summing | None = None,
    ) -> None:
        """``states`` are the clients' before the round; ``kept`` is where their models go, if they are kept, and
        ``summing`` adds up the updates, if that is all that is seen of them."""
        self.recipe, self.views, self.arrivals = recipe, views, arrivals
        self.growth, self.bounds, self.shelf, self.states, self.kept = growth, bounds, shelf, states, kept
        self.summing = summing
        self.updates: list[Update] = []
        self.stream: Stream | None = None
        """Who took the updates as they came, so that what is left of them are numbers; None if they are held."""

    def collect(self, tasks: Sequence[Task], streaming: bool) -> ClientStates:
        """Collect the updates, to hold them or, if the engine can do tasks twice, ``streaming``.

        Returns the clients' states after the round.
        """
        return self.states.after(self.views.whole.round, self._kept(tasks, streaming))

    def drop(self) -> None:
        """Nothing is made of what the clients sent."""
        self.updates, self.stream = [], None
        if self.summing:
            self.summing.drop()

    def counted(self) -> Screened:
        """The updates as they count, before the method's own screens."""
        return self.bounds.counted(self.updates, self.shelf.hold)

    def _kept(self, tasks: Sequence[Task], streaming: bool) -> Iterator[State]:
        """The new states of clients whose updates are sound, while these are collected."""
        in_order = sorted(tasks, key=lambda task: task.client)
        self.stream = self._expecting(in_order) if streaming else None
        yield from self._taken(tasks, self.arrivals.in_time(tasks, self.states))
        yield from self._dismissed()
        stands_out = self.bounds.judge(self.updates)
        if self._is_short() and not stands_out:  # the others' shares are larger than those with which they were added
            yield from self._once_more(in_order, streaming=True)
            stands_out = self.bounds.judge(self.updates)
        if self._is_short() or (self.stream and stands_out):  # somebody says something else when it is asked again,
            yield from self._once_more(in_order, streaming=False)  # or does not count as it was added
            self.bounds.judge(self.updates)
        for client in self.bounds.judged.against:  # what it learnt counts for nothing, with itself as well
            yield client, self.states.get(client, {})

    def _expecting(self, tasks: Sequence[Task]) -> Stream | None:
        """Who takes updates as they come, where the engine knows what they will stand for."""
        examples = self.arrivals.engine.examples_of(tasks)
        if examples is None:
            return None
        return self._stream(list(zip(tasks, examples, strict=True)))

    def _stream(self, expected: Expected) -> Stream:
        return Stream.of(self.recipe, expected, self.bounds.claims, self.views.of)

    def _taken(self, tasks: Sequence[Task], answers: Iterator[Answer]) -> Iterator[State]:
        """Each client in its turn: its update is collected or given away, and its new state goes on."""

        def take(update: Update, state: Tensors) -> State:
            self.growth.take(update)
            self.bounds.moves.take(update)
            if self.kept:
                self.kept.keep(update, state)
            self.updates.append(self._held(update))
            return update.client, state

        return starmap(take, in_turn(sorted(task.client for task in tasks), answers))

    def _held(self, update: Update) -> Update:
        """What is left of an update when whoever can has taken it."""
        if self.summing:
            return self.summing.take(update)
        return self.stream.take(update) if self.stream else self.shelf.hold(update)

    def _dismissed(self) -> Iterator[State]:
        """Clients whose weights turn out to be nothing like the others' are refused after all; their states stay."""
        refused = self.growth.refused()
        self.updates = [update for update in self.updates if update.client not in refused]
        for client, reason in refused.items():
            self.arrivals.attendance.refuse(client, reason)
            if self.kept:
                self.kept.forget(client)
            yield client, self.states.get(client, {})

    def _is_short(self) -> bool:
        """Whether updates were added with shares that they do not have."""
        return self.stream is not None and not self.stream.is_complete(self.updates)

    def _once_more(self, tasks: Sequence[Task], streaming: bool) -> Iterator[State]:
        """Those who were heard, asked for the same again."""
        expected = left(tasks, self.updates)
        self.stream = self._stream(expected) if streaming and expected else None
        self.updates.clear()
        same = [task for task, _ in expected]
        return self._taken(same, self.arrivals.again(same, self.states) if same else iter(()))
