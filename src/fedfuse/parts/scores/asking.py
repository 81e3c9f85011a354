"""Clients say once how much their answers should count, and the server remembers.

The server asks at a client's first visit, and again until it has an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update, of_part, within
from fedfuse.parts.base import Shapes
from fedfuse.parts.context import ClientContext, ServerView
from fedfuse.parts.scores.base import SLOT, Scores
from fedfuse.parts.scores.certainty import EXTRACTOR


@dataclass(frozen=True)
class Asking:
    """Both ends of it; views and contexts are those of the slot."""

    scores: Scores

    def asks(self, view: ServerView, client: int) -> tuple[str, ...]:
        """What a task asks for."""
        return (SLOT,) if self.scores.asks_clients and not view.visits[client] else ()

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        """The model that the federation began with, for clients that judge by its features."""
        if not self.scores.needs_extractor:
            return {}
        new = {client: prototype for client, prototype in chosen.items() if not view.visits[client]}
        extractors = {prototype: _extractor(view, prototype) for prototype in set(new.values())}
        # In round 1 they are the very weights that clients are sent, and need not travel twice.
        other = {p: flat for p, flat in extractors.items() if not torch.equal(flat, view.weights[p].flat)}
        return {client: {EXTRACTOR: other[prototype]} for client, prototype in new.items() if prototype in other}

    def expects(self, view: ServerView, task: Task) -> Shapes:
        """What the answer to this task must bring; the view is the protocol's, whose public inputs have scores."""
        if SLOT not in task.asks:
            return {}
        inputs = 0 if view.source is None else len(view.source)
        return self.scores.spec(inputs, view.bank.classes)

    def recalled(self, view: ServerView, update: Update) -> Update:
        """The update with the client's scores, new or remembered."""
        return replace(update, extras={**within(SLOT, of_part(str(update.client), view.memory)), **update.extras})

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        """What the server remembers of everybody."""
        if not self.scores.asks_clients:
            return view.memory
        told = {name: t for u in updates for name, t in within(str(u.client), u.of(SLOT).extras).items()}
        began = {f"{EXTRACTOR}/{p}": _extractor(view, p) for p in view.weights if self.scores.needs_extractor}
        return {**view.memory, **told, **began}

    def learnt(self, client: ClientContext) -> Tensors:
        """What the client knows about itself: from an earlier visit, or found out now."""
        return (client.state or self.scores.learn(client)) if self.scores.asks_clients else {}

    def said(self, learnt: Tensors, client: ClientContext) -> Tensors:
        """What the client says about the public inputs, if it is asked."""
        if SLOT not in client.task.asks:
            return {}
        return self.scores.say(learnt, client, self.scores.inputs(client.public, client.common))


def _extractor(view: ServerView, prototype: str) -> Tensor:
    """The weights that the federation began with."""
    return view.memory.get(f"{EXTRACTOR}/{prototype}", view.weights[prototype].flat)
