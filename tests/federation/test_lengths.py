"""How far clients moved is compared within a prototype, and across all where it has few clients."""

from __future__ import annotations

import pytest

from fedfuse.core.fences import counted
from fedfuse.federation.directions import COMPANY, MOST_KNOWN
from fedfuse.federation.lengths import LastLengths, beyond

MANY = {client: 1.0 + client / 100 for client in range(10)}


def test_of_one_prototype_it_is_what_the_fences_say():
    lengths = {**MANY, 3: 3.0, 7: 50.0}
    expected = dict(zip(lengths, counted(list(lengths.values())), strict=True))
    assert beyond({"mlp": lengths}) == {client: expected[client] for client in (3, 7)}
    assert not beyond({"mlp": MANY})


def test_large_groups_are_not_compared_with_each_other():
    assert not beyond({"mlp": MANY, "deep": {10 + client: 1000 * length for client, length in MANY.items()}})


def groups(liar=1.0):
    """Three architectures that move by other lengths altogether; client 4 by ``liar`` times what it should."""
    return {
        "mlp": {0: 1.0, 1: 1.1, 2: 0.9},
        "deep": {3: 30.0, 4: 29.0 * liar, 5: 31.0, 6: 28.0},
        "cnn": {7: 0.01, 8: 0.012, 9: 0.011},
    }


def test_few_of_each_kind_are_compared_by_how_much_farther_they_go_than_their_companions():
    assert not beyond(groups())
    assert not beyond(groups(liar=3.0))
    assert beyond(groups(liar=20.0)) == {4: pytest.approx(30.0, rel=0.1)}, "far beyond: about what its companions do"
    assert not beyond({"deep": groups(liar=9.0)["deep"]}), "four clients by themselves say less"


def test_a_small_group_beside_a_large_one_is_judged_by_all():
    assert set(beyond({"mlp": MANY, "deep": {10: 5.0, 11: 5.5, 12: 120.0}})) == {12}


def test_who_is_alone_is_compared_with_nobody():
    assert not beyond({**groups(), "one": {10: 1e9}})


def test_companions_that_did_not_move_say_nothing():
    assert not beyond({"mlp": {0: 0.0, 1: 0.0, 2: 7.0}, "deep": {3: 1.0, 4: 1.0, 5: 1.0}})


def test_few_are_compared_with_those_heard_last():
    known = LastLengths().after({0: 1.0, 1: 1.1}, {}).after({2: 0.9, 3: 1.0}, {})
    round_of_few = {3: 1.0, 4: 9.0}
    assert not beyond({"mlp": round_of_few}), "of few by themselves ten times as far is not too far"
    assert beyond({"mlp": round_of_few}, {"mlp": known}) == {4: pytest.approx(1.0, rel=0.1)}
    assert not beyond({"mlp": {3: 1.0, 4: 1.5}}, {"mlp": known})
    assert not beyond({"mlp": {0: 9.0, 1: 1.0}}, {"mlp": LastLengths({0: 1.0, 1: 1.0})}), "nobody else was heard"


def test_of_many_nobody_else_counts():
    far = LastLengths(dict.fromkeys(range(10, 30), 100.0))
    assert beyond({"mlp": {**MANY, 7: 50.0}}, {"mlp": far}) == beyond({"mlp": {**MANY, 7: 50.0}})


def test_what_is_remembered_is_what_counted_of_those_heard_last():
    known = LastLengths({0: 1.0, 1: 2.0}).after({0: 50.0, 2: 3.0}, {0: 1.5})
    assert list(known.known.items()) == [(1, 2.0), (0, 1.5), (2, 3.0)]
    assert LastLengths.of(known.memory) == known
    assert LastLengths.of({}) == LastLengths()
    many = LastLengths().after(dict.fromkeys(range(MOST_KNOWN + 5), 1.0), {})
    assert min(many.known) == 5
    assert len(many.absent({0: 1.0})) == COMPANY
