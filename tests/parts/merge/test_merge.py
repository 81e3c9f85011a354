"""Merging against numpy in double precision, and momentum against its recurrence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.weights import Weights
from fedfuse.parts.merge import Mean, Momentum
from tests.helpers import TinyNorm, make_bank, make_update, make_view, make_weights

BANK = make_bank(norm=TinyNorm())
SIZES = st.lists(st.integers(1, 10_000), min_size=1, max_size=6)


def updates_of(sizes, seed=0):
    return [
        make_update(make_weights(BANK, "norm", seed + i), client=i, examples=n, prototype="norm")
        for i, n in enumerate(sizes)
    ]


def merged(merge, updates, previous=None, memory=None, number=1):
    view = make_view(BANK, {"norm": previous or make_weights(BANK, "norm", 77)}, memory=memory or {}, round=number)
    return merge.merge(view, "norm", updates)


class TestMean:
    @settings(max_examples=25, deadline=None)
    @given(sizes=SIZES, weighting=st.sampled_from(["examples", "uniform"]))
    def test_is_numpys(self, sizes, weighting):
        updates = updates_of(sizes)
        matrix = np.stack([u.weights.flat.numpy().astype(np.float64) for u in updates])
        expected = np.average(matrix, axis=0, weights=sizes if weighting == "examples" else None)
        result = merged(Mean(weighting=weighting), updates)
        np.testing.assert_allclose(result.weights.flat.numpy(), expected, rtol=1e-6, atol=1e-9)
        assert result.memory == {}

    def test_weightings_agree_for_equal_sizes_and_differ_otherwise(self):
        equal, unequal = updates_of([5, 5, 5]), updates_of([1, 5, 50])
        uniform, examples = Mean(weighting="uniform"), Mean()
        assert merged(uniform, equal).weights.equals(merged(examples, equal).weights)
        assert not merged(uniform, unequal).weights.equals(merged(examples, unequal).weights)

    def test_one_client_is_its_own_mean(self):
        (update,) = updates_of([17])
        assert merged(Mean(), [update]).weights.equals(update.weights)

    @pytest.mark.parametrize("weighting", ["examples", "uniform"])
    @pytest.mark.parametrize("rate", [0.5, 1.5])
    def test_server_rate_is_the_length_of_the_step(self, rate, weighting):
        """x + eta_g (avg - x), in double precision; buffers are the average's."""
        x, updates = make_weights(BANK, "norm", 50), updates_of([3, 4, 9])
        average = merged(Mean(weighting=weighting), updates).weights
        result = merged(Mean(weighting=weighting, server_rate=rate), updates, x).weights
        x64, average64 = x.parameters.double().numpy(), average.parameters.double().numpy()
        np.testing.assert_allclose(result.parameters.numpy(), x64 + rate * (average64 - x64), rtol=1e-5, atol=1e-6)
        assert torch.equal(result.buffers, average.buffers)

    def test_server_rate_one_is_the_average_itself(self):
        updates = updates_of([3, 4, 9])
        assert merged(Mean(server_rate=1.0), updates).weights.equals(Mean().average(updates))

    def test_updates_are_left_as_they_were(self):
        updates = updates_of([1, 2])
        before = [u.weights.sha256() for u in updates]
        merged(Momentum(), updates)
        assert [u.weights.sha256() for u in updates] == before


class TestMomentum:
    @pytest.mark.parametrize("weighting", ["examples", "uniform"])
    @pytest.mark.parametrize("beta", [0.2, 0.9])
    @pytest.mark.parametrize("form", ["plain", "damped"])
    @pytest.mark.parametrize("warm_up", [0, 2])
    def test_follows_the_recurrence(self, warm_up, form, beta, weighting):
        """d = x - avg;  v <- beta v + d or beta v + (1 - beta) d;  x <- x - v, in double precision."""
        x = make_weights(BANK, "norm", 50)
        x64, v64, memory = x.parameters.double().numpy(), 0.0, {}
        for number in range(5):
            updates = updates_of([3, 4, 9], seed=10 * number)
            matrix = np.stack([u.weights.parameters.double().numpy() for u in updates])
            average = np.average(matrix, axis=0, weights=[3, 4, 9] if weighting == "examples" else None)
            difference = x64 - average
            if number < warm_up:
                v64 = difference
            elif form == "plain":
                v64 = beta * v64 + difference
            else:
                v64 = beta * v64 + (1 - beta) * difference
            x64 = x64 - v64
            momentum = Momentum(beta=beta, weighting=weighting, form=form, warm_up=warm_up)
            result = merged(momentum, updates, x, memory, number + 1)
            x, memory = result.weights, result.memory
            np.testing.assert_allclose(x.parameters.numpy(), x64, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(memory["velocity"].numpy(), v64, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("form", ["plain", "damped"])
    def test_beta_zero_is_the_mean_bit_for_bit_in_every_round(self, form):
        x, memory = make_weights(BANK, "norm", 50), {}
        for number in range(3):
            updates = updates_of([3, 4, 9], seed=10 * number)
            result = merged(Momentum(beta=0.0, form=form), updates, x, memory)
            assert result.weights.equals(Mean().average(updates))
            x, memory = result.weights, result.memory

    def test_the_first_round_is_the_mean(self):
        updates = updates_of([3, 4])
        assert merged(Momentum(beta=0.9), updates).weights.equals(Mean().average(updates))

    def test_warm_up_rounds_are_the_mean(self):
        updates = updates_of([3, 4])
        damped = Momentum(beta=0.9, form="damped", warm_up=2)
        for number, same in ((1, True), (2, True), (3, False)):
            assert merged(damped, updates, number=number).weights.equals(Mean().average(updates)) == same

    @pytest.mark.parametrize("form", ["plain", "damped"])
    def test_buffers_are_the_averages(self, form):
        updates = updates_of([3, 4])
        velocity = torch.ones(BANK.layout("norm").parameter_count)
        result = merged(Momentum(beta=0.9, form=form), updates, memory={"velocity": velocity}).weights
        average = merged(Mean(), updates).weights
        assert torch.equal(result.buffers, average.buffers)
        assert not torch.equal(result.parameters, average.parameters)

    def test_standing_still_comes_to_rest(self):
        """When every client returns what it received, only the old velocity moves the weights, ever less."""
        x, memory = make_weights(BANK, "norm", 1), {"velocity": torch.ones(BANK.layout("norm").parameter_count)}
        for number in range(1, 4):
            result = merged(Momentum(beta=0.5), [make_update(x, prototype="norm")], x, memory)
            moved = (x.parameters - result.weights.parameters).numpy()
            np.testing.assert_allclose(moved, 0.5**number, rtol=1e-4)
            x, memory = result.weights, result.memory


def test_layout_is_kept():
    updates = updates_of([1, 2])
    for merge in (Mean(), Momentum()):
        result = merged(merge, updates).weights
        assert isinstance(result, Weights)
        assert result.layout == BANK.layout("norm")
