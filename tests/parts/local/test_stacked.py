"""Clients that train together train as they would alone, and their bits do not know who is beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.data import Examples
from fedfuse.data.dataset import Normalisation
from fedfuse.data.transform import Transform
from fedfuse.models import Cnn, Mlp, ResNet
from fedfuse.parts.local import Hooks, Proximal, TrainingSettings
from fedfuse.parts.local.loop import train
from fedfuse.parts.local.stacked import train_stacked
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.optimizers import Adam, AdamW, Sgd
from fedfuse.runtime.training import Decay
from fedfuse.runtime.twins import Stack
from tests.helpers import CPU, make_client

IMAGE = (2, 8, 8)
NETWORKS = {
    "mlp": Mlp(hidden=(8,)),
    "cnn": Cnn(arch="cnn1"),
    "residual": ResNet(arch="resnet8", width=4, norm="group", groups=2),
}
SIZES = (11, 4, 9, 1)
NEAR = 1e-4
"""Of the largest weight: what a few steps make of roundings, Adam's above all, which divides by small gradients."""


def examples(size, seed):
    random = Key(seed).torch()
    images = torch.randint(0, 256, (size, *IMAGE), generator=random, dtype=torch.uint8)
    return Examples(images, torch.randint(0, 4, (size,), generator=random))


class Group:
    """Some clients of one network, ready to train alone or together."""

    def __init__(self, network="mlp", augment=False, objective=None, **training):
        self.bank = ModelBank({"net": NETWORKS[network]}, IMAGE, 4, CPU)
        self.training = TrainingSettings(**{"batch_size": 4, "optimizer": Sgd(learning_rate=0.1), **training})
        self.transform = Transform(Normalisation((0.5, 0.4), (0.2, 0.3)), IMAGE, 2 if augment else 0, augment)
        self.weights = self.bank.initial("net", Key(7))
        self.objective = objective

    def client(self, number, model, bank, size):
        task = Task(1, number, "net", self.weights)
        key = Key(3).child("client", number)
        return make_client(
            task, model, examples(size, number), self.training, 0.1, {}, bank, key, transform=self.transform
        )

    def hooks(self, client):
        return Hooks() if self.objective is None else self.objective.begin(client)

    def alone(self, number, size):
        client = self.client(number, self.bank.lend("net", self.weights), self.bank, size)
        stats = train(client, self.hooks(client))
        return stats, Weights.of(client.model)

    def together(self, sizes, places=4, length=8):
        """The clients by number, in this order; a number below zero leaves a place to another client's noise."""
        twin = self.bank.twins._twin("net", self.bank._create("net", Key(0)), places)
        rows = torch.zeros(places, twin.layout.size)
        rows[: len(sizes)] = self.weights.flat
        twin.write(rows)
        clients = [
            self.client(number, twin.places[place], self.bank.beside(place), size)
            for place, (number, size) in enumerate(sizes.items())
        ]
        trained = train_stacked(clients, [self.hooks(client) for client in clients], Stack(twin, length))
        return {number: (one.stats, one.weights) for number, one in zip(sizes, trained, strict=True)}


def assert_near(one, other):
    (stats, weights), (expected, by_itself) = one, other
    assert (stats.steps, stats.diverged) == (expected.steps, expected.diverged)
    assert stats.loss == pytest.approx(expected.loss, rel=1e-5)
    assert (weights.flat - by_itself.flat).abs().max() <= NEAR * by_itself.flat.abs().max()


