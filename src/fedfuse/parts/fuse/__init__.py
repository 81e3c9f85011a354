"""Server-side knowledge distillation: predictions of many teachers to the weights of students.

The distiller, and the fusions made of it: model fusion by ensemble distillation.
"""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.fuse.base import Fuse, Fused, FusionWork
from fedfuse.parts.fuse.distiller import Distiller
from fedfuse.parts.fuse.ensemble import EnsembleOnly
from fedfuse.parts.fuse.ensemble_distillation import EnsembleDistillation
from fedfuse.parts.fuse.none import NoFusion
from fedfuse.parts.fuse.prediction_distillation import PredictionDistillation
from fedfuse.parts.fuse.swa import Swa
from fedfuse.parts.fuse.true_labels import TrueLabels

AnyFuse = Annotated[Fuse, OneOf(NoFusion, EnsembleOnly, EnsembleDistillation, PredictionDistillation, TrueLabels)]

__all__ = [
    "AnyFuse",
    "Distiller",
    "EnsembleDistillation",
    "EnsembleOnly",
    "Fuse",
    "Fused",
    "FusionWork",
    "NoFusion",
    "PredictionDistillation",
    "Swa",
    "TrueLabels",
]
