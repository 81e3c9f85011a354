"""Iterative weighted majority voting: against plain loops, against its laws, and against liars."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.core.weights import NOTHING
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.scores import ByReliability, Said
from fedfuse.parts.scores.reliability import reliabilities
from fedfuse.runtime.predict import logits_on
from tests.helpers import TinyNorm, make_bank, make_source, make_update, make_view, make_weights

CLASSES = 4


def answers(*rows, classes=CLASSES):
    """Teachers who are sure of these classes."""
    return [torch.eye(classes)[torch.tensor(row)] for row in rows]


def knowing(share, truth, seed):
    """One who knows the class of such a share of the inputs, and guesses the others."""
    random = np.random.default_rng(seed)
    guesses = random.integers(0, CLASSES, len(truth))
    return np.where(random.random(len(truth)) < share, truth, guesses).tolist()


def by_hand(said, classes):
    """The module's equations in loops over numbers."""
    weights, vote = [1.0] * len(said), None
    for _ in range(50):
        before = vote
        vote = []
        for place in range(len(said[0])):
            counts = Counter(dict.fromkeys(range(classes), 0.0))
            for own, weight in zip(said, weights, strict=True):
                counts[own[place]] += weight
            vote.append(max(range(classes), key=lambda c: (counts[c], -c)))
        if vote == before:
            break
        there = sorted(set(vote))
        weights = []
        for own in said:
            shares = [np.mean([own[i] == c for i in range(len(vote)) if vote[i] == c]) for c in there]
            chance = 1 / len(there)
            weights.append(max(0.0, (np.mean(shares) - chance) / max(1 - chance, 1e-12)))
        if not any(weights):
            weights = [1.0] * len(said)
    return weights


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 1000))
@settings(max_examples=60)
def test_it_is_what_the_equations_say(teachers, inputs, seed):
    said = np.random.default_rng(seed).integers(0, CLASSES, (teachers, inputs)).tolist()
    assert reliabilities(answers(*said)).tolist() == pytest.approx(by_hand(said, CLASSES))


@given(st.permutations(range(5)), st.integers(0, 100))
@settings(max_examples=20)
def test_the_order_of_teachers_and_inputs_does_not_matter(order, seed):
    truth = np.random.default_rng(seed).integers(0, CLASSES, 60)
    said = [knowing(0.3 + 0.15 * k, truth, seed + k) for k in range(5)]
    found = reliabilities(answers(*said))
    assert reliabilities(answers(*(said[k] for k in order))).tolist() == pytest.approx(found[list(order)].tolist())
    assert reliabilities(answers(*(row[::-1] for row in said))).tolist() == pytest.approx(found.tolist())


def test_who_knows_more_counts_more():
    truth = np.random.default_rng(0).integers(0, CLASSES, 500)
    found = reliabilities(answers(*(knowing(share, truth, k) for k, share in enumerate((0.9, 0.7, 0.5, 0.3)))))
    assert found.tolist() == sorted(found.tolist(), reverse=True)
    assert found.tolist() == pytest.approx([0.9, 0.7, 0.5, 0.3], abs=0.1), "about what each knows"


LIES = {
    "the next class": lambda truth, seed: [(c + 1) % CLASSES for c in knowing(0.6, truth, seed)],
    "always the same": lambda truth, _: [0] * len(truth),
    "anything": lambda truth, seed: knowing(0.0, truth, seed),
}


@pytest.mark.parametrize("lie", LIES)
def test_two_fifths_of_liars_are_not_heard(lie):
    """Honest teachers who know 60 % of the answers; whatever the others say, they count for next to nothing."""
    truth = np.random.default_rng(1).integers(0, CLASSES, 400)
    honest = [knowing(0.6, truth, k) for k in range(6)]
    found = reliabilities(answers(*honest, *(LIES[lie](truth, 10 + k) for k in range(4)))).tolist()
    assert min(found[:6]) > 0.4
    assert max(found[6:]) < 0.15


def test_liars_that_agree_more_than_honest_teachers_do_are_believed():
    """What no vote without labels can bear; docs/robustness.md says so."""
    truth = np.random.default_rng(2).integers(0, CLASSES, 400)
    lie = [(int(c) + 1) % CLASSES for c in truth]
    found = reliabilities(answers(*(knowing(0.3, truth, k) for k in range(6)), *[lie] * 4)).tolist()
    assert min(found[6:]) > max(found[:6])


def test_where_nobody_knows_more_than_a_guess_all_count_the_same():
    assert reliabilities(answers([0], [1], [2])).tolist() == [1.0, 1.0, 1.0]
    assert reliabilities(answers([2, 2, 2], [2, 2, 2])).tolist() == [1.0, 1.0]


def test_predictions_are_weighed_as_a_whole():
    truth = np.random.default_rng(3).integers(0, CLASSES, 100)
    tables = answers(*(knowing(share, truth, k) for k, share in enumerate((0.9, 0.6, 0.0))))
    said = [Said(make_update(NOTHING, client=k), table) for k, table in enumerate(tables)]
    found = Predictions().combine(tables, ByReliability().weights(said)).outputs
    weights = reliabilities(tables)
    expected = sum(weight * table for weight, table in zip(weights / weights.sum(), tables, strict=True))
    torch.testing.assert_close(found.double(), expected.double(), atol=1e-6, rtol=0)


def test_models_of_any_architecture_are_asked_about_public_inputs():
    bank, source = make_bank(mlp=TinyNorm(), other=TinyNorm(width=4)), make_source(40)
    names = ("mlp", "other", "mlp")
    updates = [make_update(make_weights(bank, p, k), prototype=p, client=k) for k, p in enumerate(names)]
    said = [logits_on(source, bank.lend(update.prototype, update.weights)) for update in updates]
    view = make_view(bank=bank, source=source)
    assert ByReliability().of_models(view, updates) == pytest.approx(reliabilities(said).tolist())
