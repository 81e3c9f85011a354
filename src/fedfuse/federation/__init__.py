"""The round: sampling, the server's steps, state, checkpoints, events."""

from fedfuse.federation.client import Clients
from fedfuse.federation.engine import Engine
from fedfuse.federation.recipe import Recipe
from fedfuse.federation.server import Federation
from fedfuse.federation.settings import EvaluationSettings, FederationSettings
from fedfuse.federation.state import RoundRecord, ServerState, Snapshot

__all__ = [
    "Clients",
    "Engine",
    "EvaluationSettings",
    "Federation",
    "FederationSettings",
    "Recipe",
    "RoundRecord",
    "ServerState",
    "Snapshot",
]
