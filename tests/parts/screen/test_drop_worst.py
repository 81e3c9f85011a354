"""Drop-worst against a hand computation, on made-up validation accuracies."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.parts.screen import DropWorst, Screened
from fedfuse.runtime.evaluate import Score
from tests.helpers import make_bank, make_evaluator, make_examples, make_update, make_view, make_weights

BANK = make_bank()
WEIGHTS = make_weights(BANK, "mlp", 1)
CHANCE = 1 / 3
ACCURACIES = st.lists(st.integers(0, 100).map(lambda k: k / 100), min_size=1, max_size=12)


class Told:
    """A validation split that gives out prepared accuracies, one after another."""

    def __init__(self, accuracies):
        self.left = list(accuracies)

    def score(self, model):  # noqa: ARG002
        return Score(self.left.pop(0), 0.0)


def screened(accuracies, **parameters):
    updates = [make_update(WEIGHTS, client=10 + i) for i in range(len(accuracies))]
    view = make_view(BANK, validation=Told(accuracies))
    return DropWorst(**parameters).screen(view, Screened(updates, updates))


def clients(updates):
    return [update.client - 10 for update in updates]


def test_below_1_2_times_chance_is_out_of_everything():
    result = screened([0.9, 0.39, 0.41, 0.05, 0.8])
    assert clients(result.counted) == clients(result.teachers) == [0, 2, 4]
    assert set(result.reasons) == {11, 13}
    assert "0.3900" in result.reasons[11]
    assert "0.4000" in result.reasons[11]


def test_exactly_at_the_threshold_stays():
    threshold = 1.2 / 3
    assert clients(screened([threshold, 0.9]).counted) == [0, 1]


def test_chance_factor_moves_the_threshold():
    assert clients(screened([0.9, 0.5], chance_factor=2.0).counted) == [0]
    assert clients(screened([0.9, 0.1], chance_factor=0.1).counted) == [0, 1]


def test_nobody_is_dropped_when_everybody_is_at_chance():
    result = screened([0.1, 0.2, 0.3])
    assert clients(result.counted) == clients(result.teachers) == [0, 1, 2]
    assert result.reasons == {}


def test_an_outlier_does_not_teach_but_counts():
    accuracies = [0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.5]
    others = accuracies[1:]
    floor = statistics.mean(others) - 1.5 * statistics.pstdev(others)
    assert 0.5 < floor < 0.8
    result = screened(accuracies, outlier_deviations=1.5)
    assert clients(result.counted) == list(range(8))
    assert clients(result.teachers) == list(range(7))
    assert set(result.reasons) == {17}
    assert result.reasons[17] == (
        f"validation accuracy 0.5000 is below {floor:.4f}, 1.5 deviations under the others; merged, but no teacher"
    )


def test_the_best_one_is_left_out_of_mean_and_deviation():
    accuracies = [1.0, 0.62, 0.6, 0.58, 0.55]
    others = accuracies[1:]
    floor = statistics.mean(others) - 1.5 * statistics.pstdev(others)
    with_best = statistics.mean(accuracies) - 1.5 * statistics.pstdev(accuracies)
    assert with_best < 0.55  # so the rule would not bite with the best one in
    expected = [i for i, value in enumerate(accuracies) if value >= floor]
    assert clients(screened(accuracies, outlier_deviations=1.5).teachers) == expected


def test_the_outlier_rule_rests_when_somebody_is_at_chance():
    result = screened([0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.5, 0.1], outlier_deviations=1.5)
    assert clients(result.teachers) == clients(result.counted) == list(range(8))


def test_as_printed_there_is_no_outlier_rule():
    result = screened([0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.5])
    assert clients(result.teachers) == list(range(8))
    assert result.reasons == {}


@given(accuracies=ACCURACIES, deviations=st.sampled_from([None, 0.1, 1.5]))
def test_never_down_to_nobody_and_the_best_always_stays(accuracies, deviations):
    result = screened(accuracies, outlier_deviations=deviations)
    best = max(range(len(accuracies)), key=lambda i: accuracies[i])
    assert best in clients(result.counted)
    assert best in clients(result.teachers)
    assert set(clients(result.teachers)) <= set(clients(result.counted))


def test_equals_are_treated_alike():
    """Also in floating point: the mean of equal accuracies must not come out above them."""
    for correct in range(40, 101):
        for count in range(2, 12):
            result = screened([correct / 100] * count, outlier_deviations=1.5)
            assert len(result.teachers) == count, (correct, count)


@given(accuracies=ACCURACIES)
def test_order_is_kept_and_does_not_matter(accuracies):
    forward, backward = screened(accuracies), screened(accuracies[::-1])
    last = len(accuracies) - 1
    assert clients(forward.counted) == sorted(clients(forward.counted))
    assert clients(forward.counted) == sorted(last - i for i in clients(backward.counted))
    assert clients(forward.teachers) == sorted(last - i for i in clients(backward.teachers))


def test_what_earlier_screens_said_is_kept():
    updates = [make_update(make_weights(BANK, "mlp", 1), client=i) for i in range(3)]
    view = make_view(BANK, validation=Told([0.9, 0.1, 0.9]))
    result = DropWorst().screen(view, Screened(updates, updates[:2], {7: "earlier"}))
    assert clients(result.counted) == [-10, -8]
    assert clients(result.teachers) == [-10]
    assert set(result.reasons) == {7, 1}


def test_accuracies_are_measured_on_the_validation_split():
    """One client that learnt and one with random weights, scored by a loop of our own."""
    examples = make_examples(40)
    evaluator = make_evaluator(examples)
    updates = [make_update(make_weights(BANK, "mlp", seed), client=seed) for seed in range(6)]
    accuracy = {}
    for update in updates:
        logits = BANK.lend("mlp", update.weights).eval()(examples.inputs)
        accuracy[update.client] = float((logits.argmax(1) == examples.labels).float().mean())
    expected = [client for client, value in accuracy.items() if value >= 1.2 * CHANCE]
    assert 0 < len(expected) < 6, "the seeds give both kinds"
    result = DropWorst().screen(make_view(BANK, validation=evaluator), Screened(updates, updates))
    assert [u.client for u in result.counted] == expected


def test_parameters_are_positive():
    for wrong in ({"chance_factor": 0}, {"outlier_deviations": -1.0}):
        with pytest.raises(ValueError, match="greater than 0"):
            DropWorst(**wrong)
