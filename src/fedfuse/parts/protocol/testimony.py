"""Exchanges in which clients testify, once, how much their answers should count.

The server asks at a client's first visit, and again until it has an answer; what it was told it remembers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor

from fedfuse.core.messages import Task, Tensors, Update
from fedfuse.parts.base import CheckContext
from fedfuse.parts.context import ServerView
from fedfuse.parts.protocol.base import Exchange, Party, Shapes
from fedfuse.parts.scores import Weighting
from fedfuse.parts.scores.certainty import EXTRACTOR

TESTIMONY = "testimony"


class ScoredExchange(Exchange):
    """The base of both kinds: beside weights, and beside predictions."""

    needs_source: ClassVar[bool] = True
    weighting: Weighting

    def check(self, context: CheckContext) -> None:
        super().check(context)
        self.weighting.check(context)

    def asks(self, view: ServerView, client: int) -> tuple[str, ...]:
        return () if view.visits[client] else (TESTIMONY,)

    def broadcast(self, view: ServerView, chosen: Mapping[int, str]) -> Mapping[int, Tensors]:
        if not self.weighting.needs_extractor:
            return {}
        new = {client: prototype for client, prototype in chosen.items() if not view.visits[client]}
        extractors = {prototype: _extractor(view, prototype) for prototype in set(new.values())}
        # In round 1 they are the very weights that clients are sent, and need not travel twice.
        other = {p: flat for p, flat in extractors.items() if not torch.equal(flat, view.weights[p].flat)}
        return {client: {EXTRACTOR: other[prototype]} for client, prototype in new.items() if prototype in other}

    def update_spec(self, view: ServerView, task: Task) -> Shapes:
        assert view.source is not None, "checked before round 1"
        if TESTIMONY not in task.asks:
            return {}
        return self.weighting.update_spec(len(self.weighting.scored(view.source, view.common)), view.bank.classes)

    def open(self, view: ServerView, update: Update) -> Update:
        """The update with the client's testimony, new or remembered."""
        return replace(update, extras={**_recall(view.memory, update.client), **update.extras})

    def after_round(self, view: ServerView, updates: Sequence[Update]) -> Tensors:
        assert view.source is not None, "checked before round 1"
        names = self.weighting.update_spec(len(view.source), view.bank.classes)
        told = {f"{TESTIMONY}/{u.client}/{name}": u.extras[name] for u in updates for name in names}
        began = {f"{EXTRACTOR}/{p}": _extractor(view, p) for p in view.weights if self.weighting.needs_extractor}
        return {**view.memory, **told, **began}

    def learnt(self, party: Party) -> Tensors:
        """What the client knows about itself: from an earlier visit, or found out now."""
        kept = {name.removeprefix(f"{TESTIMONY}/"): t for name, t in party.state.items() if name.startswith(TESTIMONY)}
        return kept or self.weighting.learn(party)

    def testimony(self, learnt: Tensors, party: Party) -> Tensors:
        """What the client says about the public inputs, if it is asked."""
        assert party.source is not None, "checked before round 1"
        if TESTIMONY not in party.task.asks:
            return {}
        return self.weighting.testify(learnt, party, self.weighting.scored(party.source, party.common))


def keep(learnt: Tensors) -> Tensors:
    """The client's state that ``learnt`` finds again."""
    return {f"{TESTIMONY}/{name}": tensor for name, tensor in learnt.items()}


def _recall(memory: Tensors, client: int) -> Tensors:
    prefix = f"{TESTIMONY}/{client}/"
    return {name.removeprefix(prefix): tensor for name, tensor in memory.items() if name.startswith(prefix)}


def _extractor(view: ServerView, prototype: str) -> Tensor:
    """The weights that the federation began with."""
    return view.memory.get(f"{EXTRACTOR}/{prototype}", view.weights[prototype].flat)
