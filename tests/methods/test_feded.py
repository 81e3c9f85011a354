"""FedED as a whole: weights stay at home, the ledger shows it, the student learns what the clients say."""

from __future__ import annotations

import pytest
import torch

from fedfuse.config import validate
from fedfuse.core.errors import ConfigError
from fedfuse.core.weights import NOTHING
from fedfuse.experiment import Experiment
from fedfuse.federation import Recipe
from tests.helpers import Recorder, make_federation, played, tiny_config, tiny_method

CLASSES, INPUTS = 3, 40


def recipe_of(name):
    return Recipe.model_validate({key: part for key, part in tiny_method(name).items() if key != "name"})


@pytest.mark.parametrize(("name", "testimony"), [("feded-w0", 0), ("feded-w1", 4 * CLASSES), ("feded-w2", 4 * INPUTS)])
def test_bytes_and_no_weights_up(name, testimony):
    """4 n0 K (+ testimony) up per client; the initial weights down at the first visit only."""
    recipe = recipe_of(name)
    seen = []

    def bend(pairs):
        seen.extend(update for update, _ in pairs)
        return pairs

    federation = make_federation(recipe=recipe, source=INPUTS, bend=bend, rounds=2)
    after = played(federation, 2)
    size = federation.bank.layout("mlp").size
    first, second = after.server.history
    assert all(update.weights is NOTHING for update in seen)
    assert first.bytes_up == second.bytes_up == 4 * (4 * INPUTS * CLASSES + testimony)
    assert (first.bytes_down, second.bytes_down) == (4 * 4 * size, 0)


def test_clients_go_on_with_their_own_models():
    recipe = recipe_of("feded-w0")
    federation = make_federation(recipe=recipe, source=INPUTS, rounds=2)
    first, second = played(federation, 1), played(federation, 2)
    for client in range(4):
        models = [snapshot.clients[client]["exchange/model"] for snapshot in (first, second)]
        assert not torch.equal(*models)
    assert len({tuple(s["exchange/model"].tolist()) for s in second.clients.values()}) == 4


def test_a_student_of_another_architecture_that_no_client_runs(tmp_path, without_pictures):  # noqa: ARG001
    config = tiny_config(
        "feded-w0",
        models={"client": {"arch": "mlp", "hidden": [6]}, "student": {"arch": "mlp", "hidden": [12]}},
        federation={"rounds": 1, "shares": {"student": 0}},
    )
    heard = Recorder()
    result = Experiment(config).run(tmp_path / "run", listeners=(heard,))
    assert result.accuracy.keys() == {"client", "student"}
    assert {event["prototype"] for event in heard.of("client_finished")} == {"client"}


def test_a_misshapen_prediction_is_refused():
    recipe = recipe_of("feded-w0")

    def bend(pairs):
        for update, state in pairs:
            if update.client == 1:
                update.extras["predictions"] = update.extras["predictions"][:-1]
            yield update, state

    after = played(make_federation(recipe=recipe, source=INPUTS, bend=bend), 1)
    assert after.server.history[0].refused == (1,)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (
            {"name": "feded-w0", "fuse": {"kind": "ensemble_distillation"}},
            "fuse ensemble_distillation needs clients' weights",
        ),
        ({"name": "feddf", "fuse": {"kind": "prediction_distillation"}}, "prediction_distillation reads predictions"),
        ({"name": "feded-w0", "local": {"kind": "control_variates"}}, "control_variates needs weights that travel"),
        ({"name": "feded-w0", "screen": [{"kind": "drop_worst"}]}, "drop_worst needs weights that travel"),
    ],
)
def test_parts_that_do_not_fit_are_refused(method, reason):
    with pytest.raises(ConfigError, match=reason):
        validate({"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}, "method": method})
