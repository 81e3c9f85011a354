from __future__ import annotations

import json

import pytest

from fedfuse.experiment.config import validate
from fedfuse.experiment.cost import Speed, Work, speed_here, total, work_of

EXPERIMENT = {
    "data": {"name": "blobs", "examples": 120, "validation": 0, "public": 0.2},
    "partition": {"kind": "iid", "clients": 2},
    "models": {"model": {"arch": "mlp", "hidden": [4]}},
    "federation": {"rounds": 2},
}

FORWARD = 2 * (2 * 4 + 4 * 3)
"""Multiplications and additions of an MLP from 2 inputs over 4 to 3 outputs."""


def config(**changes):
    return validate({**EXPERIMENT, "method": "fedavg", **changes})


def test_work_of_fedavg_by_hand() -> None:
    # 120 examples, a fifth of them public: two clients with 48 each, one epoch in one batch of 64, two rounds
    assert work_of(config()) == Work(operations=2 * 2 * 48 * 3 * FORWARD, steps=2 * 2)


def test_distillation_adds_its_steps_and_its_teachers() -> None:
    feddf = config(method={"name": "feddf", "fuse": {"distiller": {"steps": 10, "batch_size": 8}}})
    extra = 2 * (10 * 8 * 3 * FORWARD + 2 * 24 * FORWARD)
    assert work_of(feddf) == Work(work_of(config()).operations + extra, 4 + 2 * 10)


def test_inputs_that_are_made_cost_passes_of_their_teachers() -> None:
    method = {"name": "feddf", "fuse": {"distiller": {"steps": 10, "batch_size": 8}}}
    noise = config(method=method, source={"kind": "uniform_noise", "size": 40})
    made = config(method=method, source={"kind": "synthesised", "size": 40, "steps": 5, "renewal": 0.5})
    # two teachers; 40 inputs in round 1 and 20 in round 2, five steps each, three forward passes a step
    assert work_of(made).operations - work_of(noise).operations == 2 * (40 + 20) * 5 * 3 * FORWARD


def test_runs_with_the_same_content_count_once() -> None:
    assert total([config(), config(name="other")]) == work_of(config())
    assert total([config(), config(seed=1)]).steps == 2 * work_of(config()).steps


def test_seconds() -> None:
    assert Work(200.0, 3).seconds(Speed(100.0, 0.5)) == 3.5


def test_the_machine_is_measured_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("fedfuse.experiment.cost.BENCHMARK_SECONDS", 0.01)
    first = speed_here(tmp_path / "speed.json")
    assert first.operations_per_second > 0
    assert first.seconds_per_step > 0
    with monkeypatch.context() as patch:
        patch.setattr("fedfuse.experiment.cost._seconds_per_step", pytest.fail)
        assert speed_here(tmp_path / "speed.json") == first
    monkeypatch.setattr("fedfuse.experiment.cost.machine", lambda: "another one")
    monkeypatch.setattr("fedfuse.experiment.cost._seconds_per_step", lambda _network, _shape, batch: batch / 10)
    assert speed_here(tmp_path / "speed.json").seconds_per_step == 0.2
    assert json.loads((tmp_path / "speed.json").read_text())["machine"] == "another one"
