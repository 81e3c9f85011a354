"""Predictions to weights: sources, teachers, targets, the distiller, and the fusions made of them."""

from typing import Annotated

from pydantic import Field

from fedfuse.fusion.base import Fuse, Fused
from fedfuse.fusion.distiller import Distiller
from fedfuse.fusion.ensemble_distillation import EnsembleDistillation
from fedfuse.fusion.none import NoFusion
from fedfuse.fusion.sources import AnySource, HeldOut, OtherDataset, SourceSettings, Surroundings, UniformNoise
from fedfuse.fusion.teachers import Ensemble, Teacher

AnyFuse = Annotated[NoFusion | EnsembleDistillation, Field(discriminator="kind")]

__all__ = [
    "AnyFuse",
    "AnySource",
    "Distiller",
    "Ensemble",
    "EnsembleDistillation",
    "Fuse",
    "Fused",
    "HeldOut",
    "NoFusion",
    "OtherDataset",
    "SourceSettings",
    "Surroundings",
    "Teacher",
    "UniformNoise",
]
