"""More rounds on nodes: what they keep of their clients is found again, though the experiment has another length."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.experiment.run import Experiment
from fedfuse.flower.server import run_on
from tests.flower.federation import flower_config, grid_for, history, local_config
from tests.helpers import files_of

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.mark.parametrize("method", ["fedavg", "scaffold", "fedmd"])
def test_nodes_go_on_to_more_rounds(tmp_path: Path, method: str) -> None:
    def federation(rounds: int) -> dict[str, object]:
        return {"rounds": rounds, "participation": 0.75}

    for rounds in (2, 4):  # the second time the nodes' file says so, too
        config = flower_config(method, federation=federation(rounds))
        found = run_on(grid_for(config, tmp_path), config, tmp_path / "run")
    straight = Experiment(local_config(method, federation=federation(4))).run(tmp_path / "straight")
    assert history(found) == history(straight)
    assert found.summary["rounds"] == 4
    if method != "fedmd":
        assert files_of(found.folder.final) == files_of(straight.folder.final)
    assert len([folder for folder in (tmp_path / "nodes").iterdir() if any(folder.glob("client-*"))]) <= 1
