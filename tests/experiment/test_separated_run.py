"""A whole run on data that comes separated by client."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedfuse import Experiment
from fedfuse.data import PartitionReport


@pytest.mark.usefixtures("without_pictures")
def test_every_client_trains_on_its_own_examples(tmp_path: Path, out: Path) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 120)
    owners = np.repeat(["north", "south", "east"], 40)
    inputs = random.normal(labels[:, None], 0.3, (120, 2))
    np.savez(tmp_path / "d.npz", x=inputs, y=labels, clients=owners)
    result = Experiment(
        data={"name": "npz", "path": str(tmp_path / "d.npz"), "test": 30, "validation": 0},
        partition={"kind": "natural"},
        models={"m": {"arch": "mlp", "hidden": [4]}},
        training={"epochs": 5},
        federation={"rounds": 3},
    ).run(out)
    report = PartitionReport.load(result.folder.partition)
    assert [client.name for client in report.clients] == ["east", "north", "south"]
    assert sum(client.size for client in report.clients) == 90
    assert result.accuracy["m"] > 0.8
