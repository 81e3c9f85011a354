"""Published methods as recipes, one file each."""

from fedfuse.methods.base import Method
from fedfuse.methods.fedavg import FEDAVG
from fedfuse.methods.fedavgm import FEDAVGM
from fedfuse.methods.feddf import FEDDF
from fedfuse.methods.fedprox import FEDPROX

METHODS: dict[str, Method] = {m.name: m for m in (FEDAVG, FEDPROX, FEDAVGM, FEDDF)}

__all__ = ["METHODS", "Method"]
