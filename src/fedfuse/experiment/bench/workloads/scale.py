"""W5: 20 clients of 3 examples a round, however many there are: what grows with registered clients?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from fedfuse.experiment.bench.clock import median_round
from fedfuse.experiment.bench.work import Work
from fedfuse.experiment.bench.workloads.base import PLAIN_LOOP, Contender, Outcome, Row, Setup, SizeName, Workload
from fedfuse.experiment.bench.workloads.examples import examples_of
from fedfuse.experiment.bench.workloads.rounds import by_hand

METHODS = ("fedavg", "scaffold", "feddf")
FEW, SOME, MANY = 100, 10_000, 1_000_000
_WORK = Work("mlp", (16,), clients=SOME, examples=3, sampled=20, batch=8, rate=0.1, rounds=30)
WORKS: Mapping[SizeName, Work] = {
    "full": _WORK,
    "small": _WORK,
    "quick": replace(_WORK, rounds=20),
    "tiny": replace(_WORK, clients=40, sampled=2, test=10, rounds=3),
}
_CLIENTS: Mapping[SizeName, Mapping[int, int]] = {
    "full": {FEW: FEW, SOME: SOME, MANY: MANY},
    "small": {FEW: FEW, SOME: SOME, MANY: MANY},
    "quick": {FEW: FEW, SOME: SOME, MANY: MANY},
    "tiny": {FEW: 20, SOME: 40, MANY: 60},
}
"""Tests take fewer for a million."""


def by_fedfuse(method: str, clients: int, setup: Setup) -> Outcome:
    from fedfuse.experiment.bench.with_fedfuse import experiment, watch

    public = 1000 if method == "feddf" else 0
    work = replace(WORKS[setup.size], clients=_CLIENTS[setup.size][clients], public=public)
    watched = watch(experiment(work, examples_of(work, setup), method=_method(method)), setup.assignments)
    end = watched.over - watched.rounds[-1]
    beside = watched.memory_peak - watched.memory_before - work.bytes
    numbers = {"first": watched.rounds[0].cpu, "end": end.cpu, "beside": beside / 1e6}
    return Outcome({**median_round(watched.rounds), **numbers}, watched.chosen)


def _method(name: str) -> dict[str, Any]:
    if name != "feddf":
        return {"name": name}
    return {"name": name, "fuse": {"distiller": {"steps": 20, "keep": "last"}}}


def called(method: str, clients: int) -> str:
    return f"fedfuse {method}, {clients:,}"


def _sizes(method: str, clients: int) -> tuple[SizeName, ...]:
    if clients == SOME:
        return ("full",)
    if method == "fedavg":
        return ("full", "small", "tiny") if clients == MANY else ("full", "small", "quick", "tiny")
    return ("full", "tiny")


def _rows(method: str) -> tuple[Row, ...]:
    few, many = called(method, FEW), called(method, MANY)
    return (
        Row(f"{method}, {MANY:,} against {FEW}", many, "cpu", few),
        Row(f"{method}, {MANY:,}: to the end of round 1", many, "first", unit="s"),
        Row(f"{method}, {MANY:,}: after the last round", many, "end", unit="s"),
        Row(f"{method}, {MANY:,}: memory beside the examples", many, "beside", unit="MB"),
    )


SCALE = Workload(
    "W5",
    "20 clients of 3 examples a round, of 100, 10,000 and 1,000,000",
    "what is spent per client, and whether it grows with clients that are only registered",
    contenders=(
        Contender(PLAIN_LOOP, partial(by_hand, WORKS), sizes=("full", "small", "quick", "tiny")),
        *(
            Contender(called(method, clients), partial(by_fedfuse, method, clients), sizes=_sizes(method, clients))
            for method in METHODS
            for clients in (FEW, SOME, MANY)
        ),
    ),
    rows=(
        *(
            Row(called("fedavg", clients), called("fedavg", clients), "cpu", PLAIN_LOOP)
            for clients in (FEW, SOME, MANY)
        ),
        *(row for method in METHODS for row in _rows(method)),
    ),
    seconds=240,
)
