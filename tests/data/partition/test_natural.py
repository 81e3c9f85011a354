"""Clients that the data comes with keep their own examples, through splits and limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import DataSettings, Natural, load, split
from fedfuse.data.dataset import Owners


def owners_of(numbers: list[int]) -> Owners:
    return Owners(torch.tensor(numbers), tuple(f"client {number}" for number in range(max(numbers) + 1)))


@given(numbers=st.lists(st.integers(0, 6), min_size=1, max_size=60), least=st.integers(1, 4))
def test_everybody_with_enough_examples_keeps_exactly_their_own(numbers: list[int], least: int) -> None:
    expected = [
        [position for position, number in enumerate(numbers) if number == client]
        for client in range(7)
        if numbers.count(client) >= least
    ]
    partition, labels = Natural(min_examples=least), np.zeros(len(numbers), np.int64)
    if not expected:
        with pytest.raises(ConfigError, match="only 0 of the data's"):
            partition.assign(labels, 1, Key(0), owners_of(numbers))
        return
    assert [part.tolist() for part in partition.assign(labels, 1, Key(0), owners_of(numbers))] == expected


def test_a_few_clients_are_drawn_by_key_in_their_order() -> None:
    owners, labels = owners_of([number % 20 for number in range(200)]), np.zeros(200, np.int64)

    def kept(seed: int) -> list[int]:
        return [int(owners.numbers[part[0]]) for part in Natural(clients=5).assign(labels, 1, Key(seed), owners)]

    assert kept(0) == kept(0) == sorted(kept(0))
    assert len(set(kept(0))) == 5
    assert kept(0) != kept(1)


@pytest.mark.parametrize(
    ("partition", "owners", "sentence"),
    [
        (Natural(), None, "needs data that says whose"),
        (Natural(clients=3), owners_of([0, 1]), "partition.clients = 3 .* only 2 of the data's 2 clients"),
    ],
)
def test_the_impossible_is_refused(partition: Natural, owners: Owners | None, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        partition.assign(np.zeros(2, np.int64), 1, Key(0), owners)


def test_owners_stay_with_their_examples_through_limits_and_splits(tmp_path: Path) -> None:
    """Every example is the number of its client, so a mix-up would show."""
    clients = np.random.default_rng(0).integers(0, 12, 400)
    np.savez(tmp_path / "d.npz", x=clients[:, None].astype(float), y=np.arange(400) % 2, clients=clients)
    settings = DataSettings(name="npz", path=str(tmp_path / "d.npz"), train_limit=300, public=0.2)
    splits = split(load(settings, Key(0)), settings, Key(1))
    for part in (splits.train, splits.validation, splits.public, splits.test):
        assert part.owners is not None
        assert part.owners.names == tuple(str(client) for client in range(12))  # 2 before 10
        assert part.inputs[:, 0].long().equal(part.owners.numbers)
    assignment = Natural().assign(splits.train.labels, 2, Key(2), splits.train.owners)
    for client, part in enumerate(assignment):
        assert set(splits.train.inputs[torch.from_numpy(part), 0].tolist()) == {float(client)}
