"""A key is an address: the same address gives the same numbers, whatever else ran in between."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core import randomness
from fedfuse.core.randomness import Key

WORDS = st.one_of(st.text("abcdefghij_-", min_size=1, max_size=6), st.integers(0, 10**6))
PATHS = st.lists(WORDS, max_size=4).map(tuple)


@given(seed=st.integers(0, 2**40), path=PATHS)
def test_same_address_same_numbers(seed, path):
    one, other = Key(seed).child(*path), Key(seed).child(*path)
    assert one.number() == other.number()
    assert np.array_equal(one.numpy().random(3), other.numpy().random(3))
    assert torch.equal(torch.rand(3, generator=one.torch()), torch.rand(3, generator=other.torch()))


@given(seed=st.integers(0, 2**40), one=PATHS, other=PATHS)
def test_other_address_other_numbers(seed, one, other):
    if one != other:
        assert Key(seed).child(*one).number() != Key(seed).child(*other).number()


@given(path=PATHS, cut=st.integers(0, 4))
def test_an_address_can_be_built_in_steps(path, cut):
    assert Key(3).child(*path[:cut]).child(*path[cut:]) == Key(3).child(*path)


def test_the_type_of_a_part_counts():
    assert Key(0).child(1).number() != Key(0).child("1").number()


def test_the_seed_counts():
    assert len({Key(seed).child("batches").number() for seed in range(100)}) == 100


def test_asking_for_one_generator_does_not_move_another():
    key = Key(0).child("x")
    expected = torch.rand(5, generator=key.torch())
    generator = key.torch()
    torch.rand(3)
    Key(0).child("y").torch()
    assert torch.equal(torch.rand(5, generator=generator), expected)


def test_numbers_fit_into_a_seed():
    assert all(0 <= Key(0).child(i).number() < 2**63 for i in range(200))


class TestDefaultGenerator:
    def test_inside_the_block_numbers_depend_on_the_key(self):
        def draw(key):
            with key.default_generator():
                return torch.rand(4)

        torch.manual_seed(1)
        first = draw(Key(7))
        torch.manual_seed(2)
        assert torch.equal(draw(Key(7)), first)
        assert not torch.equal(draw(Key(8)), first)

    @pytest.mark.parametrize("fails", [False, True])
    def test_the_callers_state_comes_back(self, fails):
        before = torch.random.get_rng_state()
        try:
            with Key(0).default_generator():
                torch.rand(10)
                if fails:
                    raise RuntimeError
        except RuntimeError:
            pass
        assert torch.equal(torch.random.get_rng_state(), before)


def test_a_part_cannot_pose_as_two():
    assert Key(0).child("a/str:b").number() != Key(0).child("a", "b").number()


def test_seeding_is_cheap_where_there_is_no_accelerator(monkeypatch):
    """torch.manual_seed formats the call stack for every kind of accelerator that is absent."""
    if randomness._has_accelerator():
        pytest.skip("this machine has one")
    monkeypatch.setattr(torch, "manual_seed", None)
    with Key(0).default_generator():
        drawn = torch.rand(3)
    assert torch.equal(drawn, torch.rand(3, generator=Key(0).torch()))


def test_seeding_with_and_without_an_accelerator_is_the_same():
    def draw(block):
        with block:
            return torch.rand(3)

    number = Key(5).number()
    assert torch.equal(draw(randomness._seeded_cpu(number)), draw(randomness._seeded_everywhere(number)))
