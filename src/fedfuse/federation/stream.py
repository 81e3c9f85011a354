"""A round whose updates are taken one by one: each is forgotten as soon as every part has what it needs of it.

Shares n_k / sum n have to be known before the first update is added. So it is said who is expected; if not everybody
comes, what was added is worth nothing, and the round asks the others for the same once more.

Today merges and the memories of objectives can take updates so. A fusion that can is one more accumulator here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from fedfuse.core.messages import Task, Update
from fedfuse.core.weights import NOTHING
from fedfuse.federation.claims import Claims
from fedfuse.federation.recipe import LOCAL, MERGE, Recipe
from fedfuse.parts.accumulator import takes_one_by_one
from fedfuse.parts.context import ServerView
from fedfuse.parts.local import MemoryAccumulator
from fedfuse.parts.merge import BatchNormPolicy, MergeAccumulator
from fedfuse.parts.protocol.base import Protocol

Expected = Sequence[tuple[Task, int]]
"""Tasks in client order, and how many examples the answer to each stands for."""


def can_stream(recipe: Recipe, batch_norm: BatchNormPolicy) -> bool:
    """Whether no part of a round needs all updates at once."""
    return (
        recipe.protocol.carries == "weights"
        and type(recipe.protocol).after_round is Protocol.after_round
        and not recipe.scores.asks_clients
        and not recipe.chain.remembering
        and not recipe.screen
        and recipe.fuse.reads == "nothing"
        and batch_norm != "last"
        and takes_one_by_one(recipe.merge, "merge", "average")
        and takes_one_by_one(recipe.local, "after_round")
    )


@dataclass(frozen=True)
class Stream:
    """The parts that take one round's updates."""

    expected: Expected
    merges: dict[str, MergeAccumulator]
    local: MemoryAccumulator

    @staticmethod
    def of(recipe: Recipe, expected: Expected, claims: Claims, view: Callable[[str], ServerView]) -> Stream:
        by_prototype: dict[str, list[int]] = {}
        counted = claims.examples([examples for _, examples in expected])
        for (task, _), examples in zip(expected, counted, strict=True):
            by_prototype.setdefault(task.prototype, []).append(examples)
        merges = {
            prototype: recipe.merge.accumulator(view(f"{MERGE}/{prototype}"), prototype, own)
            for prototype, own in by_prototype.items()
        }
        return Stream(expected, merges, recipe.local.accumulator(view(LOCAL)))

    def take(self, update: Update) -> Update:
        """Let every part have it; what is left of it are numbers about it."""
        self.merges[update.prototype].add(update)
        self.local.add(update.of(LOCAL))
        return replace(update, weights=NOTHING, extras={})

    def is_complete(self, taken: Sequence[Update]) -> bool:
        """Whether those came who were expected."""
        heard = [(update.client, update.examples) for update in taken]
        return heard == [(task.client, examples) for task, examples in self.expected]


def left(expected: Sequence[Task], heard: Sequence[Update]) -> Expected:
    """Who was heard, with what each said of its examples."""
    examples: Mapping[int, int] = {update.client: update.examples for update in heard}
    return [(task, examples[task.client]) for task in expected if task.client in examples]
