"""How a client learns from what the server says about the public inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from fedfuse.core.part import Settings
from fedfuse.core.slices import mean_size
from fedfuse.models.operations import BACKWARD
from fedfuse.parts.context import ClientContext
from fedfuse.runtime.batches import endless_batches, epoch_batches
from fedfuse.runtime.losses import kl_to_probabilities
from fedfuse.runtime.optimizers import Adam, AnyOptimizer
from fedfuse.runtime.source import Source


class ClientDistillation(Settings):
    """Distillation on the client: its model imitates the server's predictions for the public inputs."""

    of: Literal["consensus", "student"] = Field(
        "consensus",
        description="what the server sends: the clients' combined predictions of the last round, or those of its "
        "student of the client's architecture",
    )
    when: Literal["before", "along"] = Field(
        "before",
        description="before the client trains on its own examples, or along with it: with every own mini-batch a "
        "public one, whose loss is added (Cronus)",
    )
    loss: Literal["kl", "mse", "mae"] = Field(
        "kl", description="kl: of probabilities; mse, mae: squared and absolute error of what travels (FedMD: mae)"
    )
    epochs: int = Field(1, ge=1, description="passes over the public inputs, if before")
    batch_size: int = Field(256, ge=2, description="public inputs per step")
    optimizer: AnyOptimizer = Field(default_factory=Adam, description="if before; along, it is the client's own")
    keep: Literal["trained", "distilled"] = Field(
        "trained",
        description="which model a client goes on with: the one trained on its own examples, or the one before that, "
        "which has learnt from the server alone (CFD's copy of the server's student)",
    )

    def passes(self, inputs: int, steps: float) -> float:
        """Forward passes through the client's model, along with so many steps of its own."""
        along = steps * mean_size(inputs, self.batch_size)
        return BACKWARD * (self.epochs * inputs if self.when == "before" else along)

    def distil_before(self, client: ClientContext, source: Source, taught: Tensor, are_logits: bool) -> None:
        """Before: train the client's model in place."""
        model, compute = client.model, client.bank.compute
        taught = taught.to(compute.device)
        optimizer = self.optimizer.build(model)
        model.train()
        key = client.key.child("digest")
        with key.child("dropout").default_generator():
            for epoch in range(self.epochs):
                order = key.child("batches", epoch)
                for where in epoch_batches(len(source), self.batch_size, order, source.lengths):
                    loss = self._loss(model(source.inputs(where)), taught[where], are_logits)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()

    def extra_loss(
        self, client: ClientContext, source: Source, taught: Tensor, are_logits: bool
    ) -> Callable[[], Tensor]:
        """Along: the loss of the next public mini-batch, each time it is called."""
        batches = endless_batches(len(source), self.batch_size, client.key.child("digest"), source.lengths)
        table = taught.to(client.bank.compute.device)

        def loss() -> Tensor:
            where = next(batches)
            return self._loss(client.model(source.inputs(where)), table[where], are_logits)

        return loss

    def _loss(self, logits: Tensor, taught: Tensor, are_logits: bool) -> Tensor:
        if self.loss == "kl":
            return kl_to_probabilities(taught.softmax(dim=1) if are_logits else taught, logits)
        said = logits if are_logits else logits.softmax(dim=1)
        return F.mse_loss(said, taught) if self.loss == "mse" else F.l1_loss(said, taught)
