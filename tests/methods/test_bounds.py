"""The bounds: what they are equal to, and that nothing travels."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.weights import Weights
from fedfuse.experiment import Experiment
from fedfuse.federation import Recipe
from fedfuse.methods import METHODS
from tests.helpers import files_of, make_federation, played, tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")
TWO = {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [9]}}


def run(tmp_path, name, config):
    return Experiment(config).run(tmp_path / name)


class TestCentralised:
    def test_is_fedavg_of_one_client_that_has_everything(self, tmp_path):
        rounds = {"rounds": 2, "participation": 0.5}
        one = run(tmp_path, "one", tiny_config("centralised", federation=rounds))
        lonely = tiny_config("fedavg", federation=rounds, partition={"kind": "iid", "clients": 1})
        assert files_of(one.folder.final) == files_of(run(tmp_path, "lonely", lonely).folder.final)

    def test_nothing_travels_and_the_partition_is_the_federations(self, tmp_path):
        result = run(tmp_path, "run", tiny_config("centralised"))
        other = run(tmp_path, "other", tiny_config("fedavg"))
        assert (result.summary["bytes_up"], result.summary["bytes_down"]) == (0, 0)
        assert result.summary["partition_sha256"] == other.summary["partition_sha256"]

    def test_every_model_sees_everything(self, tmp_path):
        uneven = {"rounds": 1, "shares": {"small": 3, "wide": 1}}
        result = run(tmp_path, "run", tiny_config("centralised", models=TWO, federation=uneven))
        assert result.history[0].clients == (0, 1)
        assert set(result.accuracy) == {"small", "wide"}


class TestLocalOnly:
    def test_clients_train_alone_on_their_own_models(self):
        recipe = METHODS["local-only"].recipe
        federation = make_federation(recipe=recipe)
        after = played(federation, 3)
        clients = federation.engine.clients
        start = federation.start().server.weights["mlp"]
        for client in range(4):
            state = {}
            for number in (1, 2, 3):
                _, state = clients.work(Task(number, client, "mlp", start), state)
            assert torch.equal(after.clients[client]["exchange/model"], state["exchange/model"])

    def test_nothing_but_the_start_travels(self):
        federation = make_federation(recipe=METHODS["local-only"].recipe)
        history = played(federation, 3).server.history
        assert [record.bytes_up for record in history] == [0, 0, 0]
        assert [record.bytes_down for record in history] == [4 * 4 * federation.bank.layout("mlp").size, 0, 0]

    def test_accuracies_are_means_over_the_clients(self, tmp_path):
        result = run(tmp_path, "run", tiny_config("local-only", federation={"rounds": 2}))
        last = result.history[-1]
        assert set(last.client_accuracy) == {0, 1, 2, 3}
        mean = sum(last.client_accuracy.values()) / 4
        assert result.accuracy["mlp"] == pytest.approx(mean)

    def test_the_clients_models_are_the_result(self, tmp_path):
        result = run(tmp_path, "run", tiny_config("local-only", federation={"rounds": 2}))
        assert {p.name for p in (result.folder.final / "clients").iterdir()} == {f"{c}.safetensors" for c in range(4)}
        assert len({Weights.of(result.client_model(c)).sha256() for c in range(4)}) == 4
        assert result.summary["server_models"] is False


class TestTrueLabels:
    def test_is_training_on_the_public_labels(self, tmp_path):
        """One epoch of clients' training teaches little; the public labels teach the task."""
        steps = {"steps": 600, "batch_size": 16, "evaluate_every": 100, "loss": "hard"}
        fuse = {"kind": "true_labels", "distiller": steps}
        config = tiny_config(tiny_method("true-labels", fuse=fuse), training={"epochs": 1, "batch_size": 64})
        result = run(tmp_path, "run", config)
        assert result.history[0].prototypes["mlp"].accuracy_before_fusion < 0.8
        assert result.accuracy["mlp"] >= 0.9

    def test_no_other_method_gets_to_see_labels(self):
        reading = {name for name, method in METHODS.items() if method.recipe.needs_labels}
        assert reading == {"true-labels", "fedmd"}

    def test_a_source_without_labels_is_refused(self, tmp_path):
        config = tiny_config("true-labels", source={"kind": "uniform_noise", "size": 20})
        with pytest.raises(ConfigError, match="reads the true labels"):
            run(tmp_path, "run", config)


def test_measuring_clients_is_a_choice():
    recipe = Recipe()
    assert played(make_federation(recipe=recipe), 1).server.history[0].client_accuracy == {}
