"""Normalising a client's inputs once or batch by batch gives the same numbers."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.data import Examples, Transform
from fedfuse.data.dataset import Normalisation
from fedfuse.runtime import batch_loader
from tests.helpers import CPU


def images():
    pixels = torch.randint(0, 256, (20, 1, 8, 8), dtype=torch.uint8, generator=Key(0).torch())
    return Examples(pixels, torch.arange(20))


@pytest.mark.parametrize("limit", [0, 10**9])
def test_batches_are_the_transformed_examples(monkeypatch, limit):
    monkeypatch.setattr(batch_loader, "READY_BYTES", limit)
    examples, transform = images(), Transform(Normalisation((0.3,), (0.7,)), (1, 8, 8))
    where = torch.tensor([3, 19, 0])
    inputs, labels = batch_loader.BatchLoader(examples, transform, CPU).batch(where, Key(1).torch())
    assert torch.equal(inputs, transform(examples.inputs[where]))
    assert labels.tolist() == [3, 19, 0]


@pytest.mark.parametrize("limit", [0, 10**9])
def test_batches_of_texts_are_cut_to_their_longest(monkeypatch, limit):
    monkeypatch.setattr(batch_loader, "READY_BYTES", limit)
    rows = torch.tensor([[5, 6, 7, 8, 0], [3, 0, 0, 0, 0], [4, 9, 0, 0, 0]], dtype=torch.int32)
    texts = batch_loader.BatchLoader(Examples(rows, torch.arange(3)), Transform(Normalisation((), ()), (5,)), CPU)
    inputs, labels = texts.batch(torch.tensor([2, 1]), Key(1).torch())
    assert inputs.tolist() == [[4, 9], [3, 0]]
    assert inputs.dtype == torch.int64
    assert labels.tolist() == [2, 1]


def test_augmented_batches_follow_the_generator():
    examples = images()
    transform = Transform(Normalisation((0.3,), (0.7,)), (1, 8, 8), crop_padding=2, flip=True)
    where = torch.arange(20)
    source = batch_loader.BatchLoader(examples, transform, CPU)
    generator = Key(1).torch()
    first, second = source.batch(where, generator)[0], source.batch(where, generator)[0]
    assert torch.equal(first, transform(transform.augment(examples.inputs, Key(1).torch())))
    assert not torch.equal(first, second)
