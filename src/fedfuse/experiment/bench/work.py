"""What is to be computed: a federation's sizes and its examples, the same for whoever computes them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CLASSES = 10


@dataclass(frozen=True)
class Work:
    """Rounds of FedAvg on random examples: only their number and shape count, not what is learnt."""

    network: str
    """A function of ``networks``, or an architecture of fedfuse."""
    shape: tuple[int, ...]
    """Of one input: an image of bytes, or a row of numbers."""
    clients: int
    examples: int
    """Of each client."""
    sampled: int
    """Clients of a round."""
    batch: int
    rate: float
    rounds: int
    """The first one warms up and is not counted."""
    joining: int = 0
    """Rounds before these on several cores, while workers join; they are not counted."""
    epochs: int = 1
    momentum: float = 0.0
    test: int = 500
    """Examples on which the model is evaluated in every round."""
    augment: bool = False
    """Crop and flip."""
    public: int = 0
    """Inputs to distil on."""

    @property
    def train(self) -> int:
        return self.clients * self.examples + self.public

    @property
    def bytes(self) -> int:
        """Of the examples in memory."""
        return (self.train + self.test) * int(np.prod(self.shape)) * (1 if len(self.shape) == 3 else 4)


@dataclass(frozen=True)
class Tricks:
    """What makes a hand-written loop quicker."""

    threads: int = 1
    channels_last: bool = False
    fused: bool = False
    """One kernel for all of an optimiser's step."""
    keep_memory: bool = False
    """What one step frees, the next one gets."""


PLAIN, SAME_TRICKS = Tricks(), Tricks(channels_last=True, fused=True, keep_memory=True)


@dataclass(frozen=True)
class Examples:
    """Images as bytes or rows of float32, and labels."""

    inputs: NDArray[np.generic]
    labels: NDArray[np.int64]
    test_inputs: NDArray[np.generic]
    test_labels: NDArray[np.int64]


def file_of(work: Work, folder: Path) -> Path:
    """Where the examples lie; works that differ in nothing else share them."""
    return folder / f"{'x'.join(map(str, work.shape))}-{work.train}-{work.test}.npz"


def write_examples(work: Work, path: Path) -> None:
    """Draw them, always the same ones."""
    random = np.random.default_rng(0)
    arrays: dict[str, NDArray[np.generic]] = {}
    for split, count in (("train", work.train), ("test", work.test)):
        arrays[f"x_{split}"] = _inputs(random, (count, *work.shape))
        arrays[f"y_{split}"] = random.permutation(np.arange(count) % CLASSES)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished.npz")
    np.savez(unfinished, **arrays)  # type: ignore[arg-type]
    unfinished.replace(path)


def read_examples(path: Path) -> Examples:
    with np.load(path, allow_pickle=False) as arrays:
        return Examples(arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"])


def _inputs(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if len(shape) == 4:
        return random.integers(0, 256, shape, dtype=np.uint8)
    return random.standard_normal(shape, dtype=np.float32)
