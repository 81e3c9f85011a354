"""A secret key: numbers that follow the law, that nobody else can compute, and that no two purposes share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy import stats

from fedfuse.core.randomness import Key
from fedfuse.core.secret_key import PIECE, SecretKey


@pytest.mark.parametrize("key", [Key(3), SecretKey(3)], ids=["seed", "secret"])
class TestLaws:
    def test_noise_is_gaussian(self, key):
        noise = key.noised(torch.zeros(20_000), 2.5).double().numpy()
        assert stats.kstest(noise / 2.5, "norm").pvalue > 1e-4

    def test_noise_is_added_to_what_is_there(self, key):
        values = torch.arange(6.0).reshape(2, 3)
        noise = key.noised(torch.zeros(2, 3), 0.5)
        assert torch.allclose(key.noised(values, 0.5), values + noise, atol=1e-6)
        assert torch.equal(key.noised(values, 0.0), values)

    def test_the_same_address_gives_the_same_and_another_one_does_not(self, key):
        one, other = (key.child("a").noised(torch.zeros(1000), 1.0) for _ in range(2))
        assert torch.equal(one, other)
        apart = key.child("b").noised(torch.zeros(1000), 1.0)
        assert abs(float(np.corrcoef(one, apart)[0, 1])) < 0.15

    def test_everybody_is_drawn_by_itself(self, key):
        drawn = [key.child(step).sample(50, 0.3) for step in range(400)]
        sizes = np.array([len(where) for where in drawn])
        assert abs(sizes.mean() - 15) < 0.7
        assert abs(sizes.var() - 50 * 0.3 * 0.7) < 3, "a fixed number would have no variance"
        counts = torch.bincount(torch.cat(drawn), minlength=50) / 400
        assert float((counts - 0.3).abs().max()) < 0.12
        assert all(torch.equal(where, where.unique()) for where in drawn)

    def test_all_and_nobody(self, key):
        assert key.sample(5, 1.0).tolist() == [0, 1, 2, 3, 4]
        assert key.sample(5, 0.0).tolist() == []
        assert key.sample(0, 0.5).tolist() == []

    def test_types_and_shapes_stay(self, key):
        for values in (torch.zeros(3, dtype=torch.float64), torch.zeros(()), torch.zeros(0), torch.zeros(2, 2)):
            noised = key.noised(values, 1.0)
            assert (noised.shape, noised.dtype) == (values.shape, values.dtype)


def test_long_vectors_do_not_repeat():
    noise = SecretKey(1).noised(torch.zeros(PIECE + 100), 1.0)
    assert not torch.isclose(noise[:100], noise[PIECE:]).any()


def test_a_secret_shows_itself_to_nobody():
    key = SecretKey.fresh()
    for text in (repr(key), str(key.child("noise", 3)), f"{key}"):
        assert str(key.seed) not in text
    assert key.seed.bit_length() > 200
    assert SecretKey.fresh().seed != key.seed


def test_a_child_of_a_secret_is_a_secret():
    child = SecretKey(5).child("a").child("b")
    assert type(child) is SecretKey
    assert child == SecretKey(5).child("a", "b")
    assert pickle.loads(pickle.dumps(child)) == child


def test_a_secret_is_no_seed():
    """The same number in a plain key gives other noise, so that a seed is never taken for a secret."""
    assert not torch.isclose(SecretKey(3).noised(torch.zeros(100), 1.0), Key(3).noised(torch.zeros(100), 1.0)).any()


def test_noise_leaves_no_grid_behind():
    """Sums of several draws in double precision: as many different values as there are numbers, also far out."""
    noise = SecretKey(2).noised(torch.zeros(50_000, dtype=torch.float64), 1.0)
    assert len(noise.unique()) == len(noise)
    assert float(noise.abs().max()) > 3.5
