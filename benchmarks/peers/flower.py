"""Flower: its simulation engine with one actor per core, FedAvg as a strategy, no evaluation by clients.

A round's time is taken on the server, from one central evaluation to the next; starting the actors is not counted. Its
work is done in other processes, so that only wall time says anything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0"}

from flwr.simulation import run_simulation

from benchmarks.peers.flower_apps import WORDS, client_app, ends, server_app, task
from benchmarks.peers.task import tell


def main(words: list[str]) -> None:
    code, cores, *rest = words
    os.environ[WORDS] = "\n".join([code, "1", *rest])
    os.environ.setdefault("FLWR_HOME", str(Path(words[3]) / "flower-home"))
    resources = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": int(cores)}}
    run_simulation(server_app, client_app, num_supernodes=task().work.clients, backend_config=resources)
    tell(ends)


if __name__ == "__main__":
    main(sys.argv[1:])
