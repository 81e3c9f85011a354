"""What a published method is here: a recipe with a name, a citation and its needs."""

from __future__ import annotations

from dataclasses import dataclass

from fedfuse.federation import Recipe

FILE_NAME = r"^[A-Za-z0-9][A-Za-z0-9._=+-]*$"
"""What can name a run folder."""


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
    answers_as_ensemble: bool = False
    """Whether its result is the ensemble's accuracy, because no model of it comes to be."""
    is_bound: bool = False
    """Whether it is something to compare with, and nothing that a federation may or would do."""
    brief: str = ""
    """The summary in at most 48 letters, so that a list has it in one line."""

    @property
    def family(self) -> str:
        """Where it is listed."""
        if self.is_bound:
            return "Bounds"
        if self.recipe.protocol.carries in ("predictions", "nothing"):
            return "Predictions or statistics travel, clients keep their weights"
        if self.recipe.fuse.reads != "nothing":
            return "Weights travel, the server asks or distils their ensemble"
        return "Weights travel, the server averages them"

    @property
    def public_inputs(self) -> str:
        if not self.recipe.needs_source:
            return "not needed"
        return "needed, with labels" if self.recipe.needs_labels else "needed, without labels"
