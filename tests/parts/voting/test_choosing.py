"""Which ensemble is chosen: clear differences are seen, luck is not, and the table says what was compared."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from fedfuse.parts.voting import Heard, LabelSets, Voting, compare, measured, ways_to_vote
from fedfuse.parts.voting.choosing import agreement

CLASSES = 5
DEFAULT = Voting()


def members(inputs, seed=0, shout=1.0):
    """Three members that know something, and one that knows nothing and says so as loud as you like."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (inputs,), generator=generator)
    truth = torch.nn.functional.one_hot(labels, CLASSES).float()
    said = [truth + 0.8 * torch.randn(inputs, CLASSES, generator=generator) for _ in range(3)]
    said.append(shout * torch.randn(inputs, CLASSES, generator=generator))
    return said, labels


def heard(inputs, with_labels=True, **more):
    said, labels = members(inputs, **more)
    return Heard(said, LabelSets.equal(4, CLASSES), labels if with_labels else None)


def test_the_default_is_the_mean_of_probabilities():
    assert ways_to_vote(with_labels=True)[0] == ways_to_vote(with_labels=False)[0] == DEFAULT
    assert not any(way.needs_labels for way in ways_to_vote(with_labels=False))
    assert len(set(map(str, ways_to_vote(with_labels=True)))) == 30


@pytest.mark.parametrize("with_labels", [True, False])
def test_a_member_that_shouts_nonsense_is_made_quiet(with_labels):
    choice = compare(heard(400, with_labels, shout=50.0))
    said, labels = members(1000, seed=1, shout=50.0)
    fresh = Heard(said, LabelSets.equal(4, CLASSES))
    chosen = measured(choice.fitted.log_probabilities(said), labels).accuracy
    usual = measured(DEFAULT.fitted(fresh).log_probabilities(said), labels).accuracy
    assert chosen > usual + 0.1
    [row] = [row for row in choice.rows if row.chosen]
    assert row.voting == choice.voting != DEFAULT
    assert choice.why.startswith(f"{choice.voting}: ")
    assert str(DEFAULT) in choice.why


def test_twenty_labels_do_not_lead_far_astray():
    said, labels = members(2000, seed=99)
    usual = measured(DEFAULT.fitted(Heard(said, LabelSets.equal(4, CLASSES))).log_probabilities(said), labels)
    for seed in range(4):
        chosen = compare(heard(20, seed=seed)).fitted
        assert measured(chosen.log_probabilities(said), labels).accuracy > usual.accuracy - 0.05


def test_labels_that_say_nothing_leave_the_accuracy_alone():
    """Of labels at random, what is fitted would seem to know some, were it measured on what it has seen."""
    said, labels = members(60)
    noise = labels[torch.randperm(60, generator=torch.Generator().manual_seed(5))]
    choice = compare(Heard(said, LabelSets.equal(4, CLASSES), noise))
    best = max(row.measures.accuracy for row in choice.rows)
    assert best < 1 / CLASSES + 4 * math.sqrt(0.2 * 0.8 / 60)


def test_one_label_is_enough_to_go_on():
    choice = compare(heard(1))
    assert choice.voting == DEFAULT
    assert choice.fitted.log_probabilities(members(3)[0]).isfinite().all()


def test_measures_by_hand():
    answer = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]]).log()
    measures = measured(answer, torch.tensor([0, 1, 1]))
    assert measures.accuracy == pytest.approx(2 / 3)
    assert measures.nll == pytest.approx(-np.log([0.7, 0.3, 0.5]).mean())
    assert measures.calibration_error == pytest.approx((0.3 + 0.6 + 0.5) / 3)
    impossible = torch.tensor([[0.0, -torch.inf, -torch.inf]])
    assert math.isfinite(measured(impossible, torch.tensor([1])).nll)


def test_agreement_by_hand():
    sets = LabelSets((torch.tensor([0, 1]), torch.tensor([1, 2])), 3)
    ensemble = torch.tensor([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3]]).log()
    said = [torch.tensor([[0.9, 0.1], [0.4, 0.6]]).log(), torch.tensor([[0.3, 0.7], [0.2, 0.8]]).log()]
    assert agreement(ensemble, said, sets) == pytest.approx((0.9 + 0.6 + 0.7 + 0.2) / 4)


def test_the_same_answers_make_the_same_choice():
    one, other = compare(heard(50)), compare(heard(50))
    assert one.why == other.why
    assert one.rows == other.rows
    assert one.fitted.factors == other.fitted.factors


def test_only_the_ways_that_are_asked_for_are_tried():
    ways = [Voting("mean_logits"), Voting("mean_logits", "normalised")]
    assert [row.voting for row in compare(heard(30), ways).rows] == ways


@pytest.mark.parametrize("with_labels", [True, False])
@pytest.mark.parametrize("way", [DEFAULT, Voting("mean_logits", "calibrated", "confidence")], ids=str)
def test_an_ensemble_that_is_made_sure_prefers_what_it_preferred(with_labels, way):
    asked = heard(300, with_labels)
    before = compare(asked, [way])
    after = before.as_sure_as_right(asked)
    plain, sure = (one.fitted.log_probabilities(asked.said) for one in (before, after))
    assert torch.equal(plain.argmax(dim=1), sure.argmax(dim=1))
    assert torch.allclose(sure, (after.fitted.sureness * plain).log_softmax(dim=1))
    assert torch.allclose(sure.exp().sum(dim=1), torch.ones(300))
    assert after.why.startswith(before.why)


def test_an_ensemble_of_equals_that_differ_is_less_sure_than_it_is_right_until_it_is_made_so():
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (4000,), generator=generator)
    truth = torch.nn.functional.one_hot(labels, CLASSES).float()
    said = [truth + 0.8 * torch.randn(4000, CLASSES, generator=generator) for _ in range(8)]
    asked = Heard([one[:2000] for one in said], LabelSets.equal(8, CLASSES), labels[:2000])
    choice = compare(asked, [DEFAULT])
    before, after = (
        measured(one.fitted.log_probabilities([own[2000:] for own in said]), labels[2000:])
        for one in (choice, choice.as_sure_as_right(asked))
    )
    assert after.accuracy == before.accuracy
    assert before.calibration_error > 0.3
    assert after.calibration_error < 0.05
    assert after.nll < before.nll
    assert choice.as_sure_as_right(asked).fitted.made_sure(asked) == choice.as_sure_as_right(asked).fitted


def test_without_labels_an_ensemble_of_one_opinion_is_as_sure_as_its_members_to_begin_with():
    said, _ = members(100)
    asked = Heard([said[0]] * 3, LabelSets.equal(3, CLASSES))
    assert compare(asked, [DEFAULT]).as_sure_as_right(asked).fitted.sureness == pytest.approx(1, abs=1e-5)
