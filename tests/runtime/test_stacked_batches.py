"""Batches of several clients hold their own examples, and others that count nothing."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.data import Examples
from fedfuse.data.dataset import Normalisation
from fedfuse.data.transform import Transform
from fedfuse.runtime import stacked_batches
from tests.helpers import CPU

SIZES = (5, 3)


def clients():
    random = Key(0).torch()
    transform = Transform(Normalisation((1.0,) * 4, (2.0,) * 4), (4,))
    return [
        SimpleNamespace(examples=Examples(torch.rand(n, 4, generator=random), torch.arange(n)), transform=transform)
        for n in SIZES
    ]


def visits(*batches):
    return [SimpleNamespace(where=torch.tensor(where), views=None) for where in batches]


PLAN = [visits([4, 0, 2], [1, 3]), visits([2, 0])]
STACK = SimpleNamespace(twin=SimpleNamespace(size=3), length=4)


@pytest.mark.parametrize("bound", [0, 10**6])
def test_every_client_has_its_own_examples_normalised(bound, monkeypatch):
    monkeypatch.setattr(stacked_batches, "READY_BYTES", bound)
    here = clients()
    batches = stacked_batches.stacked_batches(CPU, STACK, here, PLAN)
    for step in range(2):
        batch = batches.batch(step)
        assert batch.inputs.shape == (4, 3, 4)
        for place, own in enumerate(PLAN):
            where = own[step].where if step < len(own) else torch.tensor([], dtype=torch.long)
            count = len(where)
            assert batch.lengths[place] == count
            expected = here[place].transform(here[place].examples.inputs[where])
            assert torch.equal(batch.inputs[:count, place], expected)
            assert torch.equal(batch.labels[place, :count], here[place].examples.labels[where])
            assert torch.equal(batch.shares[place], torch.tensor([1 / max(count, 1)] * count + [0.0] * (4 - count)))


def test_places_that_nobody_has_count_nothing():
    batch = stacked_batches.stacked_batches(CPU, STACK, clients(), PLAN).batch(0)
    assert not batch.shares[2].any()
    assert not batch.inputs[:, 2].any()
