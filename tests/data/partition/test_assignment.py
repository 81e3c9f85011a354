"""An assignment is the sequence of index arrays that it stands for."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.errors import ConfigError
from fedfuse.data.partition import Assignment
from fedfuse.data.partition.base import checked, deal

parts = st.lists(st.lists(st.integers(0, 99), max_size=6).map(lambda own: np.array(own, dtype=np.int64)), max_size=8)


def lists(assignment: Assignment) -> list[list[int]]:
    return [part.tolist() for part in assignment]


@given(parts)
def test_it_is_the_list_that_it_was_made_of(given_parts: list[np.ndarray]) -> None:
    assignment = Assignment.of(given_parts)
    plain = [part.tolist() for part in given_parts]
    assert lists(assignment) == plain
    assert [part.tolist() for part in assignment[1::2]] == plain[1::2]
    assert [assignment[-client - 1].tolist() for client in range(len(plain))] == plain[::-1]
    assert lists(assignment.sorted()) == [sorted(part) for part in plain]
    with pytest.raises(IndexError):
        assignment[len(plain)]


@given(parts)
def test_the_hash_is_that_of_sizes_and_positions_client_by_client(given_parts: list[np.ndarray]) -> None:
    digest = hashlib.sha256(np.array([len(part) for part in given_parts], dtype="<i8").tobytes())
    for part in given_parts:
        digest.update(part.astype("<i8").tobytes())
    assert Assignment.of(given_parts).sha256() == digest.hexdigest()


def test_the_hash_knows_the_borders() -> None:
    one, two = np.array([1]), np.array([2, 3])
    assert Assignment.of([one, two]).sha256() != Assignment.of([np.array([1, 2]), np.array([3])]).sha256()


def test_a_known_hash() -> None:
    """It is in the logs of runs."""
    assert Assignment.of([np.array([0, 2]), np.array([1])]).sha256().startswith("363a551de55f")


@given(examples=st.integers(1, 60), clients=st.integers(1, 20))
def test_even_shares_are_those_of_numpy(examples: int, clients: int) -> None:
    positions = np.arange(examples)[::-1]
    expected = [part.tolist() for part in np.array_split(positions, clients)]
    assert lists(Assignment.evenly(positions, clients)) == expected


@given(st.data())
def test_dealing_takes_from_every_pool_in_turn(data: st.DataObject) -> None:
    clients, classes = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    counts = np.array([[data.draw(st.integers(0, 3)) for _ in range(clients)] for _ in range(classes)])
    left = data.draw(st.integers(0, 2))
    pools = [100 * label + np.arange(row.sum() + left) for label, row in enumerate(counts)]
    cuts = [np.split(pool, np.cumsum(row)) for pool, row in zip(pools, counts, strict=True)]
    expected = [np.concatenate([cut[client] for cut in cuts]).tolist() for client in range(clients)]
    assert lists(deal(pools, counts)) == expected


def test_whole_numbers_in_any_sequence_are_taken_and_others_refused() -> None:
    assert lists(checked("own", [[2, 0], (1,), np.array([3], dtype=np.int32)], 4)) == [[2, 0], [1], [3]]
    with pytest.raises(ConfigError, match="leaves a client without examples"):
        checked("own", [[0], []], 4)
    with pytest.raises(TypeError):
        checked("own", [np.array([0.5])], 4)
