"""W8: how many models' worth of memory a run needs at its peak."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fedfuse.experiment.bench.work import Work
from fedfuse.experiment.bench.workloads.base import Contender, Outcome, Row, Setup, SizeName, Workload
from fedfuse.experiment.bench.workloads.examples import examples_of

METHODS = ("fedavg", "feddf", "scaffold")
CLIENTS = (5, 20)
_ARCH: Mapping[SizeName, str] = {"full": "resnet18", "small": "resnet18", "quick": "resnet18", "tiny": "resnet8"}


def by_fedfuse(method: str, clients: int, setup: Setup) -> Outcome:
    """One batch of 4 images for every client, two rounds."""
    from fedfuse.experiment.bench.loop import network_of
    from fedfuse.experiment.bench.with_fedfuse import experiment, watch

    public = 16 if method == "feddf" else 0
    work = Work(
        _ARCH[setup.size], (3, 32, 32), clients=clients, examples=4, sampled=clients, batch=4, rate=0.01, rounds=2,
        test=4, public=public,
    )  # fmt: skip
    recipe = {"fuse": {"distiller": {"steps": 4, "batch_size": 4, "keep": "last"}}} if method == "feddf" else {}
    model = 4 * sum(parameter.numel() for parameter in network_of(work).parameters())
    _import_what_comes_late()
    watched = watch(experiment(work, examples_of(work, setup), method={"name": method, **recipe}), setup.assignments)
    return Outcome({"models": (watched.memory_peak - watched.memory_before) / model}, watched.chosen)


def _import_what_comes_late() -> None:
    """Torch's optimisers and what draws pictures: their code is not the run's memory."""
    import matplotlib.pyplot  # noqa: F401
    import torch

    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))]).step()


def called(method: str, clients: int) -> str:
    return f"fedfuse {method}, {clients} clients"


MEMORY = Workload(
    "W8",
    "Memory at the peak, in models of 11 M parameters",
    "whether a round holds all of its clients' models at once",
    contenders=tuple(
        Contender(called(method, clients), partial(by_fedfuse, method, clients), sizes=("full", "tiny"))
        for method in METHODS
        for clients in CLIENTS
    ),
    rows=tuple(
        Row(called(method, clients), called(method, clients), "models", unit="models")
        for method in METHODS
        for clients in CLIENTS
    ),
    seconds=300,
)
