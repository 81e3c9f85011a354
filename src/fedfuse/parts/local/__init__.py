"""Client-side training: one loop with hooks, and one file per local objective (regularisers, corrections of drift)."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.local.contrastive import Contrastive
from fedfuse.parts.local.generative import Generative
from fedfuse.parts.local.generator import GeneratorSettings
from fedfuse.parts.local.global_distillation import GlobalDistillation
from fedfuse.parts.local.label_logits import LabelLogits
from fedfuse.parts.local.objective import Batch, Hooks, MemoryAccumulator, Objective
from fedfuse.parts.local.one_bit import OneBit
from fedfuse.parts.local.plain import Plain
from fedfuse.parts.local.proximal import Proximal
from fedfuse.parts.local.scaffold import ControlVariates
from fedfuse.parts.local.voting_distillation import VotingDistillation
from fedfuse.runtime.training import TrainingSettings

AnyObjective = Annotated[
    Objective,
    OneOf(
        Plain,
        Proximal,
        OneBit,
        Contrastive,
        LabelLogits,
        Generative,
        GlobalDistillation,
        VotingDistillation,
        ControlVariates,
    ),
]

__all__ = [
    "AnyObjective",
    "Batch",
    "Contrastive",
    "ControlVariates",
    "Generative",
    "GeneratorSettings",
    "GlobalDistillation",
    "Hooks",
    "LabelLogits",
    "MemoryAccumulator",
    "Objective",
    "OneBit",
    "Plain",
    "Proximal",
    "TrainingSettings",
    "VotingDistillation",
]
