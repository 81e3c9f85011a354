"""How much each client's predictions count: the weights w0, w1 and w2 of FedED.

zT_j = sum_k w_k z_k(x_j)
w0:  w_k     = N_k / sum_i N_i                       by data size
w1:  w_k^c   = N_k^c / (sum_i N_i^c + 0.001)         by class; rows need not sum to one, as in the thesis
w2:  w_k^j   = l_k(x_j)^-6, normalised over k        by how well client k's autoencoder knows input x_j
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.messages import Tensors, Update
from fedfuse.core.part import Part
from fedfuse.exchange.base import Trained
from fedfuse.models.autoencoder import autoencoder
from fedfuse.runtime.batches import epoch_batches, slices
from fedfuse.runtime.source import PREDICTION_BATCH, Source

COUNTS, ERRORS = "label_counts", "reconstruction_errors"


class Weighting(Part):
    """What a client testifies about its own competence, and what the server makes of it."""

    def testify(self, trained: Trained, source: Source) -> Tensors:  # noqa: ARG002
        """The client: what the server needs to know."""
        return {}

    def reply(self, inputs: int, classes: int) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        """Names and shapes of the testimony."""
        return {}

    @abstractmethod
    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        """One tensor per client that multiplies its n0 x K predictions."""


class ByExamples(Weighting):
    """w0: every answer counts by the client's data size (4 bytes up, counted as part of the message)."""

    kind: Literal["examples"] = "examples"

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        total = sum(update.examples for update in updates)
        return [torch.tensor(update.examples / total) for update in updates]


class ByLabels(Weighting):
    """w1: an answer for a class counts by how many examples of it the client has (4 K bytes up)."""

    kind: Literal["labels"] = "labels"

    def testify(self, trained: Trained, source: Source) -> Tensors:  # noqa: ARG002
        return {COUNTS: torch.bincount(trained.examples.labels, minlength=trained.bank.classes).float()}

    def reply(self, inputs: int, classes: int) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        return {COUNTS: (classes,)}

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        counts = torch.stack([update.extras[COUNTS] for update in updates])
        return list(counts / (counts.sum(dim=0) + 0.001))


class ByReconstruction(Weighting):
    """w2: an answer for an input counts by how small the client's autoencoder's error is there (4 n0 bytes up)."""

    kind: Literal["reconstruction"] = "reconstruction"
    exponent: float = Field(6.0, gt=0, description="the thesis tried 1 to 7 and kept 6")
    epochs: int = Field(30, ge=1, description="passes of the autoencoder over the client's examples")
    learning_rate: float = Field(1e-3, gt=0)
    weight_decay: float = Field(1e-5, ge=0)
    batch_size: int = Field(64, ge=2)
    scaled: bool = Field(
        False, description="show the autoencoder inputs in 0..1 instead of normalised ones; the thesis did not"
    )

    def testify(self, trained: Trained, source: Source) -> Tensors:
        key, compute = trained.key.child("autoencoder"), trained.bank.compute
        raw = trained.examples.inputs
        with key.child("initialise").default_generator():
            network = autoencoder(trained.examples.shape).to(compute.device)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)
        network.train()
        for epoch in range(self.epochs):
            for where in epoch_batches(len(raw), self.batch_size, key.child("batches", epoch)):
                inputs = compute.inputs(self._seen(trained.transform(raw[where]), raw[where]))
                optimizer.zero_grad()
                F.mse_loss(network(inputs), inputs).backward()
                optimizer.step()
        network.eval()
        batches = slices(len(source), PREDICTION_BATCH)
        return {ERRORS: torch.cat([self._errors(network, source, where) for where in batches])}

    def reply(self, inputs: int, classes: int) -> Mapping[str, tuple[int, ...]]:  # noqa: ARG002
        return {ERRORS: (inputs,)}

    def weights(self, updates: Sequence[Update]) -> list[Tensor]:
        # Relative to the smallest error of each input: the same weights, without a power that overflows.
        errors = torch.stack([update.extras[ERRORS].double() for update in updates]).clamp_min(1e-12)
        powers = (errors.amin(dim=0) / errors) ** self.exponent
        return [share.unsqueeze(1).float() for share in powers / powers.sum(dim=0)]

    @torch.no_grad()
    def _errors(self, network: torch.nn.Module, source: Source, where: slice) -> Tensor:
        inputs = self._seen(source.inputs(source.all_indices()[where]), source.raw[where])
        errors: Tensor = (network(inputs) - inputs).square().flatten(1).mean(dim=1)
        return errors.cpu()

    def _seen(self, normalised: Tensor, raw: Tensor) -> Tensor:
        return (raw / 255).to(normalised.device) if self.scaled and raw.dtype == torch.uint8 else normalised


AnyWeighting = Annotated[ByExamples | ByLabels | ByReconstruction, Field(discriminator="kind")]
