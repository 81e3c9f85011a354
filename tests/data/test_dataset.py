"""A selection is what would have been copied."""

from __future__ import annotations

import torch

from fedfuse.core.hashes import sha256_of, sha256_of_all
from fedfuse.data import dataset
from fedfuse.data.client_datasets import ClientDatasets
from fedfuse.data.dataset import Examples, Owners, Selection
from fedfuse.data.partition import Assignment

WHOLE = Examples(torch.arange(40.0).view(20, 2), torch.arange(20) % 3, Owners(torch.arange(20) % 4, tuple("abcd")))
WHERE = torch.tensor([1, 2, 3, 7, 11, 19])
SELECTION = Selection(WHOLE, WHERE)


def equal(one: Examples | Selection, other: Examples) -> bool:
    assert one.owners is not None
    assert other.owners is not None
    ours, theirs = ((e.inputs, e.labels, e.owners.numbers) for e in (one, other))
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_it_reads_like_a_copy() -> None:
    copy = WHOLE.select(WHERE)
    assert (len(SELECTION), SELECTION.shape, SELECTION.kind) == (len(copy), copy.shape, copy.kind)
    assert equal(SELECTION, copy)
    assert equal(SELECTION.select(torch.tensor([4, 0])), copy.select(torch.tensor([4, 0])))


def test_its_blocks_have_the_hash_of_a_copy(monkeypatch) -> None:
    monkeypatch.setattr(dataset, "BLOCK", 4)
    copy = WHOLE.select(WHERE)
    assert sha256_of_all(SELECTION.blocks()) == sha256_of_all(copy.blocks()) == sha256_of(copy.inputs)


def test_clients_have_their_part_of_it() -> None:
    datasets = ClientDatasets(SELECTION, Assignment.of([[0, 5], [2]]))
    assert equal(datasets[0], WHOLE.select(torch.tensor([1, 19])))
    assert equal(datasets[1], WHOLE.select(torch.tensor([3])))
    assert list(datasets) == [0, 1]
    assert 2 not in datasets
    assert -1 not in datasets
