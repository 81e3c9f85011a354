"""A tiny experiment on a grid inside this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from fedfuse.core.tensor_files import read_safetensors
from fedfuse.experiment.config import ExperimentConfig
from fedfuse.experiment.result import RunResult
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.flower import client_app
from fedfuse.methods import METHODS
from tests.flower.grid import InProcessGrid, grid_of
from tests.helpers import files_of, tiny_config, without_seconds

QUICK = {"kind": "flower", "poll": 0.001, "wait": 0.05, "timeout": 0.05, "quorum": 0.5}
ROUNDS = {"rounds": 4, "participation": 0.75}


def flower_config(method: Any = "fedavg", **sections: Any) -> ExperimentConfig:
    return tiny_config(method, **{"engine": QUICK, "federation": ROUNDS, **sections})


def local_config(method: Any = "fedavg", **sections: Any) -> ExperimentConfig:
    return tiny_config(method, **{"federation": ROUNDS, **sections})


def grid_for(config: ExperimentConfig, folder: Path, **node_config: Any) -> InProcessGrid:
    """One node per client, all reading the same experiment file, with states below ``folder``."""
    file = folder / "experiment.yaml"
    file.write_text(config.to_yaml())
    clients = len(config.models) if config.recipe.pooled else config.partition.clients
    return grid_of(client_app(file), clients, state=str(folder / "nodes"), **node_config)


def history(result: RunResult) -> Any:
    return without_seconds([record.to_json() for record in result.history])


def assert_same(flower: RunResult, local: RunResult, nodes: Path) -> None:
    """Metrics, models and states."""
    assert history(flower) == history(local)
    if METHODS[local.summary["method"]].recipe.has_server_model:
        assert files_of(flower.folder.final) == files_of(local.folder.final)
    assert_states_are_on_the_nodes(flower, local, nodes)


def assert_states_are_on_the_nodes(flower: RunResult, local: RunResult, nodes: Path) -> None:
    """What the local engine's checkpoint has of a client lies on its node, and only there."""
    identity = local.summary["config_sha256"]
    mine, claims = (
        load_checkpoint(run.folder.checkpoints, identity, run.folder.events).snapshot.clients for run in (local, flower)
    )
    assert mine.keys() == claims.keys()
    for client, state in mine.items():
        (number,) = claims[client].values()
        (file,) = nodes.glob(f"*/client-{client}/round-{int(number):06d}.safetensors")
        kept, _ = read_safetensors(file)
        assert kept.keys() == state.keys()
        assert all(torch.equal(kept[name], state[name]) for name in state)


class CrashError(Exception):
    """The server's process ends."""


def crash_in(grid: InProcessGrid, number: int) -> None:
    """The nodes do their work of round ``number``, and then the server is gone."""
    pull = grid.pull_messages

    def pull_or_crash(ids: Any) -> Any:
        last = [node.messages[-1].content["config"] for node in grid.nodes.values() if node.messages]
        rounds = [config.get("server-round", 0) for config in last]
        if number in rounds:
            grid.pull_messages = pull
            raise CrashError
        return pull(ids)

    grid.pull_messages = pull_or_crash
