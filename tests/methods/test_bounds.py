"""The bounds: what they are equal to, and that nothing travels."""

from __future__ import annotations

from statistics import fmean

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Normalisation, Transform
from fedfuse.experiment.run import Experiment
from fedfuse.federation import Recipe
from fedfuse.methods import METHODS
from fedfuse.models import Cnn, Mlp
from fedfuse.parts.fuse import Distiller
from fedfuse.parts.fuse.true_labels import label_batches
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.source import Source
from fedfuse.testing.trial import through_a_checkpoint
from tests.helpers import CPU, files_of, make_bank, make_federation, played, tiny_config, tiny_method

pytestmark = pytest.mark.usefixtures("without_pictures")
TWO = {"small": {"arch": "mlp", "hidden": [4]}, "wide": {"arch": "mlp", "hidden": [9]}}
TWO_BANK = {"small": Mlp(hidden=(4,)), "wide": Mlp(hidden=(9,))}


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
            assert torch.equal(after.clients[client]["protocol/model"], state["protocol/model"])

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

    @pytest.mark.parametrize("name", ["local-only", "fd", "fedmd", "cronus"])
    def test_accuracies_are_over_all_clients_that_ever_took_part(self, name):
        """Each with its latest model, measured here from what the clients keep, not from what they said."""
        federation = make_federation(
            bank=make_bank(**TWO_BANK), recipe=METHODS[name].recipe, clients=6, clients_per_round=2,
            source=20, labelled=True,
        )  # fmt: skip
        snapshot = federation.start()
        for _ in range(6):
            snapshot = federation.advance(snapshot)
            record, prototypes = snapshot.server.history[-1], federation.prototypes
            assert len(record.client_accuracy) == 2
            for prototype in TWO_BANK:
                own = [c for c in snapshot.clients if prototypes[c] == prototype]
                layout = federation.bank.layout(prototype)
                models = [Weights(snapshot.clients[c]["protocol/model"], layout) for c in own]
                scores = [federation.test.score(federation.bank.lend(prototype, model)) for model in models]
                values = record.prototypes[prototype]
                if not own:
                    assert values.accuracy is None
                    continue
                assert values.accuracy == pytest.approx(fmean(score.accuracy for score in scores))
                assert values.loss == pytest.approx(fmean(score.loss for score in scores), rel=1e-5)
                assert values.accuracy_before_fusion is None
        assert len(snapshot.clients) > 2

    def test_what_was_measured_before_is_in_the_checkpoint(self, tmp_path):
        federation = make_federation(recipe=METHODS["local-only"].recipe, clients=6, clients_per_round=2)
        halfway = played(federation, 2)
        ends = [played(federation, 2, snapshot) for snapshot in (halfway, through_a_checkpoint(halfway, tmp_path))]
        one, other = ([r.prototypes["mlp"].accuracy for r in end.server.history] for end in ends)
        assert one == other

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

    def test_inputs_can_be_augmented_and_labels_stay_theirs(self):
        raw = torch.randint(0, 256, (12, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        transform = Transform(Normalisation((0.0,), (1.0,)), (1, 8, 8), crop_padding=2, flip=True)
        labels = torch.arange(12) % 3
        source = Source("images", raw, transform, CPU, labels=labels)
        bank, distiller = ModelBank({"cnn": Cnn(arch="cnn1")}, (1, 8, 8), 3, CPU), Distiller(steps=6, batch_size=4)
        plain, views, again = (
            [batch() for batch in label_batches(source, distiller, bank, Key(2), augmented)]
            for augmented in (False, True, True)
        )
        for (inputs, target), (seen, same_target), (seen_again, _) in zip(plain, views, again, strict=True):
            assert torch.equal(target, same_target)
            assert torch.equal(seen, seen_again)
            assert not torch.equal(inputs, seen)
        where = {bytes(raw[i].numpy()): int(labels[i]) for i in range(12)}
        inputs, target = plain[0]
        told = [where[bytes((255 * row).round().to(torch.uint8).numpy())] for row in inputs]
        assert target.argmax(dim=1).tolist() == told

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
