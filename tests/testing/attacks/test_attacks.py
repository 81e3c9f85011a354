"""Every attack is what its paper says, keeps the laws of a part, and leaves honest clients alone."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.data import Examples
from fedfuse.engines import LocalEngine
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.federation.attack import Attack, Situation
from fedfuse.federation.hostile import HostileClients
from fedfuse.parts.protocol.layers import LayerByLayer
from fedfuse.testing import check_part
from fedfuse.testing.attacks import (
    KINDS,
    ALittleIsEnough,
    Backdoor,
    FalseClaims,
    FalseExtras,
    FalsePredictions,
    FreeRider,
    Gaussian,
    InnerProduct,
    LabelFlip,
    Loud,
    Mimic,
    MinMax,
    Scaled,
    SignFlip,
    stamped,
    success_rate,
)
from fedfuse.testing.attacks.a_little_is_enough import deviations
from tests.helpers import (
    TinyNorm,
    files_of,
    make_bank,
    make_federation,
    make_recipe,
    make_weights,
    played,
    tiny_config,
    tiny_method,
)

pytestmark = pytest.mark.usefixtures("without_pictures")
BANK = make_bank(mlp=TinyNorm())
SENT, HONEST = make_weights(BANK, "mlp", 1), make_weights(BANK, "mlp", 2)
OTHERS = tuple(make_weights(BANK, "mlp", seed) for seed in range(3, 9))
COUNT = SENT.layout.parameter_count


def situation(**more):
    whole = {
        "task": Task(1, 0, "mlp", SENT), "sent": SENT, "classes": 3, "key": Key(7), "common": Key(8),
        "others": OTHERS, "clients": 10, "hostile": 4,
    }  # fmt: skip
    return Situation(**{**whole, **more})


def move(weights):
    return (weights.parameters.double() - SENT.parameters.double()).numpy()


def bent(attack, **more):
    return move(attack.weights(HONEST, situation(**more)))


class TestLaws:
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_attack_keeps_the_laws_of_a_part(self, kind):
        check_part(kind(clients=2), workers=False, federation={"moves": "taken"})

    @pytest.mark.long
    def test_an_attack_that_knows_the_others_does_so_in_other_processes(self):
        check_part(ALittleIsEnough(clients=2))

    @pytest.mark.parametrize("method", ["scaffold", "fedma", "feddf-one-bit"])
    def test_with_methods_that_send_more_or_less_than_weights(self, method, tmp_path):
        result = Experiment(tiny_config(method, attack="sign_flip")).run(tmp_path / "run")
        plain = Experiment(tiny_config(method)).run(tmp_path / "plain")
        assert result.summary["updates_refused"] == 0
        assert files_of(result.folder.final) != files_of(plain.folder.final)

    def test_its_code_is_in_the_identity_and_none_is_not(self):
        assert "attack" not in tiny_config().identity()
        assert tiny_config(attack=[]).sha256() == tiny_config().sha256()
        assert tiny_config(attack="loud").sha256() != tiny_config(attack={"kind": "loud", "clients": 2}).sha256()


class TestWhoAttacks:
    def test_a_share_is_drawn_by_the_seed_and_attacks_of_one_experiment_share_it(self):
        first, again, other = (SignFlip(clients=0.3).hostile(20, key) for key in (Key(1), Key(1), Key(2)))
        assert first == again != other
        assert len(first) == 6
        assert FalseClaims(clients=6).hostile(20, Key(1)) == first
        assert SignFlip(clients=0.001).hostile(20, Key(1)), "at least one"

    def test_honest_clients_do_what_they_did(self):
        honest = make_federation(clients=5).engine.clients
        hostile = HostileClients.of(honest, [SignFlip(clients=(1, 3))])
        assert hostile.hostile == {1, 3}
        weights = make_federation().start().server.weights["mlp"]
        for client in range(5):
            task = Task(1, client, "mlp", weights)
            one, other = (clients.work(task, {})[0].weights for clients in (honest, hostile))
            assert one.equals(other) == (client not in (1, 3))

    @pytest.mark.parametrize("method", ["fd", "fedmd", "local-only"])
    def test_how_good_their_own_models_are_is_no_result(self, tmp_path, method):
        """Labels turned round from the second round on: what it reached before does not count either."""
        attack = {"kind": "label_flip", "clients": [1], "begins": 2}
        attacked = tiny_config(method, attack=attack, federation={"rounds": 2, "participation": 1.0})
        result = Experiment(attacked).run(tmp_path / "run")
        own = result.history[-1].client_accuracy
        assert set(own) == {0, 2, 3}
        assert result.accuracy == {"mlp": pytest.approx(sum(own.values()) / 3)}

    def test_what_it_knows_of_the_others_is_what_they_send(self):
        honest = make_federation(clients=5).engine.clients
        seen = []

        class Spy(SignFlip):
            knows_others = True

            def weights(self, honest, situation):
                seen.append(situation)
                return honest

        spying = Spy.model_construct(clients=(1,), kind="spy", factor=1.0)
        hostile = HostileClients.of(honest, [spying])
        weights = make_federation().start().server.weights["mlp"]
        own, _ = hostile.work(Task(2, 1, "mlp", weights), {})
        [there] = seen
        expected = [honest.work(Task(2, client, "mlp", weights), {})[0].weights for client in (0, 2, 3, 4)]
        assert all(one.equals(other) for one, other in zip(there.others, expected, strict=True))
        assert own.weights.equals(honest.work(Task(2, 1, "mlp", weights), {})[0].weights), "they train in between"

    def test_a_liar_is_announced_as_such_so_that_nobody_trains_twice(self):
        federation = make_federation(clients=5)
        clients = HostileClients.of(federation.engine.clients, [FalseClaims(clients=(2,))])
        done = []

        class Counting(LocalEngine):
            def train(self, tasks, states):
                done.extend(tasks)
                return super().train(tasks, states)

        played(replace(federation, engine=Counting(clients)), rounds=2)
        assert len(done) == 10

    @pytest.mark.parametrize(
        ("attack", "sentence"),
        [
            ({"kind": "sign_flip", "clients": 5}, "is 5, but there are 4 clients"),
            ({"kind": "sign_flip", "clients": [4]}, "counted from 0"),
            ({"kind": "predictions"}, "is about predictions, but protocol weights sends none"),
            ({"kind": "sign_flop"}, "did you mean 'sign_flip'"),
            ({"kind": "sign_flip", "clients": 0}, "attack.clients"),
            ({"kind": "label_flip", "source": 1}, "a source needs a target"),
            ("my_attacks", "unknown kind 'my_attacks'"),
        ],
    )
    def test_what_cannot_be_is_refused_in_one_sentence(self, attack, sentence):
        with pytest.raises(ConfigError, match=sentence) as refused:
            Experiment(tiny_config(attack=attack)).run(None)
        assert "\n" not in str(refused.value)

    def test_nobody_left_to_know(self, tmp_path):
        with pytest.raises(ConfigError, match="finds nobody"):
            Experiment(tiny_config(attack={"kind": "mimic", "clients": 4})).run(tmp_path / "run")

    def test_weights_where_none_travel_are_refused(self):
        with pytest.raises(ConfigError, match="is about weights, but protocol predictions sends none"):
            SignFlip().check(validate({**tiny_config("fedmd").model_dump(), "method": "fedmd"}).recipe)
        with pytest.raises(ConfigError, match="sends no whole models"):
            Mimic().check(make_recipe(protocol=LayerByLayer()))

    def test_one_of_ones_own_by_its_address(self, tmp_path, monkeypatch):
        (tmp_path / "my_attack.py").write_text(
            "import fedfuse\n\n\nclass Negative(fedfuse.Attack):\n"
            "    def weights(self, honest, situation):\n        return -1.0 * honest\n"
        )
        monkeypatch.chdir(tmp_path)
        config = tiny_config(attack={"kind": "my_attack:Negative", "clients": 1})
        assert config.attack[0].kind == "my_attack:Negative"
        assert "my_attack:Negative" in config.foreign_code
        Experiment(config).run(tmp_path / "run")


class TestWeights:
    def test_the_other_way(self):
        np.testing.assert_allclose(bent(SignFlip(factor=3.0)), -3 * move(HONEST), atol=1e-5)

    def test_farther(self):
        np.testing.assert_allclose(bent(Scaled(factor=20.0)), 20 * move(HONEST), atol=1e-4)

    def test_noise_in_the_place_of_weights_or_on_them(self):
        sent = Gaussian(deviation=2.0).weights(HONEST, situation())
        assert float(sent.parameters.std()) == pytest.approx(2, rel=0.3)
        assert float(np.std(bent(Gaussian(deviation=0.1, around="sent")))) == pytest.approx(0.1, rel=0.3)
        again = Gaussian(deviation=2.0).weights(HONEST, situation(key=Key(9)))
        assert not sent.equals(again), "another client or round, other noise"

    def test_a_little_beside_the_mean(self):
        points = np.stack([move(one) for one in OTHERS])
        expected = points.mean(axis=0) - 1.5 * points.std(axis=0)
        np.testing.assert_allclose(bent(ALittleIsEnough(z=1.5)), expected, atol=1e-6)

    @pytest.mark.parametrize(("clients", "hostile"), [(50, 12), (20, 8), (10, 4)])
    def test_as_many_deviations_as_the_paper(self, clients, hostile):
        supporters = clients // 2 + 1 - hostile
        share = (clients - hostile - supporters) / (clients - hostile)
        assert deviations(clients, hostile) == pytest.approx(max(NormalDist().inv_cdf(share), 0.3))

    def test_against_the_mean(self):
        points = np.stack([move(one) for one in OTHERS])
        np.testing.assert_allclose(bent(InnerProduct(factor=0.5)), -0.5 * points.mean(axis=0), atol=1e-6)

    def test_on_the_edge_and_no_farther(self):
        points = np.stack([move(one) for one in OTHERS])
        found = bent(MinMax())
        widest = max(np.linalg.norm(a - b) for a in points for b in points)
        farthest = max(np.linalg.norm(found - point) for point in points)
        assert farthest == pytest.approx(widest, rel=1e-3)
        beside, spread = found - points.mean(axis=0), points.std(axis=0)
        np.testing.assert_allclose(beside / np.linalg.norm(beside), -spread / np.linalg.norm(spread), atol=1e-4)

    def test_what_somebody_else_would_send(self):
        points = np.stack([move(one) for one in OTHERS])
        odd = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
        np.testing.assert_allclose(bent(Mimic()), points[odd], atol=1e-6)

    def test_nothing(self):
        assert FreeRider().weights(HONEST, situation()) is SENT
        assert float(np.std(bent(FreeRider(noise=0.2)))) == pytest.approx(0.2, rel=0.3)

    def test_only_the_last_layer_is_loud(self):
        sent = Loud(factor=-5.0).weights(HONEST, situation())
        for name, _ in HONEST.layout.parameters:
            factor = -5.0 if name.startswith("classifier") else 1.0
            torch.testing.assert_close(sent[name], factor * HONEST[name])

    def test_only_the_last_layer_is_flipped(self):
        sent = SignFlip(factor=2.0, layers="last").weights(HONEST, situation())
        for name, _ in HONEST.layout.parameters:
            learnt = HONEST[name] - SENT[name]
            there = SENT[name] - 2.0 * learnt if name.startswith("classifier") else HONEST[name]
            torch.testing.assert_close(sent[name], there)

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.bends == "weights"])
    def test_statistics_are_honest(self, kind):
        sent = kind().weights(HONEST, situation())
        if kind is not FreeRider:
            assert torch.equal(sent.buffers, HONEST.buffers)

    def test_of_one_layer_the_layer_is_bent(self):
        layout = type(SENT.layout)(SENT.layout.parameters[-2:], ())
        layer, sent = (
            Weights(torch.cat([whole[name].reshape(-1) for name, _ in layout.parameters]), layout)
            for whole in (HONEST, SENT)
        )
        found = SignFlip().weights(layer, situation(sent=sent))
        torch.testing.assert_close(found.flat - sent.flat, sent.flat - layer.flat)


class TestData:
    IMAGES = Examples(torch.zeros(40, 1, 8, 8, dtype=torch.uint8), torch.arange(40) % 10)

    def test_labels_are_turned_round(self):
        turned = LabelFlip().examples(self.IMAGES, 10, Key(0))
        assert torch.equal(turned.labels, 9 - self.IMAGES.labels)
        assert torch.equal(turned.inputs, self.IMAGES.inputs)

    def test_or_one_class_is_called_another(self):
        turned = LabelFlip(source=1, target=7).examples(self.IMAGES, 10, Key(0))
        assert turned.labels.bincount(minlength=10).tolist() == [4, 0, 4, 4, 4, 4, 4, 8, 4, 4]

    def test_or_all_of_them_are(self):
        assert set(LabelFlip(target=7).examples(self.IMAGES, 10, Key(0)).labels.tolist()) == {7}
        assert set(LabelFlip(target=99).examples(self.IMAGES, 10, Key(0)).labels.tolist()) == {9}

    def test_a_backdoor_is_a_stamp_and_a_label(self):
        opened = Backdoor(target=3, share=0.25).examples(self.IMAGES, 10, Key(0))
        has_stamp = (opened.inputs.flatten(1) > 0).any(dim=1)
        assert int(has_stamp.sum()) == 10
        assert (opened.labels[has_stamp] == 3).all()
        assert torch.equal(opened.labels[~has_stamp], self.IMAGES.labels[~has_stamp])
        assert int(self.IMAGES.inputs.sum()) == 0, "the examples of others are left alone"
        again = Backdoor(target=3, share=0.25).examples(self.IMAGES, 10, Key(0))
        assert torch.equal(opened.inputs, again.inputs), "the same ones in every round"

    @pytest.mark.parametrize(
        "inputs", [torch.zeros(5, 3, 9, 7, dtype=torch.uint8), torch.ones(5, 12), torch.ones(5, 6, dtype=torch.int32)]
    )
    def test_a_stamp_changes_all_kinds_of_inputs_and_nothing_else(self, inputs):
        changed = stamped(inputs if inputs.dtype != torch.int32 else torch.arange(30, dtype=torch.int32).view(5, 6))
        assert changed.dtype == inputs.dtype
        assert changed.shape == inputs.shape
        assert (changed != inputs).flatten(1).any(dim=1).all()
        assert torch.equal(stamped(changed)[..., -1], changed[..., -1]) or inputs.dtype != torch.uint8

    def test_success_is_of_inputs_of_other_classes(self):
        def fooled(inputs):
            return torch.where(inputs.flatten(1).amax(dim=1) > 0, 3, 0)

        assert success_rate(fooled, self.IMAGES, 3) == 1.0
        assert success_rate(lambda inputs: torch.zeros(len(inputs)), self.IMAGES, 3) == 0.0


class TestClaims:
    def test_everything_that_a_client_says_of_itself(self):
        honest = {
            "scores/label_counts": torch.tensor([3.0, 0.0]), "scores/certainty_scores": torch.rand(4),
            "scores/reconstruction_errors": torch.rand(4), "local/control_change": torch.rand(5),
        }  # fmt: skip
        said = FalseClaims(count=1000).extras(honest, situation())
        assert said["scores/label_counts"].tolist() == [1000, 1000]
        assert said["scores/certainty_scores"].tolist() == [1] * 4
        assert said["scores/reconstruction_errors"].tolist() == [0] * 4
        assert said["local/control_change"] is honest["local/control_change"]
        assert FalseClaims(count=1000).claimed(5) == 1000

    def test_other_numbers_are_multiplied_and_counts_are_not(self):
        honest = {"local/control_change": torch.tensor([1.0, -2.0]), "local/logit_counts": torch.tensor([4.0, 0.0])}
        said = FalseExtras(factor=-20.0).extras(honest, situation())
        assert said["local/control_change"].tolist() == [-20.0, 40.0]
        assert said["local/logit_counts"].tolist() == [4.0, 0.0]

    @pytest.mark.parametrize("method", ["feded-w1", "feded-w2", "fedaux", "fedgen", "fedma"])
    def test_a_liar_is_heard_of_and_nobody_is_refused(self, method, tmp_path):
        federation = {"rounds": 4 if method == "fedma" else 2, "participation": 1.0}
        config = tiny_config(tiny_method(method), attack={"kind": "claims", "clients": [1]}, federation=federation)
        result = Experiment(config).run(tmp_path / "run")
        assert result.summary["updates_refused"] == 0
        assert {client for record in result.history for client in record.claims_bounded} == {1}


class TestPredictions:
    SAID = torch.tensor([[0.1, 0.6, 0.3], [0.7, 0.1, 0.2]])

    @pytest.mark.parametrize(
        ("say", "expected"),
        [
            ("reversed", [[0.6, 0.1, 0.3], [0.1, 0.7, 0.2]]),
            ("constant", [[0.6, 0.3, 0.1], [0.7, 0.2, 0.1]]),
            ("shifted", [[0.3, 0.1, 0.6], [0.2, 0.7, 0.1]]),
        ],
    )
    def test_numbers_in_other_places(self, say, expected):
        said = FalsePredictions(say=say).predictions(self.SAID, situation())
        torch.testing.assert_close(said, torch.tensor(expected))

    def test_noise_is_a_random_order_of_them(self):
        said = FalsePredictions(say="noise").predictions(self.SAID, situation())
        assert torch.equal(said.sort(dim=1).values, self.SAID.sort(dim=1).values)

    def test_logits_may_be_louder_and_probabilities_not(self):
        logits = 10 * self.SAID - 3
        assert torch.equal(
            FalsePredictions(say="shifted", loudness=50.0).predictions(logits, situation()), 50 * logits.roll(1, dims=1)
        )
        said = FalsePredictions(say="shifted", loudness=50.0).predictions(self.SAID, situation())
        assert float(said.max()) <= 1


def test_what_an_attack_does_not_touch_is_the_very_object():
    plain = Attack.model_construct(kind="plain", clients=1)
    examples, tensors = TestData.IMAGES, {"a": torch.ones(1)}
    assert plain.examples(examples, 10, Key(0)) is examples
    assert plain.weights(HONEST, situation()) is HONEST
    assert plain.predictions(HONEST.flat, situation()) is HONEST.flat
    assert plain.extras(tensors, situation()) is tensors
    assert plain.claimed(7) == 7
    assert NOTHING is not HONEST
