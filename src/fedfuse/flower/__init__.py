"""fedfuse on Flower: a ServerApp that plays the rounds, a ClientApp for the parties, and stock strategies.

They are imported when they are asked for: a SuperLink or a SuperNode does without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedfuse.core.errors import MissingExtraError

try:
    import flwr  # noqa: F401
except ImportError:
    raise MissingExtraError("Flower", "flower") from None

if TYPE_CHECKING:
    from fedfuse.flower.node import client_app
    from fedfuse.flower.server import server_app
    from fedfuse.flower.strategies import FedBE, FedDF, FedFuse

__all__ = ["FedBE", "FedDF", "FedFuse", "client_app", "server_app"]

_PLACES = {
    "FedBE": "fedfuse.flower.strategies",
    "FedDF": "fedfuse.flower.strategies",
    "FedFuse": "fedfuse.flower.strategies",
    "client_app": "fedfuse.flower.node",
    "server_app": "fedfuse.flower.server",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
