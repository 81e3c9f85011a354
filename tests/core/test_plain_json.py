"""JSON without the words that JSON has not."""

from __future__ import annotations

import json
import math

import pytest

from fedfuse.core.plain_json import dumps, finite
from fedfuse.core.tensor_files import read_safetensors
from fedfuse.core.weights import is_finite
from fedfuse.experiment.run import Experiment
from fedfuse.federation.checkpoint import load_checkpoint
from fedfuse.methods import METHODS
from tests.helpers import tiny_config, tiny_method


def refuse(word):
    raise AssertionError(f"{word} is not JSON")


def test_numbers_that_are_not_finite_are_null_wherever_they_lie():
    value = {"a": math.nan, "b": [1.5, math.inf, {"c": (-math.inf, True, "NaN")}], "d": 3, "e": None}
    text = dumps(value)
    assert json.loads(text, parse_constant=refuse) == {
        "a": None, "b": [1.5, None, {"c": [None, True, "NaN"]}], "d": 3, "e": None,
    }  # fmt: skip


def test_what_is_finite_is_as_json_writes_it():
    value = {"x": [0.1, 1e-300, 2**70], "y": {"z": "word"}}
    assert dumps(value) == json.dumps(value)
    assert dumps(value, indent=2) == json.dumps(value, indent=2)


@pytest.mark.parametrize(("number", "expected"), [(1.0, 1.0), (math.nan, None), (math.inf, None), (None, None)])
def test_finite(number, expected):
    assert finite(number) == expected


def assert_strict(folder):
    """Every word of every JSON file is one that JSON has."""
    for path in folder.rglob("*.json*"):
        for line in path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]:
            json.loads(line, parse_constant=refuse)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("method", sorted(METHODS))
def test_whatever_method_diverges_its_files_are_json_and_its_models_finite(tmp_path, method):
    """At a rate at which no network learns anything, numbers overflow in clients, in what they send and in students."""
    training = {"epochs": 1, "batch_size": 8, "optimizer": {"kind": "sgd", "learning_rate": 1e10}}
    models = {"mlp": {"arch": "mlp", "hidden": [6, 5]}}
    result = Experiment(tiny_config(method, training=training, models=models)).run(tmp_path / "run")
    assert_strict(tmp_path / "run")
    for file in (tmp_path / "run" / "final").glob("*.safetensors"):
        tensors, _ = read_safetensors(file)
        assert all(is_finite(tensor) for tensor in tensors.values() if tensor.is_floating_point())
    saved = load_checkpoint(result.folder.checkpoints, result.summary["config_sha256"], result.folder.events)
    for part, memory in saved.snapshot.server.memory.items():
        numbers = [tensor.nan_to_num(nan=0.0, posinf=math.inf) for tensor in memory.values()]
        assert all(is_finite(t) for t in numbers if t.is_floating_point()), part


@pytest.mark.usefixtures("without_pictures")
def test_no_file_of_a_run_that_diverges_has_another_word(tmp_path):
    """Clients at a rate at which some losses overflow, and a student that diverges in every round."""
    wild = {"steps": 40, "batch_size": 16, "loss": "mse", "schedule": "constant", "evaluate_every": 10}
    fuse = {"kind": "ensemble_distillation", "distiller": {**wild, "optimizer": {"kind": "sgd", "learning_rate": 1e4}}}
    training = {"epochs": 2, "batch_size": 8, "optimizer": {"kind": "sgd", "learning_rate": 1e12}}
    Experiment(tiny_config(tiny_method("feddf", fuse=fuse), training=training)).run(tmp_path / "run")
    assert_strict(tmp_path / "run")
    events = [json.loads(line)["event"] for line in (tmp_path / "run" / "events.jsonl").read_text().splitlines()]
    assert "model_diverged" in events or "update_refused" in events
