"""Visits are what the history says, whatever was counted before."""

from __future__ import annotations

import pytest

from fedfuse.federation.state import RoundRecord
from fedfuse.federation.visits import Visits


def record(number: int, clients: tuple[int, ...], refused: tuple[int, ...] = ()) -> RoundRecord:
    return RoundRecord(number, clients, refused, (), 0, 0, None, None, {}, 0.0)


HISTORY = (record(1, (0, 1)), record(2, (1, 2), refused=(2,)), record(3, (1, 3)))


def test_everybody_who_was_heard_is_counted_and_nobody_who_was_refused():
    visits = Visits(5).after(HISTORY)
    assert dict(visits) == {0: 1, 1: 3, 2: 0, 3: 1, 4: 0}
    assert len(visits) == 5


def test_it_counts_on_round_by_round():
    visits = Visits(5)
    for rounds in range(len(HISTORY) + 1):
        assert dict(visits.after(HISTORY[:rounds])) == dict(Visits(5).after(HISTORY[:rounds]))


def test_a_round_that_is_played_again_counts_once():
    visits = Visits(5)
    visits.after(HISTORY)
    assert dict(visits.after(HISTORY[:1])) == {0: 1, 1: 1, 2: 0, 3: 0, 4: 0}
    other = (*HISTORY[:2], record(3, (4,)))
    visits.after(HISTORY)
    assert dict(visits.after(other)) == {0: 1, 1: 2, 2: 0, 3: 0, 4: 1}


@pytest.mark.parametrize("stranger", [-1, 5, "0"])
def test_nobody_else_has_visits(stranger):
    with pytest.raises(KeyError):
        Visits(5)[stranger]
