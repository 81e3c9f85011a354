"""A tensor is looked at against what is written here about each type, number by number."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.parts.tensor_spec import LARGEST, TensorSpec

FLOATS = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def test_it_is_a_shape():
    spec = TensorSpec((3, 2), torch.uint8)
    rows, columns = spec
    assert (rows, columns) == (3, 2) == spec
    assert (spec.dtype, spec.least, spec.most) == (torch.uint8, -math.inf, math.inf)
    again = pickle.loads(pickle.dumps(spec))
    assert (tuple(again), again.dtype) == ((3, 2), torch.uint8)


def test_a_plain_shape_is_float32():
    spec = TensorSpec.of((3,))
    assert (spec.dtype, spec.least, spec.most) == (torch.float32, -LARGEST, LARGEST)
    assert TensorSpec.of(spec) is spec


def test_other_shapes_and_types_keep_the_range():
    spec = TensorSpec((3,), least=0, most=1)
    for other in (spec.resized((4, 4)), spec.retyped(torch.float16)):
        assert (other.least, other.most) == (0, 1)
    assert spec.resized((4, 4)) == (4, 4)
    assert spec.retyped(torch.float16).dtype == torch.float16


numbers = st.floats(width=32) | st.sampled_from([LARGEST, -LARGEST, 1e30, 0.0, 1.0])


@given(st.lists(numbers, max_size=6), st.floats(-10, 0), st.floats(0, 10))
def test_the_range_against_a_loop(values, least, most):
    tensor = torch.tensor(values, dtype=torch.float32)
    fault = TensorSpec((len(values),), least=least, most=most).fault(tensor)
    assert (fault is None) == all(least <= value <= most for value in tensor.tolist())
    if fault and not all(map(math.isfinite, values)):
        assert fault == "not finite"


@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_are_finite_and_not_too_large(dtype):
    spec, most = TensorSpec((2,), dtype), min(LARGEST, torch.finfo(dtype).max)
    assert spec.fault(torch.tensor([most, -most], dtype=torch.float64).to(dtype) * 0.99) is None
    for bad in (torch.nan, torch.inf, -torch.inf):
        assert spec.fault(torch.tensor([0.0, bad], dtype=dtype)) == "not finite"
    if torch.finfo(dtype).max > 1e30:
        assert spec.fault(torch.tensor([0.0, 1e30], dtype=dtype)) == "above 1e+15"
        assert spec.fault(torch.tensor([-1e30, 0.0], dtype=dtype)) == "below -1e+15"


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.int64, torch.bool])
def test_whole_numbers_have_a_range_only_if_one_is_given(dtype):
    tensor = torch.tensor([0, 1]).to(dtype)
    assert TensorSpec((2,), dtype).fault(tensor) is None
    assert TensorSpec((2,), dtype, most=0).fault(tensor) == "above 0"
    assert TensorSpec((2,), torch.int64).fault(torch.tensor([2**62, -(2**62)])) is None


def test_one_bad_number_among_many_is_found():
    tensor = torch.zeros(1 << 19)
    for place in (0, 1 << 18, -1):
        bad = tensor.clone()
        bad[place] = torch.nan
        assert TensorSpec(tensor.shape).fault(bad) == "not finite"
    assert TensorSpec(tensor.shape).fault(tensor) is None


def test_type_and_shape():
    spec = TensorSpec((2,))
    assert spec.fault(torch.zeros(2, dtype=torch.complex64)) == "complex64, expected float32"
    assert spec.fault(torch.zeros(2, 1)) == "of another shape than (2,)"
    assert spec.fault(torch.zeros(())) == "of another shape than (2,)"
    assert TensorSpec(()).fault(torch.zeros(())) is None
    assert TensorSpec((0,)).fault(torch.zeros(0)) is None
