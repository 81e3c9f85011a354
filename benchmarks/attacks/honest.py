"""What bounds cost where everybody is honest: the same experiments with ``bounded`` and with ``taken``, seed by seed.

python -m benchmarks.attacks.honest [--seeds 3] [--write]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import torch

from benchmarks.attacks.play import accuracy_of, finished
from benchmarks.page import write_table
from fedfuse import Experiment, FedfuseError
from fedfuse.federation.state import History

PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"
TEN = ("partition.clients=10", "federation.participation=1.0", "training.epochs=5", "federation.rounds=10")
SETTINGS: Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "digits, the preset: Dirichlet 0.05, 4 of 10 clients": (
        "digits", (), ("fedavg", "feddf", "scaffold", "fedgen", "feddistill-plus", "feded-w1", "feded-w2", "fedaux")
    ),
    "digits, Dirichlet 0.1, 10 clients": (
        "digits", (*TEN, "partition.alpha=0.1"), ("fedavg", "feddf", "scaffold", "feded-w0", "fedmd")
    ),
    "digits, Dirichlet 1, 10 clients": (
        "digits", (*TEN, "partition.alpha=1.0"), ("fedavg", "feddf", "feded-w0", "fedmd")
    ),
    "digits, quantity skew, 10 clients": (
        "digits",
        ("partition={kind: quantity, clients: 10, alpha: 0.5, min_examples: 5}", *TEN[1:]),
        ("fedavg", "feddf"),
    ),
    "digits, quantity skew, 6 of 20 clients": (
        "digits",
        ("partition={kind: quantity, clients: 20, alpha: 0.3, min_examples: 2}", "federation.participation=0.3"),
        ("fedavg",),
    ),
    "FEMNIST, the preset: 12 writers": ("femnist", (), ("fedavg", "feddf")),
    "MNIST, the preset: Dirichlet 0.1, 5 of 10 clients": ("mnist-small", (), ("fedavg", "feddf")),
    "CIFAR-10, the preset, BatchNorm": (
        "cifar10-small", ("models={net: {arch: resnet8, norm: batch}}",), ("fedavg",)
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Honest:
    """One experiment: its accuracy in percent, its updates, and how many of them were bounded or left out."""

    accuracy: float
    updates: int
    touched: int


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks.honest", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="settings whose names have this in them")
    parser.add_argument("--write", action="store_true", help="also into docs/robustness.md")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = [
        "| federation | method | `taken` | `bounded` | difference | updates bounded or left out |",
        "|---|---|---|---|---|---|",
    ]
    for name, (preset, changes, methods) in SETTINGS.items():
        for method in methods if options.only in name else ():
            try:
                rows.append(row(name, preset, changes, method, options.seeds))
            except FedfuseError as reason:
                print(f"{name} is passed over: {reason}", file=sys.stderr)
                break
            print(rows[-1], flush=True)
    if options.write:
        write_table(PAGE, "honest federations", "\n".join(rows))


def row(name: str, preset: str, changes: Sequence[str], method: str, seeds: int) -> str:
    """One line of the table; the deviation is that of the differences between seeds."""
    taken = ("federation.claims=taken", "federation.moves=taken")
    plain = [played(preset, (*changes, *taken, f"seed={seed}"), method) for seed in range(seeds)]
    bounded = [played(preset, (*changes, f"seed={seed}"), method) for seed in range(seeds)]
    apart = [two.accuracy - one.accuracy for one, two in zip(plain, bounded, strict=True)]
    spread = f" ± {stdev(apart):.2f}" if seeds > 1 else ""
    touched, updates = sum(one.touched for one in bounded), sum(one.updates for one in bounded)
    cells = [
        name, method, f"{mean(one.accuracy for one in plain):.2f}", f"{mean(one.accuracy for one in bounded):.2f}",
        f"{mean(apart):+.2f}{spread}", f"{touched} of {updates}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def played(preset: str, assignments: Sequence[str], method: str) -> Honest:
    settings = ["engine.workers=1", "compute.threads=1", "evaluation.every=1000", "evaluation.ensemble=false"]
    config = Experiment.load(preset, [f"method={method}", *assignments, *settings]).config
    _, snapshot = finished(config)
    history = snapshot.server.history
    return Honest(accuracy_of(snapshot), sum(len(record.clients) for record in history), _touched(history))


def _touched(history: History) -> int:
    return sum(len({*r.claims_bounded, *r.moves_bounded, *r.screened}) for r in history)


if __name__ == "__main__":
    main()
