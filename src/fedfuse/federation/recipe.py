"""A method as parts: its start, what travels, how clients train, who counts, how weights merge and predictions fuse."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.parts.base import MethodPart
from fedfuse.parts.fuse import AnyFuse, NoFusion
from fedfuse.parts.local import AnyObjective, Plain
from fedfuse.parts.merge import AnyMerge, Mean
from fedfuse.parts.protocol import AnyExchange, FullWeights
from fedfuse.parts.screen import AnyScreen
from fedfuse.parts.start import AnyStart, Fresh


class Recipe(Settings):
    """The parts of one method. A combination of published methods is a recipe too, not new code."""

    start: AnyStart = Field(default_factory=Fresh, description="how the first weights come about")
    exchange: AnyExchange = Field(default_factory=FullWeights, description="what travels between clients and server")
    local: AnyObjective = Field(default_factory=Plain, description="how a client trains")
    screen: tuple[AnyScreen, ...] = Field((), description="which updates count, screen after screen")
    merge: AnyMerge = Field(default_factory=Mean, description="weights to weights, inside each prototype")
    fuse: AnyFuse = Field(default_factory=NoFusion, description="predictions to weights, across prototypes")

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        exchange, fuse = self.exchange, self.fuse
        if fuse.reads == "weights" and exchange.carries != "weights":
            raise ValueError(f"fuse {fuse.kind} needs clients' weights, but exchange {exchange.kind} keeps them")
        if fuse.reads == "predictions" and exchange.carries != "predictions":
            raise ValueError(f"fuse {fuse.kind} reads predictions, but exchange {exchange.kind} sends none")
        if exchange.needs_student and fuse.reads == "nothing":
            raise ValueError(f"clients digest what the server's student says, but fuse {fuse.kind} trains none")
        if fuse.reads_testimony and not exchange.brings_testimony:
            raise ValueError(f"fuse.weighting testimony needs exchange scored_weights; {exchange.kind} brings none")
        if exchange.carries != "weights" and (self.screen or self.local.needs_weights):
            part = self.screen[0].kind if self.screen else self.local.kind
            raise ValueError(f"{part} needs weights that travel, but exchange {self.exchange.kind} keeps them at home")
        if self.merge.changes_widths:
            self._widths_may_change()
        elif exchange.carries == "layer":
            raise ValueError(f"exchange {exchange.kind} sends one layer at a time, which only merge matched can join")
        return self

    def _widths_may_change(self) -> None:
        if not self.exchange.sends_full_weights:
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, which exchange {self.exchange.kind} takes as "
                "fixed; use exchange weights"
            )
        if self.local.remembers_weights:
            raise ValueError(
                f"merge {self.merge.kind} changes the neurons of layers, but local {self.local.kind} remembers weights "
                "or features of the neurons before; use another merge or another local objective"
            )
        if self.fuse.compares_widths:
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, but fuse.teachers gaussian as_coded compares "
                "clients' weights with the server's; use form as_printed"
            )

    @property
    def has_server_model(self) -> bool:
        """Whether the server ends up with models of its own, and not only the clients."""
        return self.exchange.carries in ("weights", "layer") or self.fuse.reads != "nothing"

    @property
    def parts(self) -> tuple[MethodPart, ...]:
        return (self.start, self.exchange, self.local, *self.screen, self.merge, self.fuse)

    @property
    def needs_source(self) -> bool:
        """Whether any part reads public inputs."""
        return any(part.needs_source for part in self.parts)

    @property
    def needs_labels(self) -> bool:
        """Whether any part reads their true labels."""
        return any(part.needs_labels for part in self.parts)
