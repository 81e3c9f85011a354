"""Inputs where nobody has any: a generator is trained against the members (``parts/sources/synthesised``).

A member's own preparation is followed where it can be: resizing, and then for each pixel a line from its value to what
the network sees, which two images, a black and a white one, give away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedfuse.catalogue.card import Normalisation
from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import DamagedError, read_safetensors, write_safetensors
from fedfuse.fusing.classes import Classes
from fedfuse.fusing.inputs import Demand, FuseInputs
from fedfuse.fusing.members import Blueprint, Member
from fedfuse.parts.sources.synthesised import Combine, Lend, SynthesisSettings, Wanted, mean_logits, synthesise
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.pool import Progress

NAME = "synthesised from the models"


def check_data_free(members: Sequence[Member], classes: Classes, demand: Demand) -> None:
    """Raise a ConfigError if no inputs can be made from these models."""
    if demand.reads != "images" or demand.shape is None:
        raise ConfigError(f"without data, inputs can be made for images of a known size, and not for {demand.reads}")
    for member in members:
        if member.blueprint is None:
            raise ConfigError(
                f"without data, inputs are made from the models' gradients, and {member.about.name} "
                f"({member.about.format}) has none; give data, or leave it out"
            )
    if not classes.sets.are_equal:
        raise ConfigError("without data, all models have to know the same classes; give data")


def made_inputs(
    members: Sequence[Member],
    classes: Classes,
    shape: tuple[int, ...],
    student: tuple[Blueprint, nn.Module],
    settings: SynthesisSettings,
    key: Key,
    compute: Compute,
    kept: Path,
    plan: str,
    progress: Progress,
) -> FuseInputs:
    """As many as the settings say; those of the same ``plan`` that are ``kept`` in a file are not made again."""
    try:
        tensors, about = read_safetensors(kept)
        if about == {"plan": plan}:
            return FuseInputs(NAME, tensors["inputs"])
    except (FileNotFoundError, DamagedError):
        pass
    wanted = Wanted(shape, True, len(classes.names), Normalisation.uniform("none", shape[0]))
    lends = [_lend(member, shape, compute) for member in members]
    rehearsing = [FromPixels(student[0], student[1], shape).to(compute.device)]
    with compute.at_work():
        made = synthesise(
            lends, wanted, settings, key, students=rehearsing, combine=_in_common_order(classes), device=compute.device,
            progress=progress,
        )  # fmt: skip
    write_safetensors(kept, {"inputs": made.inputs}, {"plan": plan})
    return FuseInputs(NAME, made.inputs)


class FromPixels(nn.Module):
    """A network with its own preparation in front of it, for images from 0 to 1, with gradients."""

    shift: Tensor
    scale: Tensor

    def __init__(self, blueprint: Blueprint, network: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network = network
        own = blueprint.shape or shape
        self.size = own[1:] if tuple(own[1:]) != tuple(shape[1:]) else None
        black = torch.zeros(1, *own, dtype=torch.uint8)
        self.register_buffer("shift", blueprint.prepare(black), persistent=False)
        self.register_buffer("scale", blueprint.prepare(black + 255) - blueprint.prepare(black), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        if self.size is not None:
            pixels = F.interpolate(pixels, size=self.size, mode="bilinear", align_corners=False, antialias=True)
        logits: Tensor = self.network(pixels * self.scale + self.shift)
        return logits


def _lend(member: Member, shape: tuple[int, ...], compute: Compute) -> Lend:
    blueprint, weights = member.blueprint, member.weights
    assert blueprint is not None, "checked before"
    assert weights is not None, "checked before"

    @contextmanager
    def lend() -> Iterator[nn.Module]:
        network = blueprint.build(member.about.classes, Key(0))
        blueprint.load(network, weights)
        yield FromPixels(blueprint, network, shape).to(compute.device).eval().requires_grad_(False)

    return lend


def _in_common_order(classes: Classes) -> Combine:
    """The ensemble of DENSE, of models that may have the classes in another order."""

    def combine(said: Sequence[Tensor], weights: Tensor) -> Tensor:
        return mean_logits([classes.heard(member, one) for member, one in enumerate(said)], weights)

    return combine
