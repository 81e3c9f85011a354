"""The bank lends one resident network per prototype and role, holding exactly the asked weights."""

from __future__ import annotations

import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.models import Mlp
from tests.helpers import TinyNorm, make_bank, make_examples, make_weights


def test_lending_swaps_the_weights_of_one_resident_network():
    bank = make_bank(norm=TinyNorm())
    one, other = make_weights(bank, "norm", 1), make_weights(bank, "norm", 2)
    first = bank.lend("norm", one)
    assert Weights.of(first).equals(one)
    second = bank.lend("norm", other)
    assert second is first
    assert Weights.of(second).equals(other)


def test_what_a_borrower_did_is_gone_at_the_next_loan():
    bank = make_bank(norm=TinyNorm())
    weights = make_weights(bank, "norm", 1)
    model = bank.lend("norm", weights).train()
    model(make_examples(8).inputs).sum().backward()
    torch.optim.SGD(model.parameters(), lr=1.0).step()
    assert not Weights.of(model).equals(weights)
    model = bank.lend("norm", weights)
    assert Weights.of(model).equals(weights)
    assert int(model.layers[2].num_batches_tracked) == 0


def test_roles_and_prototypes_are_separate():
    bank = make_bank(a=TinyNorm(), b=TinyNorm(), c=Mlp(hidden=(5,)))
    one, other = make_weights(bank, "a", 1), make_weights(bank, "a", 2)
    student = bank.lend("a", one, "student")
    bank.lend("a", other, "teacher")
    bank.lend("b", other, "student")
    assert Weights.of(student).equals(one)
    assert bank.prototypes == ("a", "b", "c")


def test_initial_weights_depend_on_the_key_only():
    torch.manual_seed(1)
    first = make_bank(a=TinyNorm()).initial("a", Key(3))
    torch.manual_seed(2)
    bank = make_bank(b=Mlp(hidden=(7,)), a=TinyNorm())
    bank.lend("b", bank.initial("b", Key(9)))
    state = torch.random.get_rng_state()
    assert bank.initial("a", Key(3)).equals(first)
    assert not bank.initial("a", Key(4)).equals(first)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_layout_is_the_networks():
    bank = make_bank(norm=TinyNorm())
    assert bank.layout("norm") == Layout.of(TinyNorm().build((4,), 3))
