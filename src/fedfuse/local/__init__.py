"""Local training: one loop with hooks, and one file per objective."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.local.client import Clients
from fedfuse.local.contrastive import Contrastive
from fedfuse.local.generative import Generative
from fedfuse.local.generator import GeneratorSettings
from fedfuse.local.global_distillation import GlobalDistillation
from fedfuse.local.label_logits import LabelLogits
from fedfuse.local.objective import Batch, Hooks, Objective, Visit
from fedfuse.local.one_bit import OneBit
from fedfuse.local.plain import Plain
from fedfuse.local.proximal import Proximal
from fedfuse.local.scaffold import ControlVariates
from fedfuse.local.settings import TrainingSettings
from fedfuse.local.voting_distillation import VotingDistillation

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
    "Clients",
    "Contrastive",
    "ControlVariates",
    "Generative",
    "GeneratorSettings",
    "GlobalDistillation",
    "Hooks",
    "LabelLogits",
    "Objective",
    "OneBit",
    "Plain",
    "Proximal",
    "TrainingSettings",
    "Visit",
    "VotingDistillation",
]
