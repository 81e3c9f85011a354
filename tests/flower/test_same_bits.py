"""The Flower engine gives the bits of the local engine, for every method, and after any crash."""

from __future__ import annotations

import pytest

from fedfuse.experiment.assembly import build
from fedfuse.experiment.run import Experiment
from fedfuse.federation.events import EventLog
from fedfuse.flower.server import run_on
from fedfuse.methods import METHODS
from tests.flower.federation import ROUNDS, CrashError, assert_same, crash_in, flower_config, grid_for, local_config
from tests.helpers import BentEngine

pytestmark = pytest.mark.usefixtures("without_pictures")
WITH_STATE = [name for name, method in METHODS.items() if method.client_keeps != "nothing"]


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(tmp_path, method):
    config = flower_config(method)
    flower = run_on(grid_for(config, tmp_path), config, tmp_path / "flower")
    assert flower.summary["updates_refused"] == 0
    assert_same(flower, Experiment(local_config(method)).run(tmp_path / "local"), tmp_path / "nodes")


@pytest.mark.parametrize(
    ("method", "every"), [*((name, 1) for name in WITH_STATE), ("scaffold", 3), ("fedma", 3), ("cfd", 2)]
)
def test_nodes_were_ahead_of_a_server_that_crashed(tmp_path, method, every):
    federation = {**ROUNDS, "checkpoint_every": every}
    config = flower_config(method, federation=federation)
    grid = grid_for(config, tmp_path)
    for number in (2, 4):
        crash_in(grid, number)
        with pytest.raises(CrashError):
            run_on(grid, config, tmp_path / "flower")
    flower = run_on(grid, config, tmp_path / "flower")
    local = Experiment(local_config(method, federation=federation)).run(tmp_path / "local")
    assert_same(flower, local, tmp_path / "nodes")


def test_the_older_checkpoint_will_do(tmp_path):
    config = flower_config("scaffold")
    grid = grid_for(config, tmp_path)
    crash_in(grid, 4)
    with pytest.raises(CrashError):
        run_on(grid, config, tmp_path / "flower")
    newest = tmp_path / "flower" / "checkpoints" / "round-000003.safetensors"
    newest.write_bytes(newest.read_bytes()[:100])
    flower = run_on(grid, config, tmp_path / "flower")
    assert_same(flower, Experiment(local_config("scaffold")).run(tmp_path / "local"), tmp_path / "nodes")


@pytest.mark.parametrize("method", ["scaffold", "feded-w2", "moon"])
def test_an_answer_that_did_not_arrive_in_time_never_was(tmp_path, method):
    """As if the local engine had not heard that client in that round, state included."""
    config = flower_config(method, federation={"rounds": 4})
    grid = grid_for(config, tmp_path)
    lost = 1

    def late(reply):
        return [] if grid.nodes[100 - lost].messages[-1].content["config"].get("server-round") == 2 else [reply]

    grid.nodes[100 - lost].bend = late
    flower = run_on(grid, config, tmp_path / "flower")
    assert flower.history[1].late == (lost,)

    deaf = local_config(method, federation={"rounds": 4})
    inner = build(deaf, EventLog()).federation.engine
    engine = BentEngine(inner, lambda pairs: [p for p in pairs if (p[0].round, p[0].client) != (2, lost)])
    assert_same(flower, Experiment(deaf).run(tmp_path / "local", engine=engine), tmp_path / "nodes")
