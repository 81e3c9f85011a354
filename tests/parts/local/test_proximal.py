"""FedProx minimises F(w) + (mu / 2) ||w - x||^2: checked against autograd on that very formula."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.parts.local import Plain, Proximal, TrainingSettings, Visit
from fedfuse.parts.local.loop import train
from fedfuse.runtime.batches import epoch_batches
from fedfuse.runtime.optimizers import Sgd
from tests.helpers import AS_IT_IS, CPU, TinyNorm, make_bank, make_examples, make_weights

KEY = Key(3)


def trained(objective, epochs, momentum=0.0):
    bank = make_bank(norm=TinyNorm())
    weights = make_weights(bank, "norm", 1)
    training = TrainingSettings(epochs=epochs, batch_size=6, optimizer=Sgd(learning_rate=0.2, momentum=momentum))
    visit = Visit(
        Task(1, 0, "norm", weights),
        bank.lend("norm", weights),
        make_examples(18),
        training,
        training.optimizer.learning_rate,
        {},
        bank,
        KEY,
    )
    train(visit, objective.begin(visit), AS_IT_IS, CPU)
    return Weights.of(visit.model)


def by_hand(strength, epochs, momentum=0.0):
    bank, examples = make_bank(norm=TinyNorm()), make_examples(18)
    model = bank.lend("norm", make_weights(bank, "norm", 1)).train()
    received = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=momentum)
    for epoch in range(epochs):
        for where in epoch_batches(18, 6, KEY.child("batches", epoch)):
            distance = sum((p - x).pow(2).sum() for p, x in zip(model.parameters(), received, strict=True))
            loss = F.cross_entropy(model(examples.inputs[where]), examples.labels[where]) + strength / 2 * distance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Weights.of(model)


@pytest.mark.parametrize("strength", [0.01, 1.0])
@pytest.mark.parametrize(("epochs", "momentum"), [(1, 0.0), (4, 0.0), (4, 0.9)])
def test_equals_autograd_on_the_penalised_loss(strength, epochs, momentum):
    expected = by_hand(strength, epochs, momentum)
    result = trained(Proximal(strength=strength), epochs, momentum)
    assert torch.allclose(result.flat, expected.flat, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(result.flat, by_hand(2 * strength, epochs, momentum).flat, rtol=1e-4, atol=1e-5)


def test_strength_zero_is_plain_bit_for_bit():
    assert trained(Proximal(strength=0.0), 3).equals(trained(Plain(), 3))


def test_the_stronger_the_pull_the_nearer_the_client_stays():
    start = make_weights(make_bank(norm=TinyNorm()), "norm", 1).parameters
    distances = [float((trained(Proximal(strength=mu), 4).parameters - start).norm()) for mu in (0.0, 0.5, 2.0)]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > distances[-1]
