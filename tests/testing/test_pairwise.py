from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.testing import pairwise

SLOTS = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(
    lambda sizes: {name: range(size) for name, size in zip("abcd", sizes, strict=False)}
)


def every_case(slots):
    return [dict(zip(slots, values, strict=True)) for values in product(*slots.values())]


def pairs(cases):
    """Where two values stand, and which."""
    return {(one, other, case[one], case[other]) for case in cases for one, other in combinations(case, 2)}


@st.composite
def clashes(draw, slots):
    """For some two slots, some pairs of values."""
    places = st.sampled_from(list(combinations(slots, 2)))
    values = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    return draw(st.dictionaries(places, values))


def clash_in(case, forbidden):
    return any((case[one], case[other]) in pairs for (one, other), pairs in forbidden.items())


@settings(deadline=None)
@given(SLOTS, st.data())
def test_all_that_can_meet_do_and_what_clashes_never_does(slots, data):
    forbidden = data.draw(clashes(slots))
    chosen = pairwise(slots, {place: lambda *pair, pairs=pairs: pair in pairs for place, pairs in forbidden.items()})
    assert not any(clash_in(case, forbidden) for case in chosen)
    assert pairs(chosen) == pairs([case for case in every_case(slots) if not clash_in(case, forbidden)])


@settings(deadline=None)
@given(SLOTS)
def test_every_case_brings_a_pair_that_none_before_it_has(slots):
    chosen = pairwise(slots, {})
    seen = [len(pairs(chosen[:count])) for count in range(len(chosen) + 1)]
    assert seen == sorted(set(seen))


def test_the_same_cases_in_every_call_and_hardly_more_than_the_two_largest_slots_need():
    slots = {"local": "abcdefghi", "screen": "ab", "merge": "abc", "fuse": "abcd", "batch_norm": "ab"}
    assert pairwise(slots, {}) == pairwise(slots, {})
    assert 9 * 4 <= len(pairwise(slots, {})) <= 9 * 4 + 4


def test_a_value_of_two_slots_counts_in_each():
    assert pairs(pairwise({"one": "ab", "other": "ab"}, {})) == {("one", "other", x, y) for x in "ab" for y in "ab"}
