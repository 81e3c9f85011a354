"""Soups: the mean, and the greedy choice played by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.parts.base import CheckContext
from fedfuse.parts.merge import Mean, Soup
from fedfuse.runtime.evaluate import Score
from fedfuse.runtime.optimizers import Sgd
from fedfuse.testing import check_part
from tests.parts.merge.material import BANK, assert_near, moved, numbers, trained


class Taster:
    """Knows the accuracy of every average of some models, and remembers what it was asked."""

    def __init__(self, models, accuracies, losses=None):
        self.models, self.accuracies, self.losses = models, accuracies, losses or {}
        self.tasted = []

    def __call__(self, weights):
        places = next(
            places
            for places in self.accuracies
            if np.allclose(numbers(weights), np.mean([numbers(self.models[p]) for p in places], axis=0), atol=1e-6)
        )
        self.tasted.append(places)
        return Score(self.accuracies[places], self.losses.get(places, 1.0))


def test_uniform_is_the_mean():
    models = moved(3)
    merged = Soup(form="uniform").combine(trained(models))
    assert_near(merged, np.mean([numbers(model) for model in models], axis=0))


def test_greedy_takes_what_makes_it_no_worse():
    models = moved(4)
    accuracies = {(0,): 0.5, (1,): 0.8, (2,): 0.6, (3,): 0.7, (1, 3): 0.75, (1, 2): 0.8, (0, 1, 2): 0.79}
    taster = Taster(models, accuracies)
    material = trained(models, score=taster)
    assert Soup().ingredients(material) == [1, 2]
    assert taster.tasted == [(0,), (1,), (2,), (3,), (1, 3), (1, 2), (0, 1, 2)]
    assert_near(Soup().combine(material), (numbers(models[1]) + numbers(models[2])) / 2)


def test_of_equally_good_models_the_one_with_the_smaller_loss_begins():
    models = moved(2)
    taster = Taster(models, {(0,): 0.5, (1,): 0.5, (0, 1): 0.1}, {(1,): 0.9})
    assert Soup().ingredients(trained(models, score=taster)) == [1]
    assert Soup().combine(trained(models, score=taster)).equals(models[1])


def test_of_copies_the_first_begins_and_all_go_in():
    (model,) = moved(1)
    material = trained([model] * 3, score=lambda _: Score(0.5, 1.0))
    assert Soup().ingredients(material) == [0, 1, 2]
    assert Soup().combine(material).equals(model)


def test_greedy_is_never_worse_than_the_best_model():
    models = moved(5)

    def score(weights):
        return Score(float(np.cos(100 * numbers(weights).sum())), 1.0)

    merged = Soup().combine(trained(models, score=score))
    assert score(merged).accuracy >= max(score(model).accuracy for model in models)


def test_greedy_needs_validation_examples():
    without = CheckContext(BANK, Sgd(), has_validation=False)
    with pytest.raises(ConfigError, match=r"tastes every average on validation examples; set data\.validation"):
        Soup().check(without)
    Soup(form="uniform").check(without)


def test_keeps_the_laws():
    check_part(Soup(), workers=False)


def test_uniform_by_examples_is_fedavg():
    check_part(Soup(form="uniform", weighting="examples"), equals=Mean(), workers=False)
