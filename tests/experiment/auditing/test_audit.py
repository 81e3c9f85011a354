"""What left the parties of small runs, attacked."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from fedfuse import ConfigError, Experiment, FedfuseError, audit
from fedfuse.core.randomness import Key
from fedfuse.data.partition import Assignment
from fedfuse.experiment.auditing.left import margin
from fedfuse.experiment.auditing.shadows import halves
from fedfuse.privacy.membership import most_that_epsilon_allows

pytestmark = pytest.mark.usefixtures("without_pictures")
MEMORISES = {"epochs": 60, "batch_size": 8, "optimizer": {"kind": "adam", "learning_rate": 0.01}}
LEARNS_NOTHING = {"epochs": 1, "batch_size": 8, "optimizer": {"kind": "sgd", "learning_rate": 1e-9}}
NOISE_AS_DATA = {"name": "blobs", "examples": 200, "spread": 10.0, "validation": 0.0, "public": 0.2, "test": 0.3}
"""Classes that nobody can tell apart: whoever is right about an example has seen it."""
ALL = {"rounds": 1, "participation": 1.0}
TWO = {"kind": "iid", "clients": 2}


@pytest.fixture
def noise(config):
    def make(method: str = "fedavg", training=MEMORISES, **sections):
        values = {"data": NOISE_AS_DATA, "partition": TWO, "federation": ALL, "training": training, **sections}
        return config(method, models={"mlp": {"arch": "mlp", "hidden": [100]}}, **values)

    return make


def test_what_was_learnt_by_heart_is_found(noise, out) -> None:
    Experiment(noise()).run(out)
    found = audit(out, shadows=2)
    by_attack = {(one.what, one.attack): one for one in found.findings}
    assert by_attack["mean of 2 clients", "loss"].auc.low > 0.6
    assert by_attack["mean of 2 clients", "LiRA"].auc.low > 0.6
    assert {one.what for one in found.clients} == {"client 0", "client 1"}
    json.dumps(found.as_json())


def test_a_model_that_has_learnt_nothing_tells_nothing(noise, out) -> None:
    Experiment(noise(training=LEARNS_NOTHING)).run(out)
    for one in audit(out, shadows=2).findings:
        if "highest" not in one.what:
            assert one.auc.low <= 0.5 <= one.auc.high, one


def test_shadows_are_trained_once_and_more_may_be_added(noise, out) -> None:
    Experiment(noise()).run(out)
    first = audit(out, 2)
    files = {path.name: path.stat().st_mtime_ns for path in (out / "audit").iterdir()}
    assert sorted(files) == ["shadow-0.safetensors", "shadow-1.safetensors"]
    again = audit(out, 2)
    assert again.as_json() == first.as_json()
    assert {path.name: path.stat().st_mtime_ns for path in (out / "audit").iterdir()} == files
    (out / "audit" / "shadow-1.safetensors").write_bytes(b"damaged")
    assert audit(out, 2).as_json() == first.as_json()


def test_an_audit_changes_nothing_of_the_run(noise, out) -> None:
    Experiment(noise()).run(out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    audit(out)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_models_of_all_rounds_where_they_were_kept(noise, out) -> None:
    federation = {"rounds": 2, "participation": 1.0, "keep_clients": True}
    Experiment(noise(federation=federation)).run(out)
    found = [one for one in audit(out).findings if one.attack == "loss, all rounds"]
    assert found[0].what == "mean of 2 clients"
    assert found[0].auc.low > 0.6


def test_answers_about_public_inputs_are_what_is_attacked_of_predictions(noise, out) -> None:
    Experiment(noise("fedmd")).run(out)
    found = audit(out)
    assert {one.attack for one in found.findings} == {"nearest answers", "nearest labels"}
    assert not any("model" in one.what for one in found.findings), "FedMD has no model of the server, and sends none"


def test_epsilon_stands_beside_and_bounds_what_is_found(noise, out) -> None:
    training = {"epochs": 1, "batch_size": 20, "privacy": {"norm": 1.0, "multiplier": 4.0}}
    Experiment(noise(training=training, privacy={"unit": "example"})).run(out)
    found = audit(out)
    assert all(0.1 < one.epsilon <= 1 for one in found.findings)
    assert not any(one.breaks_promise for one in found.findings)
    assert "epsilon" in repr(found)


def test_epsilon_of_a_client_allows_more_about_one_example(noise, out) -> None:
    parts = {
        "merge": {"weighting": "uniform"},
        "upload": [{"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 4.0}],
    }
    Experiment(noise({"name": "fedavg", **parts}, privacy={"unit": "client"})).run(out)
    for one in audit(out).findings:
        assert one.epsilon == pytest.approx(1.0, abs=0.2)
        assert one.allowed == most_that_epsilon_allows(0.01, one.epsilon, 1e-5, of_a_client=True)
        assert one.allowed > 2 * most_that_epsilon_allows(0.01, one.epsilon, 1e-5)


def test_what_cannot_be_audited_is_said(config, out) -> None:
    with pytest.raises(ConfigError, match="pairs"):
        audit(out, shadows=3)
    with pytest.raises(FedfuseError):
        audit(out)
    Experiment(config("local-only")).run(out)
    with pytest.raises(ConfigError, match="nothing to attack"):
        audit(out)


def test_every_example_is_missing_in_half_of_the_shadows() -> None:
    assignment = Assignment.of([np.array([4, 1, 7]), np.array([0]), np.array([2, 3, 5, 6])])
    inside = halves(assignment, 9, 5, Key(0), 0)
    assert inside.shape == (2, 14)
    assert inside[:, 0].all(), "one that is a client's only one is in both"
    assert not inside[:, 8].any(), "one that nobody has is in none"
    others = [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13]
    assert (inside[:, others].sum(axis=0) == 1).all()
    assert [inside[number, assignment[2]].sum() for number in (0, 1)] == [2, 2]
    assert not np.array_equal(inside, halves(assignment, 9, 5, Key(0), 1))


def test_the_margin_falls_with_the_loss() -> None:
    logits, labels = torch.randn(50, 7, dtype=torch.float64), torch.randint(7, (50,))
    loss = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    assert torch.allclose(torch.nn.functional.softplus(-margin(logits, labels)), loss)
