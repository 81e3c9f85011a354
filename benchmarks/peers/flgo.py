"""FLGo: its FedAvg on a benchmark that its own generator makes of our examples, clients one after another.

FLGo reads a benchmark from files and imports them, so that a folder of the bench gets some; what it logs in every round
is replaced by the evaluation of the global model.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path

import flgo
import flgo.algorithm.fedavg
from flgo.benchmark.partition import IIDPartitioner
from flgo.benchmark.toolkits.cv.classification import FromDatasetPipe
from flgo.experiment.logger import BasicLogger

from benchmarks.peers.task import Task, given, tell
from fedfuse.experiment.bench.clock import Moment

CONFIG = """
from torch.utils.data import TensorDataset
import torch
from benchmarks.peers.task import given
task = given({words!r})
train_data = TensorDataset(*(torch.cat(parts) for parts in zip(*task.clients)))
test_data = TensorDataset(*task.test)
get_model = task.network
"""
ends: list[Moment] = []
# Torch refuses a subset that says how to get one example but not how to get several.
FromDatasetPipe.TaskDataset.__getitems__ = lambda subset, where: [subset[one] for one in where]


class Logger(BasicLogger):  # type: ignore[misc]
    """Evaluates the global model and notes when a round is over."""

    def initialize(self) -> None:
        """Nothing is recorded."""

    def log_once(self, *_: object, **__: object) -> None:
        self.server.test()
        ends.append(Moment.now())

    def organize_output(self) -> None:
        """Nothing is recorded."""

    def save_output_as_json(self, *_: object, **__: object) -> None:
        """Nothing is recorded."""


def _no_picture(*_: object) -> None:
    """In place of the picture of a partition."""


def play(task: Task, words: list[str]) -> list[Moment]:
    work, folder = task.work, Path(words[3]).resolve() / f"flgo-{words[0]}-{words[2]}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    Path("config.py").write_text(CONFIG.format(words=words), encoding="utf-8")
    flgo.gen_benchmark_from_file("ours", config_file="config.py", target_path=".", data_type="cv")
    ours = import_module("ours")
    vars(ours)["visualize"] = _no_picture  # which would take minutes, and is not of a round
    flgo.gen_task_by_(ours, IIDPartitioner(num_clients=work.clients), "task")
    option = {
        "num_rounds": work.rounds,
        "sample": "uniform",
        "proportion": work.sampled / work.clients,
        "num_epochs": work.epochs,
        "batch_size": work.batch,
        "test_batch_size": work.test,
        "learning_rate": work.rate,
        "momentum": work.momentum,
        "train_holdout": 0.0,
        "no_log_console": True,
        "gpu": [],
    }
    flgo.init("task", flgo.algorithm.fedavg, option, Logger=Logger).run()
    return ends[1:]  # the first one is before round 1


if __name__ == "__main__":
    words = sys.argv[1:]
    words[3] = str(Path(words[3]).resolve())
    tell(play(given(words), words))
