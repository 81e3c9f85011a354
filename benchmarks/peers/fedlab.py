"""FedLab: its standalone pipeline, with its own serial trainer of clients and synchronous server.

Its trainer makes one optimiser for all clients; for this work it gets momentum, which its own settings cannot name.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from fedlab.contrib.algorithm.basic_client import SGDSerialClientTrainer
from fedlab.contrib.algorithm.basic_server import SyncServerHandler
from fedlab.core.standalone import StandalonePipeline
from torch import Tensor

from benchmarks.peers.task import Task, given, tell
from fedfuse.experiment.bench.clock import Moment


class Batches:
    """What FedLab calls a dataset: loaders by client. A loader of whole tensors is quicker than torch's own."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def get_dataloader(self, client: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
        inputs, labels = self.task.clients[client]
        for where in torch.randperm(len(labels)).split(batch_size):
            yield inputs[where], labels[where]


class Pipeline(StandalonePipeline):  # type: ignore[misc]
    """Evaluates after every round and notes when it is over."""

    def __init__(self, task: Task, handler: SyncServerHandler, trainer: SGDSerialClientTrainer) -> None:
        super().__init__(handler, trainer)
        self.test = task.test
        self.ends: list[Moment] = []

    @torch.inference_mode()
    def evaluate(self) -> None:
        inputs, labels = self.test
        float((self.handler.model.eval()(inputs).argmax(1) == labels).float().mean())
        self.ends.append(Moment.now())


def play(task: Task) -> list[Moment]:
    work = task.work
    assert work.epochs == 1, "a loader here is read once"
    trainer = SGDSerialClientTrainer(task.network(), work.clients)
    trainer.setup_dataset(Batches(task))
    trainer.setup_optim(work.epochs, work.batch, work.rate)
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), work.rate, momentum=work.momentum)
    pipeline = Pipeline(task, SyncServerHandler(task.network(), work.rounds, work.sampled / work.clients), trainer)
    pipeline.main()
    return pipeline.ends


if __name__ == "__main__":
    tell(play(given()))
