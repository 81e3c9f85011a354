"""The check of all methods: a method below its floor, without floor or broken is told, and makes it fail."""

from __future__ import annotations

import math

import pytest
import yaml
from benchmarks.check_methods import FLOORS, Floors, Verdict, main, plan, suggested_floor

from fedfuse import Experiment
from fedfuse.methods import METHODS

TINY = {
    "data": {"name": "blobs", "examples": 150, "validation": 0.15, "public": 0.2},
    "partition": {"kind": "iid", "clients": 3},
    "models": {"mlp": {"arch": "mlp", "hidden": [6]}},
    "training": {"epochs": 2, "batch_size": 8},
    "federation": {"rounds": 2},
    "compute": {"device": "cpu"},
}
pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture
def check(tmp_path, capsys):
    """Runs the check with a table of its own; gives its exit code, table and complaints."""

    def checked(methods, floors):
        path = tmp_path / "floors.yaml"
        path.write_text(yaml.safe_dump({"seeds": [0, 1], "experiment": TINY, "methods": floors}))
        code = main([*methods, "--floors", str(path)])
        told = capsys.readouterr()
        return code, told.out, told.err

    return checked


def test_a_sound_method_passes(check):
    code, table, complaints = check(["fedavg"], {"fedavg": {"floor": 0.4}})
    assert (code, complaints) == (0, "")
    assert "fedavg    0.40" in table


def test_below_its_floor(check):
    experiment = {"training": {"optimizer": {"kind": "sgd", "learning_rate": 1e-9}}}
    code, _, complaints = check(["fedavg"], {"fedavg": {"floor": 0.99, "experiment": experiment}})
    assert code == 1
    assert "below its floor of 0.99" in complaints


def test_without_floor(check):
    code, _, complaints = check(["fedavg", "fedprox"], {"fedavg": {"floor": 0.4}})
    assert code == 1
    assert "fedprox has no floor: add 'fedprox: {floor: 0." in complaints
    assert "fedavg" not in complaints


def test_a_broken_method_is_told_and_the_others_run_on(check):
    floors = {"fedavg": {"floor": 0.4}, "fedgkd-plus": {"floor": 0.4}}  # which needs a projection head
    code, table, complaints = check(["fedgkd-plus", "fedavg"], floors)
    assert code == 1
    assert "fedgkd-plus failed: seed 0: ConfigError" in complaints
    assert "fedavg" in table


def test_the_ensemble_can_be_what_counts(check):
    floors = {"1-ensemble": {"floor": 0.3, "measure": "ensemble"}, "fedavg": {"floor": 0.3, "measure": "ensemble"}}
    code, _, complaints = check(["1-ensemble"], floors)
    assert code == 0
    code, _, complaints = check(["fedavg"], floors)
    assert code == 1, "FedAvg has no ensemble to measure"
    assert "fedavg reaches nan" in complaints


@pytest.mark.parametrize("place", ["asked for", "in the table"])
def test_an_unknown_method(check, place):
    methods, floors = (["fedavgg"], {}) if place == "asked for" else ([], {"fedavgg": {"floor": 0.4}})
    with pytest.raises(SystemExit, match="2"):
        check(methods, floors)


def test_a_suggested_floor_lies_below_the_mean():
    assert suggested_floor(0.8765) == 0.84
    assert suggested_floor(0.0) > 0
    assert Verdict("x", None, (math.nan,), 1.0, "it broke").complaint == "x failed: it broke"


def test_the_table_of_floors_is_about_experiments_that_exist():
    floors = Floors.read(FLOORS)
    assert set(floors.methods) <= set(METHODS)
    jobs = plan(floors, list(floors.methods))
    assert len(jobs) == len(floors.seeds) * len(floors.methods)
    for job in jobs[:: len(floors.seeds)]:
        assert Experiment(job.values).config.method.name == job.method
    chance = 0.1
    assert all(expected.floor is not None and expected.floor > 2.5 * chance for expected in floors.methods.values())
