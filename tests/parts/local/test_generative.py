"""FedGen: both sides' losses against their formulas, the server's training, its memory, its traffic."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.base import CheckContext
from fedfuse.parts.local import Batch, Hooks, Plain
from fedfuse.parts.local.generative import Generative, _committee
from fedfuse.parts.local.generator import Committee, Generator, GeneratorSettings, Training, label_weights
from fedfuse.parts.local.loop import train
from fedfuse.runtime.optimizers import Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import (
    CLASSES,
    CPU,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_recipe,
    make_update,
    make_view,
    make_weights,
    tiny_config,
    tiny_method,
)

KEY = Key(3)
WIDTH = 6
"""TinyNorm's feature size."""
TRAINING = TrainingSettings(epochs=2, batch_size=6, optimizer=Sgd(learning_rate=0.2))
SMALL = GeneratorSettings(hidden=8, noise=5, steps=4, batch_size=7)
EVERY = torch.ones(CLASSES, dtype=torch.bool)
ONLY_2 = torch.tensor([False, False, True])


def random_generator(seed=1):
    """With statistics that are not the initial ones, so that eval mode shows."""
    generator = SMALL.build(CLASSES, WIDTH, Key(seed))
    random = torch.Generator().manual_seed(seed)
    generator.layers[1].running_mean.copy_(torch.randn(8, generator=random))
    generator.layers[1].running_var.copy_(torch.rand(8, generator=random) + 0.5)
    return generator


def client_of(known=EVERY, number=2, dropout=0.0):
    bank = make_bank(net=TinyNorm(dropout=dropout))
    weights = make_weights(bank, "net", 1)
    extras = {} if known is None else {"generator": Weights.of(random_generator()).flat, "known_labels": known}
    task = Task(number, 0, "net", weights, extras)
    return make_client(task, bank.lend("net", weights), make_examples(18), TRAINING, 0.2, {}, bank, KEY)


def trained(objective, client):
    hooks = objective.begin(client)
    train(client, hooks)
    return Weights.of(client.model), hooks


