"""Weights are a model's state as one vector: nothing is lost on the way, and averaging copies is exact."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from fedfuse.core.randomness import Key
from fedfuse.core.weights import LOOKED_AT_ONCE, Layout, Weights, is_finite, mean
from fedfuse.models import ResNet, create

FLOATS = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)


def net(seed: int = 0) -> nn.Module:
    with Key(seed).default_generator():
        model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.LazyLinear(4))
        model(torch.randn(5, 1, 4, 4))  # in train mode, so the statistics move
    return model


def vector(numbers) -> Weights:
    return Weights(torch.tensor(numbers, dtype=torch.float32), Layout((("w", (len(numbers),)),), ()))


class TestRoundTrip:
    def test_a_models_state_survives(self):
        source, target = net(1), net(2)
        Weights.of(source).load_into(target)
        for name, tensor in source.state_dict().items():
            if "num_batches_tracked" not in name:
                assert torch.equal(target.state_dict()[name], tensor), name

    def test_a_residual_network_survives(self):
        source, target = (create(ResNet(arch="resnet8"), (1, 8, 8), 10, Key(seed)) for seed in (1, 2))
        source(torch.randn(4, 1, 8, 8))
        weights = Weights.of(source)
        weights.load_into(target)
        assert Weights.of(target).equals(weights)
        x = torch.randn(3, 1, 8, 8)
        assert torch.equal(source.eval()(x), target.eval()(x))

    def test_the_batch_counter_starts_afresh(self):
        model = net()
        assert int(model[1].num_batches_tracked) == 1
        Weights.of(model).load_into(model)
        assert int(model[1].num_batches_tracked) == 0

    def test_a_snapshot_does_not_follow_the_model(self):
        model = net()
        weights = Weights.of(model)
        before = weights.sha256()
        with torch.no_grad():
            for p in model.parameters():
                p.add_(1)
        assert weights.sha256() == before

    def test_loading_does_not_tie_the_model_to_the_snapshot(self):
        model, weights = net(1), Weights.of(net(2))
        before = weights.sha256()
        weights.load_into(model)
        with torch.no_grad():
            for p in model.parameters():
                p.add_(1)
        assert weights.sha256() == before


class TestLayout:
    def test_parameters_come_first_then_buffers(self):
        model = net()
        weights = Weights.of(model)
        parameters = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
        buffers = torch.cat([model[1].running_mean, model[1].running_var])
        assert torch.equal(weights.parameters, parameters)
        assert torch.equal(weights.buffers, buffers)
        assert torch.equal(weights.flat, torch.cat([parameters, buffers]))

    def test_counts(self):
        layout = Layout.of(net())
        assert layout.parameter_count == (3 * 9 + 3) + (3 + 3) + (12 * 4 + 4)
        assert layout.size == layout.parameter_count + 6

    def test_json_round_trip(self):
        layout = Layout.of(net())
        assert Layout.from_json(layout.to_json()) == layout

    def test_names_and_shapes_are_the_models(self):
        model = net()
        weights = Weights.of(model)
        state = {name: t for name, t in model.state_dict().items() if t.is_floating_point()}
        assert set(weights) == set(state)
        assert len(weights) == len(state)
        assert all(torch.equal(weights[name], tensor) for name, tensor in state.items())

    def test_a_vector_of_the_wrong_length_is_refused(self):
        with pytest.raises(ValueError, match="layout of 88"):
            Weights(torch.zeros(4), Layout((("w", (88,)),), ()))

    def test_replacing_a_part_leaves_the_other(self):
        weights, other = Weights.of(net(1)), Weights.of(net(2))
        assert torch.equal(weights.with_parameters(other.parameters).parameters, other.parameters)
        assert torch.equal(weights.with_parameters(other.parameters).buffers, weights.buffers)
        assert torch.equal(weights.with_buffers(other.buffers).buffers, other.buffers)
        assert torch.equal(weights.with_buffers(other.buffers).parameters, weights.parameters)


class TestMean:
    @given(
        numbers=st.lists(FLOATS, min_size=1, max_size=8),
        coefficients=st.lists(st.integers(1, 10**6), min_size=1, max_size=30),
    )
    def test_the_mean_of_copies_is_the_model_exactly(self, numbers, coefficients):
        weights = vector(numbers)
        assert mean([weights] * len(coefficients), [float(c) for c in coefficients]).equals(weights)

    @settings(max_examples=50)
    @given(data=st.data(), count=st.integers(1, 10), size=st.integers(1, 5))
    def test_weighted_mean_is_numpys(self, data, count, size):
        rows = data.draw(st.lists(st.lists(FLOATS, min_size=size, max_size=size), min_size=count, max_size=count))
        coefficients = data.draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count))
        result = mean([vector(row) for row in rows], [float(c) for c in coefficients]).flat.numpy()
        matrix = np.array(rows, dtype=np.float64)
        expected = np.average(matrix, axis=0, weights=coefficients)
        # One rounding to float32, plus what double precision loses to cancellation.
        np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-13 * max(1.0, np.abs(matrix).max()))

    def test_coefficients_are_normalised(self):
        a, b = vector([1.0, 2.0]), vector([3.0, -2.0])
        assert mean([a, b], [1.0, 1.0]).equals(mean([a, b], [0.5, 0.5]))
        assert mean([a, b], [1.0, 3.0]).flat.tolist() == [2.5, -1.0]

    def test_buffers_are_averaged_too(self):
        a, b = Weights.of(net(1)), Weights.of(net(2))
        expected = (a.buffers.double() + b.buffers.double()) / 2
        assert torch.allclose(mean([a, b], [1.0, 1.0]).buffers.double(), expected, rtol=1e-7, atol=0)

    def test_lengths_must_agree(self):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            mean([vector([1.0])], [1.0, 1.0])


class TestArithmetic:
    def test_sum_difference_and_scaling_are_elementwise(self):
        a, b = Weights.of(net(1)), Weights.of(net(2))
        assert torch.equal((a + b).flat, a.flat + b.flat)
        assert torch.equal((a - b).flat, a.flat - b.flat)
        assert torch.equal((2.0 * a).flat, (a * 2.0).flat)
        assert torch.equal((a * 0.5).flat, a.flat * 0.5)

    def test_equality_is_bit_for_bit(self):
        a = vector([1.0, 2.0])
        assert a.equals(vector([1.0, 2.0]))
        assert a.sha256() == vector([1.0, 2.0]).sha256()
        assert not a.equals(vector([1.0, float(np.nextafter(np.float32(2), np.float32(3)))]))
        assert not a.equals(Weights(a.flat, Layout((("v", (2,)),), ())))


class TestPlaces:
    """A model is walked through once; what its modules hold may change all the same."""

    def test_a_model_is_walked_through_once(self, monkeypatch):
        model, weights = net(), Weights.of(net(1))
        weights.load_into(model)
        monkeypatch.setattr(nn.Module, "named_modules", None)
        weights.load_into(model)
        assert Weights.of(model, weights.layout).equals(weights)

    def test_tensors_that_were_replaced_are_seen(self):
        model, weights = net(), Weights.of(net(1))
        weights.load_into(model)
        model[0].weight = nn.Parameter(torch.ones_like(model[0].weight))
        model[1].running_mean = torch.full((3,), 7.0)
        now = Weights.of(model, weights.layout)
        assert (now["0.weight"] == 1).all()
        assert (now["1.running_mean"] == 7).all()
        weights.load_into(model)
        assert torch.equal(model[0].weight, weights["0.weight"])
        assert torch.equal(model[1].running_mean, weights["1.running_mean"])

    def test_a_model_is_not_kept_alive(self):
        model = net()
        Weights.of(model).load_into(model)
        gone = weakref.ref(model)
        del model
        gc.collect()
        assert gone() is None

    def test_a_tensor_of_two_modules_is_one(self):
        one = nn.Linear(2, 2)
        model = nn.Sequential(one, nn.ReLU(), one)
        weights = Weights.of(model) * 2
        weights.load_into(model)
        assert list(weights) == ["0.weight", "0.bias"]
        assert Weights.of(model).equals(weights)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, -2.0], True),
        ([], True),
        ([3e38, 3e38, -1.0], True),  # whose sum is not finite
        ([float("inf"), -float("inf")], False),
        ([float("nan"), 1.0], False),
        ([1.0, -float("inf")], False),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
def test_finite_are_tensors_all_of_whose_entries_are(values, expected, dtype):
    assert is_finite(torch.tensor(values, dtype=dtype)) is expected


def test_a_long_tensor_is_looked_at_to_its_end():
    long = torch.full((LOOKED_AT_ONCE + 3,), 3e38)
    assert is_finite(long)
    long[-1] = float("nan")
    assert not is_finite(long)
