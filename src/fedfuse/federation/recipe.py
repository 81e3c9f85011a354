"""A method as parts: what travels, how clients train, who counts, how weights merge, how predictions fuse."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.exchange import AnyExchange, FullWeights
from fedfuse.fusion import AnyFuse, NoFusion
from fedfuse.local import AnyObjective, Plain
from fedfuse.merge import AnyMerge, Mean
from fedfuse.runtime.part import MethodPart
from fedfuse.screen import AnyScreen


class Recipe(Settings):
    """The parts of one method. A combination of published methods is a recipe too, not new code."""

    exchange: AnyExchange = Field(default_factory=FullWeights, description="what travels between clients and server")
    local: AnyObjective = Field(default_factory=Plain, description="how a client trains")
    screen: tuple[AnyScreen, ...] = Field((), description="which updates count, screen after screen")
    merge: AnyMerge = Field(default_factory=Mean, description="weights to weights, inside each prototype")
    fuse: AnyFuse = Field(default_factory=NoFusion, description="predictions to weights, across prototypes")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        carried, wanted = self.exchange.carries_weights, self.fuse.needs_weights
        if wanted and not carried:
            raise ValueError(
                f"fuse {self.fuse.kind} needs clients' weights, but exchange {self.exchange.kind} keeps them"
            )
        if carried and not wanted:
            raise ValueError(f"fuse {self.fuse.kind} reads predictions, but exchange {self.exchange.kind} sends none")
        if not carried and (self.screen or self.local.needs_weights):
            part = self.screen[0].kind if self.screen else self.local.kind
            raise ValueError(f"{part} needs weights that travel, but exchange {self.exchange.kind} keeps them at home")
        if self.merge.changes_widths:
            self._widths_may_change()
        return self

    def _widths_may_change(self) -> None:
        if not self.exchange.sends_full_weights:
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, which exchange {self.exchange.kind} takes as "
                "fixed; use exchange weights"
            )
        if self.local.remembers_weights:
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, but local {self.local.kind} remembers weights "
                "or features of the widths before; use another merge or another local objective"
            )

    @property
    def parts(self) -> tuple[MethodPart, ...]:
        return (self.exchange, self.local, *self.screen, self.merge, self.fuse)

    @property
    def needs_source(self) -> bool:
        """Whether any part reads unlabelled inputs on the server."""
        return any(part.needs_source for part in self.parts)
