"""The generated app is one that Flower accepts and that runs as it is."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.cli.config_utils import load_and_validate
from typer.testing import CliRunner

from fedfuse.cli.app import app as cli
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import read_yaml, validate
from fedfuse.experiment.run import Experiment
from fedfuse.flower.party import clients_of
from fedfuse.flower.project import new_project
from fedfuse.flower.server import run_on
from tests.flower.federation import assert_same, flower_config, grid_of, local_config


@pytest.fixture
def importable(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path / "tiny-app"))
    yield
    for name in [name for name in sys.modules if name.startswith("tiny_app")]:
        del sys.modules[name]


def test_flower_accepts_it(tmp_path):
    new_project(tmp_path / "Our App")
    load_and_validate(tmp_path / "Our App" / "pyproject.toml", check_module=False)
    assert build_fab_from_disk(tmp_path / "Our App")
    assert (tmp_path / "Our App" / "our_app" / "client_app.py").exists()


def test_the_example_is_a_sound_experiment(tmp_path):
    package = new_project(tmp_path / "app-1")
    config = validate(read_yaml(package / "experiment.yaml"))
    assert config.engine.kind == "flower"
    assert len(config.models) == config.partition.clients == 3


def test_flower_has_nothing_to_fetch_for_it(tmp_path):
    """Flower's simulation prepares an app's dependencies so, and there may be no network."""
    new_project(tmp_path / "our-app")
    command = [sys.executable, "-m", "uv", "sync", "--offline", "--no-install-project", "--python", sys.executable]
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(tmp_path / "environment")}
    done = subprocess.run(
        command, cwd=tmp_path / "our-app", env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("importable", "without_pictures")
def test_it_runs_as_it_is(tmp_path):
    config = flower_config("feddf")
    (tmp_path / "mine.yaml").write_text(config.to_yaml())
    new_project(tmp_path / "tiny-app", str(tmp_path / "mine.yaml"))
    app = importlib.import_module("tiny_app.client_app").app
    flower = run_on(grid_of(app, 4, state=str(tmp_path / "nodes")), config, tmp_path / "flower")
    assert_same(flower, Experiment(local_config("feddf")).run(tmp_path / "local"), tmp_path / "nodes")


@pytest.mark.usefixtures("importable", "without_pictures")
def test_a_party_with_a_file_of_its_own(tmp_path):
    """Its answer counts as many examples as its file has, in a federation of others who have none."""
    config = flower_config(federation={"rounds": 1})
    (tmp_path / "mine.yaml").write_text(config.to_yaml())
    new_project(tmp_path / "tiny-app", str(tmp_path / "mine.yaml"))
    grid = grid_of(importlib.import_module("tiny_app.client_app").app, 4)
    held = clients_of(config, 0, {}).datasets[0]
    np.savez(tmp_path / "ours.npz", x=held.inputs[:5].numpy(), y=held.labels[:5].numpy())
    grid.nodes[98].context.node_config["data"] = str(tmp_path / "ours.npz")
    run_on(grid, config, tmp_path / "flower")
    reply = grid.nodes[98].answer(grid.nodes[98].messages[-1])[0]
    assert reply.content["metrics"]["num-examples"] == 5


@pytest.mark.parametrize("name", ["1app", "x" * 40, "ü", "a"])
def test_names_that_flower_refuses(tmp_path, name):
    with pytest.raises(ConfigError, match="the folder names the app"):
        new_project(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_other_files_are_kept(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is not empty"):
        new_project(tmp_path)


class TestCommandLine:
    def run(self, *arguments):
        return CliRunner().invoke(cli, ["flower", *map(str, arguments)])

    def test_new_and_keys(self, tmp_path):
        assert self.run("new", tmp_path / "an-app").exit_code == 0
        answer = self.run("keys", tmp_path / "keys", "--nodes", 2)
        assert answer.exit_code == 0
        assert "[superlink.fedfuse]" in answer.output

    @pytest.mark.parametrize("command", [["superlink"], ["supernode", "--client", "0"]])
    def test_keys_or_insecure_must_be_said(self, command):
        assert "give --keys DIR" in str(self.run(*command).exception)
        assert "give --keys DIR" in str(self.run(*command, "--insecure", "--keys", "keys").exception)


def test_the_flower_engine_belongs_into_an_app(tmp_path):
    with pytest.raises(ConfigError, match="engine flower runs inside a Flower app"):
        Experiment(flower_config()).run(tmp_path / "run")
