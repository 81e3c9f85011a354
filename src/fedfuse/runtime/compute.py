"""Where arithmetic runs, in which precision, and with how many threads: fixed, because it can change the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import MethodType
from typing import Any, Final, Literal, Self

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.part import Settings
from fedfuse.models import Classifier
from fedfuse.runtime.allocator import keep_freed_memory
from fedfuse.runtime.processor import multiplies_bf16

AUTO: Final = "auto"
"""Left to fedfuse."""


class ComputeSettings(Settings):
    """Device, threads and memory layout of all training and inference."""

    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="auto takes cuda, then mps, then cpu")
    threads: int = Field(1, ge=1, le=1024, description="CPU threads of a client task and of the server's fusion")
    channels_last: bool | Literal["auto"] = Field(
        AUTO,
        description="store images channels-last, faster for convolutions on a CPU; auto: where a network has some",
    )
    fold: bool = Field(
        True, description="ask teachers with BatchNorm folded into the layers before it; faster, other last bits"
    )
    precision: Literal["float32", "bf16"] = Field(
        "float32",
        description="bf16: networks compute their features in bfloat16 where torch's autocast allows it; weights, last "
        "layers and losses stay float32",
    )
    stack: bool | Literal["auto"] = Field(
        AUTO,
        description="auto: clients whose steps are small are trained several at a time, as one network with grouped "
        "layers; false: one after another",
    )

    def decided(self, **chosen: Any) -> Self:
        """With these values where it is left to fedfuse."""
        return self.model_copy(update={name: value for name, value in chosen.items() if getattr(self, name) == AUTO})


@dataclass(frozen=True)
class Compute:
    """A resolved device and the way tensors are laid out on it."""

    device: torch.device
    threads: int
    channels_last: bool
    bf16: bool = False
    fold: bool = False
    stack: bool = False
    """Whether clients may be trained several at a time."""

    @staticmethod
    def of(settings: ComputeSettings) -> Compute:
        """Of settings in which everything is decided."""
        assert settings.channels_last != AUTO != settings.stack, "decided by experiment.choices"
        return Compute(
            device_of(settings.device),
            settings.threads,
            settings.channels_last,
            bf16=settings.precision == "bf16",
            fold=settings.fold,
            stack=settings.stack,
        )

    @property
    def caution(self) -> str | None:
        """What whoever chose these settings should know about this machine."""
        if not self.bf16 or self.device.type != "cpu" or multiplies_bf16():
            return None
        return (
            "this processor has no instructions for bfloat16, so compute.precision bf16 is several times slower here "
            "than float32"
        )

    def place(self, model: nn.Module) -> nn.Module:
        model = model.to(self.device)
        if self.channels_last:
            model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if self.bf16 and isinstance(model, Classifier):
            # A method bound to this very model, so that a deep copy's is bound to the copy.
            model.features = MethodType(_features_in_bf16, model)  # type: ignore[method-assign]
        return model

    def inputs(self, batch: Tensor) -> Tensor:
        batch = batch.to(self.device)
        if self.channels_last and batch.ndim == 4:
            batch = batch.contiguous(memory_format=torch.channels_last)
        return batch

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Compute with this thread count, and give the caller's back afterwards."""
        if self.device.type == "cpu":
            keep_freed_memory()
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def _features_in_bf16(model: Classifier, x: Tensor) -> Tensor:
    """What the model's class computes, under autocast; float32 again for whoever reads it."""
    with torch.autocast(x.device.type, torch.bfloat16):
        return type(model).features(model, x).float()


def device_of(name: str) -> torch.device:
    """The device that is meant, if this machine has it."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        name = next(device for device, present in available.items() if present)
    if not available[name]:
        raise ConfigError(f"compute.device is '{name}', but this machine has no {name} device; use 'auto' or 'cpu'")
    return torch.device(name)
