"""What a trained model is, whatever file it lies in: a voice that can be asked, perhaps weights, perhaps a blueprint.

A member is described before any of its weights is read (``about``), so that all mismatches can be told before any work.
Its network is in memory only while it is asked: one member at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import DataError, shortened
from fedfuse.core.randomness import Key
from fedfuse.core.text import is_one_line
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.raw import Raw

Voice = Callable[[Raw], Tensor]
"""What a model says of raw inputs: float32 logits on the CPU, a row for each input, a column for each of its classes.

Preparing them (size, colours, normalisation, tokens) is the model's own affair. A model that gives probabilities gives
their logarithms."""


@dataclass(frozen=True)
class About:
    """What is known of a trained model without a look at its weights."""

    name: str
    """What tables call it; all members of a fusion have different names."""
    origin: str
    """Where it lies, as it was given; or what it is, if it came from Python."""
    format: str
    """fedfuse, Hugging Face, state dict, TorchScript, ONNX, LoRA adapter, torch module."""
    architecture: str
    """What its network is called: resnet8, ViTForImageClassification."""
    reads: InputKind
    shape: tuple[int, ...] | None
    """Of one input as the network sees it: channels, height, width; columns; or most tokens. None: any."""
    classes: int
    class_names: tuple[str, ...] | None
    """None where the file has none, or nothing but numbers and placeholders such as LABEL_0."""
    parameters: int
    dtype: str
    """Of the weights in the file: float32, float16, bfloat16."""
    sha256: str
    """Of all files that decide what it says."""
    licence: str | None = None
    base_model: str | None = None
    vocabulary: str | None = None
    """A fingerprint of the tokenizer, of models that read texts."""
    notes: tuple[str, ...] = ()
    """What was taken for granted because nobody said it, one sentence each."""

    def __post_init__(self) -> None:
        """All of this is printed and written, so that a file may not say what would do harm there."""
        said = {"name": self.name, "path": self.origin, "network": self.architecture, "licence": self.licence or ""}
        said["base model"] = self.base_model or ""
        for what, words in (*said.items(), *(("class", name) for name in self.class_names or ())):
            if not is_one_line(words):
                raise DataError(f"{shortened(self.name)!a}: a {what} called {shortened(words)!a} cannot be printed")


class Member(ABC):
    """A trained model."""

    about: About

    @abstractmethod
    def speaking(self, device: torch.device) -> AbstractContextManager[Voice]:
        """Its network in memory, in evaluation mode and never changed, until the block ends."""

    @property
    def weights(self) -> Mapping[str, Tensor] | None:
        """Its weights by name, each read from the file whenever it is asked for; None where it has none."""
        return None

    @property
    def blueprint(self) -> Blueprint | None:
        """How to make more networks of its architecture; None where only its voice is known."""
        return None


class Blueprint(ABC):
    """An architecture that can be trained, with its preprocessing, and written so that others can use it."""

    name: str
    reads: InputKind
    shape: tuple[int, ...] | None

    @abstractmethod
    def build(self, classes: int, key: Key) -> nn.Module:
        """A fresh network on the CPU, float32, drawn from the key alone: ``network(prepared)`` gives logits.

        Pre-trained parts that belong to the blueprint itself (an encoder from a folder) are in it.
        """

    @abstractmethod
    def prepare(self, raw: Raw) -> Any:
        """What its network is called with: a tensor, or a mapping of tensors, on the CPU."""

    @abstractmethod
    def load(self, network: nn.Module, weights: Mapping[str, Tensor]) -> None:
        """Put weights, named as a member names them, into a network; a ConfigError says what does not fit."""

    @abstractmethod
    def weights_of(self, network: nn.Module) -> dict[str, Tensor]:
        """The way back: a network's weights, named as members of this architecture name theirs."""

    @abstractmethod
    def write(
        self, folder: Path, network: nn.Module, class_names: Sequence[str], facts: Mapping[str, Any]
    ) -> list[Path]:
        """Write the network with all that it takes to use it into an existing folder; the files that were written."""
