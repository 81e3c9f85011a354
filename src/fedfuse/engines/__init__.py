"""Where clients run. An engine takes Tasks and yields Updates; no method knows which one runs it."""

from typing import Literal

from fedfuse.core.part import Part
from fedfuse.engines.local import LocalEngine
from fedfuse.federation import Engine
from fedfuse.local import Clients


class LocalEngineSettings(Part):
    """Clients run in this process, one after another."""

    kind: Literal["local"] = "local"

    def open(self, clients: Clients) -> Engine:
        return LocalEngine(clients)


AnyEngine = LocalEngineSettings

__all__ = ["AnyEngine", "LocalEngine", "LocalEngineSettings"]
