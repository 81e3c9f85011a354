"""How every client trains, whatever the method: epochs, batches, optimiser."""

from __future__ import annotations

from pydantic import Field

from fedfuse.core.part import Settings
from fedfuse.runtime.optimizers import AnyOptimizer, Sgd


class TrainingSettings(Settings):
    """Local training between receiving a task and sending an update; the optimiser starts afresh each time."""

    epochs: int = Field(1, ge=1, description="passes over the client's own examples per round (E of the papers)")
    batch_size: int = Field(64, ge=1)
    optimizer: AnyOptimizer = Field(default_factory=Sgd)
