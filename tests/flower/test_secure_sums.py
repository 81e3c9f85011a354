"""Masked sums on Flower: the bits of a simulation, whoever drops out when, and nothing else for the server to see."""

from __future__ import annotations

import pytest

from fedfuse.experiment.run import Experiment
from fedfuse.flower.server import run_on
from tests.flower.federation import assert_same, flower_config, grid_for, local_config

pytestmark = pytest.mark.usefixtures("without_pictures")
SUMS = {"rounds": 2, "participation": 1.0, "claims": "taken", "moves": "taken", "secure_sums": {}}


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "ds-fl"])
def test_masked_it_is_the_same_run(tmp_path, method):
    config = flower_config(method, federation=SUMS)
    flower = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    assert flower.summary["updates_refused"] == 0
    assert_same(flower, Experiment(local_config(method, federation=SUMS)).run(tmp_path / "local"), tmp_path / "nodes")
