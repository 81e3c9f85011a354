"""fedfuse on Flower: a ServerApp that plays the rounds, a ClientApp for the parties, and FedDF as a stock strategy."""

from fedfuse.core.errors import MissingExtraError

try:
    import flwr  # noqa: F401
except ImportError:
    raise MissingExtraError("Flower", "flower") from None

from fedfuse.flower.node import client_app
from fedfuse.flower.server import server_app
from fedfuse.flower.strategy import FedDF

__all__ = ["FedDF", "client_app", "server_app"]
