"""A method as four parts: how clients train, who counts, how weights merge, how predictions fuse."""

from __future__ import annotations

from pydantic import Field

from fedfuse.core.part import Settings
from fedfuse.fusion import AnyFuse, NoFusion
from fedfuse.local import AnyObjective, Plain
from fedfuse.merge import AnyMerge, Mean
from fedfuse.runtime.part import MethodPart
from fedfuse.screen import AnyScreen


class Recipe(Settings):
    """The parts of one method. A combination of published methods is a recipe too, not new code."""

    local: AnyObjective = Field(default_factory=Plain, description="how a client trains")
    screen: tuple[AnyScreen, ...] = Field((), description="which updates count, screen after screen")
    merge: AnyMerge = Field(default_factory=Mean, description="weights to weights, inside each prototype")
    fuse: AnyFuse = Field(default_factory=NoFusion, description="predictions to weights, across prototypes")

    @property
    def parts(self) -> tuple[MethodPart, ...]:
        return (self.local, *self.screen, self.merge, self.fuse)

    @property
    def needs_source(self) -> bool:
        """Whether any part reads unlabelled inputs on the server."""
        return any(part.needs_source for part in self.parts)
