"""FedED as a whole: weights stay at home, the ledger shows it, the student learns what the clients say."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.weights import NOTHING
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.federation import Recipe
from tests.helpers import Recorder, make_federation, played, tiny_config, tiny_method

CLASSES, INPUTS = 3, 40


def recipe_of(name):
    return Recipe.model_validate({key: part for key, part in tiny_method(name).items() if key != "name"})


@pytest.mark.parametrize(("name", "scores"), [("feded-w0", 0), ("feded-w1", 4 * CLASSES), ("feded-w2", 4 * INPUTS)])
def test_bytes_and_no_weights_up(name, scores):
    """4 n0 K up per client; at the first visit also the scores up, and the initial weights down."""
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
    predictions = 4 * INPUTS * CLASSES
    assert (first.bytes_up, second.bytes_up) == (4 * (predictions + scores), 4 * predictions)
    assert (first.bytes_down, second.bytes_down) == (4 * 4 * size, 0)


def test_clients_go_on_with_their_own_models():
    recipe = recipe_of("feded-w0")
    federation = make_federation(recipe=recipe, source=INPUTS, rounds=2)
    first, second = played(federation, 1), played(federation, 2)
    for client in range(4):
        models = [snapshot.clients[client]["protocol/model"] for snapshot in (first, second)]
        assert not torch.equal(*models)
    assert len({tuple(s["protocol/model"].tolist()) for s in second.clients.values()}) == 4


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


def test_only_the_chosen_students_are_distilled(tmp_path, without_pictures):  # noqa: ARG001
    """The chosen one is the same as when all are distilled; whatever it learns, the others keep their first weights."""

    def hashes(method, name):
        config = tiny_config(
            method,
            models={"client": {"arch": "mlp", "hidden": [6]}, "student": {"arch": "mlp", "hidden": [12]}},
            federation={"rounds": 1, "shares": {"student": 0}},
        )
        summary = Experiment(config).run(tmp_path / name).folder.read_summary()
        return {model: own["weights_sha256"] for model, own in summary["prototypes"].items()}

    method = tiny_method("feded-w0")
    everyone = hashes(method, "all")
    chosen = hashes({**method, "fuse": {**method["fuse"], "students": ["student"]}}, "chosen")
    longer = {**method["fuse"], "students": ["student"], "distiller": {**method["fuse"]["distiller"], "epochs": 7}}
    assert chosen["student"] == everyone["student"] != hashes({**method, "fuse": longer}, "longer")["student"]
    assert chosen["client"] == hashes({**method, "fuse": longer}, "again")["client"] != everyone["client"]


def test_an_unknown_student_is_one_sentence(tmp_path):
    method = tiny_method("feded-w0")
    config = tiny_config({**method, "fuse": {**method["fuse"], "students": ["mpl"]}})
    with pytest.raises(ConfigError, match=r"method\.fuse\.students: unknown model 'mpl' \(did you mean 'mlp'\?\)"):
        Experiment(config).run(tmp_path / "run")


def test_a_misshapen_prediction_is_refused():
    recipe = recipe_of("feded-w0")

    def bend(pairs):
        for update, state in pairs:
            if update.client == 1:
                update.extras["protocol/predictions"] = update.extras["protocol/predictions"][:-1]
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


@pytest.mark.parametrize("name", ["feded-w0", "feded-w1", "feded-w2"])
def test_the_ensemble_on_test_inputs_is_the_weighted_one(name):
    """Ensemble-w0..w2: argmax_c sum_k w_k p_k(x) on the test inputs, w2's errors being those on the test inputs."""
    federation = make_federation(recipe=recipe_of(name), source=INPUTS)
    record, clients = played(federation, 1).server.history[0], federation.engine.clients
    updates = [clients.work(task, {})[0] for task in tasks_of(federation)]
    test = federation.test.examples
    total = torch.zeros(len(test), CLASSES)
    for update, weight in zip(updates, by_hand(name, updates, clients), strict=True):
        total += weight * update.test_outputs["predictions"].softmax(dim=1)
    expected = float((total.argmax(dim=1) == test.labels).float().mean())
    assert record.ensemble_accuracy == pytest.approx(expected)
    own = {u.client: float((u.test_outputs["predictions"].argmax(1) == test.labels).float().mean()) for u in updates}
    assert record.client_accuracy == pytest.approx(own)


def tasks_of(federation):
    weights = federation.start().server.weights["mlp"]
    return [Task(1, client, "mlp", weights, asks=("scores", "test_outputs")) for client in range(4)]


def by_hand(name, updates, clients):
    if name == "feded-w0":
        return [u.examples / sum(v.examples for v in updates) for u in updates]
    if name == "feded-w1":
        counts = torch.stack([torch.bincount(clients.datasets[u.client].labels, minlength=CLASSES) for u in updates])
        return list(counts / (counts.sum(0) + 0.001))
    errors = torch.stack([u.test_outputs["scores/reconstruction_errors"] for u in updates])
    return [row.unsqueeze(1) for row in errors**-6 / (errors**-6).sum(0)]
