"""The Flower engine gives the bits of the local engine, for every method, and after any crash."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.tensor_files import read_safetensors
from fedfuse.experiment import Experiment
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.flower import client_app
from fedfuse.flower.server import run_on
from fedfuse.methods import METHODS
from tests.flower.grid import grid_of
from tests.helpers import files_of, tiny_config, without_seconds

pytestmark = pytest.mark.usefixtures("without_pictures")
FLOWER = {"kind": "flower", "poll": 0.001, "wait": 5, "timeout": 20, "quorum": 1.0}
THREE_MODELS = {name: {"arch": "mlp", "hidden": [width, 5]} for name, width in [("a", 4), ("b", 6), ("c", 9)]}


def on_flower(config, folder, **node_config):
    """The grid of an experiment file that server and nodes read, and the experiment."""
    file = folder / "experiment.yaml"
    file.write_text(config.to_yaml())
    clients = 4 if not config.recipe.exchange.pools_data else len(config.models)
    return grid_of(client_app(file), clients, state=str(folder / "nodes"), **node_config)


def history(result):
    return without_seconds([record.to_json() for record in result.history])


def assert_same(flower, local):
    assert history(flower) == history(local)
    if local.summary["prototypes"]["mlp"]["weights_sha256"]:
        assert files_of(flower.folder.final) == files_of(local.folder.final)


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(tmp_path, method):
    config = tiny_config(method, engine=FLOWER, federation={"rounds": 3, "participation": 0.75})
    grid = on_flower(config, tmp_path)
    flower = run_on(grid, config, tmp_path / "flower")
    local = Experiment(tiny_config(method, federation={"rounds": 3, "participation": 0.75})).run(tmp_path / "local")
    assert flower.summary["updates_refused"] == 0
    assert_same(flower, local)
    assert_states_are_the_nodes(flower, local, tmp_path / "nodes")


def assert_states_are_the_nodes(flower, local, nodes):
    """What the local engine's checkpoint has of a client lies on its node, and only there."""
    identity = local.summary["config_sha256"]
    mine = load_checkpoint(local.folder.checkpoints, identity).clients
    claims = load_checkpoint(flower.folder.checkpoints, identity).clients
    assert mine.keys() == claims.keys()
    for client, state in mine.items():
        (number,) = claims[client].values()
        kept, _ = read_safetensors(nodes / identity[:16] / f"client-{client}" / f"round-{int(number):06d}.safetensors")
        assert kept.keys() == state.keys()
        assert all(torch.equal(kept[name], state[name]) for name in state)
