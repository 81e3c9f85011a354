"""Who is stopped early: whoever is worse than the median, by the curves alone."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from fedfuse.experiment.sweep.pruning import FEWEST_TRIALS, Pruning
from fedfuse.experiment.sweep.trial import Curve, Outcome
from fedfuse.federation.judging import Judge

ROUNDS = 10
BETTER, LOWER = Judge("accuracy", "test", True), Judge("loss", "test", False)


def curve(*values: float) -> Curve:
    return tuple(enumerate(values, start=1))


def pruning(*curves: Curve, judge: Judge = BETTER, rounds: int = ROUNDS) -> Pruning:
    return Pruning(judge, rounds, [Outcome("finished", 0.0, (0.0,), (own,)) for own in curves])


values = st.lists(st.integers(0, 50).map(lambda n: n / 50), min_size=ROUNDS, max_size=ROUNDS)


@given(others=st.lists(values, min_size=0, max_size=9), own=values)
def test_the_round_is_the_first_whose_best_so_far_is_below_the_median_of_the_others(
    others: list[list[float]], own: list[float]
) -> None:
    expected = None
    for number in range(1, ROUNDS):
        median = statistics.median([max(other[:number]) for other in others]) if others else 0.0
        if number > 2 and len(others) >= FEWEST_TRIALS and max(own[:number]) < median:
            expected = number
            break
    cut = pruning(*(curve(*other) for other in others)).cut(0, curve(*own))
    assert (None if cut is None else cut[-1][0]) == expected


@given(others=st.lists(values, min_size=5, max_size=9), own=values)
def test_lower_is_better_is_the_same_turned_around(others: list[list[float]], own: list[float]) -> None:
    one = pruning(*(curve(*other) for other in others)).cut(0, curve(*own))
    turned = [[-value for value in other] for other in others]
    other = pruning(*(curve(*values) for values in turned), judge=LOWER).cut(0, curve(*(-value for value in own)))
    assert (one and one[-1][0]) == (other and other[-1][0])


def test_nobody_is_stopped_in_the_last_round() -> None:
    good, bad = curve(*[0.9] * ROUNDS), curve(*[0.1] * ROUNDS)
    assert not pruning(*[good] * 9).stops(0, bad)
    assert pruning(*[good] * 9).stops(0, bad[:-1])


def test_runs_that_were_stopped_themselves_count_as_far_as_they_came() -> None:
    good, short = curve(*[0.9] * ROUNDS), curve(*[0.8] * 3)
    others = [short] * 4 + [good]
    assert pruning(*others).stops(0, curve(0.1, 0.1, 0.1)), "five have come to round 3"
    assert not pruning(*others).stops(0, curve(0.1, 0.1, 0.1, 0.1)), "but only one to round 4"


def test_seeds_are_compared_with_the_same_seed() -> None:
    good, bad = curve(*[0.9] * ROUNDS), curve(*[0.1] * ROUNDS)
    earlier = [Outcome("finished", 0.5, (0.9, 0.1), (good, bad))] * 5
    assert Pruning(BETTER, ROUNDS, earlier).stops(0, curve(0.5, 0.5, 0.5))
    assert not Pruning(BETTER, ROUNDS, earlier).stops(1, curve(0.5, 0.5, 0.5))
    assert not Pruning(BETTER, ROUNDS, earlier).stops(2, curve(0.0, 0.0, 0.0)), "nobody had a third seed"
