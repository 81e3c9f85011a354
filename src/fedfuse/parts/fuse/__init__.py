"""Predictions to weights: sources, teachers, targets, the distiller, and the fusions made of them."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.fuse.base import Fuse, Fused
from fedfuse.parts.fuse.distiller import Distiller
from fedfuse.parts.fuse.ensemble import EnsembleOnly
from fedfuse.parts.fuse.ensemble_distillation import EnsembleDistillation
from fedfuse.parts.fuse.members import AverageTeacher, ClientTeachers, DirichletTeachers, GaussianTeachers, SwagTeachers
from fedfuse.parts.fuse.none import NoFusion
from fedfuse.parts.fuse.prediction_distillation import PredictionDistillation
from fedfuse.parts.fuse.swa import Swa
from fedfuse.parts.fuse.teachers import Ensemble, Teacher
from fedfuse.parts.fuse.true_labels import TrueLabels
from fedfuse.parts.sources import (
    AnySource,
    FrozenGenerator,
    GaussianNoise,
    HeldOut,
    OtherDataset,
    PublicData,
    SourceSettings,
    Surroundings,
    UniformNoise,
    UnlabelledFiles,
)

AnyFuse = Annotated[Fuse, OneOf(NoFusion, EnsembleOnly, EnsembleDistillation, PredictionDistillation, TrueLabels)]

__all__ = [
    "AnyFuse",
    "AnySource",
    "AverageTeacher",
    "ClientTeachers",
    "DirichletTeachers",
    "Distiller",
    "Ensemble",
    "EnsembleDistillation",
    "EnsembleOnly",
    "FrozenGenerator",
    "Fuse",
    "Fused",
    "GaussianNoise",
    "GaussianTeachers",
    "HeldOut",
    "NoFusion",
    "OtherDataset",
    "PredictionDistillation",
    "PublicData",
    "SourceSettings",
    "Surroundings",
    "Swa",
    "SwagTeachers",
    "Teacher",
    "TrueLabels",
    "UniformNoise",
    "UnlabelledFiles",
]
