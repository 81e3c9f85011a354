"""The one loop is plain PyTorch training, bit for bit, and calls its hooks at their moments."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Weights
from fedfuse.data import Examples, Normalisation, Transform
from fedfuse.engines import LocalEngine
from fedfuse.models import TextCnn
from fedfuse.parts.local import Hooks
from fedfuse.parts.local.loop import train
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import (
    CPU,
    Recorder,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_weights,
)

KEY = Key(3).child("round", 1, "client", 0)


def client_of(training, seed=1, count=21):
    bank = make_bank(norm=TinyNorm())
    weights = make_weights(bank, "norm", seed)
    return make_client(
        Task(1, 0, "norm", weights),
        bank.lend("norm", weights),
        make_examples(count),
        training,
        training.optimizer.learning_rate,
        {},
        bank,
        KEY,
    )


def by_hand(client, make_optimizer):
    """What a textbook does with the same batches."""
    bank = make_bank(norm=TinyNorm())
    model = bank.lend("norm", client.task.weights).train()
    optimizer = make_optimizer(model.parameters())
    losses = []
    for epoch in range(client.training.epochs):
        for where in epoch_batches(len(client.examples), client.training.batch_size, KEY.child("batches", epoch)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(client.examples.inputs[where]), client.examples.labels[where])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return Weights.of(model), losses


def test_sgd_is_the_hand_written_loop_bit_for_bit():
    optimizer = Sgd(learning_rate=0.1, momentum=0.9, weight_decay=1e-3)
    client = client_of(TrainingSettings(epochs=3, batch_size=4, optimizer=optimizer))
    expected, losses = by_hand(
        client, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3, fused=True)
    )
    trained = train(client, Hooks())
    assert Weights.of(client.model).equals(expected)
    assert trained.steps == len(losses) == 3 * 5
    assert abs(trained.loss - sum(losses) / len(losses)) < 1e-6


def test_without_shuffling_every_epoch_has_the_order_of_the_examples():
    training = TrainingSettings(epochs=3, batch_size=4, shuffle=False, optimizer=Sgd(learning_rate=0.1))
    client = client_of(training, count=12)
    model = make_bank(norm=TinyNorm()).lend("norm", client.task.weights).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    for _ in range(3):
        for inputs, labels in zip(client.examples.inputs.split(4), client.examples.labels.split(4), strict=True):
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    train(client, Hooks())
    assert Weights.of(client.model).equals(Weights.of(model))


@pytest.mark.parametrize(
    ("settings", "factors"),
    [
        ({"step_decay": 0.5}, [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]),
        ({"schedule": "linear"}, [1, 1 - 1 / 6, 1 - 2 / 6, 1 - 3 / 6, 1 - 4 / 6, 1 - 5 / 6]),
        ({"schedule": "cosine"}, [math.cos(math.pi * step / 12) ** 2 for step in range(6)]),
        ({"decay_inside": [{"after": 0.5, "factor": 0.1}]}, [1, 1, 1, 0.1, 0.1, 0.1]),
        (
            {"schedule": "linear", "step_decay": 0.5, "decay_inside": [{"after": 0.3, "factor": 0.5}]},
            [1, (1 - 1 / 6) / 2, (1 - 2 / 6) / 8, (1 - 3 / 6) / 16, (1 - 4 / 6) / 32, (1 - 5 / 6) / 64],
        ),
    ],
)
def test_the_rate_falls_inside_a_round_and_starts_anew_in_the_next_visit(settings, factors):
    training = TrainingSettings(epochs=2, batch_size=4, optimizer=Sgd(learning_rate=0.1), **settings)
    client = client_of(training, count=12)
    rates = iter([0.1 * factor for factor in factors])

    def scheduled(parameters):
        optimizer = torch.optim.SGD(parameters, lr=0.1, fused=True)

        def set_rate(*_):
            optimizer.param_groups[0]["lr"] = next(rates)

        optimizer.register_step_pre_hook(set_rate)
        return optimizer

    expected, _ = by_hand(client, scheduled)
    train(client, Hooks())
    torch.testing.assert_close(Weights.of(client.model).flat, expected.flat, rtol=1e-6, atol=1e-7)
    again = client_of(training, count=12)
    train(again, Hooks())
    assert Weights.of(again.model).equals(Weights.of(client.model))


def test_stragglers_and_unequal_clients_end_their_own_schedule():
    """Every client's rate falls over its own steps: the last of n has 1/n of the first."""
    training = TrainingSettings(epochs=4, fewest_epochs=1, batch_size=8, schedule="linear")
    for client, examples in enumerate((3, 17, 40, 41)):
        key = KEY.child("straggler", client)
        own = training.of(key, KEY)
        steps = own.steps(examples)
        batches = [epoch_batches(examples, 8, key.child(epoch)) for epoch in range(own.epochs)]
        assert steps == sum(map(len, batches))
        rates = list(own.rates(0.4, steps))
        assert rates[0] == 0.4
        assert rates[-1] == pytest.approx(0.4 / steps)
        assert len(rates) == steps


