"""The settings of the Flower engine, which a Flower ServerApp opens (``fedfuse.flower``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedfuse.core.errors import ConfigError
from fedfuse.engines.base import EngineSettings
from fedfuse.federation import Engine
from fedfuse.federation.events import EventLog
from fedfuse.parts.local import Clients


class FlowerEngineSettings(EngineSettings):
    """Clients are the nodes of a Flower federation: real parties behind a network."""

    kind: Literal["flower"] = "flower"
    wait: float = Field(60.0, ge=0, description="seconds that a round waits for the nodes of its clients to be there")
    timeout: float = Field(3600.0, gt=0, description="seconds after which a round ends without those still working")
    quorum: float = Field(
        0.5, gt=0, le=1, description="share of a round's clients that must answer; with fewer, the run stops"
    )
    poll: float = Field(0.5, gt=0, description="seconds between looks for answers")
    guests: bool = Field(
        False, description="let nodes that do not say which client they are take the numbers that nobody has"
    )

    def open(self, clients: Clients, log: EventLog) -> Engine:
        raise ConfigError(
            "engine flower runs inside a Flower app: write one with fedfuse flower new DIR and start it with flwr run, "
            "or set engine.kind to local"
        )
