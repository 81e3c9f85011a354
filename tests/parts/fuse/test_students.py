"""Models that no client runs: they learn from the others, move in every round, and are refused where nobody can."""

from __future__ import annotations

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.run import Experiment
from tests.helpers import tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")

MODELS = {"small": {"arch": "mlp", "hidden": [6]}, "big": {"arch": "mlp", "hidden": [20, 10]}}
ALONE = {"rounds": 3, "shares": {"big": 0}}


def run(tmp_path, method, **sections):
    return Experiment(tiny_config(method, **{"models": MODELS, "federation": ALONE, **sections})).run(tmp_path / "run")


@pytest.mark.parametrize("method", ["feddf", "fedbe", "v-distillation", "fedaux", "true-labels", "feded-w0", "ds-fl"])
def test_a_student_without_clients_moves_in_every_round(tmp_path, method):
    history = run(tmp_path, method).history
    losses = [record.prototypes["big"].loss for record in history]
    assert len(set(losses)) == len(history)
    assert all(record.prototypes["big"].fusion["steps"] > 0 for record in history)
    assert all(record.prototypes["big"].accuracy_before_fusion is None for record in history)


def test_it_reaches_the_level_of_the_clients_models(tmp_path):
    few = {"fuse": {"kind": "ensemble_distillation", "distiller": {"steps": 150, "batch_size": 32}}}
    result = Experiment(
        data={"name": "digits", "validation": 0.1, "public": 0.3},
        partition={"kind": "dirichlet", "clients": 5, "alpha": 1.0, "min_examples": 10},
        models={"phone": {"arch": "mlp", "hidden": [16]}, "server": {"arch": "cnn3"}},
        training={"epochs": 5, "batch_size": 32},
        federation={"rounds": 4, "shares": {"server": 0}},
        method={"name": "feddf", **few},
        compute={"device": "cpu"},
    ).run(tmp_path / "run")
    assert result.accuracy["server"] > 0.8
    assert result.accuracy["server"] > result.accuracy["phone"] - 0.05


def test_a_target_is_reached_by_students_too(tmp_path):
    goal = {"target_accuracy": 0.34, "stop_at_target": True}
    summary = run(tmp_path, "feddf", federation={**ALONE, "rounds": 30}, evaluation=goal).summary
    assert all(values["rounds_to_target"] for values in summary["prototypes"].values())
    assert summary["rounds"] < 30


@pytest.mark.parametrize(
    "method",
    [
        "fedavg",
        "1-ensemble",
        "local-only",
        "fedmd",
        "centralised",
        "feddf-as-coded",
        tiny_method("feded-w0", fuse={**tiny_method("feded-w0")["fuse"], "students": ["small"]}),
    ],
    ids=lambda method: method if isinstance(method, str) else "feded-w0 with other students",
)
def test_where_nobody_would_train_it_it_is_refused(tmp_path, method):
    with pytest.raises(ConfigError, match=r"no client runs model 'big' .* nobody else trains it"):
        run(tmp_path, method)
    assert not (tmp_path / "run").exists()


def test_models_that_are_left_out_of_a_list_are_refused_too(tmp_path):
    with pytest.raises(ConfigError, match="no client runs model 'big'"):
        run(tmp_path, "fedavg", federation={"rounds": 1, "assigned": ["small"] * 4})
