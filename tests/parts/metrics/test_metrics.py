"""Every metric against a program of loops, or another function of scikit-learn than the one it calls."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from fedfuse.parts.metrics import (
    Accuracy,
    AnyMetric,
    Auroc,
    BalancedAccuracy,
    CalibrationError,
    Loss,
    MacroF1,
    PerClassAccuracy,
    Predictions,
)
from tests.helpers import kinds

METRICS = [metric() for metric in kinds(AnyMetric)]
MACRO = [Accuracy(), Loss(), MacroF1(), BalancedAccuracy(), Auroc(), CalibrationError()]


@pytest.fixture(autouse=True)
def _nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def predictions(logits, labels, names=None):
    table = np.asarray(logits, dtype=float)
    return Predictions(table, np.asarray(labels), tuple(names or (f"c{n}" for n in range(table.shape[1]))))


@st.composite
def tables(draw):
    """Coarse logits, so that ties are common; labels that often lack a class."""
    classes, count = draw(st.integers(2, 5)), draw(st.integers(1, 30))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    logits = random.integers(-3, 4, (count, classes)) / draw(st.sampled_from([1.0, 3.0, 0.1]))
    return predictions(logits, random.integers(0, draw(st.integers(1, classes)), count))


def each_row(given):
    """Probabilities, the first of the largest, and the label of each example, without numpy."""
    for row, label in zip(given.logits.tolist(), given.labels.tolist(), strict=True):
        total = sum(math.exp(value - max(row)) for value in row)
        yield [math.exp(value - max(row)) / total for value in row], row.index(max(row)), label


@settings(max_examples=60, deadline=None)
@given(tables())
def test_accuracy_and_loss_are_scikit_learns(given):
    right = [answer == label for _, answer, label in each_row(given)]
    assert Accuracy().compute(given) == sum(right) / len(right)
    assert Accuracy().compute(given) == pytest.approx(accuracy_score(given.labels, given.predicted))
    table = np.array([row for row, _, _ in each_row(given)])
    if table.min() > 1e-12:  # what is nearly zero scikit-learn takes for more than it is
        assert Loss().compute(given) == pytest.approx(log_loss(given.labels, table, labels=range(given.classes)))
    losses = [-math.log(row[label]) for row, _, label in each_row(given)]
    assert Loss().compute(given) == pytest.approx(sum(losses) / len(losses), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_macro_f1_is_counted_by_hand(given):
    answers = [(answer, label) for _, answer, label in each_row(given)]
    scores = []
    for number in {one for pair in answers for one in pair}:
        hits = sum(answer == label == number for answer, label in answers)
        asked = sum(answer == number for answer, _ in answers) + sum(label == number for _, label in answers)
        scores.append(2 * hits / asked)
    assert MacroF1().compute(given) == pytest.approx(sum(scores) / len(scores))


@settings(max_examples=60, deadline=None)
@given(tables())
def test_per_class_accuracy_is_counted_by_hand_and_balanced_accuracy_is_its_mean(given):
    answers = [(answer, label) for _, answer, label in each_row(given)]
    expected = {}
    for number, name in enumerate(given.class_names):
        own = [answer == number for answer, label in answers if label == number]
        expected[name] = sum(own) / len(own) if own else None
    assert PerClassAccuracy().compute(given) == expected
    there = [value for value in expected.values() if value is not None]
    assert BalancedAccuracy().compute(given) == pytest.approx(sum(there) / len(there))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of answers that are no example's class
        by_another_function = balanced_accuracy_score(given.labels, given.predicted)
    assert BalancedAccuracy().compute(given) == pytest.approx(by_another_function)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_auroc_is_the_share_of_pairs_in_the_right_order(given):
    areas = []
    for number in range(given.classes):
        column = given.probabilities[:, number].tolist()
        own = [p for p, label in zip(column, given.labels, strict=True) if label == number]
        others = [p for p, label in zip(column, given.labels, strict=True) if label != number]
        pairs = [(a > b) + (a == b) / 2 for a in own for b in others]
        areas.append(sum(pairs) / len(pairs) if pairs else None)
    if None in areas:
        assert Auroc().compute(given) is None
    else:
        assert Auroc().compute(given) == pytest.approx(sum(areas) / len(areas))


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from([1, 2, 5, 15]))
def test_calibration_error_is_added_up_bin_by_bin(given, bins):
    confidence, right = given.probabilities.max(axis=1), given.predicted == given.labels
    edges = np.linspace(0, 1, bins + 1)
    expected = 0.0
    for low, high in pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert CalibrationError(bins=bins).compute(given) == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.kind)
@settings(max_examples=20, deadline=None)
@given(given=tables(), seed=st.integers(0, 99))
def test_the_order_of_the_examples_does_not_matter(metric, given, seed):
    order = np.random.default_rng(seed).permutation(len(given.labels))
    mixed = predictions(given.logits[order], given.labels[order])
    assert metric.compute(mixed) == pytest.approx(metric.compute(given))


@pytest.mark.parametrize("metric", MACRO, ids=lambda metric: metric.kind)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 9999), classes=st.integers(2, 5))
def test_the_order_of_the_classes_does_not_matter(metric, seed, classes):
    random = np.random.default_rng(seed)
    logits, labels = random.normal(size=(30, classes)), random.integers(0, classes, 30)
    order = random.permutation(classes)
    renamed = predictions(logits[:, order], np.argsort(order)[labels])
    assert metric.compute(renamed) == pytest.approx(metric.compute(predictions(logits, labels)))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.kind)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 9999))
def test_logits_and_log_probabilities_are_the_same_predictions(metric, seed):
    random = np.random.default_rng(seed)
    given = predictions(random.normal(size=(20, 3)), random.integers(0, 3, 20))
    again = predictions(given.log_probabilities, given.labels)
    assert metric.compute(again) == pytest.approx(metric.compute(given))


PERFECT = predictions(100 * np.eye(4), range(4))
CONSTANT = predictions([[9.0, 0, 0, 0]] * 4, range(4))
TIED = predictions(np.zeros((4, 4)), range(4))
ALONE = predictions([[1.0, 3, 2, 0]], [2])
TWO = predictions([[2.0, 0], [0, 1], [0, 3], [1, 0]], [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("metric", "perfect", "constant", "tied", "alone", "two"),
    [
        (Accuracy(), 1, 0.25, 0.25, 0, 0.5),
        (MacroF1(), 1, 0.1, 0.1, 0, 0.5),
        (BalancedAccuracy(), 1, 0.25, 0.25, 0, 0.5),
        (Auroc(), 1, 0.5, 0.5, None, 0.75),
        (CalibrationError(bins=1), 0, None, 0, math.exp(3) / sum(map(math.exp, range(4))), None),
        (Loss(), 0, None, math.log(4), 1 + math.log(sum(math.exp(n - 3) for n in range(4))), None),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_at_the_edges(metric, perfect, constant, tied, alone, two):
    assert metric.compute(PERFECT) == pytest.approx(perfect, abs=1e-9)
    assert metric.compute(TIED) == pytest.approx(tied)
    assert metric.compute(ALONE) == pytest.approx(alone)
    if constant is not None:
        assert metric.compute(CONSTANT) == pytest.approx(constant)
        assert metric.compute(TWO) == pytest.approx(two)


def test_the_arrays_cannot_be_written_to():
    given = predictions([[1.0, 2.0]], [1])
    for array in (given.probabilities, given.log_probabilities, given.predicted):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_confidence_on_an_edge_belongs_to_the_bin_below():
    half = predictions([[0.0, 0.0], [0.0, 1.0]], [0, 0])
    sure = 1 / (1 + math.exp(-1))
    assert CalibrationError(bins=2).compute(half) == pytest.approx((abs(1 - 0.5) + sure) / 2)
