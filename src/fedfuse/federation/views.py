"""What the server shows to its parts in one round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from fedfuse.core.messages import Update
from fedfuse.federation.memories import Memories
from fedfuse.federation.predictions import combined
from fedfuse.federation.recipe import FUSE, PROTOCOL, Recipe
from fedfuse.parts.context import ServerView
from fedfuse.runtime.source import Source


class Views:
    """To each part its own memory and its own randomness; all else is the same for all."""

    def __init__(self, whole: ServerView, recipe: Recipe, memories: Memories) -> None:
        """``whole`` has the round's key, of which every part gets a child."""
        self.whole, self.recipe, self.memories = whole, recipe, memories

    def of(self, part: str) -> ServerView:
        return replace(self.whole, key=self.whole.key.child(part), memory=self.memories.of(part))

    def with_clients_of(self, clients_of: Mapping[str, int]) -> None:
        """From here on, so many clients run each prototype."""
        self.whole = replace(self.whole, clients_of=clients_of)

    @cached_property
    def protocol(self) -> ServerView:
        """What the protocol sees, from the first task to the last update: public inputs that scores are about."""
        view = self.of(PROTOCOL)
        source = view.source and self.recipe.scores.inputs(view.source, view.common)
        return replace(view, source=source)

    @cached_property
    def public(self) -> Source | None:
        """Of those inputs, the ones that this round is about."""
        scored = self.protocol.source
        return scored and self.recipe.protocol.public(scored, self.whole.common, self.whole.round)

    def fusion(self, teachers: Sequence[Update]) -> ServerView:
        """What the fusion sees: of the public inputs, those that this round is about, and what is said about them."""
        protocol, scored = self.recipe.protocol, self.protocol.source
        view = replace(self.of(FUSE), source=self.public)
        if protocol.carries != "predictions" or scored is None or not teachers:
            return view
        combine = partial(combined, self.recipe, protocol.rows(len(scored), view.common, view.round))
        return replace(view, predictions=combine(teachers), combine=combine)
