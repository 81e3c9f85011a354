"""FedDF as a stock Flower strategy, for a Flower app that has nothing else of fedfuse.

Lin et al., Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020: Flower's FedAvg, and then
the average is trained to agree with the ensemble of the clients' models on unlabelled inputs (Algorithm 1):

    strategy = FedDF(model=Net, inputs=images, distiller=Distiller(steps=500, optimizer=Adam(learning_rate=1e-3)))
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(Net().state_dict()), num_rounds=10)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, cast

import torch
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg
from torch import Tensor, nn

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.flower.own_network import Logits, MakeNetwork, made, maker_of, source_of
from fedfuse.flower.reading import tensors_of
from fedfuse.flower.stock_replies import Inspector, specs_of
from fedfuse.models import Classifier
from fedfuse.models.modes import evaluation_mode
from fedfuse.parts.fuse import Distiller
from fedfuse.parts.fuse.batches import batches_from
from fedfuse.parts.fuse.distiller import DistillContext
from fedfuse.runtime.pool import silence

logger = logging.getLogger("flwr")


class FedDF(FedAvg):  # type: ignore[misc]  # Flower's types are not read
    """FedAvg followed by ensemble distillation on the server.

    ``model`` makes the network that clients train, or is one; ``inputs`` are unlabelled inputs as the network sees
    them: a tensor, an array or a dataset. The remaining arguments are those of Flower's ``FedAvg``. Replies that are
    malformed, not finite or of other shapes are left out. Same replies, same bits: ``seed`` decides the batches.
    """

    def __init__(
        self,
        model: MakeNetwork | nn.Module,
        inputs: Any,
        distiller: Distiller | None = None,
        seed: int = 0,
        device: str = "cpu",
        **fedavg: Any,
    ) -> None:
        super().__init__(**fedavg)
        self.source, self.model = source_of(inputs, device), maker_of(model)
        self.distiller, self.key = distiller or Distiller(), Key(seed)
        state = self._network().network.state_dict()
        self.inspector = Inspector(specs_of(state), self.arrayrecord_key, self.weighted_by_key)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        sound = self.inspector.sound(server_round, replies)
        average, metrics = super().aggregate_train(server_round, sound)
        if average is None or self.distiller.budget(len(self.source)) == 0:
            return average, metrics
        teachers = [reply.content[self.arrayrecord_key] for reply in sound]
        student, report = self._distilled(average, teachers, self.key.child("round", server_round))
        logger.info("fedfuse: round %s, distillation %s", server_round, report)
        return student, MetricRecord({**(metrics or {}), **report})

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        sound = self.inspector.sound(server_round, replies, with_arrays=False)
        measured: MetricRecord | None = super().aggregate_evaluate(server_round, sound)
        return measured

    def _distilled(
        self, average: ArrayRecord, teachers: list[ArrayRecord], key: Key
    ) -> tuple[ArrayRecord, dict[str, float]]:
        """The student, and what there is to say about it; the average where no student came about."""
        network = self._network()
        target, heard = self._ensemble(network, teachers)
        report: dict[str, float] = {"teachers": heard, "distillation-steps": 0}
        if target is None:
            logger.warning("fedfuse: no client's model gives finite answers; the average is kept")
            return average, report
        _load(network, average)
        batches = batches_from(self.source, target, self.distiller.plan(self.source, key))
        context = DistillContext(self.source, None, key, silence)
        taught = self.distiller.distil(cast(Classifier, network), batches, context)
        if not Weights.of(network).is_finite():
            logger.warning("fedfuse: the student diverged; the average is kept")
            return average, report
        loss = float(self.distiller.distance(target, self._logits(network)))
        report |= {"distillation-steps": taught.steps, "distillation-loss": loss}
        return ArrayRecord(network.network.state_dict()), report

    def _network(self) -> Logits:
        """A new one, without a change to the random numbers of whoever asks."""
        with self.key.child("network").default_generator():
            return made(self.model, self.source)

    def _ensemble(self, network: Logits, teachers: list[ArrayRecord]) -> tuple[Tensor | None, int]:
        """Log-probabilities of the mean of the teachers' logits, for all inputs, and of how many teachers."""
        total, heard = None, 0
        for arrays in teachers:
            _load(network, arrays)
            logits = self._logits(network)
            if bool(logits.isfinite().all()):
                total, heard = logits if total is None else total + logits, heard + 1
        return None if total is None else (total / heard).log_softmax(dim=1), heard

    def _logits(self, network: Logits) -> Tensor:
        with torch.no_grad(), evaluation_mode(network):
            parts = self.source.batches(self.source.all_indices())
            return torch.cat([network(self.source.inputs(where)) for where in parts])


def _load(network: Logits, arrays: ArrayRecord) -> None:
    network.network.load_state_dict(tensors_of(arrays))
