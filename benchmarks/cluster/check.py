"""Rounds for real, on engines of one and two processes, and what it costs to move tasks there.

A Ray cluster listens on all interfaces, so it is started where there is none but the loopback: in a network namespace.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.cluster.measure import moving
from benchmarks.cluster.workload import Echo, built
from fedfuse.engines.ray.engine import RayEngine, RayEngineSettings
from fedfuse.engines.workers import WorkersEngine
from fedfuse.federation import Engine
from fedfuse.federation.events import EventLog

METHODS = ("fedavg", "feddf")
ROUNDS = 3
PATIENCE = 900
"""Seconds after which Ray is given up."""

Rounds = dict[str, float]
"""Seconds of a round by 'method, engine, processes'."""


def rounds(folder: Path, method: str, **settings: Any) -> float:
    """The shortest of several rounds, after one in which processes start and networks are built."""
    whole = built(folder, method, **settings)
    federation = whole.federation
    try:
        snapshot, found = federation.advance(federation.start()), []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            snapshot = federation.advance(snapshot)
            found.append(time.perf_counter() - began)
    finally:
        federation.engine.close()
    return min(found)


def local(folder: Path) -> tuple[tuple[float, float], Rounds]:
    """This process, and two worker processes."""
    found = {f"{method}, process, 1": rounds(folder, method) for method in METHODS}
    found |= {f"{method}, workers, 2": rounds(folder, method, workers=2) for method in METHODS}
    return _moving(WorkersEngine(Echo(), 1, None, EventLog())), found  # type: ignore[arg-type]


def _moving(engine: Engine) -> tuple[float, float]:
    try:
        return moving(engine)
    finally:
        engine.close()


def ray(folder: Path) -> tuple[tuple[float, float], Rounds] | None:
    """One and two Ray nodes with a core each, in a namespace of their own; None where that cannot be."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return None
    inside = f"ip link set lo up && exec {sys.executable} -m benchmarks.cluster.check {folder}"
    apart = ["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    try:
        done = subprocess.run(["unshare", *apart, "sh", "-c", inside], capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
        return None
    found = json.loads(done.stdout.splitlines()[-1])
    return tuple(found["moved"]), found["rounds"]


def _inside(folder: Path) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    settings = {"kind": "ray", "address": cluster.address}
    found: Rounds = {}
    try:
        for nodes in (1, 2):
            cluster.add_node(num_cpus=1)
            found |= {f"{method}, ray, {nodes}": rounds(folder, method, **settings) for method in METHODS}
        alone = RayEngineSettings(address=cluster.address, workers=1)
        moved = _moving(RayEngine(alone, Echo(), EventLog()))  # type: ignore[arg-type]
    finally:
        cluster.shutdown()
    print(json.dumps({"moved": moved, "rounds": found}))


if __name__ == "__main__":
    _inside(Path(sys.argv[1]))
