"""Quantised soft labels against their definition: rows that sum to one, small errors, few bytes."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.parts.protocol.soft_labels import pack, packed_size, quantise, unpack


def probabilities(rows, classes, seed=0, sharpness=3.0):
    return (sharpness * torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed))).softmax(dim=1)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.integers(1, 9), st.integers(1, 30), st.integers(0, 99))
def test_round_trip(bits, rows, classes, seed):
    table = probabilities(rows, classes, seed)
    packed = pack(table, bits)
    assert packed.dtype == torch.uint8
    assert packed.numel() == packed_size(bits, rows, classes)
    expected = quantise(table, bits).float() / (2**bits - 1)
    torch.testing.assert_close(unpack(packed, bits, rows, classes), expected)


@pytest.mark.parametrize("bits", range(1, 9))
def test_rows_sum_to_one_and_no_entry_moves_by_a_level(bits):
    table = probabilities(200, 7)
    codes, levels = quantise(table, bits), 2**bits - 1
    assert (codes.sum(dim=1) == levels).all()
    assert (codes >= 0).all()
    assert ((codes / levels - table.double()).abs() < 1 / levels).all()


def test_one_bit_is_the_most_probable_class():
    table = probabilities(50, 10)
    assert torch.equal(unpack(pack(table, 1), 1, 50, 10).argmax(dim=1), table.argmax(dim=1))
    assert torch.equal(quantise(table, 1).sum(dim=1), torch.ones(50, dtype=torch.long))


def test_what_is_quantised_already_stays():
    table = torch.tensor([[0, 1, 2], [3, 0, 0], [1, 1, 1]]) / 3
    assert torch.equal(quantise(table, 2), torch.tensor([[0, 1, 2], [3, 0, 0], [1, 1, 1]]))


@pytest.mark.parametrize(("bits", "rows", "classes"), [(1, 80_000, 10), (1, 11, 3), (8, 100, 10), (3, 7, 5)])
def test_sizes_are_those_of_the_paper(bits, rows, classes):
    """n log2 K bits for one bit, otherwise b n K."""
    weights_spec = rows * (math.ceil(math.log2(classes)) if bits == 1 else bits * classes)
    assert packed_size(bits, rows, classes) == math.ceil(weights_spec / 8)


def test_an_index_that_no_class_has_is_no_crash():
    assert unpack(torch.tensor([255], dtype=torch.uint8), 1, 2, 3).argmax(dim=1).tolist() == [2, 2]