def features_by_hand(generator, noise, labels):
    """G in eval mode, layer by layer, example by example."""
    first, norm, _, last = generator.layers
    rows = []
    for eps, label in zip(noise, labels, strict=True):
        one_hot = torch.tensor([float(label == k) for k in range(CLASSES)])
        h = first.weight @ torch.cat([eps, one_hot]) + first.bias
        h = (h - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias
        rows.append(last.weight @ h.clamp_min(0) + last.bias)
    return torch.stack(rows).detach()


def penalty_by_hand(client, labels, logits, alpha, beta):
    """The formula, with the draws in the order of their address: y~, its noise, the noise for y."""
    random = KEY.child("generator").torch()
    generator, classifier = random_generator(), client.model.classifier
    known = [k for k in range(CLASSES) if client.received["known_labels"][k]]
    total = torch.zeros(())
    if alpha:
        drawn = [known[i] for i in torch.randint(len(known), (len(labels),), generator=random)]
        noise = torch.rand(len(labels), SMALL.noise, generator=random)
        answers = classifier(features_by_hand(generator, noise, drawn)).softmax(1)
        total = total - alpha * sum(p[y].log() for p, y in zip(answers, drawn, strict=True)) / len(labels)
    if beta:
        noise = torch.rand(len(labels), SMALL.noise, generator=random)
        teachers = classifier(features_by_hand(generator, noise, labels.tolist())).softmax(1).detach()
        for p, q, y in zip(teachers, logits.softmax(1), labels.tolist(), strict=True):
            if y in known:
                total = total + beta * (p * (p / q).log()).sum() / len(labels)
    return total


@pytest.mark.parametrize("known", [EVERY, ONLY_2], ids=["all labels", "one label"])
@pytest.mark.parametrize(("alpha", "beta"), [(0.7, 0.0), (0.0, 0.4), (0.7, 0.4)])
class TestClientLoss:
    def test_value_and_gradients(self, alpha, beta, known):
        client = client_of(known)
        logits = torch.randn(8, CLASSES, generator=torch.Generator().manual_seed(0), requires_grad=True)
        labels = torch.tensor([0, 1, 2, 2, 1, 0, 0, 1])
        objective = Generative(classification_weight=alpha, distillation_weight=beta, generator=SMALL)
        result = objective.begin(client).penalty(Batch(logits, labels), logits, logits)
        expected = penalty_by_hand(client, labels, logits, 0.98 * alpha, 0.98 * beta)
        torch.testing.assert_close(result, expected)
        inputs = [logits, *client.model.classifier.parameters()]
        gradients, by_hand = (torch.autograd.grad(loss, inputs, allow_unused=True) for loss in (result, expected))
        for gradient, other in zip(gradients, by_hand, strict=True):
            assert (gradient is None) == (other is None)
            if gradient is not None:
                torch.testing.assert_close(gradient, other)
        on_logits, on_classifier = gradients[0], gradients[1]
        assert (on_logits is not None) == (beta > 0), "the distillation moves f(x)"
        assert (on_classifier is not None) == (alpha > 0), "and not its target, the classification only the last layer"
        if on_logits is not None:
            assert not on_logits[~known[labels]].any()
            assert on_logits[known[labels]].abs().min() > 0

    def test_training_is_not_plain_and_repeats(self, alpha, beta, known):
        objective = Generative(classification_weight=alpha, distillation_weight=beta, generator=SMALL)
        result, _ = trained(objective, client_of(known, dropout=0.3))
        assert result.equals(trained(objective, client_of(known, dropout=0.3))[0])
        assert not result.equals(trained(Plain(), client_of(dropout=0.3))[0])


class TestWeights:
    @pytest.mark.parametrize(("number", "expected"), [(1, 10.0), (2, 9.8), (11, 10 * 0.98**10), (2000, 1e-4)])
    def test_they_decay_to_the_floor(self, number, expected):
        assert Generative().weight_in(number, 10.0) == pytest.approx(expected)

    @pytest.mark.parametrize("initial", [0.0, 1e-5])
    def test_the_floor_raises_nothing(self, initial):
        assert Generative().weight_in(1, initial) == Generative().weight_in(900, initial) == initial


class TestIsPlain:
    @pytest.mark.parametrize("dropout", [0.0, 0.3])
    def test_without_a_generator(self, dropout):
        result, _ = trained(Generative(generator=SMALL), client_of(None, number=1, dropout=dropout))
        assert result.equals(trained(Plain(), client_of(None, dropout=dropout))[0])

    def test_with_weights_zero(self):
        result, hooks = trained(Generative(classification_weight=0, distillation_weight=0), client_of())
        assert result.equals(trained(Plain(), client_of())[0])
        assert type(hooks) is Hooks

    @pytest.mark.parametrize("architectures", [{}, {"small": Mlp(hidden=(4,)), "wide": Mlp(hidden=(9,))}])
    @pytest.mark.parametrize("participation", [1.0, 0.5])
    def test_a_federation_with_weights_zero(self, participation, architectures):
        ends = []
        for local in (Plain(), Generative(classification_weight=0, distillation_weight=0)):
            bank = make_bank(**architectures)
            snapshot = played(make_federation(bank, make_recipe(local=local), participation=participation), 3)
            ends.append(snapshot)
        plain, zero = ends
        assert all(zero.server.weights[p].equals(plain.server.weights[p]) for p in plain.server.weights)
        assert "local" not in zero.server.memory
        assert zero.clients == plain.clients
        assert [r.bytes_up for r in zero.server.history] == [r.bytes_up for r in plain.server.history]
        assert [r.bytes_down for r in zero.server.history] == [r.bytes_down for r in plain.server.history]

    def test_an_experiment_with_weights_zero(self, tmp_path):
        off = {"kind": "generative", "classification_weight": 0, "distillation_weight": 0}
        plain = Experiment(tiny_config("fedavg")).run(tmp_path / "plain")
        zero = Experiment(tiny_config(tiny_method("fedgen"), models=plain_models())).run(tmp_path / "on")
        assert summed(zero) != summed(plain)
        zero = Experiment(tiny_config({"name": "fedgen", "local": off}, models=plain_models())).run(tmp_path / "off")
        assert summed(zero) == summed(plain)


def plain_models():
    return {"mlp": {"arch": "mlp", "hidden": [6], "projection_head": None}}


def summed(result):
    return [values["weights_sha256"] for values in result.summary["prototypes"].values()]


def played(federation, rounds, snapshot=None):
    snapshot = snapshot or federation.start()
    for _ in range(rounds):
        snapshot = federation.advance(snapshot)
    return snapshot


class TestCounts:
    def test_they_are_a_loop_over_the_examples(self):
        client = client_of()
        _, hooks = trained(Generative(generator=SMALL), client)
        counts = [0] * CLASSES
        for label in client.examples.labels:
            counts[label] += 1
        assert hooks.extras()["label_counts"].tolist() == counts
        assert hooks.extras()["label_counts"].dtype == torch.float32
        assert hooks.state() == {}

    def test_weights_are_shares_by_label(self):
        counts = [[3.0, 0.0, 1.0, 0.0], [1.0, 5.0, 0.0, 0.0], [0.0, 5.0, 1.0, 0.0]]
        result = label_weights([torch.tensor(row) for row in counts])
        for client, row in enumerate(counts):
            for label, count in enumerate(row):
                total = sum(other[label] for other in counts)
                assert result[client, label] == pytest.approx(count / total if total else 0.0)
        assert result.sum(dim=0).tolist() == [1.0, 1.0, 1.0, 0.0]


def make_committee(seed=0, clients=3):
    torch.manual_seed(seed)
    counts = torch.tensor([[3.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 5.0]])[:clients]
    classifiers = [nn.Linear(WIDTH, CLASSES).requires_grad_(False) for _ in range(clients)]
    return Committee(classifiers, label_weights(list(counts)))


class TestServerLoss:
    @pytest.mark.parametrize("distances", ["norms", "means"])
    def test_diversity_is_a_double_loop(self, distances):
        random = torch.Generator().manual_seed(2)
        noise = torch.rand(5, 3, generator=random)
        features = 0.3 * torch.randn(5, WIDTH, generator=random)
        features.requires_grad_()
        total = 0.0
        for i in range(5):
            for j in range(5):
                far = sum((noise[i, d] - noise[j, d]) ** 2 for d in range(3))
                apart = sum((features[i, d] - features[j, d]).abs() for d in range(WIDTH))
                total = total - far * apart / (1 if distances == "norms" else 3 * WIDTH)
        expected = (total / 25).exp()
        result = GeneratorSettings(distances=distances).diversity_loss(noise, features)
        torch.testing.assert_close(result, expected)
        (gradient,), (by_hand,) = torch.autograd.grad(result, features), torch.autograd.grad(expected, features)
        torch.testing.assert_close(gradient, by_hand)
        assert gradient.abs().max() > 0

    def test_collapsed_features_cost_most(self):
        noise = torch.rand(5, 3, generator=torch.Generator().manual_seed(2))
        assert SMALL.diversity_loss(noise, torch.ones(5, WIDTH)) == 1.0

    def test_agreement_is_a_double_loop(self):
        committee, random = make_committee(), torch.Generator().manual_seed(3)
        features = torch.randn(7, WIDTH, generator=random, requires_grad=True)
        labels = torch.tensor([0, 2, 2, 0, 0, 2, 0])
        expected = torch.zeros(())
        for client, classifier in enumerate(committee.classifiers):
            for feature, label in zip(features, labels, strict=True):
                p = (classifier.weight @ feature + classifier.bias).softmax(0)[label]
                expected = expected - committee.weights[client, label] * p.log() / 7
        result = committee.loss(features, labels)
        torch.testing.assert_close(result, expected)
        (gradient,), (by_hand,) = torch.autograd.grad(result, features), torch.autograd.grad(expected, features)
        torch.testing.assert_close(gradient, by_hand)

    def test_both_together(self):
        training = Training(SMALL.model_copy(update={"diversity": 0.3}), random_generator(), make_committee(), 0.1)
        noise, labels = torch.rand(7, SMALL.noise), torch.tensor([0, 2, 2, 0, 0, 2, 0])
        features = training.generator(noise, labels)
        expected = training.committee.loss(features, labels) + 0.3 * SMALL.diversity_loss(noise, features)
        torch.testing.assert_close(training.loss(noise, labels), expected)


class TestServerTraining:
    def test_labels_are_those_that_somebody_has(self):
        assert make_committee().labels.tolist() == [0, 2]
        training = Training(SMALL, random_generator(), make_committee(), 0.1)
        random, drawn = Key(1).torch(), set()
        for _ in range(20):
            noise, labels = training._draw(random)
            assert noise.shape == (7, SMALL.noise)
            assert noise.min() >= 0
            assert noise.max() < 1
            drawn |= set(labels.tolist())
        assert drawn == {0, 2}

    @pytest.mark.parametrize(
        ("distribution", "mean", "deviation", "lowest"),
        [("uniform", 0.5, 12**-0.5, 0.0), ("gaussian", 0.0, 1.0, -math.inf)],
    )
    def test_noise_has_the_distribution_that_was_asked_for(self, distribution, mean, deviation, lowest):
        settings = SMALL.model_copy(update={"distribution": distribution, "noise": 50})
        noise = settings.draw_noise(4000, Key(1).torch(), CPU.device)
        assert noise.mean().item() == pytest.approx(mean, abs=0.01)
        assert noise.std().item() == pytest.approx(deviation, abs=0.01)
        assert (noise.min() >= lowest) & ((noise.min() < -3) == (distribution == "gaussian"))
        assert torch.equal(noise, settings.draw_noise(4000, Key(1).torch(), CPU.device))

    def test_as_printed_it_is_gaussian_for_server_and_clients(self, monkeypatch):
        drawn = []
        plain = GeneratorSettings.draw_noise

        def listening(self, *arguments):
            drawn.append(plain(self, *arguments))
            return drawn[-1]

        monkeypatch.setattr(GeneratorSettings, "draw_noise", listening)
        federation = make_federation(recipe=METHODS["fedgen-as-printed"].recipe)
        snapshot = federation.advance(federation.start())
        on_server = len(drawn)
        federation.advance(snapshot)
        assert on_server == METHODS["fedgen-as-printed"].recipe.local.generator.steps < len(drawn)
        assert all((noise < 0).any() for noise in drawn)

    @pytest.mark.parametrize("distances", ["norms", "means"])
    def test_it_lowers_the_loss(self, distances):
        settings = GeneratorSettings(hidden=16, noise=5, steps=200, learning_rate=1e-2, distances=distances)
        generator = settings.build(CLASSES, WIDTH, Key(1))
        training = Training(settings, generator, make_committee(), settings.learning_rate)
        noise, labels = torch.rand(64, 5, generator=Key(9).torch()), torch.tensor([0, 2]).repeat(32)
        before, classified = (
            training.loss(noise, labels).item(),
            training.committee.loss(generator(noise, labels), labels),
        )
        told = []
        training.run({}, Key(2), told.append)
        assert told == list(range(201))
        assert training.loss(noise, labels).item() < 0.7 * before
        with torch.no_grad():
            generator.eval()
            assert training.committee.loss(generator(noise, labels), labels) < 0.7 * classified

    def test_it_is_adam_with_coupled_decay(self):
        """Two rounds of two steps are torch's own Adam going on, with the rate of each round."""
        settings = SMALL.model_copy(update={"steps": 2})
        memory = {}
        for number, rate in ((1, 0.1), (2, 0.05)):
            generator = settings.build(CLASSES, WIDTH, Key(1))
            if memory:
                generator = settings.load(memory["generator"], CLASSES, WIDTH, CPU)
            memory = Training(settings, generator, make_committee(), rate).run(memory, Key(number), lambda _: None)
        expected = settings.build(CLASSES, WIDTH, Key(1)).train()
        optimizer = torch.optim.Adam(expected.parameters(), lr=0.1, weight_decay=1e-2)
        for number, rate in ((1, 0.1), (2, 0.05)):
            optimizer.param_groups[0]["lr"] = rate
            random = Key(number).torch()
            for _ in range(2):
                training = Training(settings, expected, make_committee(), rate)
                optimizer.zero_grad()
                training.loss(*training._draw(random)).backward()
                optimizer.step()
        torch.testing.assert_close(memory["generator"], Weights.of(expected).flat)
        assert memory["steps"] == 4
        first = torch.cat([optimizer.state[p]["exp_avg"].reshape(-1) for p in expected.parameters()])
        second = torch.cat([optimizer.state[p]["exp_avg_sq"].reshape(-1) for p in expected.parameters()])
        torch.testing.assert_close(memory["first_moments"], first)
        torch.testing.assert_close(memory["second_moments"], second)

    def test_memory_is_a_value(self):
        def run(memory):
            generator = SMALL.load(Weights.of(random_generator()).flat, CLASSES, WIDTH, CPU)
            return Training(SMALL, generator, make_committee(), 0.1).run(memory, Key(2), lambda _: None)

        memory = run({})
        kept = {name: tensor.clone() for name, tensor in memory.items()}
        once, again = run(memory), run(memory)
        assert all(torch.equal(memory[name], kept[name]) for name in kept)
        assert all(torch.equal(once[name], again[name]) for name in kept)
        assert not torch.equal(once["generator"], run({})["generator"]), "Adam's state matters"

    def test_a_new_generator_depends_on_its_key_alone(self):
        torch.manual_seed(1)
        one = Weights.of(SMALL.build(CLASSES, WIDTH, Key(4)))
        torch.manual_seed(2)
        before = torch.get_rng_state()
        assert one.equals(Weights.of(SMALL.build(CLASSES, WIDTH, Key(4))))
        assert torch.equal(before, torch.get_rng_state())
        assert not one.equals(Weights.of(SMALL.build(CLASSES, WIDTH, Key(5))))


BANK = make_bank(net=TinyNorm(), other=Mlp(hidden=(3, WIDTH)))


def update_of(client, counts, prototype="net"):
    weights = make_weights(BANK, prototype, client + 1)
    return make_update(weights, client, prototype=prototype, extras={"label_counts": torch.tensor(counts)})


ROUND_1 = [update_of(0, [3.0, 0.0, 1.0]), update_of(1, [1.0, 0.0, 0.0]), update_of(2, [0.0, 0.0, 2.0], "other")]
OBJECTIVE = Generative(generator=SMALL)


class TestServer:
    def test_nothing_is_sent_in_round_1(self):
        assert OBJECTIVE.broadcast(make_view(BANK), {0: "net", 1: "other"}) == {}

    def test_everybody_gets_the_generator_and_its_labels(self):
        memory = OBJECTIVE.after_round(make_view(BANK), ROUND_1, {})
        briefs = OBJECTIVE.broadcast(make_view(BANK, memory=memory, round=2), {5: "net", 7: "other"})
        assert set(briefs) == {5, 7}
        for extras in briefs.values():
            assert set(extras) == {"generator", "known_labels"}
            assert extras["generator"] is memory["generator"]
            assert extras["known_labels"].tolist() == [True, False, True]

    def test_labels_stay_known(self):
        memory = OBJECTIVE.after_round(make_view(BANK), ROUND_1, {})
        memory = OBJECTIVE.after_round(make_view(BANK, memory=memory, round=2), [update_of(1, [0.0, 4.0, 0.0])], {})
        assert memory["known_labels"].all()
        assert memory["steps"] == 2 * SMALL.steps

    def test_a_round_without_updates_changes_nothing(self):
        memory = OBJECTIVE.after_round(make_view(BANK), ROUND_1, {})
        assert OBJECTIVE.after_round(make_view(BANK, memory=memory, round=2), [], {}) is memory
        assert OBJECTIVE.after_round(make_view(BANK), [], {}) == {}

    def test_the_committee_has_each_clients_own_classifier(self):
        committee = _committee(BANK, ROUND_1)
        for classifier, update in zip(committee.classifiers, ROUND_1, strict=True):
            assert torch.equal(classifier.weight, update.weights["classifier.weight"])
            assert torch.equal(classifier.bias, update.weights["classifier.bias"])
            assert not classifier.weight.requires_grad

    def test_the_debrief_is_the_training(self):
        view = make_view(BANK, round=3)
        result = OBJECTIVE.after_round(view, ROUND_1, {})
        generator = SMALL.build(CLASSES, WIDTH, view.key.child("new generator"))
        training = Training(SMALL, generator, _committee(BANK, ROUND_1), 3e-4 * 0.98**2)
        expected = training.run({}, view.key.child("train generator"), lambda _: None)
        assert all(torch.equal(result[name], expected[name]) for name in expected)


def test_generators_have_the_papers_layers():
    layout = Layout.of(Generator(noise=32, classes=10, hidden=256, feature_size=64))
    assert layout.parameter_count == (32 + 10) * 256 + 256 + 2 * 256 + 256 * 64 + 64
    assert layout.size - layout.parameter_count == 2 * 256


@pytest.mark.parametrize("participation", [0.5, 1.0])
def test_traffic(participation):
    bank = make_bank(net=TinyNorm())
    federation = make_federation(bank, make_recipe(local=OBJECTIVE), participation=participation)
    snapshot, size = federation.start(), 4 * bank.layout("net").size
    generator = 4 * Layout.of(random_generator()).size
    for number in (1, 2, 3):
        snapshot = federation.advance(snapshot)
        record = snapshot.server.history[-1]
        assert record.bytes_down == (size if number == 1 else size + generator + CLASSES) * len(record.clients)
        assert record.bytes_up == (size + 4 * CLASSES) * len(record.clients)
        assert snapshot.server.memory["local"]["steps"] == number * SMALL.steps
    assert snapshot.clients == {}


def test_everything_finite_after_many_rounds():
    federation = make_federation(recipe=make_recipe(local=OBJECTIVE), rounds=8)
    snapshot = played(federation, 8)
    assert all(not record.refused for record in snapshot.server.history)
    assert math.isfinite(snapshot.server.history[-1].training_loss)


class TestArchitectures:
    def context(self, bank):
        return CheckContext(bank, Sgd(), has_validation=False)

    def test_equal_feature_sizes_are_welcome(self):
        OBJECTIVE.check(self.context(BANK))
        snapshot = played(make_federation(BANK, make_recipe(local=OBJECTIVE), clients=2), 2)
        assert set(snapshot.server.weights) == {"net", "other"}

    def test_different_ones_are_refused(self):
        bank = make_bank(small=Mlp(hidden=(4,)), wide=Mlp(hidden=(9,)))
        with pytest.raises(ConfigError, match=r"4 of 'small', 9 of 'wide'; give all models the same projection_head"):
            OBJECTIVE.check(self.context(bank))

    def test_unless_they_have_heads_of_one_size(self):
        models = {"small": Mlp(hidden=(4,), projection_head=5), "wide": Mlp(hidden=(9,), projection_head=5)}
        OBJECTIVE.check(self.context(make_bank(**models)))

    def test_or_there_is_no_generator(self):
        bank = make_bank(small=Mlp(hidden=(4,)), wide=Mlp(hidden=(9,)))
        Generative(classification_weight=0, distillation_weight=0).check(self.context(bank))


@pytest.mark.parametrize(
    "wrong",
    [
        {"classification_weight": -0.1},
        {"distillation_weight": -0.1},
        {"decay": 0.0},
        {"decay": 1.1},
        {"floor": -1.0},
        {"generator": {"hidden": 0}},
        {"generator": {"noise": 0}},
        {"generator": {"steps": 0}},
        {"generator": {"batch_size": 1}},
        {"generator": {"rate_decay": 0.0}},
        {"generator": {"distances": "cosine"}},
    ],
)
def test_ranges(wrong):
    with pytest.raises(ValidationError):
        Generative(**wrong)


def test_cross_entropy_of_a_uniform_classifier():
    """A number that can be checked by hand: log K for every client, whose weights sum to one."""
    classifiers = [nn.Linear(WIDTH, CLASSES).requires_grad_(False) for _ in range(2)]
    for classifier in classifiers:
        nn.init.zeros_(classifier.weight)
        nn.init.zeros_(classifier.bias)
    committee = Committee(classifiers, label_weights([torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 2.0, 1.0])]))
    features = torch.randn(6, WIDTH, generator=Key(0).torch())
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    assert committee.loss(features, labels).item() == pytest.approx(math.log(CLASSES))
    assert F.cross_entropy(classifiers[0](features), labels).item() == pytest.approx(math.log(CLASSES))
