"""w2 of FedED: w_k^j = l_k(x_j)^-6, normalised over k: by how well client k's autoencoder knows input x_j."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.fences import within_fences
from fedfuse.core.messages import Tensors
from fedfuse.core.weights import Layout, Weights
from fedfuse.models.autoencoder import autoencoder
from fedfuse.parts.base import CheckContext, Shapes
from fedfuse.parts.claims import shares_claimed
from fedfuse.parts.context import ClientContext
from fedfuse.parts.scores.base import Said, Scores
from fedfuse.parts.tensor_spec import LARGEST, TensorSpec
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Adam
from fedfuse.runtime.source import Source

ERRORS, NETWORK = "reconstruction_errors", "autoencoder"
LEAST_ERROR = 1e-12
LARGEST_LOG = 600.0
"""Of a number that still has a mean in double precision."""


class ByReconstruction(Scores):
    """An answer for an input counts by how small the client's autoencoder's error is there (4 n0 bytes up, once)."""

    kind: Literal["reconstruction"] = "reconstruction"
    per_input: ClassVar[bool] = True
    needs_source: ClassVar[bool] = True
    exponent: float = Field(6.0, gt=0, description="the thesis tried 1 to 7 and kept 6")
    epochs: int = Field(30, ge=1, description="passes of the autoencoder over the client's examples")
    learning_rate: float = Field(1e-3, gt=0, description="of the autoencoder's Adam")
    weight_decay: float = Field(1e-5, ge=0, description="of the autoencoder's Adam")
    batch_size: int = Field(64, ge=2, description="examples per step of the autoencoder")
    scaled: bool = Field(
        False, description="show the autoencoder inputs in 0..1 instead of normalised ones; the thesis did not"
    )

    def check(self, context: CheckContext) -> None:
        if context.bank.reads_texts:
            raise ConfigError("method.scores reconstruction cannot read texts; choose other scores")

    def learn(self, client: ClientContext) -> Tensors:
        """Train an autoencoder on the client's examples."""
        key, compute = client.key.child("autoencoder"), client.bank.compute
        raw = client.examples.inputs
        with key.child("initialise").default_generator():
            network = compute.place(autoencoder(client.examples.shape))
        optimizer = Adam(learning_rate=self.learning_rate, weight_decay=self.weight_decay).build(network)
        network.train()
        for epoch in range(self.epochs):
            for where in epoch_batches(len(raw), self.batch_size, key.child("batches", epoch)):
                inputs = compute.inputs(self._seen(client.transform(raw[where]), raw[where]))
                optimizer.zero_grad()
                F.mse_loss(network(inputs), inputs).backward()
                optimizer.step()
        return {NETWORK: Weights.of(network).flat}

    def say(self, learnt: Tensors, client: ClientContext, source: Source) -> Tensors:
        network = autoencoder(client.examples.shape)
        Weights(learnt[NETWORK], Layout.of(network)).load_into(network)
        ready = client.bank.compute.place(network).eval()
        batches = source.batches(source.all_indices())
        return {ERRORS: torch.cat([self._errors(ready, source, where) for where in batches])}

    def spec(self, inputs: int, classes: int) -> Shapes:
        return {ERRORS: TensorSpec((inputs,), least=0)}

    def in_range(self, extras: Tensors) -> Tensors:
        return {name: errors.clamp_min(0) for name, errors in extras.items()}

    def within_bounds(self, said: Sequence[Tensors], examples: Sequence[int]) -> list[Tensors]:
        """Nobody claims to know much more of the inputs than the others do."""
        errors = torch.stack([own[ERRORS].double() for own in said]).clamp_min(LEAST_ERROR)
        usual = errors.median(dim=0).values
        # A power that overflows could not be brought down again.
        possible = errors.maximum(usual * math.exp(-LARGEST_LOG / self.exponent))
        factors = within_fences(shares_claimed((usual / possible) ** self.exponent))
        return [
            own if factor == 1 else {**own, ERRORS: (known * factor ** (-1 / self.exponent)).clamp_max(LARGEST).float()}
            for own, known, factor in zip(said, possible, factors, strict=True)
        ]

    def weights(self, said: Sequence[Said]) -> list[Tensor]:
        # Relative to the smallest error of each input: the same weights, without a power that overflows.
        errors = torch.stack([one.update.extras[ERRORS].double() for one in said]).clamp_min(LEAST_ERROR)
        powers = (errors.amin(dim=0) / errors) ** self.exponent
        return [share.unsqueeze(1).float() for share in powers / powers.sum(dim=0)]

    @torch.no_grad()
    def _errors(self, network: nn.Module, source: Source, where: Tensor) -> Tensor:
        inputs = self._seen(source.inputs(where), source.raw[where])
        errors: Tensor = (network(inputs) - inputs).square().flatten(1).mean(dim=1)
        return errors.cpu()

    def _seen(self, normalised: Tensor, raw: Tensor) -> Tensor:
        return (raw / 255).to(normalised.device) if self.scaled and raw.dtype == torch.uint8 else normalised
