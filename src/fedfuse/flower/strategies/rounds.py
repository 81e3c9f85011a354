"""The rounds of fedfuse's own server with replies that Flower's loop brings: screen, merge, fuse, remember.

What becomes of a round's updates is decided where it always is, in ``Federation``. Here are its two ends only: who
takes part (whoever replied) and where updates come from (the replies).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import torch

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples
from fedfuse.federation import (
    Engine,
    EvaluationSettings,
    Federation,
    FederationSettings,
    Recipe,
    RoundRecord,
    ServerState,
    Snapshot,
)
from fedfuse.federation.client_states import ClientStates
from fedfuse.federation.events import Event, EventLog
from fedfuse.federation.settings import Trust
from fedfuse.federation.visits import Visits
from fedfuse.flower.strategies.inputs import AsItIs
from fedfuse.flower.strategies.networks import Networks
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol import FullWeights
from fedfuse.parts.protocol.base import Draw
from fedfuse.runtime.evaluate import Evaluator
from fedfuse.runtime.source import Source

logger = logging.getLogger("flwr")

NEVER = 2**31
"""A round that no run reaches: what Flower evaluates is not evaluated here."""
REPORTED = (
    "update_refused", "client_screened", "model_diverged", "memory_diverged", "claim_bounded", "move_bounded",
    "defence_weakened",
)  # fmt: skip
LEFT_OUT = ("update_refused", "client_screened")
"""Events of a round that belong into Flower's log, too."""


class Replied(FullWeights):
    """Full weights, of the clients whose replies are there."""

    kind: Literal["weights"] = "weights"
    models: dict[int, str]

    def participants(self, view: ServerView, drawn: Draw) -> Mapping[int, str]:
        return self.models


class Replies(Engine):
    """Clients that have answered already."""

    def __init__(self, updates: Sequence[Update]) -> None:
        self.updates = updates

    def train(self, tasks: Sequence[Task], states: ClientStates) -> Iterator[tuple[Update, Tensors]]:
        return ((update, {}) for update in self.updates)

    def close(self) -> None:
        pass


class Rounds:
    """One round after another; the snapshot between them is all that is remembered.

    A node is a client with a number of its own, by which parts remember it, from the first time that it is heard.
    """

    def __init__(
        self,
        recipe: Recipe,
        networks: Networks,
        source: Source | None,
        validation: Evaluator | None,
        seed: int,
        claims: Trust = "bounded",
        moves: Trust = "bounded",
    ) -> None:
        self.claims, self.moves = claims, moves
        self.recipe, self.networks, self.bank = recipe, networks, networks.bank
        self.source, self.validation, self.key = source, validation, Key(seed)
        self.snapshot = Snapshot(ServerState(0, {}))
        self.clients: dict[int, int] = {}
        """The number of each node."""
        self.models: list[str] = []
        """The model of each client."""
        self.log = EventLog(listeners=(self._say,))
        nothing = Examples(torch.empty(0, 1), torch.empty(0, dtype=torch.long))
        self.test = Evaluator(nothing, AsItIs(), networks.bank.compute, batch_size=1)

    @property
    def weights(self) -> Mapping[str, Weights]:
        """The server's, by model."""
        return self.snapshot.server.weights

    def begin(self, weights: Mapping[str, Weights]) -> None:
        """A federation before its first round."""
        self.snapshot, self.clients, self.models = Snapshot(ServerState(0, weights)), {}, []

    def go_on(self, server_round: int, weights: Mapping[str, Weights]) -> None:
        """To this round, with these weights of the server."""
        server = replace(self.snapshot.server, round=server_round - 1, weights=weights)
        self.snapshot = replace(self.snapshot, server=server)

    def client(self, node: int, model: str) -> int:
        """The number of a node, which runs this model now."""
        if node not in self.clients:
            self.clients[node] = len(self.models)
            self.models.append(model)
        self.models[self.clients[node]] = model
        return self.clients[node]

    def offers(self, models: Mapping[int, str]) -> dict[int, Weights]:
        """The weights with which nodes begin, of which the models are known."""
        clients = {node: self.client(node, model) for node, model in models.items()}
        views = {model: self.view(f"merge/{model}") for model in set(models.values())}
        merge = self.recipe.merge
        return {node: merge.offer(views[model], model, clients[node]) for node, model in models.items()}

    def view(self, part: str) -> ServerView:
        """What one part is shown in the coming round."""
        server = self.snapshot.server
        number = server.round + 1
        return ServerView(
            round=number,
            key=self.key.child("round", number, part),
            common=self.key,
            weights=server.weights,
            memory=server.memory.get(part, {}),
            clients_of=Counter(self.models),
            visits=Visits(len(self.models)).after(server.history),
            bank=self.bank,
            validation=self.validation,
            source=self.source,
            scores=self.recipe.scores,
        )

    def play(self, updates: Sequence[Update]) -> RoundRecord:
        """One round with these updates, of at least one client."""
        replied = Replied(models={update.client: update.prototype for update in updates})
        federation = Federation(
            recipe=self.recipe.model_copy(update={"protocol": replied}),
            settings=self._settings(),
            evaluation=EvaluationSettings(every=NEVER),
            clients=len(self.models),
            bank=self.bank,
            engine=Replies(updates),
            test=self.test,
            validation=self.validation,
            source=self.source,
            key=self.key,
            log=self.log,
        )
        self.snapshot = federation.advance(self.snapshot)
        record = self.snapshot.server.history[-1]
        for model, own in record.prototypes.items():
            if own.untaught:
                logger.warning("fedfuse: round %s, nobody taught %s", record.round, self.networks.called(model))
        return record

    def _settings(self) -> FederationSettings:
        return FederationSettings(rounds=NEVER, assigned=tuple(self.models), claims=self.claims, moves=self.moves)

    def _say(self, event: Event) -> None:
        """In Flower's log, what its reader should know of."""
        if event["event"] in REPORTED:
            logger.warning("fedfuse: round %s, %s: %s", event["round"], self._who(event), event["reason"])

    def _who(self, event: Event) -> str:
        if "client" in event:
            node = list(self.clients)[event["client"]]
            return f"node {node} is left out" if event["event"] in LEFT_OUT else f"node {node} counts for less"
        if "prototype" in event:
            return self.networks.called(event["prototype"])
        return f"memory of {event['part']}" if "part" in event else "a defence is weaker"
