"""Short vectors that keep the angles of long ones."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.federation.sketches import LONGEST, NUMBERS, SHORTEST, Sketcher


def cosine(one, other):
    return float(torch.cosine_similarity(one.double(), other.double(), dim=0))


@pytest.mark.parametrize("wanted", [-1.0, -0.4, 0.0, 0.7, 1.0])
def test_angles_are_about_the_same(wanted):
    random = torch.Generator().manual_seed(1)
    one, noise = torch.randn(2, 50_001, generator=random)
    other = wanted * one + (1 - wanted**2) ** 0.5 * noise
    sketch = Sketcher(len(one), clients=10, key=Key(3))
    assert cosine(sketch(one).whole, sketch(other).whole) == pytest.approx(cosine(one, other), abs=0.1)
    assert cosine(sketch(one).short, sketch(other).short) == pytest.approx(cosine(one, other), abs=0.3)


def test_it_is_a_sum_with_signs():
    sketch = Sketcher(2 * SHORTEST + 5, clients=NUMBERS, key=Key(0))
    units = torch.eye(2 * SHORTEST + 5)
    image = torch.stack([sketch(row).short for row in units])
    assert (image.abs().sum(dim=1) == 1).all(), "every number is in one place"
    assert [int(row.abs().argmax()) for row in image] == [place % SHORTEST for place in range(len(units))]
    random = torch.randn(len(units), generator=torch.Generator().manual_seed(5))
    torch.testing.assert_close(sketch(random).short, random @ image)


@pytest.mark.parametrize("size", [9, SHORTEST, LONGEST])
def test_short_vectors_keep_their_angles(size):
    one, other = torch.randn(2, size, generator=torch.Generator().manual_seed(2))
    sketch = Sketcher(size, clients=5, key=Key(0))
    assert cosine(sketch(one).whole, sketch(other).whole) == pytest.approx(cosine(one, other), abs=1e-6)


def test_sketches_of_different_rounds_go_together():
    """However many clients are in a round, what is remembered is of one kind."""
    vector = torch.randn(5000, generator=torch.Generator().manual_seed(3))
    few, many = (Sketcher(5000, clients, Key(4))(vector) for clients in (10, 200_000))
    assert len(few.whole) > len(many.whole)
    torch.testing.assert_close(few.short, many.short)


def test_a_hundred_thousand_clients_do_not_need_more_memory():
    lengths = [len(Sketcher(10**6, clients, Key(0))(torch.ones(10**6)).whole) for clients in (10, 100_000)]
    assert lengths[0] == LONGEST
    assert 100_000 * lengths[1] * 4 < 2**27
