"""How the run of one trial is played for a while, on each engine: in a process that may be killed at any moment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

from tests.reliability.forked import command_line

REST = 0.004
"""Seconds of rest at every event, so that there is time to be killed in."""
SIMULATED = {
    "local": ("--workers", "1"),
    "workers": ("--workers", "2"),
    "joined": (),
    "ray": ("--engine", "ray", "--workers", "2"),
}
"""Engines on which the same run may go on, and their options."""
HAVE_WORKERS = ("workers", "joined")


def available() -> list[str]:
    """All engines for which there is what they need."""
    needs = {"ray": "ray", "flower": "flwr"}
    return [engine for engine in (*SIMULATED, "flower") if engine not in needs or find_spec(needs[engine])]


class _AtOnce(Thread):
    """A thread that is awaited: such short runs would end before a worker has joined them."""

    def start(self) -> None:
        super().start()
        self.join()


def leg(engine: str, config: Path, out: Path) -> Callable[[], None]:
    """Begin the run, or go on with it."""
    return partial(_on_flower if engine == "flower" else _simulated, engine, config, out)


def _simulated(engine: str, config: Path, out: Path) -> None:
    from fedfuse.cli import progress
    from fedfuse.engines import joined, local

    shown = progress.RunProgress.__call__
    progress.RunProgress.__call__ = lambda self, event: (time.sleep(REST), shown(self, event))
    if engine == "joined":
        joined.WORTH_SECONDS = joined.WORTH_A_JOB = 0.0
        joined.room_for_workers = joined.other_cores = local.other_cores = lambda: 1
        joined.Thread = _AtOnce
    command_line("run", str(config), "--out", str(out), "--resume", "--quiet", *SIMULATED[engine])


def _on_flower(_engine: str, config: Path, out: Path) -> None:
    """Server and nodes in one process, with real records between them."""
    os.environ |= {"FLWR_HOME": str(out.parent / "flwr"), "FLWR_TELEMETRY_ENABLED": "0"}
    from flwr.supercore.task_identity import TaskIdentity

    from fedfuse.experiment.config import read_yaml, validate
    from fedfuse.flower import server
    from tests.flower.federation import grid_for

    for name in ("_task_id", "_run_id", "_node_id"):
        setattr(TaskIdentity, name, 1)  # outside of a run there is none
    server._tell = lambda _event: time.sleep(REST)
    experiment = validate(read_yaml(config))
    folder = out.parent / f"{out.name}-nodes"
    folder.mkdir(exist_ok=True)
    server.run_on(grid_for(experiment, folder), experiment, out)
