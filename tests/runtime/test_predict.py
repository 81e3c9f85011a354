"""What networks say does not depend on how many inputs they are asked about at a time."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.data import Transform
from fedfuse.data.dataset import Normalisation
from fedfuse.models import Cnn, Mlp, ResNet
from fedfuse.runtime import source as sources
from fedfuse.runtime.bank import ModelBank
from fedfuse.runtime.predict import logits_on
from fedfuse.runtime.source import Source
from tests.helpers import CPU

NETWORKS = {
    "mlp": Mlp(hidden=(12,)),
    "odd": Mlp(hidden=(7, 5)),
    "cnn": Cnn(arch="cnn1"),
    "net": ResNet(arch="resnet8", width=4),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_same_bits_in_small_and_in_large_batches(name, monkeypatch):
    """Also where the rest is small: rows of which there are one to three would be rounded otherwise."""
    bank = ModelBank({name: NETWORKS[name]}, (1, 8, 8), 3, CPU)
    model, random = bank.lend(name, bank.initial(name, Key(1))), torch.Generator().manual_seed(0)
    raw = torch.randint(0, 256, (130, 1, 8, 8), dtype=torch.uint8, generator=random)
    source = Source("images", raw, Transform(Normalisation((0.5,), (0.5,)), (1, 8, 8)), CPU)
    small = logits_on(source, model)
    monkeypatch.setattr(sources, "CACHED_BATCH", 500)
    assert torch.equal(logits_on(source, model), small)


def test_batches_of_texts_are_large():
    """Each is padded to its longest text, so that others could change bits."""
    tokens = torch.ones(130, 4, dtype=torch.int32)
    source = Source("texts", tokens, Transform(Normalisation((), ()), (4,)), CPU)
    assert [len(where) for where in source.batches(source.all_indices())] == [130]
