"""A network and its own preparation of inputs, as a voice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.slices import steady_slices
from fedfuse.data.dataset import InputKind
from fedfuse.fusing.members.base import About, Voice
from fedfuse.fusing.members.files import in_brief
from fedfuse.fusing.raw import Raw, kind_of_raw, rows_of
from fedfuse.models.adapt import logits_of
from fedfuse.runtime.source import prediction_batch


def voice_of(network: Callable[[Any], Any], prepare: Callable[[Raw], Any], about: About, device: torch.device) -> Voice:
    """The network asked in batches of always the same size, without a trace."""

    @torch.no_grad()
    def answer(raw: Raw) -> Tensor:
        check_kind(raw, about.reads, about.name)
        try:
            return checked_logits(network(on(device, prepare(raw))), len(raw), about.classes, about.name)
        except (ConfigError, DataError):
            raise
        except Exception as error:  # somebody else's network fails in its own ways
            raise ConfigError(f"{about.name} cannot answer: {in_brief(error)}") from error

    return in_batches(answer, about.classes, prediction_batch(device))


def in_batches(answer: Callable[[Raw], Tensor], classes: int, size: int) -> Voice:
    """A voice that is asked about few inputs at a time."""

    def voice(raw: Raw) -> Tensor:
        if not len(raw):
            return torch.empty(0, classes)
        return torch.cat([answer(rows_of(raw, rows)) for rows in steady_slices(len(raw), size)])

    return voice


def checked_logits(output: Any, rows: int, classes: int, name: str) -> Tensor:
    """A network's answer as float32 on the CPU, if it can be one."""
    logits = logits_of(output)
    if isinstance(logits, tuple | list) and logits:
        logits = logits[0]
    if not isinstance(logits, Tensor):
        logits = torch.as_tensor(logits)
    if logits.shape != (rows, classes):
        raise ConfigError(
            f"{name} answers {rows} inputs with numbers of shape {tuple(logits.shape)}, but should give a row of "
            f"{classes} logits for each"
        )
    logits = logits.detach().to("cpu", torch.float32)
    if not bool(torch.isfinite(logits).all()):
        raise DataError(f"{name} answers with what is not a finite number; its weights or its normalisation are wrong")
    return logits


def on(device: torch.device, prepared: Any) -> Any:
    """What a network is called with, on its device."""
    if isinstance(prepared, Tensor):
        return prepared.to(device)
    return {key: value.to(device) for key, value in prepared.items()} if isinstance(prepared, Mapping) else prepared


def check_kind(raw: Raw, reads: InputKind, name: str) -> None:
    """Refuse inputs of another kind."""
    if kind_of_raw(raw) != reads:
        raise ConfigError(f"{name} reads {reads}, and the inputs are {kind_of_raw(raw)}")


def frozen(network: nn.Module, device: torch.device) -> nn.Module:
    """In evaluation mode, where it is asked."""
    return network.to(device).eval().requires_grad_(False)
