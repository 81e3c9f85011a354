"""Stock Flower strategies, for a Flower app that has nothing else of fedfuse.

``FedFuse`` is any merge and any fusion; ``FedDF`` and ``FedBE`` are the published ones among them.
"""

from fedfuse.flower.strategies.fedbe import FedBE
from fedfuse.flower.strategies.feddf import FedDF
from fedfuse.flower.strategies.general import FedFuse

__all__ = ["FedBE", "FedDF", "FedFuse"]
