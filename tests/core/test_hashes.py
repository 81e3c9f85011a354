"""An order that contents alone decide."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.hashes import order_of, sha256_of


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.float32])
def test_the_order_depends_on_contents_and_not_on_places(kind):
    random = torch.Generator().manual_seed(1)
    rows = torch.randint(0, 200, (50, 2, 3), generator=random).to(kind)
    for seed in range(3):
        moved = rows[torch.randperm(50, generator=torch.Generator().manual_seed(seed))]
        assert torch.equal(moved[order_of(moved)], rows[order_of(rows)])


def test_it_is_a_permutation_that_mixes():
    """Sorted by class before, every tenth of the order has about as many of each class."""
    labels = torch.arange(10).repeat_interleave(200)
    rows = torch.stack([labels, torch.arange(2000)], dim=1).float()
    order = order_of(rows)
    assert order.sort().values.tolist() == list(range(2000))
    counts = torch.stack([torch.bincount(part, minlength=10) for part in labels[order].split(200)])
    assert counts.min() > 5
    assert counts.max() < 40


def test_rows_that_are_alike_stay_in_their_order():
    rows = torch.tensor([[1.0], [2.0], [1.0], [2.0]])
    order = order_of(rows).tolist()
    assert order.index(0) < order.index(2)
    assert order.index(1) < order.index(3)
    assert sha256_of(rows[order_of(rows)]) == sha256_of(rows.flip(0)[order_of(rows.flip(0))])
