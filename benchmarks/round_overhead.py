"""How much slower is a fedfuse round than a hand-written PyTorch loop doing the same FedAvg work?

Both train the same clients on the same number of batches, average, and evaluate, with one thread. The hand-written
loop holds its inputs already normalised and does nothing else; fedfuse also validates updates, counts bytes, logs
events and writes a checkpoint every round. They take turns in one process, and the ratio of the medians is printed.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fedfuse import Experiment
from fedfuse.core.randomness import Key
from fedfuse.data import Transform, load, split
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.federation.events import Event
from fedfuse.models import create


@dataclass(frozen=True)
class Case:
    """One workload."""

    name: str
    values: dict[str, object]


def cases(folder: Path) -> Iterator[Case]:
    common = {"partition": {"kind": "iid", "clients": 10}, "method": "fedavg"}
    optimizer = {"kind": "sgd", "learning_rate": 0.01, "momentum": 0.9}
    yield Case(
        "10 x 130 digits, MLP, batch 32, 5 epochs",
        {
            **common,
            "data": {"name": "digits"},
            "models": {"mlp": {"arch": "mlp", "hidden": [64]}},
            "training": {"epochs": 5, "batch_size": 32, "optimizer": optimizer},
        },
    )
    images = folder / "images.npz"
    random = np.random.default_rng(0)
    inputs = random.integers(0, 256, (6000, 3, 32, 32), dtype=np.uint8)
    np.savez(images, inputs=inputs, labels=random.integers(0, 10, 6000))
    data = {"name": "npz", "path": str(images), "test": 500, "validation": 500}
    yield Case(
        "10 x 500 random 3x32x32 images, ConvNet, batch 50, 1 epoch",
        {
            **common,
            "data": data,
            "models": {"convnet": {"arch": "convnet"}},
            "training": {"epochs": 1, "batch_size": 50, "optimizer": optimizer},
        },
    )


def hand_written(config: ExperimentConfig, rounds: int) -> list[float]:
    """Seconds of each round of the bare loop."""
    key = Key(config.seed)
    dataset = load(config.data, key.child("load"))
    splits = split(dataset, config.data, key.child("split"))
    transform = Transform.of(dataset, config.data)
    assignment = config.partition.assign(splits.train.labels, dataset.classes, key.child("partition"))
    train_x, train_y = transform(splits.train.inputs), splits.train.labels
    clients = [(train_x[torch.from_numpy(who)], train_y[torch.from_numpy(who)]) for who in assignment]
    test_x, test_y = transform(splits.test.inputs), splits.test.labels
    model = create(next(iter(config.models.values())), dataset.shape, dataset.classes, key)
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seconds = []
    for _ in range(rounds):
        begun = time.perf_counter()
        trained = [_train(model, weights, x, y, config) for x, y in clients]
        total = sum(len(y) for _, y in clients)
        weights = {
            name: sum((len(y) / total) * state[name] for state, (_, y) in zip(trained, clients, strict=True))
            for name in weights
        }
        model.load_state_dict(weights)
        _accuracy(model, test_x, test_y)
        seconds.append(time.perf_counter() - begun)
    return seconds


def _train(
    model: torch.nn.Module, weights: dict[str, Tensor], x: Tensor, y: Tensor, config: ExperimentConfig
) -> dict[str, Tensor]:
    model.load_state_dict(weights)
    model.train()
    optimizer = config.training.optimizer.build(model)
    for _ in range(config.training.epochs):
        for where in torch.randperm(len(y)).split(config.training.batch_size):
            loss = F.cross_entropy(model(x[where]), y[where])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@torch.inference_mode()
def _accuracy(model: torch.nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    right = sum(
        int((model(inputs).argmax(1) == labels).sum())
        for inputs, labels in zip(x.split(500), y.split(500), strict=True)
    )
    return right / len(y)


def with_fedfuse(config: ExperimentConfig, out: Path) -> list[float]:
    """Seconds of each round of ``fedfuse run``, from one finished round to the next."""
    finished: list[float] = []

    def listen(event: Event) -> None:
        if event["event"] == "round_finished":
            finished.append(time.perf_counter())

    Experiment(config).run(out, overwrite=True, listeners=(listen,))
    return [after - before for before, after in pairwise(finished)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="rounds per turn")
    parser.add_argument("--turns", type=int, default=3, help="how often each of the two gets its turn")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            config = Experiment(case.values, federation={"rounds": arguments.rounds}).config
            bare: list[float] = []
            ours: list[float] = []
            for _ in range(arguments.turns):
                bare += hand_written(config, arguments.rounds)[1:]
                ours += with_fedfuse(config, Path(folder) / "run")
            slow, fast = statistics.median(ours), statistics.median(bare)
            print(
                f"{case.name}: hand-written {1e3 * fast:.1f} ms, fedfuse {1e3 * slow:.1f} ms, ratio {slow / fast:.3f}"
            )


if __name__ == "__main__":
    main()
