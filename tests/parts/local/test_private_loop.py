"""DP-SGD: the clipped sum against a loop over examples, what one example can change, and what the noise is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.secret_key import SecretKey
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.data import Examples, Normalisation, Transform
from fedfuse.models import Mlp, create
from fedfuse.models.classifier import LayeredClassifier
from fedfuse.models.cnn import CnnDeep
from fedfuse.models.resnet import ResNet
from fedfuse.models.text import TextCnn, TextTransformer
from fedfuse.parts.local import Contrastive, ControlVariates, GlobalDistillation, OneBit, Plain, Proximal
from fedfuse.parts.local import example_gradients as gradients
from fedfuse.parts.local.example_gradients import ExampleGradients
from fedfuse.parts.local.linear_gradients import LinearGradients, is_linear
from fedfuse.parts.local.objective import Batch, Hooks
from fedfuse.parts.local.private_loop import PrivateGradient, train_privately
from fedfuse.runtime.batch_loader import BatchLoader
from fedfuse.runtime.training import ExamplePrivacy, TrainingSettings
from tests.helpers import (
    AS_IT_IS,
    CLASSES,
    CPU,
    FEATURES,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_weights,
)


def private(multiplier=1.0, norm=1.0, **more):
    return TrainingSettings(privacy=ExamplePrivacy(norm=norm, multiplier=multiplier), **more)


def client_of(examples, training, seed=1, **more):
    bank = make_bank()
    weights = make_weights(bank, "mlp", seed)
    task = Task(1, 0, "mlp", weights, more.pop("extras", {}))
    return make_client(task, bank.lend("mlp", weights), examples, training, bank=bank, **more)


def by_hand(model, hooks, inputs, labels, norm):
    """Abadi et al., Algorithm 1, lines 4 to 6, one example after another."""
    total = [torch.zeros_like(p) for p in model.parameters()]
    for one, label in zip(inputs, labels, strict=True):
        model.zero_grad()
        batch = Batch(one.unsqueeze(0), label.unsqueeze(0))
        features = model.features(batch.inputs)
        logits = model.classifier(features)
        loss = F.cross_entropy(logits, batch.labels)
        penalty = hooks.penalty(batch, features, logits)
        (loss if penalty is None else loss + penalty).backward()
        own = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in model.parameters()]
        length = torch.cat([g.reshape(-1) for g in own]).norm()
        for whole, gradient in zip(total, own, strict=True):
            whole += gradient / max(1.0, float(length) / norm)
    model.zero_grad()
    return total


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


BOTH = pytest.mark.parametrize("kind", [ExampleGradients, LinearGradients])

NETWORKS = {
    "convolutions": (CnnDeep(), (1, 14, 14), None),
    "group norm": (ResNet(arch="resnet8", norm="group", channels_per_group=2, width=4), (3, 8, 8), None),
    "text convolutions": (TextCnn(embedding=6, channels=4, widths=(2,), dropout=0.0), TextShape(7, 11), 11),
    "attention": (TextTransformer(width=8, heads=2, layers=1, dropout=0.0), TextShape(7, 11), 11),
}


class TestTheSum:
    @pytest.mark.parametrize("name", list(NETWORKS))
    def test_is_that_of_a_loop_over_examples(self, name):
        architecture, shape, words = NETWORKS[name]
        model = create(architecture, shape, 3, Key(0)).train()
        random = torch.Generator().manual_seed(0)
        inputs = torch.randn(4, *shape, generator=random)
        if words:
            inputs = torch.randint(0, words, (4, shape[0]), generator=random)
        labels = torch.tensor([0, 1, 2, 1])
        found = ExampleGradients(model, Hooks(), 0.3).clipped_sum(inputs, labels)
        assert torch.allclose(flat(found), flat(by_hand(model, Hooks(), inputs, labels, 0.3)), atol=1e-6)

    @pytest.mark.parametrize(
        "objective", [Plain(), Proximal(), GlobalDistillation(), Contrastive(), OneBit()], ids=lambda part: part.kind
    )
    @BOTH
    def test_has_what_an_objective_adds_to_the_loss(self, objective, kind):
        examples, bank = make_examples(5), make_bank()
        client = client_of(examples, private(), state={"previous": make_weights(bank, "mlp", 7).flat.unsqueeze(0)})
        if objective.kind == "global_distillation":
            client = replace(client, received={"teacher": make_weights(bank, "mlp", 8).flat})
        hooks = objective.begin(client if objective.kind != "one_bit" else replace(client, state={}))
        found = kind(client.model, hooks, 0.2).clipped_sum(examples.inputs, examples.labels)
        assert torch.allclose(
            flat(found), flat(by_hand(client.model, hooks, examples.inputs, examples.labels, 0.2)), atol=1e-6
        )

    def test_of_linear_layers_is_the_same_in_one_go(self):
        examples, bank = make_examples(9), make_bank(deep=Mlp(hidden=(7, 6, 5)))
        model = bank.lend("deep", make_weights(bank, "deep", 3)).train()
        assert is_linear(model)
        one, other = (kind(model, Hooks(), 0.4) for kind in (LinearGradients, ExampleGradients))
        found, expected = (way.clipped_sum(examples.inputs, examples.labels) for way in (one, other))
        assert [f.shape for f in found] == [e.shape for e in expected]
        assert torch.allclose(flat(found), flat(expected), atol=1e-6)

    def test_of_layers_that_are_held_still_is_left_out(self):
        examples, client = make_examples(5), client_of(make_examples(5), private())
        client.model.layers.requires_grad_(False)
        one, other = (kind(client.model, Hooks(), 0.4) for kind in (LinearGradients, ExampleGradients))
        assert len(one.parameters) == len(other.parameters) == 2
        found, expected = (way.clipped_sum(examples.inputs, examples.labels) for way in (one, other))
        client.model.layers.requires_grad_(True)
        assert torch.allclose(flat(found), flat(expected), atol=1e-6)

    def test_a_network_that_may_mix_its_rows_is_not_taken_for_a_linear_one(self):
        class Mixing(nn.Linear):
            def forward(self, x):
                return super().forward(x - x.mean(dim=0))

        model = client_of(make_examples(3), private()).model
        assert is_linear(model)
        handle = model.layers[1].register_forward_hook(lambda *_: None)
        assert not is_linear(model)
        handle.remove()
        model.layers.append(Mixing(5, 5))
        assert not is_linear(model)
        assert not is_linear(TinyNorm().build((FEATURES,), CLASSES))
        assert not is_linear(create(CnnDeep(), (1, 14, 14), 3, Key(0)))

    def test_is_the_same_in_pieces(self, monkeypatch):
        examples, client = make_examples(7), client_of(make_examples(7), private())
        whole = ExampleGradients(client.model, Hooks(), 0.5).clipped_sum(examples.inputs, examples.labels)
        monkeypatch.setattr(gradients, "AT_ONCE", 2 * sum(p.numel() for p in client.model.parameters()))
        pieces = ExampleGradients(client.model, Hooks(), 0.5)
        assert pieces.chunk == 2
        assert torch.allclose(flat(pieces.clipped_sum(examples.inputs, examples.labels)), flat(whole), atol=1e-6)

    @BOTH
    def test_of_nobody_is_zero(self, kind):
        client = client_of(make_examples(3), private())
        nobody = torch.empty(0, FEATURES), torch.empty(0).long()
        found = kind(client.model, Hooks(), 1.0).clipped_sum(*nobody)
        assert not flat(found).any()

    def test_a_network_that_vmap_cannot_follow_is_asked_one_by_one(self):
        class Peeking(nn.Module):
            def forward(self, x):
                return x * 2 if float(x.sum()) > 0 else x  # looks at a number, as encoders of transformers do

        client = client_of(make_examples(6), private())
        client.model.layers.insert(0, Peeking())
        examples = make_examples(6)
        found = ExampleGradients(client.model, Hooks(), 0.5).clipped_sum(examples.inputs, examples.labels)
        assert torch.allclose(
            flat(found), flat(by_hand(client.model, Hooks(), examples.inputs, examples.labels, 0.5)), atol=1e-6
        )

    def test_whoever_tried_first_changes_no_random_number(self):
        """A trial that fails draws nothing that dropout would draw."""
        drawn = []
        for _ in range(2):
            bank = make_bank()
            model = bank.lend("mlp", make_weights(bank, "mlp", 1)).train()
            model.layers.append(nn.Dropout(0.5))
            with Key(4).default_generator():
                for _turn in range(2):
                    examples = make_examples(3)
                    own = ExampleGradients(model, Hooks(), 1.0).clipped_sum(examples.inputs, examples.labels)
                drawn.append(flat(own))
        with Key(4).default_generator():
            ExampleGradients(model, Hooks(), 1.0).clipped_sum(examples.inputs, examples.labels)
            again = ExampleGradients(model, Hooks(), 1.0).clipped_sum(examples.inputs, examples.labels)
        assert torch.equal(drawn[0], drawn[1])
        assert torch.equal(flat(again), drawn[0])


class TestOneExample:
    @settings(max_examples=25, deadline=None)
    @given(
        size=st.integers(1, 8),
        which=st.integers(0, 7),
        scale=st.sampled_from([1e-3, 1.0, 1e3, 1e20, float("inf"), float("nan")]),
        norm=st.sampled_from([0.01, 1.0, 50.0]),
        seed=st.integers(0, 99),
        kind=st.sampled_from([ExampleGradients, LinearGradients]),
    )
    def test_moves_the_sum_by_at_most_the_norm(self, size, which, scale, norm, seed, kind):
        """Neighbours: the same data with one example blank, which adds nothing; whatever the example is."""
        examples = make_examples(size, seed)
        inputs = examples.inputs.clone()
        inputs[which % size] *= scale
        client = client_of(examples, private(), seed=seed)
        own = kind(client.model, Hooks(), norm)
        others = [place for place in range(size) if place != which % size]
        whole = flat(own.clipped_sum(inputs, examples.labels))
        without = flat(own.clipped_sum(inputs[others], examples.labels[others]))
        assert whole.isfinite().all()
        assert float((whole - without).norm()) <= norm * (1 + 1e-5) + 1e-5

    @BOTH
    def test_that_is_not_finite_adds_nothing(self, kind):
        examples = make_examples(4)
        inputs = examples.inputs.clone()
        inputs[2] = torch.nan
        own = kind(client_of(examples, private()).model, Hooks(), 1.0)
        rest = [0, 1, 3]
        expected = flat(own.clipped_sum(inputs[rest], examples.labels[rest]))
        assert torch.allclose(flat(own.clipped_sum(inputs, examples.labels)), expected, atol=1e-6)

    def test_does_not_lengthen_the_texts_of_others(self):
        tokens = torch.zeros(3, 9, dtype=torch.int32)
        tokens[0, :2], tokens[1, :8] = 1, 2
        loader = BatchLoader(Examples(tokens, torch.zeros(3).long()), AS_IT_IS, CPU, trims=False)
        alone, beside = (loader.batch(torch.tensor(where), None)[0] for where in ([0], [0, 1]))
        assert torch.equal(alone[0], beside[0])


def step_of(client, hooks=None, step=0):
    """The gradient of one step."""
    client.model.zero_grad()
    PrivateGradient(client, hooks or Hooks()).add(step)
    return flat(p.grad for p in client.model.parameters())


class TestNoise:
    def test_has_the_deviation_that_was_asked_for(self):
        """Beside so much noise the gradients are nothing, and what is left is z C over q n."""
        client = client_of(make_examples(10), private(multiplier=300.0, norm=0.01, batch_size=5))
        steps = torch.cat([step_of(client, step=step) for step in range(60)])
        assert float(steps.std()) == pytest.approx(300 * 0.01 / 5, rel=0.05)
        assert abs(float(steps.mean())) < 4 * 0.6 / len(steps) ** 0.5

    def test_is_another_in_every_step_round_and_client(self):
        client = client_of(make_examples(10), private(multiplier=1000.0))
        steps = [step_of(client, step=step) for step in (0, 1)]
        steps += [step_of(replace(client, key=key)) for key in (Key(3).child("x"), Key(9))]
        for place, one in enumerate(steps):
            for other in steps[:place]:
                assert abs(float(torch.corrcoef(torch.stack([one, other]))[0, 1])) < 0.45

    def test_comes_from_the_secret_where_there_is_one(self):
        client = client_of(make_examples(10), private())
        secret = replace(client, own_secret=SecretKey(1))
        assert not torch.isclose(step_of(client), step_of(secret)).any()
        assert torch.equal(step_of(secret), step_of(replace(client, own_secret=SecretKey(1))))

    def test_without_noise_and_with_everybody_it_is_the_plain_gradient(self):
        """A batch as large as the data draws all, and a norm that nothing reaches clips nothing."""
        examples = make_examples(9)
        client = client_of(examples, private(multiplier=1e-9, norm=1e4, batch_size=9))
        found = step_of(client)
        client.model.zero_grad()
        F.cross_entropy(client.model(examples.inputs), examples.labels).backward()
        assert torch.allclose(found, flat(p.grad for p in client.model.parameters()), atol=1e-4)

    def test_a_draw_without_examples_is_noise_alone(self):
        client = client_of(make_examples(1), private(batch_size=1))
        client = replace(client, training=private(batch_size=1))
        gradient = PrivateGradient(client, Hooks())
        gradient.rate = 1e-9
        client.model.zero_grad()
        gradient.add(0)
        assert flat(p.grad for p in client.model.parameters()).isfinite().all()


@pytest.mark.parametrize("kind", ["dropout", "augmentation"])
def test_nobody_knows_which_random_numbers_an_example_gets_in_a_batch(kind):
    """By its place there: with one example more, all behind it would get others, and move the sum as well."""
    image = (1, 4, 4)
    layers = [nn.Flatten(), nn.Linear(FEATURES if kind == "dropout" else 16, 8), nn.ReLU()]
    layers += [nn.Dropout(0.5)] if kind == "dropout" else []
    torch.manual_seed(3)
    network = LayeredClassifier(nn.Sequential(*layers), 8, CLASSES)
    pictures = Examples(torch.randint(0, 256, (20, *image)).byte(), torch.arange(20) % CLASSES)
    examples = make_examples(20) if kind == "dropout" else pictures
    transform = Transform(Normalisation((0.0,), (1.0,)), image, crop_padding=2, flip=True)
    first, trained = Weights.of(network), []
    for number, secret in ((1, 7), (2, 7), (1, 8)):
        first.load_into(network)
        client = client_of(examples, private(1e-6, batch_size=20), key=Key(number))
        client = replace(client, model=network, own_secret=SecretKey(secret))
        if kind == "augmentation":
            client = replace(client, transform=transform)
        train_privately(client, Plain().begin(client))
        trained.append(flat(network.parameters()).detach().clone())
    assert torch.equal(trained[0], trained[1])
    assert float((trained[0] - trained[2]).abs().max()) > 1e-4


class TestTraining:
    def test_takes_as_many_steps_as_a_plain_client_and_tells_no_loss(self):
        client = client_of(make_examples(20), private(batch_size=6, epochs=2))
        stats = train_privately(client, Hooks())
        assert stats.steps == 2 * 4
        assert stats.metrics == {"steps": 8}

    def test_a_further_loss_is_added_after_the_noise(self):
        client = client_of(make_examples(8), private(multiplier=1e-9, norm=1e-9, batch_size=8, epochs=1))
        before = Weights.of(client.model).flat.clone()
        train_privately(client, Hooks(), lambda: 3.0 * client.model.classifier.bias.sum())
        moved = Weights.of(client.model).flat - before
        bias = moved[-CLASSES:]
        assert torch.allclose(bias, torch.full_like(bias, -0.1 * 3.0), atol=1e-5)
        assert float(moved[:-CLASSES].abs().max()) < 1e-5

    def test_corrections_of_the_whole_gradient_come_after_the_noise(self):
        bank = make_bank()
        control = torch.ones(bank.layout("mlp").parameter_count)
        training = private(multiplier=1e-9, norm=1e-9, batch_size=8, epochs=1)
        client = client_of(make_examples(8), training, extras={"control": control}, learning_rate=0.5)
        hooks = ControlVariates().begin(client)
        train_privately(client, hooks)
        moved = Weights.of(client.model).flat - client.start.flat
        assert torch.allclose(moved, torch.full_like(moved, -0.5), atol=1e-5)
