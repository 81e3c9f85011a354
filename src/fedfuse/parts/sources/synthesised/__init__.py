"""Inputs that are made from trained networks alone: a generator that is trained against the teachers."""

from fedfuse.parts.sources.synthesised.asking import Lend
from fedfuse.parts.sources.synthesised.settings import SynthesisSettings
from fedfuse.parts.sources.synthesised.source import Synthesised, SynthesisedSource
from fedfuse.parts.sources.synthesised.training import Combine, Made, Wanted, mean_logits, synthesise

__all__ = [
    "Combine",
    "Lend",
    "Made",
    "SynthesisSettings",
    "Synthesised",
    "SynthesisedSource",
    "Wanted",
    "mean_logits",
    "synthesise",
]
