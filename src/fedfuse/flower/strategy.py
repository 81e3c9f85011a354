"""FedDF as a stock Flower strategy, for a Flower app that has nothing else of fedfuse.

Lin et al., Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020: Flower's FedAvg, and then
the average is trained to agree with the ensemble of the clients' models on unlabelled inputs (Algorithm 1):

    strategy = FedDF(model=Net, inputs=images, distiller=Distiller(steps=500, optimizer=Adam(learning_rate=1e-3)))
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=10)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg
from torch import Tensor, nn

from fedfuse.core.errors import DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Normalisation, Transform
from fedfuse.models import Classifier
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.fuse import Distiller
from fedfuse.parts.fuse.batches import batches_from
from fedfuse.parts.fuse.distiller import DistillContext
from fedfuse.runtime.compute import Compute
from fedfuse.runtime.pool import silence
from fedfuse.runtime.source import Source

logger = logging.getLogger("flwr")


class FedDF(FedAvg):  # type: ignore[misc]  # Flower's types are not read
    """FedAvg followed by ensemble distillation on the server.

    ``model`` makes the network that clients train, ``inputs`` are unlabelled float32 inputs as the network sees them.
    The remaining arguments are those of Flower's ``FedAvg``. Same replies, same bits: ``seed`` decides the batches.
    """

    def __init__(
        self,
        model: Callable[[], nn.Module],
        inputs: Tensor,
        distiller: Distiller | None = None,
        seed: int = 0,
        device: str = "cpu",
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        if inputs.dtype != torch.float32 or inputs.ndim < 2 or not len(inputs):
            raise DataError(f"FedDF takes a batch of float32 inputs, not {inputs.dtype} of shape {tuple(inputs.shape)}")
        as_it_is = Transform(Normalisation((0.0,) * inputs.shape[1], (1.0,) * inputs.shape[1]), tuple(inputs.shape[1:]))
        compute = Compute(torch.device(device), torch.get_num_threads(), channels_last=False)
        self.source = Source("inputs", inputs, as_it_is, compute)
        self.model, self.distiller, self.key = model, distiller or Distiller(), Key(seed)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        ordered = sorted(replies, key=lambda reply: reply.metadata.src_node_id)
        average, metrics = super().aggregate_train(server_round, ordered)
        teachers = [reply.content[self.arrayrecord_key] for reply in ordered if not reply.has_error()]
        if average is None or self.distiller.budget(len(self.source)) == 0:
            return average, metrics
        return self._distilled(average, teachers, self.key.child("round", server_round)), metrics

    def _distilled(self, average: ArrayRecord, teachers: list[ArrayRecord], key: Key) -> ArrayRecord:
        network = self.source.compute.place(self.model())
        answers = self._ensemble(network, teachers)
        network.load_state_dict(average.to_torch_state_dict())
        batches = batches_from(self.source, answers, self.distiller.plan(self.source, key))
        context = DistillContext(self.source, None, key, silence)
        self.distiller.distil(cast(Classifier, network), batches, context)
        if not Weights.of(network).is_finite():
            logger.warning("fedfuse: the student diverged; the average is kept")
            return average
        return ArrayRecord(network.state_dict())

    def _ensemble(self, network: nn.Module, teachers: list[ArrayRecord]) -> Tensor:
        """Log-probabilities of the mean of the teachers' logits, for all inputs."""
        total: Tensor | None = None
        for arrays in teachers:
            network.load_state_dict(arrays.to_torch_state_dict())
            with torch.no_grad(), evaluation_mode(network):
                parts = self.source.batches(self.source.all_indices())
                logits = torch.cat([network(self.source.inputs(where)) for where in parts])
            total = logits if total is None else total + logits
        assert total is not None, "an average has at least one teacher"
        return (total / len(teachers)).log_softmax(dim=1)
