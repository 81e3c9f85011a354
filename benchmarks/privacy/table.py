"""Privacy x accuracy x bytes: the same ten parties on the same data, by every private form, at several epsilons.

Runs lie in a folder, and those that are there are kept; so an interrupted table goes on.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fedfuse
from fedfuse import Experiment, RunResult

Raw = dict[str, Any]
EPSILONS = (8.0, 3.0, 1.0)
UNIFORM = {"weighting": "uniform"}
DELTA = 1e-5
TAKEN = {"claims": "taken", "moves": "taken"}
"""Nobody attacks here, and where noise is shared, bounds could not be."""


@dataclass(frozen=True)
class Problem:
    """Data, parties, and rates that suit them; the rates were chosen once, by hand, on seed 100."""

    name: str
    base: Raw
    private_rates: Mapping[float, float]
    """Of DP-SGD, by epsilon: the more noise, the smaller steps."""
    clip: float
    """The longest update of a client."""
    distil: Raw


PROBLEMS = {
    "digits": Problem(
        "digits",
        {
            "data": {"name": "digits", "public": 0.2},
            "partition": {"kind": "iid", "clients": 10},
            "models": {"net": {"arch": "mlp", "hidden": [64]}},
            "training": {"epochs": 2, "batch_size": 32, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
            "federation": {"rounds": 10, **TAKEN},
        },
        {8.0: 1.0, 3.0: 0.2, 1.0: 0.1},
        0.3,
        {"steps": 300, "batch_size": 32},
    ),
    "mnist": Problem(
        "MNIST",
        {
            "data": {"name": "mnist", "train_limit": 22_000, "test_limit": 5_000, "public": 2_000},
            "partition": {"kind": "iid", "clients": 10},
            "models": {"net": {"arch": "cnn2"}},
            "training": {"epochs": 1, "batch_size": 100, "optimizer": {"kind": "sgd", "learning_rate": 0.1}},
            "federation": {"rounds": 10, **TAKEN},
        },
        {8.0: 1.0, 3.0: 1.0, 1.0: 0.5},
        0.3,
        {"steps": 300, "batch_size": 64},
    ),
}


@dataclass(frozen=True)
class Row:
    """One way to train: what it is called, what the promise is about, and the experiment."""

    way: str
    protects: str
    budget: float | None
    changes: Raw

    @property
    def label(self) -> str:
        words = f"{self.way} {self.protects} {self.budget or ''}".lower()
        return "-".join("".join(sign if sign.isalnum() or sign == "." else " " for sign in words).split())


def rows(problem: Problem) -> Iterator[Row]:
    """Without privacy, and by every private form."""
    fuse = {"distiller": problem.distil}
    yield Row("FedAvg", "nothing", None, {"method": "fedavg"})
    yield Row("FedDF", "nothing", None, {"method": {"name": "feddf", "fuse": fuse}})
    yield Row("FedED, one round", "nothing", None, _once(problem, {"kind": "predictions"}, None))
    for epsilon in EPSILONS:
        trained = _dp_sgd(problem, epsilon)
        yield Row("FedAvg, DP-SGD", "examples", epsilon, {"method": "fedavg", **trained})
        yield Row("FedDF, DP-SGD", "examples", epsilon, {"method": {"name": "feddf", "fuse": fuse}, **trained})
    for epsilon in EPSILONS[:2]:
        yield Row("FedED, one round, DP-SGD", "examples", epsilon, _predicted(problem, epsilon))
        votes = {"kind": "votes", "teachers": 10, "inputs": 50, "deviation": "auto"}
        yield Row("votes of 10 teachers each", "examples", epsilon, _once(problem, votes, ("example", epsilon)))
    for epsilon in EPSILONS[:2]:
        for shared in (True, False):
            kind = "shared noise" if shared else "noise of its own"
            yield Row(f"FedAvg, {kind}", "clients", epsilon, _by_clients(problem, epsilon, shared))
        votes, noise = {"kind": "votes", "inputs": 50}, [{"kind": "noise", "multiplier": "auto", "shared": True}]
        yield Row("votes, shared noise", "clients", epsilon, _once(problem, votes, ("client", epsilon), noise))


def _dp_sgd(problem: Problem, epsilon: float) -> Raw:
    rate = {"kind": "sgd", "learning_rate": problem.private_rates[epsilon]}
    return {
        "training": {"privacy": {"norm": 1.0, "multiplier": "auto"}, "optimizer": rate},
        "privacy": {"unit": "example", "budget": epsilon, "delta": DELTA},
    }


def _by_clients(problem: Problem, epsilon: float, shared: bool) -> Raw:
    links = [{"kind": "clip", "norm": problem.clip}, {"kind": "noise", "multiplier": "auto", "shared": shared}]
    method = {"name": "fedavg", "merge": UNIFORM, "upload": links}
    return {"method": method, "privacy": {"unit": "client", "budget": epsilon, "delta": DELTA}}


def _once(problem: Problem, protocol: Raw, promise: tuple[str, float] | None, upload: Sequence[Raw] = ()) -> Raw:
    """One round, in which parties train as long as in all others together and send what they say of public inputs."""
    epochs = problem.base["training"]["epochs"] * problem.base["federation"]["rounds"]
    fuse = {"distiller": {**problem.distil, "loss": "kl"}}
    method = {"name": "feded-w0", "scores": "uniform", "protocol": protocol, "upload": list(upload), "fuse": fuse}
    changes: Raw = {"method": method, "training": {"epochs": epochs}, "federation": {"rounds": 1}}
    if promise is not None:
        changes["privacy"] = {"unit": promise[0], "budget": promise[1], "delta": DELTA}
    return changes


def _predicted(problem: Problem, epsilon: float) -> Raw:
    """The same with DP-SGD, behind which predictions cost nothing more."""
    once, private = _once(problem, {"kind": "predictions"}, ("example", epsilon)), _dp_sgd(problem, epsilon)
    return {**once, "training": {**once["training"], **private["training"]}}


def measured(problem: Problem, row: Row, seeds: Sequence[int], folder: Path) -> list[RunResult]:
    """The runs of one row, of which those that are there are kept."""
    experiments = {}
    for seed in seeds:
        base = {**problem.base, "name": problem.name.lower(), "seed": seed, "evaluation": {"pictures": False}}
        experiment = Experiment.load(base, **row.changes)
        experiments[str(folder / f"{problem.name.lower()}-{row.label}-seed{seed}")] = experiment
    return list(fedfuse.run_all(experiments).values())


def table(problem: Problem, seeds: Sequence[int], folder: Path) -> str:
    """As markdown: accuracy of the server's model, epsilon, and the bytes that each party sent."""
    lines = ["| what | protects | epsilon | accuracy, % | kB up per party |", "|---|---|---|---|---|"]
    for row in rows(problem):
        runs = measured(problem, row, seeds, folder)
        accuracies = [100 * run.accuracy["net"] for run in runs]
        spread = f" ± {statistics.stdev(accuracies):.1f}" if len(runs) > 1 else ""
        epsilon = max((run.epsilon or 0.0 for run in runs), default=0.0)
        parties = problem.base["partition"]["clients"]
        sent = statistics.fmean(run.summary["bytes_up"] for run in runs) / parties / 1000
        told = f"{epsilon:.2f}" if row.budget else "∞"
        line = f"| {row.way} | {row.protects} | {told} | {statistics.fmean(accuracies):.1f}{spread} | {sent:.1f} |"
        print(line, flush=True)
        lines.append(line)
    return "\n".join(lines)
