"""Public data, also called proxy or auxiliary data: where distillation inputs come from. Labels are never read."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.sources.base import FiniteSource, SourceSettings, Surroundings
from fedfuse.parts.sources.folder import UnlabelledFiles
from fedfuse.parts.sources.generator import FrozenGenerator
from fedfuse.parts.sources.held_out import HeldOut
from fedfuse.parts.sources.noise import GaussianNoise, UniformNoise
from fedfuse.parts.sources.other_dataset import OtherDataset, PublicData
from fedfuse.parts.sources.synthesised import Synthesised

AnySource = Annotated[
    SourceSettings,
    OneOf(HeldOut, OtherDataset, UnlabelledFiles, FrozenGenerator, UniformNoise, GaussianNoise, Synthesised),
]

__all__ = [
    "AnySource",
    "FiniteSource",
    "FrozenGenerator",
    "GaussianNoise",
    "HeldOut",
    "OtherDataset",
    "PublicData",
    "SourceSettings",
    "Surroundings",
    "Synthesised",
    "UniformNoise",
    "UnlabelledFiles",
]
