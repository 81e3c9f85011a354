"""FedBE as a stock Flower strategy.

Chen and Chao, FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning, ICLR 2021: besides the clients,
their average and models sampled around them teach, and the student is an average of students (SWA).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.flower.strategies.general import FedFuse
from fedfuse.flower.strategies.network import Model
from fedfuse.methods.fedbe import FEDBE
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.teachers import AverageTeacher, ClientTeachers, GaussianTeachers, SampledTeachers


class FedBE(FedFuse):
    """Average, then distil a Bayesian ensemble: the clients, their average, and models sampled around them.

        strategy = FedBE(model=Net, inputs=images, samples=GaussianTeachers(number=10))
        result = strategy.start(grid=grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=10)

    ``samples`` are ten of a Gaussian unless another kind is given. ``distiller`` takes the place of the paper's (20
    passes, SGD, SWA). The remaining arguments are those of ``FedFuse``.
    """

    def __init__(
        self,
        model: Model | Mapping[str, Model],
        inputs: Any,
        samples: SampledTeachers | None = None,
        distiller: Distiller | None = None,
        **others: Any,
    ) -> None:
        printed = FEDBE.recipe.fuse
        assert isinstance(printed, EnsembleDistillation)
        teachers = (AverageTeacher(), ClientTeachers(), samples or GaussianTeachers(number=10))
        changed = {"teachers": teachers, "distiller": distiller or printed.distiller}
        super().__init__(model, inputs, fuse=printed.model_copy(update=changed), **others)