@pytest.mark.parametrize("by_length", [True, False])
def test_texts_are_batched_by_length_if_wanted(by_length, monkeypatch):
    seen = []

    def watched(size, batch_size, key, lengths):
        seen.append(lengths)
        return epoch_batches(size, batch_size, key, lengths)

    monkeypatch.setattr("fedfuse.parts.local.steps.epoch_batches", watched)
    bank = ModelBank({"text": TextCnn(embedding=2, channels=2, widths=(2,))}, TextShape(6, 20), 2, CPU)
    weights = make_weights(bank, "text", 0)
    tokens = torch.randint(1, 20, (12, 6), generator=Key(0).torch(), dtype=torch.int32)
    examples = Examples(tokens, torch.zeros(12, dtype=torch.long))
    training = TrainingSettings(batch_size=4, by_length=by_length)
    task, transform = Task(1, 0, "text", weights), Transform(Normalisation((), ()), (6,))
    model = bank.lend("text", weights)
    train(make_client(task, model, examples, training, 0.1, {}, bank, KEY, transform=transform), Hooks())
    assert [given is not None for given in seen] == [by_length]


def test_adam_is_the_hand_written_loop_bit_for_bit():
    client = client_of(TrainingSettings(epochs=2, batch_size=8, optimizer=Adam(learning_rate=0.01)))
    expected, _ = by_hand(client, lambda p: torch.optim.Adam(p, lr=0.01, fused=True))
    train(client, Hooks())
    assert Weights.of(client.model).equals(expected)


def test_adamw_is_the_hand_written_loop_bit_for_bit():
    optimizer = AdamW(learning_rate=0.01, weight_decay=0.5)
    client = client_of(TrainingSettings(epochs=2, batch_size=8, optimizer=optimizer))
    expected, _ = by_hand(client, lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.5, fused=True))
    train(client, Hooks())
    assert Weights.of(client.model).equals(expected)


def test_adamw_without_weight_decay_is_adam_and_with_it_is_not():
    ends = []
    for optimizer in (Adam(), AdamW(weight_decay=0.0), AdamW(weight_decay=0.5), Adam(weight_decay=0.5)):
        client = client_of(TrainingSettings(epochs=2, batch_size=8, optimizer=optimizer))
        train(client, Hooks())
        ends.append(Weights.of(client.model))
    assert ends[0].equals(ends[1])
    assert not any(one.equals(other) for one, other in ((ends[0], ends[2]), (ends[2], ends[3])))


def test_the_model_trains_in_train_mode_whatever_it_was_in():
    training = TrainingSettings(epochs=1, batch_size=8)
    one, other = client_of(training), client_of(training)
    one.model.eval()
    other.model.train()
    for client in (one, other):
        train(client, Hooks())
    assert Weights.of(one.model).equals(Weights.of(other.model))
    assert not torch.equal(Weights.of(one.model).buffers, one.task.weights.buffers)


