"""The threshold of the largest numbers against a sort, however they are cut into pieces."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.parts.merge.magnitudes import thresholds

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def found(vectors, share, cut=None):
    pieces = [vector.split(cut or max(1, len(vector))) for vector in vectors]
    return thresholds(lambda: zip(*pieces, strict=True), share, len(vectors))


@settings(max_examples=60, deadline=None)
@given(numbers=st.lists(FLOATS, min_size=1, max_size=60), share=st.floats(0.01, 1), cut=st.integers(1, 60))
def test_is_the_kth_largest(numbers, share, cut):
    ordered = sorted((abs(np.float32(number)) for number in numbers), reverse=True)
    wanted = round(share * len(numbers))
    expected = float(ordered[wanted - 1]) if wanted else math.inf
    assert float(found([torch.tensor(numbers, dtype=torch.float64)], share, cut)[0]) == expected


def test_vectors_have_thresholds_of_their_own():
    vectors = [torch.arange(10.0).double(), -100 * torch.arange(10.0).double()]
    assert found(vectors, 0.3, cut=4).tolist() == [7.0, 700.0]


@pytest.mark.parametrize("size", [1000, 1001])
def test_a_long_vector(size):
    vector = torch.randn(size, generator=torch.Generator().manual_seed(1)).double()
    least = found([vector], 0.2, cut=37)[0]
    assert int((vector.abs().float() >= least).sum()) == round(0.2 * size)


def test_no_numbers():
    assert thresholds(lambda: iter(()), 0.5, 2).tolist() == [math.inf, math.inf]
