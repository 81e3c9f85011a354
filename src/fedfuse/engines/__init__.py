"""Where clients run. An engine takes Tasks and yields Updates; no method knows which one runs it."""

from typing import Annotated, Literal

from pydantic import Field

from fedfuse.core.part import Part
from fedfuse.engines.flower import FlowerEngineSettings
from fedfuse.engines.local import LocalEngine
from fedfuse.federation import Engine
from fedfuse.local import Clients


class LocalEngineSettings(Part):
    """Clients run in this process, one after another."""

    kind: Literal["local"] = "local"

    def open(self, clients: Clients) -> Engine:
        return LocalEngine(clients)


AnyEngine = Annotated[LocalEngineSettings | FlowerEngineSettings, Field(discriminator="kind")]

__all__ = ["AnyEngine", "FlowerEngineSettings", "LocalEngine", "LocalEngineSettings"]
