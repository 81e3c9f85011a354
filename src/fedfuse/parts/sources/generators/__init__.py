"""Small conditional generators of inputs, trained once on public data, then frozen: for a ``generator`` source."""

from fedfuse.parts.sources.generators.saved import Generator, GeneratorCard, load_generator, save_generator
from fedfuse.parts.sources.generators.training import GeneratorTraining, train_generator
from fedfuse.parts.sources.generators.vae import VaeSettings

__all__ = [
    "Generator",
    "GeneratorCard",
    "GeneratorTraining",
    "VaeSettings",
    "load_generator",
    "save_generator",
    "train_generator",
]
