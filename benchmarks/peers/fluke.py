"""fluke: its FedAVG with its fast loaders and everything in memory."""

from __future__ import annotations

from typing import Any

from fluke import DDict, FlukeENV
from fluke.algorithms.fedavg import FedAVG
from fluke.data import FastDataLoader
from fluke.evaluation import ClassificationEval
from fluke.utils import FederationObserver
from torch import Tensor
from torchmetrics import Accuracy

from benchmarks.peers.task import Task, given, tell
from fedfuse.experiment.bench.clock import Moment
from fedfuse.experiment.bench.work import CLASSES


class Splitter:
    """Whose examples are whose."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def assign(self, n_clients: int, batch_size: int) -> tuple[tuple[list[Any], list[Any]], FastDataLoader]:
        clients = [_loader(client, batch_size, shuffle=True) for client in self.task.clients]
        return (clients, [None] * n_clients), _loader(self.task.test, self.task.work.test, shuffle=False)


class Clock(FederationObserver):  # type: ignore[misc]
    """Notes when rounds are over."""

    def __init__(self) -> None:
        self.ends: list[Moment] = []

    def end_round(self, round: int) -> None:
        self.ends.append(Moment.now())


def play(task: Task) -> list[Moment]:
    work = task.work
    environment = FlukeENV()
    environment.set_seed(0)
    environment.set_device("cpu")
    environment.set_inmemory(True)
    environment.set_evaluator(
        ClassificationEval(eval_every=1, n_classes=CLASSES, accuracy=Accuracy(task="multiclass", num_classes=CLASSES))
    )
    environment.set_eval_cfg(
        task="classification", eval_every=1, server=True, locals=False, pre_fit=False, post_fit=False
    )
    optimizer = {"name": "SGD", "lr": work.rate, "momentum": work.momentum}
    client = {
        "batch_size": work.batch,
        "local_epochs": work.epochs,
        "loss": "CrossEntropyLoss",
        "optimizer": optimizer,
        "scheduler": {"name": "StepLR", "step_size": 1, "gamma": 1},
    }
    settings = DDict(client=DDict(client), server=DDict(weighted=True), model=task.network())
    algorithm = FedAVG(work.clients, Splitter(task), settings)
    clock = Clock()
    algorithm.set_callbacks(clock)
    algorithm.finalize = lambda: None
    algorithm.run(work.rounds, work.sampled / work.clients)
    return clock.ends


def _loader(examples: tuple[Tensor, Tensor], batch: int, shuffle: bool) -> FastDataLoader:
    return FastDataLoader(*examples, num_labels=CLASSES, batch_size=batch, shuffle=shuffle)


if __name__ == "__main__":
    tell(play(given()))
