"""Who goes against the others or turns round is known, and remembered when rounds are no longer clear."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from fedfuse.federation.directions import MOST_KNOWN, Course, Courses, clarity_of, cosines_of, judged
from fedfuse.federation.sketches import SHORTEST, Sketch
from fedfuse.testing.attacks import SignFlip
from fedfuse.testing.trial import difference, through_a_checkpoint
from tests.federation.test_bounds import LIAR, federation
from tests.federation.test_stream import held
from tests.helpers import make_examples, played

CLIENTS = 10
ONE_WAY = torch.eye(SHORTEST)[0]


def own_way(client):
    """At right angles to everybody else's."""
    return torch.eye(SHORTEST)[client + 1]


def agreed(**other):
    """A clear round, in which some may do something else."""
    return _round({client: ONE_WAY + own_way(client) for client in range(CLIENTS)}, other)


def scattered(**other):
    """A round in which honest clients go on where each of them alone wants to go, and cancel each other."""
    ways = {client: own_way(client) for client in range(CLIENTS)}
    mean = sum(ways.values()) / CLIENTS
    return _round({client: way - 1.2 * mean for client, way in ways.items()}, other)


def _round(moves, other):
    changed = moves | {int(name.removeprefix("c")): change(moves) for name, change in other.items()}
    return {client: Sketch(move, move) for client, move in changed.items()}


def backwards(client):
    return lambda moves: -moves[client]


def after(*rounds):
    """What is known when these rounds are over, and who stood out in each."""
    courses, found = Courses(), []
    for sketches in rounds:
        verdict = judged(sketches, courses)
        courses, found = verdict.courses(verdict.against), [*found, set(verdict.against)]
    return courses, found


def test_cosines_are_those_with_the_sum_of_the_others_directions():
    moves = {client: torch.randn(50, generator=torch.Generator().manual_seed(client)) for client in range(6)}
    own = moves[2] / moves[2].norm()
    others = sum(moves[client] / moves[client].norm() for client in moves if client != 2)
    assert cosines_of(moves)[2] == pytest.approx(float(torch.cosine_similarity(own, others, dim=0)), abs=1e-6)
    assert cosines_of(moves | {1: 1000 * moves[1]}) == pytest.approx(cosines_of(moves), abs=1e-6), (
        "lengths do not count"
    )


def test_a_round_is_clear_where_three_quarters_go_one_way():
    clear, unclear = ({c: s.whole for c, s in one.items()} for one in (agreed(c9=backwards(9)), scattered()))
    assert clarity_of(cosines_of(clear)) > 0.5
    assert clarity_of(cosines_of(unclear)) == 0.0
    assert clarity_of({client: 0.1 * client for client in range(9)}) == pytest.approx(0.2), "the lower quartile"


def test_rounds_count_by_how_clear_they_were():
    """Those that are hardly clear show hardly anything, and do not make forgotten what others have shown."""
    clear = dict.fromkeys(range(8), 0.4) | {9: -0.3}
    hardly = dict.fromkeys(range(8), 0.01) | {9: 0.0}
    courses = Courses({client: Course(0.4, 0.4 * own, torch.zeros(1)) for client, own in clear.items()})
    assert courses.means(hardly)[9] == pytest.approx(-0.3 * 0.4 / 0.41)
    assert Courses().means(dict.fromkeys(range(9), -0.1)) == {}, "nothing is known of clients in no clear round"


def test_where_everybody_is_honest_nobody_stands_out():
    _, found = after(agreed(), agreed(), scattered(), scattered(), agreed())
    assert found == [set()] * 5


def test_what_clear_rounds_have_shown_is_remembered_in_others():
    _, found = after(agreed(c9=backwards(9)), scattered(c9=backwards(9)), scattered(c9=backwards(9)))
    assert found == [{9}] * 3
    assert after(scattered(c9=backwards(9)))[1] == [set()], "one round alone would not have shown it"


def test_one_clear_round_of_many_is_not_held_against_anybody_later():
    courses, found = after(agreed(c9=backwards(9)), *[agreed()] * 3)
    assert found == [{9}, set(), set(), set()]
    assert not judged(scattered(), courses).against


def test_who_begins_to_lie_later_turns_round():
    courses, found = after(agreed(), agreed(), scattered(), *[scattered(c9=backwards(9))] * 3)
    assert found == [set()] * 3 + [{9}] * 3, "and does not get used to it"
    reason = judged(scattered(c9=backwards(9)), courses).against[9]
    assert reason.startswith("turns round: its cosine with its own earlier updates is -")


def test_where_everybody_turns_round_nobody_does():
    """As they do when the server went too far."""
    courses, _ = after(agreed(), agreed())
    back = {client: Sketch(-sketch.whole, -sketch.short) for client, sketch in agreed().items()}
    assert not judged(back, courses).against


