"""FedDF as a stock Flower strategy.

Lin et al., Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020: the average of the
clients' models, trained to agree with their ensemble on unlabelled inputs; one student for every architecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.flower.strategies.general import FedFuse
from fedfuse.flower.strategies.network import Model
from fedfuse.parts.fuse import Distiller, EnsembleDistillation


class FedDF(FedFuse):
    """Average, then distil the ensemble of the clients' models.

        strategy = FedDF(model=Net, inputs=images, distiller=Distiller(steps=500), scores="entropy")
        result = strategy.start(grid=grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=10)

    ``distiller`` says how long and how students are taught. The remaining arguments are those of ``FedFuse``.
    """

    def __init__(
        self, model: Model | Mapping[str, Model], inputs: Any, distiller: Distiller | None = None, **others: Any
    ) -> None:
        super().__init__(model, inputs, fuse=EnsembleDistillation(distiller=distiller or Distiller()), **others)