class TestStop:
    """A client that diverges stops, sends what it has, and says so."""

    def trained(self, rate, bound, hooks=None, epochs=4):
        settings = TrainingSettings(
            epochs=epochs, batch_size=4, stop_above=bound, optimizer=Sgd(learning_rate=rate, momentum=0.9)
        )
        client = client_of(settings)
        return train(client, hooks or Hooks()), Weights.of(client.model)

    def test_it_takes_no_step_more_than_the_first_after_which_the_mean_is_above(self):
        losses = Listening()
        full, _ = self.trained(30.0, None, losses)
        bound = 20.0
        means = [sum(part := losses.seen[step - step % 5 : step + 1]) / len(part) for step in range(20)]
        expected = next(step for step, mean in enumerate(means) if mean > bound) + 1
        assert 0 < expected < full.steps == 20
        stopped, weights = self.trained(30.0, bound)
        assert (stopped.steps, stopped.diverged) == (expected, True)
        assert stopped.metrics == {"loss": stopped.loss, "steps": expected, "diverged": 1}
        assert weights.flat.isfinite().all()

    def test_a_loss_that_is_not_a_number_stops_it(self):
        class Broken(Hooks):
            def penalty(self, batch, features, logits):  # noqa: ARG002
                return logits.sum() * math.nan

        done, _ = self.trained(0.1, 1000.0, Broken())
        assert (done.steps, done.diverged) == (1, True)
        assert self.trained(0.1, None, Broken())[0].steps == 20

    def test_a_bound_that_is_not_reached_changes_no_bit(self):
        with_bound, without = self.trained(0.1, 1000.0), self.trained(0.1, None)
        assert with_bound[1].equals(without[1])
        assert with_bound[0] == without[0]
        assert set(without[0].metrics) == {"loss", "steps"}

    def test_an_update_says_so_and_the_round_goes_on(self):
        heard = Recorder()
        federation = make_federation(listener=heard)
        settings = TrainingSettings(batch_size=4, stop_above=1e-6)
        clients = replace(federation.engine.clients, training=settings)
        snapshot = replace(federation, engine=LocalEngine(clients)).advance(federation.start())
        told = [event["metrics"] for event in heard.of("client_finished")]
        assert [(metrics["steps"], metrics["diverged"]) for metrics in told] == [(1, 1)] * 4
        assert snapshot.server.history[-1].refused == ()


class Listening(Hooks):
    """Keeps the cross-entropy of every step."""

    def __init__(self):
        self.seen = []

    def penalty(self, batch, features, logits):  # noqa: ARG002
        self.seen.append(F.cross_entropy(logits.detach(), batch.labels).item())


class Recording(Hooks):
    """Writes down the moment, the parameters and the gradients at each call."""

    def __init__(self, model):
        self.model, self.calls = model, []

    def note(self, moment):
        parameter = next(self.model.parameters())
        gradient = None if parameter.grad is None else parameter.grad.clone()
        self.calls.append((moment, parameter.detach().clone(), gradient))

    def penalty(self, batch, features, logits):
        assert torch.equal(self.model.classifier(features), logits)
        assert len(batch.inputs) == len(batch.labels) == len(logits)
        self.note("penalty")

    def on_gradient(self):
        self.note("on_gradient")

    def on_step_end(self):
        self.note("on_step_end")


def test_hooks_run_at_their_moments():
    client = client_of(TrainingSettings(epochs=2, batch_size=6, optimizer=Sgd(learning_rate=0.5)), count=12)
    hooks = Recording(client.model)
    train(client, hooks)
    assert [moment for moment, _, _ in hooks.calls] == ["penalty", "on_gradient", "on_step_end"] * 4
    for start in range(0, len(hooks.calls), 3):
        (_, before, _), (_, at_gradient, gradient), (_, after, _) = hooks.calls[start : start + 3]
        assert torch.equal(before, at_gradient)
        assert torch.equal(after, at_gradient - 0.5 * gradient)


def test_a_hook_that_only_listens_changes_nothing():
    training = TrainingSettings(epochs=2, batch_size=5)
    quiet, recorded = client_of(training), client_of(training)
    train(quiet, Hooks())
    train(recorded, Recording(recorded.model))
    assert Weights.of(quiet.model).equals(Weights.of(recorded.model))


def test_a_penalty_is_added_to_the_loss():
    class Pull(Hooks):
        def __init__(self, model):
            self.model = model

        def penalty(self, batch, features, logits):
            return 0.3 * features.pow(2).mean() + 0.1 * logits[:, 0].mean() + 0.0 * batch.inputs.sum()

    client = client_of(TrainingSettings(epochs=1, batch_size=12, optimizer=Sgd(learning_rate=0.1)), count=12)
    bank = make_bank(norm=TinyNorm())
    model = bank.lend("norm", client.task.weights).train()
    (where,) = epoch_batches(12, 12, KEY.child("batches", 0))
    x, y = client.examples.inputs[where], client.examples.labels[where]
    h = model.features(x)
    z = model.classifier(h)
    (F.cross_entropy(z, y) + 0.3 * h.pow(2).mean() + 0.1 * z[:, 0].mean()).backward()
    expected = [p.detach() - 0.1 * p.grad for p in model.parameters()]
    train(client, Pull(client.model))
    for got, wanted in zip(client.model.parameters(), expected, strict=True):
        assert torch.allclose(got, wanted, atol=1e-7)
