"""How members are heard together: the bits of a federation's ensemble, and digits of which each member knows some."""

from __future__ import annotations

from itertools import product
from typing import get_args

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from fedfuse.parts.scores import ByConfidence, ByEntropy, ByVariance
from fedfuse.parts.teachers import Asked, Ensemble
from fedfuse.parts.voting import Heard, LabelSets, Loudness, Voting, Weighting
from tests.helpers import make_source
from tests.parts.teachers.test_ensemble import TARGETS, mixed

WEIGHTINGS = [weighting for weighting in get_args(Weighting) if weighting != "given"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("weighting", ["uniform", "confidence", "entropy", "given"])
def test_where_all_know_all_classes_the_bits_are_those_of_a_federation(target, weighting):
    bank, teachers = mixed()
    source = make_source(40)
    weigh = {"confidence": ByConfidence().weigh, "entropy": ByEntropy().weigh, "given": ByVariance().weigh}.get(
        weighting
    )
    federation = Ensemble(bank, teachers, target, weigh)
    said = federation.each(Asked.about(source, source.all_indices()))
    heard = Heard(said, LabelSets.equal(len(said), 3), given=[1.0 for _ in said], weigh=ByVariance().weigh)
    [expected] = federation.answers([Asked.about(source, source.all_indices())], lambda *_: None)
    assert torch.equal(Voting(target, "as_is", weighting).fitted(heard).log_probabilities(said), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_the_order_of_a_members_classes_means_nothing(target):
    generator = torch.Generator().manual_seed(0)
    said = [torch.randn(20, 4, generator=generator) for _ in range(3)]
    orders = [torch.randperm(4, generator=generator) for _ in said]
    labels = torch.randint(4, (20,), generator=generator)
    mixed_up = LabelSets(tuple(orders), 4)
    for weighting in WEIGHTINGS:
        one = Voting(target, "calibrated", weighting)
        plain = one.fitted(Heard(said, LabelSets.equal(3, 4), labels)).log_probabilities(said)
        shuffled = [logits[:, order] for logits, order in zip(said, orders, strict=True)]
        other = one.fitted(Heard(shuffled, mixed_up, labels)).log_probabilities(shuffled)
        assert torch.allclose(plain, other, atol=1e-5), weighting


@pytest.mark.parametrize(("target", "loudness", "weighting"), [*product(TARGETS, get_args(Loudness), WEIGHTINGS)])
def test_every_way_gives_distributions_over_all_classes(target, loudness, weighting):
    generator = torch.Generator().manual_seed(1)
    sets = LabelSets((torch.tensor([0, 1, 2]), torch.tensor([2, 3]), torch.tensor([4, 5])), 6)
    said = [5 * torch.randn(30, len(own), generator=generator) for own in sets.columns]
    labels = torch.randint(6, (30,), generator=generator)
    answer = Voting(target, loudness, weighting).fitted(Heard(said, sets, labels)).log_probabilities(said)
    assert answer.shape == (30, 6)
    assert torch.allclose(answer.exp().sum(dim=1), torch.ones(30), atol=1e-5)
    assert (answer.exp() > 0).all(), "every class has somebody who knows it"


def digits(*known):
    """Logistic regressions that were shown some digits only, asked about all of them."""
    inputs, labels = load_digits(return_X_y=True)
    inputs, train = inputs / 16, np.arange(len(labels)) % 2 == 0
    said = []
    for own in known:
        mine = train & np.isin(labels, own)
        model = LogisticRegression(max_iter=200).fit(inputs[mine], labels[mine])
        said.append(torch.from_numpy(model.decision_function(inputs[~train])).float())
    sets = LabelSets(tuple(torch.tensor(own) for own in known), 10)
    return said, sets, torch.from_numpy(labels[~train])


def zeros_for_unknown(said, sets):
    total = torch.zeros(len(said[0]), 10)
    for own, one in zip(sets.columns, said, strict=True):
        total[:, own] += one.softmax(dim=1)
    return total


def accuracy(answer, labels):
    return float((answer.argmax(dim=1) == labels).double().mean())


@pytest.mark.parametrize("target", TARGETS)
def test_digits_that_overlap(target):
    said, sets, labels = digits([0, 1, 2, 3, 4, 5, 6], [4, 5, 6, 7, 8, 9])
    answer = Voting(target).fitted(Heard(said, sets)).log_probabilities(said)
    assert accuracy(answer, labels) > accuracy(zeros_for_unknown(said, sets), labels) + 0.03
    assert accuracy(answer, labels) > 0.85


def test_digits_that_nobody_shares():
    said, sets, labels = digits([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])
    quiet = [said[0], 0.2 * said[1]]
    plain, uneven = zeros_for_unknown(said, sets), zeros_for_unknown(quiet, sets)
    ours = [Voting().fitted(Heard(one, sets)).log_probabilities(one) for one in (said, quiet)]
    assert accuracy(ours[0], labels) > 0.8
    assert accuracy(ours[0], labels) > accuracy(plain, labels) - 0.01
    assert accuracy(ours[1], labels) > accuracy(uneven, labels) + 0.1, "familiarity does not go by loudness"


def test_one_group_of_several_is_heard_row_by_row():
    said, sets, _ = digits([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])
    fitted = Voting().fitted(Heard(said, sets))
    whole = fitted.log_probabilities(said)
    assert torch.equal(fitted.log_probabilities([one[10:20] for one in said]), whole[10:20])


def test_weights_by_labels():
    labels = torch.tensor([0, 0, 1, 1])
    right, half = torch.eye(2)[labels], torch.eye(2)[torch.tensor([0, 0, 0, 0])]
    heard = Heard([right, half], LabelSets.equal(2, 2), labels)
    assert Voting(weighting="accuracy").fitted(heard).weights == pytest.approx((5 / 6, 3 / 6))
    [all_right, first_only] = Voting(weighting="class_accuracy").fitted(heard).weights
    assert all_right.tolist() == pytest.approx([(2 + 5 / 6) / 3] * 2)
    assert first_only.tolist() == pytest.approx([(2 + 0.5) / 3, 0.5 / 3])
