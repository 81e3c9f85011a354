"""Copies are found by their bytes, however the rows are compared."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core import copies as module
from fedfuse.core.copies import copies

rows = st.lists(st.lists(st.integers(0, 2), min_size=3, max_size=3), max_size=30)


def table(values: list[list[int]], dtype: str) -> np.ndarray:
    return np.array(values, dtype=dtype).reshape(-1, 1, 3)


@given(some=rows, others=rows, dtype=st.sampled_from(["uint8", "float32", "int32", "int64"]))
def test_as_many_as_a_plain_comparison_finds(some: list[list[int]], others: list[list[int]], dtype: str) -> None:
    expected = sum(row in others for row in some)
    assert copies(table(some, dtype), np.array_split(table(others, dtype), 3)) == expected


def test_over_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 7)
    others = np.random.default_rng(0).integers(0, 256, size=(100, 3, 5, 5), dtype=np.uint8)
    some = np.concatenate([others[60:90], 255 - others[:10]])
    assert copies(some, [others]) == 30


def test_rows_with_equal_checksums_are_still_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_checksums", lambda found: np.zeros(len(found), dtype=np.uint64))
    assert copies(table([[0, 1, 2], [2, 2, 2]], "float32"), [table([[2, 2, 2], [1, 1, 1]], "float32")]) == 1


def test_what_differs_in_a_bit_is_no_copy() -> None:
    zeros = np.zeros((1, 2), dtype=np.float32)
    assert copies(-zeros, [zeros]) == 0
