"""How loud members speak, against independent computations of temperatures."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.optimize import minimize_scalar

from fedfuse.parts.voting.loudness import factors, sureness


def members():
    generator = torch.Generator().manual_seed(0)
    return [loud * torch.randn(200, 5, generator=generator) for loud in (0.3, 2.0, 15.0)]


def heard(said, found):
    return [one.double() * factor for one, factor in zip(said, found, strict=True)]


def test_as_they_are():
    assert factors("as_is", members()) == (1.0, 1.0, 1.0)


def test_normalised_members_deviate_alike_and_keep_their_common_size():
    said = members()
    found = factors("normalised", [one + 100 for one in said])
    spreads = [float((one - one.mean(dim=1, keepdim=True)).square().mean().sqrt()) for one in heard(said, found)]
    assert spreads == pytest.approx([spreads[0]] * 3, rel=1e-5)
    assert math.prod(found) == pytest.approx(1)


def test_without_labels_members_are_made_equally_sure():
    said = [*members(), torch.randn(200, 3, generator=torch.Generator().manual_seed(1))]

    def hesitation(one):
        p = one.double().softmax(dim=1)
        return float(-(p * p.log()).sum(dim=1).mean()) / math.log(one.shape[1])

    after = [hesitation(one) for one in heard(said, factors("calibrated", said))]
    assert after == pytest.approx([sum(map(hesitation, said)) / 4] * 4, rel=1e-5)


def test_with_labels_the_temperature_is_the_likeliest():
    said = members()
    labels = [one.argmax(dim=1) for one in said]
    for label in labels:
        label[::3] = (label[::3] + 1) % 5
    unknown = labels[1].clone()
    unknown[50:] = -1
    for label, one, factor in zip(
        [labels[0], unknown, labels[2]], said, factors("calibrated", said, [labels[0], unknown, labels[2]]), strict=True
    ):
        known = label >= 0

        def loss(log_factor, one=one[known], label=label[known]):
            p = (one.double() * math.exp(log_factor)).log_softmax(dim=1).numpy()
            return -sum(p[row, int(true)] for row, true in enumerate(label)) + log_factor**2 / 2

        assert math.log(factor) == pytest.approx(minimize_scalar(loss, bounds=(-7, 7), method="bounded").x, abs=1e-4)


def test_a_few_right_answers_do_not_make_a_member_absolutely_sure():
    said = [torch.eye(3).repeat(3, 1)]
    [factor] = factors("calibrated", said, [said[0].argmax(dim=1)])
    assert 1 < factor < 20


def test_members_that_say_nothing_stay_as_they_are():
    nothing = torch.zeros(10, 4)
    assert factors("normalised", [nothing, nothing]) == (1.0, 1.0)
    assert all(math.isfinite(factor) for factor in factors("calibrated", [nothing, members()[0][:10]]))
    assert factors("calibrated", [torch.zeros(10, 1), members()[0][:10]])[0] == 1.0
    assert factors("calibrated", [nothing], [torch.full((10,), -1)])[0] == pytest.approx(1, abs=1e-6)


def test_an_ensemble_is_made_as_sure_as_labels_say():
    ensemble = torch.stack([one.softmax(dim=1) for one in members()]).mean(dim=0).log()
    labels = ensemble.argmax(dim=1)
    labels[::4] = (labels[::4] + 1) % 5

    def loss(log_factor):
        p = (ensemble.double() * math.exp(log_factor)).log_softmax(dim=1).numpy()
        return -sum(p[row, int(true)] for row, true in enumerate(labels)) + log_factor**2 / 2

    found = math.log(sureness(ensemble, members(), labels))
    assert found == pytest.approx(minimize_scalar(loss, bounds=(-7, 7), method="bounded").x, abs=1e-4)


def test_without_labels_it_hesitates_as_its_members_do_on_average():
    said = members()
    ensemble = torch.stack([one.softmax(dim=1) for one in said]).mean(dim=0).log()

    def hesitation(one):
        p = one.double().softmax(dim=1)
        return float(torch.special.entr(p).sum(dim=1).mean())

    mended = ensemble.double() * sureness(ensemble, said)
    assert hesitation(mended) == pytest.approx(sum(map(hesitation, said)) / 3, rel=1e-5)
    assert hesitation(ensemble) > hesitation(mended)


def test_what_an_ensemble_holds_for_impossible_stays_so_and_breaks_nothing():
    ensemble = torch.tensor([[-math.inf, 0.5, 0.5], [0.2, 0.3, 0.5]]).log_softmax(dim=1)
    for labels in (torch.tensor([0, 2]), None):
        found = sureness(ensemble, [ensemble], labels)
        assert 0 < found < math.inf
        assert (ensemble * found).log_softmax(dim=1)[0, 0] == -math.inf
    assert sureness(torch.empty(0, 3), [torch.empty(0, 3)]) == 1.0
