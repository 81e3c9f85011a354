"""Local training: one loop with hooks, and one file per objective."""

from typing import Annotated

from pydantic import Field

from fedfuse.local.client import Clients
from fedfuse.local.objective import Batch, Hooks, Objective, Visit
from fedfuse.local.plain import Plain
from fedfuse.local.proximal import Proximal
from fedfuse.local.settings import TrainingSettings

AnyObjective = Annotated[Plain | Proximal, Field(discriminator="kind")]

__all__ = [
    "AnyObjective",
    "Batch",
    "Clients",
    "Hooks",
    "Objective",
    "Plain",
    "Proximal",
    "TrainingSettings",
    "Visit",
]
