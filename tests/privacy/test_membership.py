"""Laws of telling members from others."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from fedfuse.privacy.membership import (
    RATES,
    class_weights,
    mean,
    measure,
    most_that_epsilon_allows,
    without_outside,
)

RANDOM = np.random.default_rng(3)
FEW = 50


def drawn(members: int, others: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    return RANDOM.normal(apart, 1, members), RANDOM.normal(0, 1, others)


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_what_scikit_learn_computes_with_weights_and_ties(ties: bool) -> None:
    members, others = drawn(300, 400, 0.7)
    if ties:
        members, others = members.round(1), others.round(1)
    weights = RANDOM.integers(0, 4, 400).astype(float)
    found = measure(members, others, weights, draws=FEW)
    truth = np.r_[np.ones(300), np.zeros(400)]
    scores, all_weights = np.r_[members, others], np.r_[np.ones(300), weights]
    assert found.auc.value == pytest.approx(roc_auc_score(truth, scores, sample_weight=all_weights))
    false, true, _ = roc_curve(truth, scores, sample_weight=all_weights, drop_intermediate=False)
    assert found.value[1] == pytest.approx(true[false <= RATES[0]].max())


def test_a_case_that_is_known_in_closed_form() -> None:
    members, others = drawn(20_000, 20_000, 1.5)
    found = measure(members, others, draws=FEW)
    assert found.auc.low < norm.cdf(1.5 / math.sqrt(2)) < found.auc.high
    rate = found.tpr(0.01)
    assert rate is not None
    assert rate.low < norm.sf(norm.isf(0.01) - 1.5) < rate.high


def test_scores_that_know_nothing_are_at_one_half_as_often_as_an_interval_says() -> None:
    inside = [
        found.auc.low <= 0.5 <= found.auc.high for found in (measure(*drawn(80, 80, 0), draws=200) for _ in range(60))
    ]
    assert sum(inside) >= 50


def test_only_the_order_counts() -> None:
    members, others = drawn(100, 100, 0.5)
    one, other = (measure(change(members), change(others), draws=FEW) for change in (np.asarray, np.exp))
    assert np.array_equal(one.value, other.value)
    assert np.array_equal(one.drawn, other.drawn)
    assert measure(-members, -others, draws=FEW).auc.value == pytest.approx(1 - one.auc.value)


def test_knowing_the_class_alone_is_worth_nothing() -> None:
    members, others = np.r_[np.zeros(90, int), np.ones(10, int)], np.r_[np.zeros(20, int), np.ones(80, int)]
    told, naive = (
        measure(-members.astype(float), -others.astype(float), weights, draws=FEW).auc.value
        for weights in (class_weights(members, others), None)
    )
    assert told == pytest.approx(0.5)
    assert naive > 0.8


def test_members_that_are_perfectly_known() -> None:
    found = measure(np.ones(30), np.zeros(200), draws=FEW)
    assert (found.auc.value, found.auc.low, found.tpr(0.01).value) == (1, 1, 1)
    assert found.tpr(0.001) is None, "200 others cannot tell one in a thousand"


def test_lira_takes_away_how_hard_an_example_is() -> None:
    """Examples differ far more than membership moves them: a threshold is lost, a difference is not."""
    size, models = 400, 8
    hard, is_member = RANDOM.normal(0, 10, size), np.arange(size) < 200
    inside = RANDOM.permuted(np.repeat([[True], [False]], models // 2, axis=0).repeat(size, axis=1), axis=0)
    outside = hard + np.where(inside, 99.0, RANDOM.normal(0, 0.3, (models, size)))
    scores = hard + is_member + RANDOM.normal(0, 0.3, size)
    calibrated = without_outside(scores, inside, outside)
    assert measure(scores[is_member], scores[~is_member], draws=FEW).auc.value < 0.65
    assert measure(calibrated[is_member], calibrated[~is_member], draws=FEW).auc.value > 0.95
    outside[inside] = 1e9
    assert np.array_equal(calibrated, without_outside(scores, inside, outside)), "who was inside does not count"


def test_no_model_without_an_example_is_no_score() -> None:
    inside = np.array([[True, False], [True, True]])
    found = without_outside(np.zeros(2), inside, np.array([[1.0, 2.0], [3.0, np.nan]]))
    assert np.isnan(found[0])
    assert found[1] == -2


def test_a_mean_over_parties() -> None:
    others = RANDOM.normal(0, 1, 100)
    parties = [measure(RANDOM.normal(1, 1, 50), others, seed=seed, draws=FEW) for seed in range(4)]
    both = mean(parties)
    assert both.auc.value == pytest.approx(np.mean([one.auc.value for one in parties]))
    assert both.auc.high - both.auc.low < max(one.auc.high - one.auc.low for one in parties)


def test_what_epsilon_allows() -> None:
    assert most_that_epsilon_allows(0.01, 0, 0) == pytest.approx(0.01)
    assert most_that_epsilon_allows(0.01, 1, 1e-5) == pytest.approx(math.e * 0.01 + 1e-5)
    assert most_that_epsilon_allows(0.01, 1e6, 1e-5) == 1
    # Randomised response with this epsilon reaches exactly what is allowed at its own rate.
    epsilon = 2.0
    false = 1 / (1 + math.exp(epsilon))
    assert most_that_epsilon_allows(false, epsilon, 0) == pytest.approx(1 - false)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_what_epsilon_of_a_client_allows_about_one_example(epsilon: float) -> None:
    """A client may say y + noise with its data, -y + noise without one example, and noise if it is blank.

    That is as private as Gaussian noise is between y and 0; yet the best attack on the example goes twice as far.
    """
    delta, far = 1e-3, 1.0
    while gaussian_delta(far, epsilon) > delta:
        far *= 0.99
    normal = NormalDist()
    best = normal.cdf(normal.inv_cdf(0.01) + 2 * far)
    assert most_that_epsilon_allows(0.01, epsilon, delta) < best
    assert best <= most_that_epsilon_allows(0.01, epsilon, delta, of_a_client=True) <= 1
    group = math.exp(2 * epsilon) * 0.01 + (1 + math.exp(epsilon)) * delta
    assert most_that_epsilon_allows(0.01, epsilon, delta, of_a_client=True) <= group + 1e-12


def gaussian_delta(far: float, epsilon: float) -> float:
    """Exactly (Balle and Wang, 2018), for noise of 1 and neighbours that are so far from each other."""
    normal = NormalDist()
    return normal.cdf(far / 2 - epsilon / far) - math.exp(epsilon) * normal.cdf(-far / 2 - epsilon / far)
