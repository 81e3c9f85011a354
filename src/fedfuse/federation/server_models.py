"""What the server makes of sound updates: merged weights, then students. Nothing unsound goes further."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedfuse.core.messages import Update
from fedfuse.core.weights import Weights
from fedfuse.federation.absurd import Growth, unsound
from fedfuse.federation.events import EventLog
from fedfuse.federation.memories import Memories
from fedfuse.federation.recipe import FUSE, MERGE, Recipe
from fedfuse.federation.stream import Stream
from fedfuse.federation.views import Views
from fedfuse.parts.context import ServerView
from fedfuse.parts.fuse import Fused
from fedfuse.parts.merge import BatchNormPolicy, Merged, settle


class ServerModels:
    """The models of one round."""

    def __init__(
        self,
        recipe: Recipe,
        batch_norm: BatchNormPolicy,
        views: Views,
        memories: Memories,
        growth: Growth,
        log: EventLog,
    ) -> None:
        self.recipe, self.batch_norm, self.views = recipe, batch_norm, views
        self.memories, self.growth, self.log = memories, growth, log

    def merge(self, updates: Sequence[Update], stream: Stream | None) -> dict[str, Weights]:
        """Merged weights of the prototypes that had clients in this round; the others stay as they are."""
        results = {}
        for prototype in self.views.whole.bank.prototypes:
            own = [u for u in updates if u.prototype == prototype and (u.weights or stream)]
            if own:
                merged, fault = self._merged(prototype, own, stream)
                if fault:
                    self._diverged(prototype, f"{fault} after the merge", kept="last round's weights")
                    continue
                self.memories.keep(f"{MERGE}/{prototype}", merged.memory)
                results[prototype] = merged.weights
        return results

    def _merged(self, prototype: str, updates: Sequence[Update], stream: Stream | None) -> tuple[Merged, str | None]:
        """What one prototype's updates come to, with BatchNorm statistics as the policy has them, and what is wrong."""
        view = self.views.of(f"{MERGE}/{prototype}")
        if stream is None:
            merged = self.recipe.merge.merge(view, prototype, updates)
        else:  # taken away, because nobody needs the sum any more
            merged = stream.merges.pop(prototype).merged()
        if fault := self.growth.fault(prototype, merged.weights):
            return merged, fault
        if merged.last is not None:
            updates = [*updates[:-1], replace(updates[-1], weights=merged.last)]
        settled = settle(self.batch_norm, view, prototype, merged.weights, updates)
        if settled is not merged.weights and (fault := self.growth.fault(prototype, settled)):
            return merged, fault
        name = unsound(merged.memory, view.memory, self.recipe.merge.nan_is_no_value)
        fault = f"what it remembers ('{name}') was not finite or far too large" if name else None
        return replace(merged, weights=settled), fault

    def fuse(self, view: ServerView, merged: Mapping[str, Weights], teachers: Sequence[Update]) -> Fused:
        """The students, by prototype, of the teachers there are; merged weights where nobody teaches."""
        if not teachers:
            return Fused(merged, memory=self.memories.of(FUSE))
        fused = self.recipe.fuse.fuse(view, merged, teachers)
        self.memories.remember(FUSE, fused.memory, self.recipe.fuse.nan_is_no_value)
        return replace(fused, weights={p: self._sound(p, fused, merged) for p in fused.weights})

    def _sound(self, prototype: str, fused: Fused, merged: Mapping[str, Weights]) -> Weights:
        """A student that others can work with; else what there was before it was taught."""
        weights, at = fused.weights[prototype], fused.report.get(prototype, {}).get("diverged_at")
        where = "the fusion" if at is None else f"step {at} of the distillation"
        if weights is merged.get(prototype) and at is None:
            return weights
        if fault := self.growth.fault(prototype, weights):
            kept = "merged weights" if prototype in merged else "last round's weights"
            self._diverged(prototype, f"{fault} after {where}", kept)
            return merged.get(prototype, self.views.whole.weights[prototype])
        if at is not None:
            self._diverged(prototype, f"weights were not finite after {where}", kept="an earlier student")
        return weights

    def _diverged(self, prototype: str, fault: str, kept: str) -> None:
        """Weights that nobody could train from go no further, and the log says what is kept in their place."""
        reason = f"{fault}; kept: {kept}"
        self.log.emit("model_diverged", round=self.views.whole.round, prototype=prototype, reason=reason)
