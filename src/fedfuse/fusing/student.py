"""A student among raw inputs: what it is shown, and what it says."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.hashes import order_of
from fedfuse.core.randomness import Key
from fedfuse.core.slices import steady_slices
from fedfuse.data import Transform
from fedfuse.fusing.members import Blueprint
from fedfuse.fusing.raw import Raw, rows_of
from fedfuse.models.modes import evaluation_mode
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.evaluate import Score
from fedfuse.runtime.source import prediction_batch

CROP = 8
"""One pixel of padding for so many pixels of an image's side, where images are cropped at random."""


@dataclass(frozen=True)
class StudentInputs:
    """Raw inputs as a student of this blueprint sees them; images are shown anew at every step if so wished."""

    raw: Raw
    blueprint: Blueprint
    compute: Compute
    crop: bool = False
    flip: bool = False

    def __len__(self) -> int:
        return len(self.raw)

    @cached_property
    def lengths(self) -> Tensor | None:
        """Of texts in characters: those of similar length are shown together."""
        return None if isinstance(self.raw, Tensor) else torch.tensor([len(text) for text in self.raw])

    @cached_property
    def mixed(self) -> Tensor:
        if isinstance(self.raw, Tensor):
            return order_of(self.raw)
        keys = [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in self.raw]
        return torch.tensor(sorted(range(len(keys)), key=keys.__getitem__), dtype=torch.long)

    def inputs(self, indices: Tensor | slice) -> Any:
        return self._placed(self.blueprint.prepare(rows_of(self.raw, indices)))

    def augmented(self, indices: Tensor, key: Key) -> Any:
        raw = rows_of(self.raw, indices)
        if isinstance(raw, Tensor) and raw.ndim == 4:
            shape = tuple(raw.shape[1:])
            padding = max(1, shape[-1] // CROP) if self.crop else 0
            raw = Transform(Normalisation.uniform("none", shape[0]), shape, padding, self.flip).augment(
                raw, key.torch()
            )
        return self._placed(self.blueprint.prepare(raw))

    def _placed(self, prepared: Any) -> Any:
        if isinstance(prepared, Mapping):
            return {name: tensor.to(self.compute.device) for name, tensor in prepared.items()}
        return self.compute.inputs(prepared)


@torch.no_grad()
def logits_of(network: nn.Module, inputs: StudentInputs) -> Tensor:
    """What a network says of all of them, in evaluation mode, on the CPU; the batches are fixed."""
    batches = steady_slices(len(inputs), prediction_batch(inputs.compute.device))
    with inputs.compute.at_work(), evaluation_mode(network):
        return torch.cat([network(inputs.inputs(where)).float().cpu() for where in batches])


@dataclass(frozen=True)
class Examiner:
    """Labelled examples that say how good a student is."""

    inputs: StudentInputs
    labels: Tensor

    def score(self, model: nn.Module) -> Score:
        logits = logits_of(model, self.inputs)
        accuracy = float((logits.argmax(dim=1) == self.labels).double().mean())
        return Score(accuracy, float(F.cross_entropy(logits.double(), self.labels)))