CASES = {
    "momentum and weight decay": {"epochs": 2, "optimizer": Sgd(momentum=0.9, weight_decay=0.01, decay_biases=False)},
    "adam": {"epochs": 3, "optimizer": Adam(learning_rate=0.01)},
    "adamw": {"epochs": 2, "optimizer": AdamW(learning_rate=0.01, weight_decay=0.1, decay_norms=False)},
    "clipped": {"clip_norm": 0.5, "epochs": 2},
    "steps that shrink": {"step_decay": 0.8, "epochs": 2},
    "in order": {"shuffle": False},
    "augmented": {"augment": True, "epochs": 2},
    "proximal": {"objective": Proximal(strength=0.5), "epochs": 2},
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("case", CASES)
def test_clients_train_together_as_they_do_alone(network, case):
    group = Group(network, **CASES[case])
    sizes = dict(enumerate(SIZES))
    together = group.together(sizes)
    for number, size in sizes.items():
        assert_near(together[number], group.alone(number, size))


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("case", ["momentum and weight decay", "adam", "augmented", "proximal", "clipped"])
def test_bits_depend_on_neither_place_nor_company(network, case):
    group = Group(network, **CASES[case])
    expected = group.together({0: 11, 1: 4, 2: 9, 3: 1})
    for order in ({0: 11}, {3: 1, 2: 9, 1: 4, 0: 11}, {5: 16, 0: 11, 3: 1}, {2: 9, 6: 2, 7: 3, 1: 4}):
        found = group.together(order)
        for number in order.keys() & expected.keys():
            assert found[number][0] == expected[number][0]
            assert found[number][1].equals(expected[number][1])


@pytest.mark.parametrize("network", NETWORKS)
def test_a_neighbour_that_diverges_disturbs_nobody(network):
    group = Group(network, epochs=2)
    expected = group.together({1: 9, 2: 9})
    twin, write = group.bank.twins._twins["net", 4], None
    write = twin.write

    def with_a_wreck(rows):
        write(torch.cat([rows[:2], torch.full_like(rows[2:], torch.nan)]))

    twin.write = with_a_wreck
    found = group.together({1: 9, 2: 9})
    assert all(found[number][1].equals(expected[number][1]) for number in (1, 2))


def test_a_rate_that_follows_the_share_of_steps():
    group = Group(schedule="cosine", decay_inside=(Decay(after=0.5, factor=0.1),), epochs=2)
    sizes = {0: 9, 1: 9, 2: 8}
    together = group.together(sizes)
    assert_near(together[0], group.alone(0, 9))
    assert_near(together[2], group.alone(2, 8))


def test_who_diverges_stops_and_the_others_go_on():
    free = Group(epochs=3, optimizer=Sgd(learning_rate=0.01))
    means = sorted(free.alone(number, size)[0].loss for number, size in enumerate(SIZES))
    group = Group(epochs=3, optimizer=Sgd(learning_rate=0.01), stop_above=sum(means) / len(means))
    alone = {number: group.alone(number, size) for number, size in enumerate(SIZES)}
    assert len({stats.diverged for stats, _ in alone.values()}) == 2, "some do, some do not"
    together = group.together(dict(enumerate(SIZES)))
    for number, expected in alone.items():
        assert_near(together[number], expected)


def test_hooks_see_a_clients_own_batch_and_its_trained_weights():
    seen = {}

    class Spy(Hooks):
        def __init__(self, client):
            self.client = client
            seen[client.task.client] = []

        def penalty(self, batch, features, logits):
            seen[self.client.task.client].append((len(batch.inputs), len(batch.labels), len(features), len(logits)))
            return None

    class Spying:
        begin = staticmethod(Spy)

    group = Group(objective=Spying, shuffle=False)
    sizes = {0: 10, 1: 3}
    twin_weights = group.together(sizes)
    assert seen == {0: [(4,) * 4, (4,) * 4, (2,) * 4], 1: [(3,) * 4]}
    places = group.bank.twins._twins["net", 4].places
    for place, number in enumerate(sizes):
        assert Weights.of(places[place]).equals(twin_weights[number][1])


def test_a_client_keeps_what_it_had_when_it_was_done():
    group = Group(epochs=2, optimizer=Sgd(momentum=0.9))
    short = group.together({1: 4})[1]
    assert group.together({0: 16, 1: 4})[1][1].equals(short[1])
    assert replace(short[0]) == group.together({0: 16, 1: 4})[1][0]
