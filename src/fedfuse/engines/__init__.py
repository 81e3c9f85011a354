"""Where clients run. An engine takes Tasks and yields Updates; no method knows which one runs it."""

from fedfuse.engines.local import LocalEngine, LocalEngineSettings

AnyEngine = LocalEngineSettings

__all__ = ["AnyEngine", "LocalEngine", "LocalEngineSettings"]
