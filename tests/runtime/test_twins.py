"""The shape of a stack depends on the experiment and on a client's own examples; large steps are not stacked."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.models import Cnn, Mlp, create, twin_proof
from fedfuse.models.adapt import adapt
from fedfuse.models.twin_proof import has_twin
from fedfuse.runtime import twins
from fedfuse.runtime.twins import Twins, filled_length, multiplications, pays

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("examples", "length"),
    [(1, 4), (3, 4), (4, 4), (5, 8), (9, 10), (10, 10), (11, 11), (12, 10), (20, 10), (21, 11), (50, 10), (51, 11)],
)
def test_batches_are_filled_up_to_a_length_of_the_clients_own(examples, length):
    assert filled_length(examples, 10) == length


@pytest.mark.parametrize(("together", "size"), [(2, 2), (5, 5), (10, 10), (12, 6), (20, 10), (21, 7), (50, 10)])
def test_stacks_fill_up_evenly(together, size):
    assert next(twins._shapes(together, 10)) == (size, 10)


def test_a_networks_multiplications_are_counted():
    network = create(Cnn(arch="cnn1"), (1, 8, 8), 3, Key(0))
    assert multiplications(network, (1, 8, 8)) == (8 * 8 * 2 * 25, 2 * 2 * 2 * 3)
    assert network.training


def test_large_steps_are_not_stacked():
    network = create(Mlp(hidden=(100,)), (90,), 10, Key(0))
    assert pays(network, (90,), 100)
    assert not pays(network, (90,), 101)


def test_a_shape_is_proved_once(monkeypatch):
    asked = []
    monkeypatch.setattr(twins, "has_twin", lambda *about: asked.append(about) or True)
    known = Twins(CPU, (12,), lambda _: create(Mlp(), (12,), 4, Key(0)))
    stacks = [known.stack("mlp", length, 5) for length in (4, 8, 4, 8)]
    assert len(asked) == 2
    assert stacks[0] is stacks[2]
    assert stacks[0].twin is stacks[1].twin


def test_what_another_bank_has_proved_holds_for_a_network_that_is_known_by_what_it_is_made_of(monkeypatch):
    asked = []
    monkeypatch.setattr(twins, "has_twin", lambda *about: asked.append(about) or True)
    monkeypatch.setattr(twins, "_PROVED", {})

    def found(identity, length=4):
        make = lambda _: create(Mlp(), (12,), 4, Key(0))  # noqa: E731
        return Twins(CPU, (12,), make, lambda _: identity).stack("mlp", length, 5)

    assert found("mlp").twin is not found("mlp").twin, "each bank has networks of its own"
    assert len(asked) == 1
    assert found("mlp", length=8)
    assert found("another")
    assert len(asked) == 3
    assert found(None)
    assert found(None)
    assert len(asked) == 5, "code of the user's own may have changed meanwhile"


def test_a_client_that_is_always_alone_is_not_stacked():
    assert Twins(CPU, (12,), lambda _: create(Mlp(), (12,), 4, Key(0))).stack("mlp", 4, 1) is None


def test_another_shape_is_taken_where_kernels_mind_the_place(monkeypatch):
    """Of 13 x 3 weights, places differ in how they lie in memory; of an odd length, batches do."""
    tried = []

    def proved(_network, _shape, length, size, _device):
        tried.append((size, length))
        return length % 4 == 0 and size == 8

    monkeypatch.setattr(twins, "has_twin", proved)
    stack = Twins(CPU, (12,), lambda _: create(Mlp(), (12,), 4, Key(0))).stack("mlp", 11, 5)
    assert (stack.twin.size, stack.length) == (8, 12)
    assert tried == [(5, 11), (5, 12), (8, 12)]


def test_a_network_whose_places_differ_is_not_stacked(monkeypatch):
    """By the kernels of this machine, never by chance: what is found has the same bits for other numbers, too."""

    def odd(_prototype):
        with Key(0).default_generator():
            return adapt(nn.Sequential(nn.Linear(13, 7), nn.Tanh(), nn.Linear(7, 3)), (13,), 3, "odd")

    found = Twins(CPU, (13,), odd).stack("odd", 11, 5)
    for seed in range(1, 20) if found else ():
        monkeypatch.setattr(twin_proof, "Key", lambda _, path, seed=seed: Key(seed, path))
        assert has_twin(odd("odd"), (13,), found.length, found.twin.size, CPU)
