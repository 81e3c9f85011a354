"""How much faster is a round with worker processes than in one process?

Ten clients with 200 random 3x32x32 images each train a ResNet-8, with one thread per client in either case. Both kinds
of run take turns, and the ratio of the medians of their rounds is printed, without the first round of each run, in
which workers start. It depends on how many cores are free: run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

from fedfuse import Experiment
from fedfuse.federation.events import Event


def rounds_of(images: Path, workers: int, rounds: int, out: Path) -> list[float]:
    """Seconds of each round but the first."""
    finished: list[float] = []

    def listen(event: Event) -> None:
        if event["event"] == "round_finished":
            finished.append(time.perf_counter())

    Experiment(
        data={"name": "npz", "path": str(images), "test": 500},
        partition={"kind": "iid", "clients": 10},
        models={"resnet8": {"arch": "resnet8"}},
        training={"epochs": 1, "batch_size": 50},
        federation={"rounds": rounds},
        evaluation={"every": rounds},
        method="fedavg",
        engine={"kind": "local", "workers": workers},
    ).run(out, overwrite=True, listeners=(listen,))
    return [after - before for before, after in pairwise(finished)][:-1]  # the last one also evaluates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6, help="rounds per turn")
    parser.add_argument("--turns", type=int, default=3, help="how often each of the two gets its turn")
    arguments = parser.parse_args()
    alone: list[float] = []
    together: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        images, out = Path(folder) / "images.npz", Path(folder) / "run"
        random = np.random.default_rng(0)
        inputs = random.integers(0, 256, (2500, 3, 32, 32), dtype=np.uint8)
        np.savez(images, inputs=inputs, labels=random.integers(0, 10, 2500))
        for _ in range(arguments.turns):
            alone += rounds_of(images, 1, arguments.rounds, out)
            together += rounds_of(images, arguments.workers, arguments.rounds, out)
    one, many = statistics.median(alone), statistics.median(together)
    print(f"in-process {one:.2f} s, {arguments.workers} workers {many:.2f} s a round, ratio {many / one:.2f}")


if __name__ == "__main__":
    main()
