"""Who the peers are, and as which contenders they take part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from fedfuse.experiment.bench.cores import available_cores
from fedfuse.experiment.bench.workloads.base import Contender, Workload
from fedfuse.experiment.bench.workloads.rounds import against_the_loop

ROOT = Path(__file__).parent.parent.parent
WORKLOADS = ("W1", "W3")
"""Which the peers' programs know."""


@dataclass(frozen=True)
class Peer:
    """A package, and on how many cores it takes part."""

    name: str
    requirement: str
    one_core: bool = True
    all_cores: bool = False

    @property
    def module(self) -> str:
        return f"benchmarks.peers.{self.name.lower()}"


PEERS = (
    Peer("pfl", "pfl==0.6.0", all_cores=True),
    Peer("fluke", "fluke-fl==0.8.1", all_cores=True),
    Peer("FLGo", "flgo==0.4.4"),
    Peer("FedLab", "fedlab==1.3.0"),
    Peer("Flower", "flwr[simulation]==1.41.0", one_core=False, all_cores=True),
)
Pythons = Mapping[str, Path | str]
"""By peer, the interpreter of its environment, or why there is none."""


def with_peers(workload: Workload, pythons: Pythons) -> Workload:
    """The workload with the peers among its contenders, if their programs know it."""
    if workload.code not in WORKLOADS:
        return workload
    peers = tuple(_contender(peer, workload, pythons[peer.name], many) for peer in PEERS for many in _cores(peer))
    contenders = (*workload.contenders, *peers)
    return replace(workload, contenders=contenders, rows=against_the_loop(contenders))


def _cores(peer: Peer) -> tuple[bool, ...]:
    return (*((False,) if peer.one_core else ()), *((True,) if peer.all_cores else ()))


def _contender(peer: Peer, workload: Workload, python: Path | str, all_cores: bool) -> Contender:
    name = f"{peer.name} {peer.requirement.partition('==')[2]}{', all cores' if all_cores else ''}"
    if isinstance(python, str):
        return Contender(name, all_cores=all_cores, unusable=python, sizes=("full", "small", "quick", "tiny"))
    threads = str(available_cores() if all_cores else 1)
    return Contender(
        name,
        all_cores=all_cores,
        sizes=("full", "small", "quick", "tiny"),
        command=(str(python), "-m", peer.module, workload.code, threads),
        environment={"PYTHONPATH": ":".join(map(str, (ROOT / "src", ROOT, ROOT / "benchmarks" / "peers" / "stubs")))},
    )


def pythons_of(find: Callable[[Peer], Path]) -> dict[str, Path | str]:
    """All environments; a peer without one says why."""
    from benchmarks.peers.environments import InstallationError

    found: dict[str, Path | str] = {}
    for peer in PEERS:
        try:
            found[peer.name] = find(peer)
        except InstallationError as error:
            found[peer.name] = str(error)
    return found