def few(sketches, *clients):
    return {client: sketches[client] for client in clients}


def test_of_few_nobody_is_judged():
    verdict = judged(few(agreed(c3=backwards(3)), 0, 1, 2, 3), Courses())
    assert not verdict.against
    assert all(own.clarity == 0 for own in verdict.courses(()).known.values()), "nor was that round clear"


def test_few_are_judged_beside_those_who_are_not_there():
    """As soon as there are four others, here or heard before."""
    courses, found = after(few(agreed(), 0, 1), few(agreed(), 2, 3))
    assert found == [set(), set()]
    last = few(agreed(c4=backwards(4)), 3, 4)
    assert set(judged(last, courses).against) == {4}
    assert not judged(last, after(few(agreed(), 0, 1))[0]).against, "three others"
    assert not judged(few(agreed(), 3, 4), courses).against


def test_those_who_are_not_there_are_not_judged():
    known = after(agreed())[0].known
    liar = dataclasses.replace(known[9], way=-known[9].way)
    assert not judged(few(agreed(), 0, 1, 2), Courses({**known, 9: liar})).against


def test_many_are_judged_by_themselves():
    """So that a round of as many clients as ever has the verdict that it always had."""
    courses, _ = after(agreed())
    assert not courses.absent(range(5))
    assert list(courses.absent(range(4))) == [4, 5, 6, 7, 8, 9]


def test_strangers_are_not_judged_by_the_past_of_others():
    courses, _ = after(agreed(), agreed(c9=backwards(9)))
    strangers = {client + 100: sketch for client, sketch in scattered(c9=backwards(9)).items()}
    assert not judged(strangers, courses).against


def test_memory_is_read_back_as_it_was():
    courses, _ = after(agreed(), scattered(), agreed(c9=backwards(9)))
    again = Courses.of(courses.memory)
    assert list(again.known) == list(courses.known)
    for client, own in courses.known.items():
        assert (again.known[client].clarity, again.known[client].total) == (own.clarity, own.total)
        assert torch.equal(again.known[client].way, own.way)
    assert Courses.of({}) == Courses()


def test_a_hundred_thousand_clients_do_not_need_more_memory():
    courses = Courses()
    for begin in range(0, 5000, 500):
        courses = judged({begin + client: Sketch(ONE_WAY, ONE_WAY) for client in range(500)}, courses).courses(())
    assert len(courses.known) == MOST_KNOWN
    assert min(courses.known) == 5000 - MOST_KNOWN, "those heard last"


def one_class(count, seed):
    """Clients that each know a single class go different ways."""
    return dataclasses.replace(make_examples(count, seed), labels=torch.full((count,), seed % 3))


def test_who_went_the_other_way_does_not_count_when_the_others_differ(tmp_path):
    """Also after a checkpoint; one of whom nothing is known counts in the same rounds."""
    begun = played(federation("opposite"), rounds=2)
    resumed, forgotten = through_a_checkpoint(begun, tmp_path), dataclasses.replace(begun.server, memory={})
    for before, screened in ((resumed, (LIAR,)), (dataclasses.replace(begun, server=forgotten), ())):
        later = played(federation("opposite", examples=one_class), rounds=2, snapshot=before)
        assert [record.screened for record in later.server.history[2:]] == [screened] * 2


def test_who_lies_from_some_round_on_is_screened_from_then_on():
    attacked = federation(SignFlip(clients=(LIAR,), begins=4))
    streamed = played(attacked, rounds=6)
    assert [record.screened for record in streamed.server.history] == [()] * 3 + [(LIAR,)] * 3
    assert difference(streamed, played(held(attacked), rounds=6)) is None


def test_who_lies_in_every_other_round_is_screened_in_those():
    heard = played(federation(SignFlip(clients=(LIAR,), begins=2, every=2)), rounds=6).server.history
    assert [record.screened for record in heard] == [(), (LIAR,)] * 3


@pytest.mark.parametrize("attack", ["opposite", "long"])
def test_rounds_of_few_contain_a_liar(attack):
    """Three of eight clients in a round: once half of them were heard, it no longer counts as it came."""
    after = played(federation(attack, participation=0.375), rounds=12)
    heard = [record for record in after.server.history if LIAR in record.clients]
    assert len(heard) > 2
    assert all(LIAR in (*record.screened, *record.moves_bounded) for record in heard[1:])
    others = {client for record in after.server.history for client in record.screened} - {LIAR}
    assert not others


def test_where_moves_are_taken_nothing_is_remembered():
    assert not played(federation("opposite", moves="taken")).server.memory
    assert list(played(federation("opposite")).server.memory) == ["moves/mlp", "lengths/mlp"]
