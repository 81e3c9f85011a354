"""Measure, predict, run, compare; print it, and with ``--write`` put it into docs/cluster.md.

    python -m benchmarks.cluster [--write] [--costs FILE] [--without-ray]

``--costs`` keeps the measured costs as JSON. It wants a quiet machine: everything is wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from benchmarks.cluster.check import Rounds, local, ray
from benchmarks.cluster.measure import measure
from benchmarks.cluster.model import SIDE_BY_SIDE, Cluster, Costs, Work, limit, seconds, terms
from benchmarks.cluster.workload import BATCH, CLIENTS, EXAMPLES, PUBLIC, ROUND, STEP, STEPS, TEST
from benchmarks.page import write_table

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
WEIGHTS = 122_570
"""Of the network that is measured."""
CORES, BANDWIDTH = 16, 1.25e9
"""Of each machine of the clusters that are only thought of: cores, and bytes per second (10 Gbit/s)."""
HERE = Work(CLIENTS, ROUND, EXAMPLES, BATCH, WEIGHTS, evaluated=TEST)
THERE = Work(10**6, 10**4, EXAMPLES, BATCH, WEIGHTS, evaluated=10_000)
FUSIONS = {
    "fedavg": ({}, {}),
    "feddf": (
        {"inputs": PUBLIC, "steps": STEPS, "step_inputs": STEP, "evaluated": 2 * TEST},
        {"inputs": 10_000, "steps": 1_000, "step_inputs": STEP, "evaluated": 20_000},
    ),
}
"""What a fusion adds to the rounds here, and to those there."""


def work(base: Work, fusion: dict[str, int]) -> Work:
    return Work(**{**asdict(base), **fusion})


def checked(costs: Costs, measured: Rounds) -> Iterator[str]:
    """Predicted beside measured."""
    yield "| method | engine | processes | predicted, s | measured, s | error |"
    yield "|---|---|---|---|---|---|"
    for name, real in measured.items():
        method, engine, processes = name.split(", ")
        cores = min(os.cpu_count() or 1, int(processes) + 1) if engine != "process" else 0
        cluster = Cluster(engine, int(processes), shared_cores=cores)
        guess = seconds(costs, work(HERE, FUSIONS[method][0]), cluster)
        yield f"| {method} | {engine} | {processes} | {guess:.2f} | {real:.2f} | {guess / real - 1:+.0%} |"


def predicted(costs: Costs) -> Iterator[str]:
    """A million clients, ten thousand in a round, on clusters that are not here."""
    engine = "ray" if "ray" in costs.moved else "workers"
    yield "| method | machines | round, s | longest of clients / messages / network | merge | fusion | rest | limit |"
    yield "|---|---|---|---|---|---|---|---|"
    for method, (_, fusion) in FUSIONS.items():
        for machines in (1, 10, 100):
            cluster = Cluster(engine, machines * CORES, bandwidth=BANDWIDTH)
            task = work(THERE, fusion)
            parts = terms(costs, task, cluster)
            longest = " / ".join(f"{parts.get(name, 0):.0f}" for name in SIDE_BY_SIDE[:3])
            fusing = parts.get("teachers", 0) + parts.get("distillation", 0)
            yield (
                f"| {method} | {machines} | {seconds(costs, task, cluster):.0f} | {longest} | {parts['merge']:.1f} "
                f"| {fusing:.0f} | {parts['rest']:.1f} | {limit(costs, task, cluster)} |"
            )


def spread(costs: Costs) -> Iterator[str]:
    """The merge of one weight here, beside its way to a worker that would merge it there."""
    yield "| weight of an update | nanoseconds |"
    yield "|---|---|"
    yield f"| merged in the server's process | {1e9 * costs.merge_weight:.2f} |"
    for engine, (_, byte) in costs.moved.items():
        yield f"| moved to a process of {engine}, to be merged there | {4e9 * byte / 2:.2f} |"


def listed(costs: Costs) -> Iterator[str]:
    """The costs themselves."""
    yield "| of each | microseconds |"
    yield "|---|---|"
    names = {
        "client": "client", "step": "step of a client", "example": "example of a step", "server_client":
        "client, on the server", "server_weight": "weight of an update that is taken in", "merge_weight":
        "weight of an update that is merged", "teacher": "teacher", "teacher_input": "input that a teacher answers",
        "distil_step": "step of the distillation", "distil_input": "input of such a step", "evaluated_input":
        "test input", "round": "round", "registered": "registered client and round",
    }  # fmt: skip
    for field, name in names.items():
        yield f"| {name} | {1e6 * getattr(costs, field):.4g} |"
    for engine, (task, byte) in costs.moved.items():
        yield f"| task to a process of {engine} and back | {1e6 * task:.4g} |"
        yield f"| byte of it | {1e6 * byte:.4g} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="also into docs/cluster.md")
    parser.add_argument("--costs", type=Path, help="a file for the measured costs")
    parser.add_argument("--without-ray", action="store_true")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        workers, measured = local(Path(folder))
        moved = {"workers": workers}
        on_ray = None if options.without_ray else ray(Path(folder))
        if on_ray is not None:
            moved["ray"] = on_ray[0]
            measured |= on_ray[1]
        costs = measure(Path(folder), moved)
    lines = {
        "costs": listed(costs),
        "check": checked(costs, measured),
        "prediction": predicted(costs),
        "merge": spread(costs),
    }
    tables = {name: "\n".join(found) for name, found in lines.items()}
    print("\n\n".join(tables.values()))
    if options.costs is not None:
        options.costs.write_text(json.dumps(asdict(costs), indent=2) + "\n", encoding="utf-8")
    if options.write:
        for name, table in tables.items():
            write_table(PAGE, name, table)


if __name__ == "__main__":
    main()
