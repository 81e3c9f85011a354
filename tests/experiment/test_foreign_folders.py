"""A run folder from elsewhere is opened without calling anything that it names."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import fedfuse
from fedfuse.core.errors import DataError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.experiment.config import read_yaml
from fedfuse.experiment.named_code import named_code
from fedfuse.experiment.run import Experiment
from tests.experiment.test_resume import StopAt
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")
NET = """
from torch import nn
called = []
def net(input_shape, classes):
    called.append(classes)
    return nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, classes))
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that whoever imports it leaves a trace of."""
    name = f"net_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(NET)
    monkeypatch.chdir(tmp_path)
    return name


def was_called(module: str) -> bool:
    return module in sys.modules


def forged(path: Path, module: str) -> None:
    """The same file, which now names a function."""
    tensors, about = read_safetensors(path)
    write_safetensors(path, tensors, {**about, "architecture": {"arch": "own", "callable": f"{module}:net"}})


def test_a_finished_run_from_elsewhere_calls_nothing_that_its_model_names(tmp_path: Path, module: str) -> None:
    out = tmp_path / "run"
    Experiment(tiny_config("fedavg")).run(out)
    forged(out / "final" / "mlp.safetensors", module)
    for result in (Experiment.load(out).run(out, resume=True), fedfuse.load_run(out), fedfuse.run(out, resume=True)):
        with pytest.raises(DataError, match=r"is built by calling .* if you trust the file"):
            result.model()
    assert not was_called(module)
    with pytest.raises(DataError, match="does not fit the network that 'own' builds now"):
        result.model(trust_own_code=True)
    assert was_called(module)


def test_clients_models_too(tmp_path: Path, module: str) -> None:
    out = tmp_path / "run"
    Experiment(tiny_config("local-only")).run(out)
    forged(out / "final" / "clients" / "0.safetensors", module)
    with pytest.raises(DataError, match="is built by calling"):
        fedfuse.load_run(out).client_model(0)
    assert not was_called(module)


def test_a_run_of_this_process_has_called_it_already(tmp_path: Path, module: str) -> None:
    models = {"mine": {"arch": "own", "callable": f"{module}:net"}}
    result = Experiment(tiny_config("fedavg", models=models)).run(tmp_path / "run")
    assert result.model().predict([[0.0, 1.0]]).shape == (1,)
    with pytest.raises(DataError, match="trust_own_code=True"):
        fedfuse.load_run(tmp_path / "run").model()
    assert fedfuse.load_run(tmp_path / "run").model(trust_own_code=True).predict([[0.0, 1.0]]).shape == (1,)


def test_an_unfinished_run_from_elsewhere_is_read_without_importing_what_it_names(tmp_path: Path, module: str) -> None:
    out = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        Experiment(tiny_config("fedavg")).run(out, listeners=(StopAt("round_started", 2),))
    before = fedfuse.load_run(out)
    assert before.summary["rounds"] == 1
    config = (out / "config.yaml").read_text()
    (out / "config.yaml").write_text(config.replace("arch: mlp", f"arch: own\n    callable: {module}:net"))
    shutil.rmtree(out / "checkpoints")
    after = fedfuse.load_run(out)
    assert (after.accuracy, after.history, after.is_finished) == (before.accuracy, before.history, False)
    assert not was_called(module)


NAMING = {
    "a method": {"method": "mine:METHOD"},
    "a method by its name": {"method": {"name": "mine:METHOD"}},
    "what changes a method": {"methods": {"mine:METHOD": {}}},
    "a part": {"method": {"name": "fedavg", "merge": {"kind": "mine:Median"}}},
    "a link": {"method": {"name": "fedavg", "upload": [{"kind": "half"}, {"kind": "mine:Link"}]}},
    "a partition": {"partition": {"kind": "mine:Split"}},
    "a metric": {"evaluation": {"metrics": [{"kind": "mine:Metric"}]}},
    "a network": {"models": {"a": {"arch": "own", "callable": "mine:net"}}},
    "an architecture": {"models": {"a": {"arch": "mine:Net"}}},
    "a source": {"source": {"kind": "callable", "callable": "mine:draw"}},
    "data": {"data": {"name": "python", "path": "mine:load"}},
}


@pytest.mark.parametrize("name", list(NAMING))
def test_whatever_a_config_names_is_found_without_importing_it(name: str) -> None:
    assert str(named_code(NAMING[name])).startswith("mine:")


def test_what_names_no_code_needs_no_trust(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(tiny_config("feddf").to_yaml())
    assert named_code(read_yaml(tmp_path / "config.yaml")) is None
    assert (
        named_code({"name": "a:b", "data": {"name": "hf:someone/texts"}, "engine": {"address": "10.0.0.1:1"}}) is None
    )
