"""Centralised: one party trains on the union of all clients' examples. The bound that federations try to reach.

A round is as many passes over the union as a client makes over its own examples (``training.epochs``).
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain

CENTRALISED = Method(
    name="centralised",
    title="Centralised",
    citation="a bound",
    brief="train on everybody's examples, as nobody may",
    summary="train on the union of all clients' examples, which nobody may do",
    exchanges="nothing: the examples themselves are in one place",
    server_keeps="weights, everybody's examples",
    mixes_architectures=False,
    is_bound=True,
    recipe=Recipe(pooled=True, local=Plain()),
)
