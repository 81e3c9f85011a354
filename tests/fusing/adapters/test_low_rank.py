"""Sums of products of a given rank, beside what NumPy says of the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.fusing.adapters.loss import Loss
from fedfuse.fusing.adapters.low_rank import of_matrix, of_products


@settings(max_examples=40)
@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    ranks=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    rank=st.integers(1, 25),
    seed=st.integers(0, 99),
)
def test_it_is_the_nearest_matrix_of_that_rank(rows, columns, ranks, rank, seed):
    random = np.random.default_rng(seed)
    lefts = [random.normal(size=(rows, one)) for one in ranks]
    rights = [random.normal(size=(one, columns)) for one in ranks]
    whole = sum(left @ right for left, right in zip(lefts, rights, strict=True))
    left, values, right = np.linalg.svd(whole)
    values = np.concatenate([values, np.zeros(30)])
    nearest = sum(values[i] * np.outer(left[:, i], right[i]) for i in range(min(rank, rows, columns)))
    for found in (
        of_products([torch.from_numpy(one) for one in lefts], [torch.from_numpy(one) for one in rights], rank),
        of_matrix(torch.from_numpy(whole), rank),
    ):
        product = (found.left @ found.right).numpy()
        assert found.rank <= rank
        assert np.linalg.norm(whole - product) == pytest.approx(found.left_out, abs=1e-9)
        assert found.left_out == pytest.approx(np.sqrt((values[rank:] ** 2).sum()), abs=1e-9)
        assert found.norm == pytest.approx(np.linalg.norm(whole))
        if values[rank - 1] - values[rank] > 1e-6:  # else there are several nearest ones
            assert np.allclose(product, nearest, atol=1e-8)
        if rank >= sum(ranks):
            assert np.allclose(product, whole, atol=1e-10)


def test_what_is_lost_is_said():
    matrix = torch.diag(torch.tensor([3.0, 4.0]).double())
    lost = Loss.of("base", 1, {"some": of_matrix(matrix, 1), "none": of_matrix(torch.ones(2, 2).double(), 1)})
    assert (lost.norm, lost.left_out) == pytest.approx((29**0.5, 3))
    assert "55.71 % is left out (60.00 % in some)" in str(lost)
    assert "nothing is left out" in str(Loss.of("base", 2, {"some": of_matrix(matrix, 2)}))
