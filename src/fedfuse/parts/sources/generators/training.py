"""Training of a conditional VAE, kept epoch by epoch beside the file it will become.

``FILE.partial`` holds both networks and all that Adam knows. Batches and noise come from the key of their epoch, so a
training that goes on from it ends with the same bits as one that was never interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError, DataError, RunFolderError
from fedfuse.core.hashes import sha256_of
from fedfuse.core.part import Settings
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.data import Examples
from fedfuse.data.dataset import kind_of
from fedfuse.data.readers.labels import check_range
from fedfuse.parts.sources.generators.saved import Generator, GeneratorCard, save_generator
from fedfuse.parts.sources.generators.vae import Encoder, VaeSettings, vae_loss
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.compute import Compute, ComputeSettings
from fedfuse.runtime.optimizers import Adam

Progress = Callable[[int, float], None]
"""Called after every epoch with its number, from 1, and its mean loss."""

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
"""Adam's state of one parameter, by torch's names."""


class GeneratorTraining(Settings):
    """How a generator is trained."""

    network: VaeSettings = Field(default_factory=VaeSettings)
    epochs: int = Field(60, ge=1, description="passes over the examples")
    batch_size: int = Field(64, ge=1)
    learning_rate: float = Field(1e-3, gt=0, description="of Adam")
    divergence_weight: float = Field(1.0, ge=0, description="beta: how much the codes must look like the noise")
    seed: int = Field(0, ge=0)
    compute: ComputeSettings = Field(default_factory=ComputeSettings)


def train_generator(
    examples: Examples,
    classes: int,
    settings: GeneratorTraining | None = None,
    out: str | Path | None = None,
    trained_on: str = "own examples",
    overwrite: bool = False,
    progress: Progress = lambda _epoch, _loss: None,
) -> Generator:
    """Train on labelled public examples; with ``out``, go on where a former process stopped, and write the file."""
    chosen = settings or GeneratorTraining()
    if len(examples) < 2:
        raise DataError(f"{trained_on} has {len(examples)} example(s); a generator needs at least 2")
    if kind_of(examples.inputs) == "texts":
        raise DataError(f"{trained_on} holds texts; a generator makes images or numbers")
    check_range(examples.labels.numpy(), classes, trained_on)
    card = GeneratorCard(
        network=chosen.network,
        input_shape=examples.shape,
        input_kind="images" if examples.inputs.dtype == torch.uint8 else "features",
        classes=classes,
        trained_on=trained_on,
        examples=len(examples),
        epochs=chosen.epochs,
        seed=chosen.seed,
    )
    training = _Training(chosen, card, examples, Key(chosen.seed).child("generator"))
    if out is None:
        return training.run(0, lambda _epoch: None, progress)
    path = Path(out)
    if path.is_dir():
        raise RunFolderError(f"{path} is a folder; give --out the name of a file")
    if path.exists() and not overwrite:
        raise RunFolderError(f"{path} is already there; add --overwrite to replace it, or choose another --out")
    partial = _Partial(path.with_name(f"{path.name}.partial"), training)
    generator = training.run(partial.load(overwrite), partial.save, progress)
    save_generator(path, generator)
    partial.path.unlink(missing_ok=True)
    return generator


class _Training:
    """Both networks, their optimiser, and the examples in 0..1."""

    def __init__(self, settings: GeneratorTraining, card: GeneratorCard, examples: Examples, key: Key) -> None:
        self.settings, self.card, self.key = settings, card, key
        self.compute = Compute.of(settings.compute.decided(channels_last=False, stack=False))
        self.examples = examples
        with key.child("initialise").default_generator():
            decoder = card.decoder()
            encoder = Encoder(card.network, card.input_shape, card.classes)
        if card.input_kind == "features":
            decoder.low.copy_(examples.inputs.amin(dim=0))
            decoder.high.copy_(examples.inputs.amax(dim=0))
        self.model = self.compute.place(nn.ModuleDict({"encoder": encoder, "decoder": decoder}))
        self.encoder, self.decoder = encoder, decoder
        self.optimizer = Adam(learning_rate=settings.learning_rate).build(self.model)

    def run(self, finished: int, keep: Callable[[int], None], progress: Progress) -> Generator:
        """Train the epochs that are missing; ``keep`` is told each one that is finished."""
        with self.compute.at_work():
            for epoch in range(finished, self.settings.epochs):
                loss = self._epoch(self.key.child("epoch", epoch))
                keep(epoch + 1)
                progress(epoch + 1, loss)
        return Generator(self.card, self.decoder.cpu().eval().requires_grad_(False))

    def _epoch(self, key: Key) -> float:
        noise, total = key.child("noise").torch(), 0.0
        for where in epoch_batches(len(self.examples), self.settings.batch_size, key.child("batches")):
            inputs = self._unit(self.compute.inputs(self.examples.inputs[where]))
            labels = self.examples.labels[where].to(self.compute.device)
            mean, log_variance = self.encoder(inputs, labels)
            draw = torch.randn(mean.shape, generator=noise).to(mean.device)
            logits = self.decoder(mean + (0.5 * log_variance).exp() * draw, labels)
            loss = vae_loss(inputs, logits, mean, log_variance, self.settings.divergence_weight)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(where)
        if not math.isfinite(total):
            raise ConfigError("the generator's loss is no longer finite; lower its learning rate")
        return total / len(self.examples)

    def _unit(self, raw: Tensor) -> Tensor:
        """The inputs in 0..1; a feature that never varies is 0."""
        if self.card.input_kind == "images":
            return raw.float() / 255
        span = self.decoder.high - self.decoder.low
        return (raw - self.decoder.low) / torch.where(span > 0, span, torch.ones_like(span))


@dataclass(frozen=True)
class _Partial:
    """The file beside the output that an interrupted training goes on from."""

    path: Path
    training: _Training

    def save(self, finished: int) -> None:
        tensors = {f"model.{name}": tensor for name, tensor in self.training.model.state_dict().items()}
        for name, parameter in self.training.model.named_parameters():
            for moment in MOMENTS:
                tensors[f"{moment}.{name}"] = self.training.optimizer.state[parameter][moment]
        write_safetensors(self.path, tensors, {"finished": finished, "identity": self._identity})

    def load(self, overwrite: bool) -> int:
        """Bring the training to where it stopped and return the number of finished epochs."""
        if not self.path.exists():
            return 0
        try:
            tensors, about = read_safetensors(self.path)
            same = about["identity"] == self._identity
        except (ValueError, KeyError, TypeError):
            same = False
        if not same and not overwrite:
            raise RunFolderError(
                f"{self.path} is left from a training with other settings or data; finish that one, remove the file, "
                "or add --overwrite"
            )
        return self._restore(tensors, about) if same else 0

    def _restore(self, tensors: dict[str, Tensor], about: dict[str, Any]) -> int:
        model, device = self.training.model, self.training.compute.device
        model.load_state_dict({name: tensors[f"model.{name}"] for name in model.state_dict()})
        for name, parameter in model.named_parameters():
            self.training.optimizer.state[parameter] = {
                moment: tensors[f"{moment}.{name}"].to(device) for moment in MOMENTS
            }
        return int(about["finished"])

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What determines the bits."""
        examples = self.training.examples
        return {
            "settings": self.training.settings.model_dump(mode="json"),
            "card": self.training.card.model_dump(mode="json"),
            "data_sha256": sha256_of(examples.inputs, examples.labels),
        }
