"""The programs of the page on stock strategies run as they stand there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from flwr.app import Context, RecordDict
from flwr.serverapp import ServerApp

from fedfuse.parts.fuse import Distiller
from tests.flower.strategies.apps import INPUTS, Large, client, grid_of, small

PAGE = Path(__file__).parents[3] / "docs" / "flower.md"


@pytest.fixture
def blocks(monkeypatch):
    """The section's programs, with an app of one's own to import from."""
    task = ModuleType("my_app.task")
    task.Net = task.SmallNet = small
    task.LargeNet, task.unlabelled_images = Large, lambda: INPUTS
    monkeypatch.setitem(sys.modules, "my_app", ModuleType("my_app"))
    monkeypatch.setitem(sys.modules, "my_app.task", task)
    section = PAGE.read_text().split("## Stock strategies")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    assert len(found) == 3
    return found


def run(block, **names):
    exec(compile(block, str(PAGE), "exec"), names)
    return names


def test_the_server_app(blocks):
    """With fewer steps and rounds than the page has, which take minutes."""
    names = run(blocks[0].replace("steps=500", "steps=5").replace("num_rounds=10", "num_rounds=1"))
    assert isinstance(names["app"], ServerApp)
    grid = grid_of(*(client(number, small) for number in range(4)))
    names["main"](grid, Context(1, 1, {}, RecordDict(), {}))
    assert sum(len(node.messages) for node in grid.nodes.values()) == 2 + 4


def test_several_networks(blocks):
    quick = blocks[1].replace("unlabelled_images())", "unlabelled_images(), distiller=few, fraction_evaluate=0.0)")
    strategy = run(quick, few=Distiller(steps=5))["strategy"]
    small_client, large_client = client(0, small), client(1, Large, "large")
    app = run(blocks[2])["app"]

    @app.train()
    def train(message, context):
        return small_client(message, context)

    grid = grid_of(app, large_client)
    calls = re.findall(r"# (?:in main|a student): (.*)", blocks[1])
    names = {"strategy": strategy, "grid": grid}
    exec(calls[0].replace("num_rounds=10", "num_rounds=1"), names)
    state = eval(calls[1], names)
    small().load_state_dict(state)
    assert names["result"].train_metrics_clientapp[1]["teachers"] == 2
    assert all(isinstance(tensor, torch.Tensor) for tensor in state.values())
