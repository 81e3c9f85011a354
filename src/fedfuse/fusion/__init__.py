"""Predictions to weights: sources, teachers, targets, the distiller, and the fusions made of them."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.fusion.base import Fuse, Fused
from fedfuse.fusion.distiller import Distiller
from fedfuse.fusion.ensemble import EnsembleOnly
from fedfuse.fusion.ensemble_distillation import EnsembleDistillation
from fedfuse.fusion.members import AverageMember, ClientMembers, DirichletMembers, GaussianMembers, SwagMembers
from fedfuse.fusion.none import NoFusion
from fedfuse.fusion.prediction_distillation import PredictionDistillation
from fedfuse.fusion.sources import (
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
from fedfuse.fusion.swa import Swa
from fedfuse.fusion.teachers import Ensemble, Teacher
from fedfuse.fusion.true_labels import TrueLabels

AnyFuse = Annotated[Fuse, OneOf(NoFusion, EnsembleOnly, EnsembleDistillation, PredictionDistillation, TrueLabels)]

__all__ = [
    "AnyFuse",
    "AnySource",
    "AverageMember",
    "ClientMembers",
    "DirichletMembers",
    "Distiller",
    "Ensemble",
    "EnsembleDistillation",
    "EnsembleOnly",
    "FrozenGenerator",
    "Fuse",
    "Fused",
    "GaussianMembers",
    "GaussianNoise",
    "HeldOut",
    "NoFusion",
    "OtherDataset",
    "PredictionDistillation",
    "PublicData",
    "SourceSettings",
    "Surroundings",
    "Swa",
    "SwagMembers",
    "Teacher",
    "TrueLabels",
    "UniformNoise",
    "UnlabelledFiles",
]
