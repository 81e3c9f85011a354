"""What a published method is here: a recipe with a name, a citation and its needs."""

from __future__ import annotations

from dataclasses import dataclass

from fedfuse.federation import Recipe


@dataclass(frozen=True)
class Method:
    """A recipe and what there is to know about it."""

    name: str
    title: str
    citation: str
    summary: str
    exchanges: str
    """What travels each way, per participating client and round."""
    server_keeps: str
    recipe: Recipe
    client_keeps: str = "nothing"
    shares_labels: bool = False
    """Whether clients reveal how many examples of each class they have, or statistics per class."""
    mixes_architectures: bool = True
    """Whether clients of different architectures can learn from each other."""
